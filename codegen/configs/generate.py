"""``python -m codegen.configs.generate``: ``schemas/configs/`` into ``kraftd/configdef/facts.py``.

With ``--check`` it writes nothing; the exit code is 1 if the committed output does not fit the schemas.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

from codegen.configs.extract import CONFIG_SCHEMAS, DEFINITIONS

TARGET = Path(__file__).resolve().parent.parent.parent / "kraftd" / "configdef" / "facts.py"

HEADER = '''"""Facts of Apache Kafka {kafka}'s config definitions. Generated from schemas/configs/; do not
edit.

A row is (name, type, default, rule, flag): the default is text, None for null; the rule None or a tuple whose
first item names it (see definition.py); the flag "", "required" (there is no default) or "internal".
"""

# ruff: noqa: E501
# fmt: off
from __future__ import annotations

Rule = tuple[object, ...]
Row = tuple[str, str, str | None, Rule | None, str]

'''

NAMED_RULES = {
    "NonEmptyString": "non_empty",
    "NonNullValidator": "non_null",
    "ThrottledReplicaListValidator": "throttled_replicas",
    "ControllerQuorumVotersValidator": "voters",
    "ControllerQuorumBootstrapServersValidator": "bootstrap_servers",
    "Validator": "share_auto_offset_reset",
}
SETS = ("dynamic", "dynamic_security", "dynamic_per_broker", "dynamic_cluster_listener", "listener_mechanism")
OR_VALUE = re.compile(r"\[(-?\d+),\.\.\.,(-?\d+)\] or (-?\d+)")


def rule(valid: dict[str, Any] | None) -> tuple[object, ...] | None:
    """A row's rule. Raises ValueError for a rule that kraftd cannot express."""
    if valid is None:
        return None
    kind = valid["rule"]
    if kind == "Range":
        return ("range", valid["min"], valid["max"])
    if kind == "ValidString":
        return ("in", tuple(valid["values"]))
    if kind == "CaseInsensitiveValidString":
        return ("in_any_case", tuple(valid["values"]))
    if kind == "ValidList":
        return ("list", tuple(valid["values"]), valid["empty"], valid["null"])
    if kind == "LambdaValidator" and (match := OR_VALUE.fullmatch(valid["says"])):
        return ("range_or", *map(int, match.groups()))
    if kind in NAMED_RULES:
        return (NAMED_RULES[kind],)
    raise ValueError(f"no rule for {valid}")


def table(name: str, keys: list[dict[str, Any]]) -> str:
    lines = [f"{name.upper()}: tuple[Row, ...] = ("]
    for key in keys:
        flag = "required" if "default" not in key else "internal" if key.get("internal") else ""
        row = (key["name"], key["type"].lower(), key.get("default"), rule(key.get("valid")), flag)
        lines.append(f"    {literal(row)},")
    return "\n".join([*lines, ")", ""])


def literal(value: object) -> str:
    """Python text of a value, with double quotes."""
    if isinstance(value, tuple):
        inner = ", ".join(literal(item) for item in value)
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    return json.dumps(value) if isinstance(value, str) else repr(value)


def names(name: str, values: list[str]) -> str:
    lines = [f"{name}: frozenset[str] = frozenset(", "    ("]
    lines += [f"        {literal(value)}," for value in values]
    return "\n".join([*lines, "    )", ")", ""])


def generate(schemas: Path) -> str:
    """The text of ``facts.py``."""
    relations = json.loads((schemas / "relations.json").read_text(encoding="utf-8"))
    parts = [
        table(name, json.loads((schemas / f"{name}.json").read_text(encoding="utf-8")))
        for name in DEFINITIONS
    ]
    comment = "# Which server configs may be changed in a running cluster, and where Kafka allows it."
    parts.append(comment)
    parts += [names(name.upper(), relations[name]) for name in SETS]
    parts.append("# Topic config -> the server configs that stand in for it, first to last, and the factor.")
    parts.append("TOPIC_SYNONYMS: dict[str, tuple[tuple[str, int], ...]] = {")
    for topic, servers in relations["topic_synonyms"].items():
        parts.append(f"    {literal(topic)}: {literal(tuple(tuple(server) for server in servers))},")
    parts.append("}\n")
    parts.append("# Group config -> the server config that gives its default.")
    parts.append("GROUP_SYNONYMS: dict[str, str] = {")
    parts += [
        f"    {literal(group)}: {literal(server)}," for group, server in relations["group_synonyms"].items()
    ]
    parts.append("}")
    return HEADER.format(kafka=relations["kafka"]) + "\n".join(parts) + "\n"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m codegen.configs.generate", description=__doc__)
    parser.add_argument("--check", action="store_true", help="only tell whether the output is current")
    options = parser.parse_args(arguments)
    text = generate(CONFIG_SCHEMAS)
    if TARGET.exists() and TARGET.read_text(encoding="utf-8") == text:
        return 0
    if options.check:
        print("kraftd/configdef/facts.py: not what schemas/configs/ says; run make codegen")
        return 1
    TARGET.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
