"""The intermediate form of a schema, with versions as ranges and defaults as values."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from codegen.extract import MANIFEST
from codegen.names import snake

LAST_VERSION = 32767
INTEGERS = frozenset({"int8", "int16", "uint16", "int32", "uint32", "int64"})
PRIMITIVES = INTEGERS | {"bool", "float64", "string", "bytes", "records", "uuid"}

Range = tuple[int, int]
Default = int | str | None


@dataclass
class Field:
    """A field; ``versions`` and its like are inclusive ranges, None if the schema has none.

    ``default`` is None for null; an integer for numbers and booleans; a text for strings. It is an empty text
    for fields of other types that begin empty (arrays, structs, bytes, the zero uuid).
    """

    attribute: str
    name: str
    type: str
    array: bool
    versions: Range
    nullable: Range | None
    tagged: Range | None
    tag: int | None
    flexible: Range | None
    flexible_overridden: bool
    ignorable: bool
    default: Default


@dataclass
class Struct:
    """A struct of a message: the message itself is the first one."""

    name: str
    fields: list[Field] = field(default_factory=list)


@dataclass
class Message:
    """A message that is sent (request, response, header) or stored (metadata, coordinator-*, data)."""

    name: str
    key: int | None
    type: str
    coordinator: str | None
    listeners: tuple[str, ...]
    valid: Range | None
    flexible: Range | None
    latest_unstable: bool
    structs: dict[str, Struct]

    @property
    def module(self) -> str:
        return snake(self.name)

    @property
    def root(self) -> Struct:
        return self.structs[self.name]


def parse_range(text: str | None) -> Range | None:
    """``4+``, ``1-3``, ``0`` or ``none`` as an inclusive range."""
    if text is None or text.strip() in ("", "none"):
        return None
    text = text.strip()
    if text.endswith("+"):
        return int(text[:-1]), LAST_VERSION
    first, _, last = text.partition("-")
    return int(first), int(last or first)


def build(facts: dict[str, Any]) -> Message:
    """The intermediate form of one message."""
    valid = parse_range(facts["validVersions"])
    message = Message(
        name=facts["name"],
        key=facts.get("apiKey"),
        type=facts["type"],
        coordinator=facts.get("coordinator"),
        listeners=tuple(facts.get("listeners", ())),
        valid=valid,
        flexible=parse_range(facts.get("flexibleVersions")),
        latest_unstable=bool(facts.get("latestVersionUnstable", False)),
        structs={},
    )
    common = {struct["name"]: struct["fields"] for struct in facts.get("commonStructs", ())}
    add_struct(message, facts["name"], facts.get("fields", []), common, valid or (0, -1))
    return message


def add_struct(
    message: Message, name: str, fields: list[dict[str, Any]], common: dict[str, Any], within: Range
) -> None:
    """Add a struct and the structs of its fields, unless it exists already.

    ``within`` are the versions of the field that holds it: nothing of a nested struct exists outside of them.
    Fields of different versions share a common struct, so it has the message's versions.
    """
    if name in message.structs:
        return
    struct = message.structs[name] = Struct(name)
    for facts in fields:
        field = build_field(facts, within)
        struct.fields.append(field)
        if field.type not in PRIMITIVES:
            if "fields" in facts:
                add_struct(message, field.type, facts["fields"], common, field.versions)
            else:
                add_struct(message, field.type, common[field.type], common, message.valid or (0, -1))


def build_field(facts: dict[str, Any], within: Range) -> Field:
    """One field, its versions clipped to those of its struct; without versions it has its tagged ones."""
    kind: str = facts["type"]
    array = kind.startswith("[]")
    element = kind.removeprefix("[]")
    first, last = parse_range(facts.get("versions", facts.get("taggedVersions"))) or (0, -1)
    return Field(
        attribute=snake(facts["name"]),
        name=facts["name"],
        type=element,
        array=array,
        versions=(max(first, within[0]), min(last, within[1])),
        nullable=parse_range(facts.get("nullableVersions")),
        tagged=parse_range(facts.get("taggedVersions")),
        tag=facts.get("tag"),
        flexible=parse_range(facts.get("flexibleVersions")),
        flexible_overridden="flexibleVersions" in facts,
        ignorable=bool(facts.get("ignorable", False)),
        default=parse_default(element, array, facts.get("default")),
    )


def parse_default(element: str, array: bool, value: object) -> Default:
    """A default as Kafka's generator understands it.

    If the schema names none, a field begins at zero, false or empty, except ``records``, which begin as null.
    """
    if value == "null" or (element == "records" and not array):
        return None
    if array or element not in PRIMITIVES or element in ("bytes", "uuid"):
        if value not in (None, ""):
            raise ValueError(f"a default of {value!r} for {element}")
        return ""
    if element == "string":
        return "" if value is None else str(value)
    if element == "bool":
        return int(value in (True, "true"))
    if value in (None, ""):
        return 0
    return int(value, 0) if isinstance(value, str) else int(str(value))


def load(directory: Path) -> list[Message]:
    """All messages of a directory of schemas, by name."""
    paths = sorted(path for path in directory.glob("*.json") if path.name != MANIFEST)
    return [build(json.loads(path.read_text(encoding="utf-8"))) for path in paths]
