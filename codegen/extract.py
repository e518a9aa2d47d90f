"""``python -m codegen.extract``: facts of Kafka's schemas, out of its jars, into ``schemas/``.

A schema in a jar is JSON with comments. The extract keeps what a codec or a reader needs: names, keys, types,
versions, tags, defaults, map keys, entity types, listeners. It leaves out comments and ``about`` texts.
"""

from __future__ import annotations

import hashlib
import json
import sys
import zipfile
from pathlib import Path
from typing import Any

from codegen.jars import KAFKA_VERSION, resolve

SCHEMAS = Path(__file__).resolve().parent.parent / "schemas"
MANIFEST = "MANIFEST.json"
FOLDERS = ("common/message/", "common/metadata/")

MESSAGE_FACTS = (
    "name",
    "type",
    "coordinator",  # added by ``extract``: group, transaction or share
    "apiKey",
    "listeners",
    "validVersions",
    "flexibleVersions",
    "latestVersionUnstable",
    "fields",
    "commonStructs",
)
FIELD_FACTS = (
    "name",
    "type",
    "versions",
    "nullableVersions",
    "taggedVersions",
    "tag",
    "flexibleVersions",
    "default",
    "ignorable",
    "mapKey",
    "entityType",
    "zeroCopy",
    "fields",
)
PROSE = {"about"}

Facts = dict[str, Any]


def parse(text: str) -> Facts:
    """The JSON of a schema file, without its whole-line comments."""
    lines = [line for line in text.split("\n") if not line.lstrip().startswith("//")]
    schema: Facts = json.loads("\n".join(lines))
    return schema


def message_facts(schema: Facts) -> Facts:
    """The facts of a message, in a fixed order of keys.

    Raises ValueError for a key that is neither a known fact nor prose: a newer Kafka may have added one that
    codecs need.
    """
    facts = pick(schema, MESSAGE_FACTS, schema["name"])
    if "fields" in facts:
        facts["fields"] = [field_facts(field, schema["name"]) for field in facts["fields"]]
    if "commonStructs" in facts:
        facts["commonStructs"] = [
            {
                "name": struct["name"],
                "versions": struct["versions"],
                "fields": [field_facts(field, schema["name"]) for field in struct["fields"]],
            }
            for struct in facts["commonStructs"]
        ]
    return facts


def field_facts(field: Facts, owner: str) -> Facts:
    """The facts of a field and of the fields of its struct."""
    where = f"{owner}.{field['name']}"
    facts = pick(field, FIELD_FACTS, where)
    if "fields" in facts:
        facts["fields"] = [field_facts(inner, where) for inner in facts["fields"]]
    return facts


def pick(source: Facts, known: tuple[str, ...], where: str) -> Facts:
    """The known keys of a JSON object; ValueError when it has others that are not prose."""
    strange = set(source) - set(known) - PROSE
    if strange:
        raise ValueError(f"{where}: unknown keys {sorted(strange)}")
    return {key: source[key] for key in known if key in source}


def render(facts: Facts) -> str:
    """A message's facts as JSON with one field a line."""
    return layout(facts, "") + "\n"


def layout(value: object, indent: str) -> str:
    """JSON text: an object or list that holds a list of objects is spread, others take one line."""
    if isinstance(value, dict) and nests(value):
        inner = indent + "  "
        rows = [f"{inner}{json.dumps(key)}: {layout(item, inner)}" for key, item in value.items()]
        return "{\n" + ",\n".join(rows) + f"\n{indent}}}"
    if isinstance(value, list) and any(isinstance(item, dict) for item in value):
        inner = indent + "  "
        return "[\n" + ",\n".join(inner + layout(item, inner) for item in value) + f"\n{indent}]"
    return json.dumps(value)


def nests(value: Facts) -> bool:
    """Return whether an object is a message or has fields of its own."""
    return "validVersions" in value or "fields" in value


def extract(jars: dict[Path, str | None]) -> dict[str, str]:
    """File name in ``schemas/`` -> text, for every schema in the jars, and the manifest.

    A jar's value is the coordinator whose records it holds.
    """
    files: dict[str, str] = {}
    for jar, coordinator in jars.items():
        with zipfile.ZipFile(jar) as archive:
            for entry in archive.namelist():
                if entry.startswith(FOLDERS) and entry.endswith(".json"):
                    schema = parse(archive.read(entry).decode())
                    if coordinator is not None:
                        schema["coordinator"] = coordinator
                    facts = message_facts(schema)
                    name = f"{facts['name']}.json"
                    if name in files:
                        raise ValueError(f"{jar.name}: a second schema with the name {name}")
                    files[name] = render(facts)
    ordered = dict(sorted(files.items()))
    ordered[MANIFEST] = manifest(ordered)
    return ordered


def manifest(files: dict[str, str]) -> str:
    """The Kafka version of the schemas, and a SHA-256 digest of each and of all of them."""
    digests = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in files.items()}
    total = hashlib.sha256("".join(f"{d}  {n}\n" for n, d in digests.items()).encode())
    content = {
        "kafkaVersion": KAFKA_VERSION,
        "count": len(files),
        "sha256": total.hexdigest(),
        "files": digests,
    }
    return json.dumps(content, indent=2) + "\n"


def write(files: dict[str, str], directory: Path) -> None:
    """Make the JSON files of a directory exactly these."""
    directory.mkdir(parents=True, exist_ok=True)
    for old in directory.glob("*.json"):
        if old.name not in files:
            old.unlink()
    for name, text in files.items():
        (directory / name).write_text(text, encoding="utf-8")


def main() -> int:
    files = extract(resolve())
    write(files, SCHEMAS)
    print(f"schemas of Apache Kafka {KAFKA_VERSION}: {len(files) - 1} written to {SCHEMAS.name}/")
    return 0


if __name__ == "__main__":
    sys.exit(main())
