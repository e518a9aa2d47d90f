"""A message's field table with named columns."""

from __future__ import annotations

import sys
from functools import cache

from msgspec import Struct

from kraftd.wire.message import Message, Range, Table

# Primitive of fixed width -> (its letter for ``struct``, its width in bytes).
FIXED: dict[str, tuple[str, int]] = {
    "bool": ("?", 1),
    "int8": ("b", 1),
    "int16": ("h", 2),
    "uint16": ("H", 2),
    "int32": ("i", 4),
    "uint32": ("I", 4),
    "int64": ("q", 8),
    "float64": ("d", 8),
    "uuid": ("16s", 16),
}
VARIABLE = frozenset({"string", "bytes", "records"})
ZERO_UUID = bytes(16)


def within(version: int, versions: Range | None) -> bool:
    """Return whether a version lies in an inclusive range; None is the empty one."""
    return versions is not None and versions[0] <= version <= versions[1]


class FieldRow(Struct, frozen=True):
    """A row of a field table; ``kraftd.wire.message.Row`` says what the columns mean."""

    attribute: str
    name: str
    type: str
    array: int
    versions: Range
    nullable: Range | None
    tagged: Range | None
    tag: int | None
    flexible: Range | None
    ignorable: int
    default: int | str | None

    def is_primitive(self) -> bool:
        return self.type in FIXED or self.type in VARIABLE

    def in_body(self, version: int) -> bool:
        """Return whether a version has the field outside of the tagged ones."""
        return within(version, self.versions) and not within(version, self.tagged)

    def in_tags(self, version: int) -> bool:
        """Return whether a version has it as a tagged field."""
        return within(version, self.versions) and within(version, self.tagged)

    def default_value(self) -> object:
        """The default as a value, except for a struct, whose default is a new one (then None)."""
        if self.default is None:
            return None
        if self.array:
            return () if self.is_primitive() else []
        if self.type == "string":
            return self.default
        if self.type == "bool":
            return bool(self.default)
        if self.type == "float64":
            return float(self.default)
        if self.type in FIXED:
            return ZERO_UUID if self.type == "uuid" else self.default
        return b"" if self.type == "bytes" else None


class StructTable(Struct, frozen=True):
    """A struct of a message and its rows, in the order in which they are written."""

    name: str
    fields: tuple[FieldRow, ...]

    def body(self, version: int) -> list[FieldRow]:
        return [row for row in self.fields if row.in_body(version)]

    def tags(self, version: int) -> list[FieldRow]:
        """The tagged fields of a version in order of tag."""
        return sorted((row for row in self.fields if row.in_tags(version)), key=lambda row: row.tag or 0)

    def absent(self, version: int) -> list[FieldRow]:
        return [row for row in self.fields if not within(version, row.versions)]


class MessageTable(Struct, frozen=True):
    """A message: its versions and its structs."""

    name: str
    key: int | None
    type: str
    valid: Range
    flexible: Range | None
    structs: dict[str, StructTable]

    @property
    def root(self) -> StructTable:
        return self.structs[self.name]

    def is_flexible(self, version: int) -> bool:
        return within(version, self.flexible)

    def is_compact(self, row: FieldRow, version: int) -> bool:
        """Return whether a field's length is a varint: in flexible versions, unless the field says
        otherwise.
        """
        return within(version, self.flexible if row.flexible is None else row.flexible)

    def has_records(self) -> bool:
        return any(row.type == "records" for struct in self.structs.values() for row in struct.fields)

    def element_bytes(self, row: FieldRow, version: int) -> int:
        """The least number of bytes of one element of a field (of the field itself, if not an array)."""
        if row.type in FIXED:
            return FIXED[row.type][1]
        if row.type in VARIABLE:
            return 1 if self.is_compact(row, version) else 2 if row.type == "string" else 4
        return self.struct_bytes(self.structs[row.type], version)

    def field_bytes(self, row: FieldRow, version: int) -> int:
        """The least number of bytes of an untagged field."""
        if row.array:
            return 1 if self.is_compact(row, version) else 4
        if not row.is_primitive() and within(version, row.nullable):
            return 1
        return self.element_bytes(row, version)

    def struct_bytes(self, struct: StructTable, version: int) -> int:
        """The least number of bytes of a struct."""
        tags = 1 if self.is_flexible(version) else 0
        return tags + sum(self.field_bytes(row, version) for row in struct.body(version))


def parse(table: Table) -> MessageTable:
    """Convert a plain table into one with named columns."""
    name, key, kind, valid, flexible, structs = table
    named = {struct: StructTable(struct, tuple(FieldRow(*row) for row in rows)) for struct, rows in structs}
    return MessageTable(name, key, kind, valid, flexible, named)


@cache
def table_of(cls: type[Message]) -> MessageTable:
    """The table of a message's class; TypeError for a class that is no message (a nested struct, say)."""
    schema: Table | None = getattr(sys.modules[cls.__module__], "SCHEMA", None)
    if schema is None or schema[0] != cls.__name__:
        raise TypeError(f"{cls.__module__}.{cls.__name__} is not a message")
    return parse(schema)


def class_of(cls: type[Message], struct: str) -> type[Message]:
    """The class of a struct of the message that a class is of."""
    found: type[Message] = getattr(sys.modules[cls.__module__], struct)
    return found


def api_key(request: Message) -> int:
    """The API key of a request."""
    key = table_of(type(request)).key
    assert key is not None, f"{request!r} is no request"
    return key
