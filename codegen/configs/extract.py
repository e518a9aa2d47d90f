"""``python -m codegen.configs.extract``: facts of Kafka's config definitions into ``schemas/configs/``.

The definitions live in Java classes, not in schema files, so a small Java program (``ConfigFacts.java``) asks
the classes themselves. It keeps names, types, defaults, rules and synonyms, but no descriptions.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from codegen.jars import KAFKA_VERSION, libs

CONFIG_SCHEMAS = Path(__file__).resolve().parent.parent.parent / "schemas" / "configs"
PROGRAM = Path(__file__).with_name("ConfigFacts.java")

DEFINITIONS = ("broker", "broker_quota", "topic", "group", "client_metrics")


def extract(directory: Path) -> dict[str, Any]:
    """The output of ``ConfigFacts`` for the jars of a directory (a whole distribution's ``libs``).

    Raises FileNotFoundError when the directory lacks Kafka's server jars, CalledProcessError when Java fails.
    """
    if not list(directory.glob("kafka-server-[0-9]*.jar")):
        raise FileNotFoundError(
            f"{directory}: no kafka-server jar; run `make test` once, which fetches Apache Kafka, "
            "or copy the libs of a distribution there"
        )
    with tempfile.TemporaryDirectory() as classes:
        jars = f"{directory}/*"
        subprocess.run(
            ["javac", "-nowarn", "-cp", jars, "-d", classes, str(PROGRAM)], check=True, capture_output=True
        )
        command = ["java", "-cp", f"{classes}:{jars}", "ConfigFacts"]
        facts: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return facts


def render(facts: dict[str, Any]) -> dict[str, str]:
    """File name in ``schemas/configs/`` -> text: one definition a file, one key a line, and the synonyms."""
    files = {f"{name}.json": rows(facts[name]) for name in DEFINITIONS}
    rest = {key: value for key, value in facts.items() if key not in DEFINITIONS}
    files["relations.json"] = json.dumps({"kafka": KAFKA_VERSION, **rest}, indent=1) + "\n"
    return files


def rows(keys: list[Any]) -> str:
    return "[\n" + ",\n".join(json.dumps(key) for key in keys) + "\n]\n"


def main() -> int:
    CONFIG_SCHEMAS.mkdir(parents=True, exist_ok=True)
    for name, text in render(extract(libs())).items():
        (CONFIG_SCHEMAS / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
