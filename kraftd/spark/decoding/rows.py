"""Records as rows, one at a time, by the codec of `kraftd.wire`: for control records, for a batch that the
column builder refuses, and where the builder does not exist.
"""

from __future__ import annotations

from typing import Any

from kraftd.spark.decoding.fields import UNKNOWN, column_of
from kraftd.types import uuid_text
from kraftd.wire.message import Message
from kraftd.wire.table import FieldRow, MessageTable, StructTable, table_of, within

Row = dict[str, Any]


def row_of(message: Message, version: int) -> Row:
    """The fields of a record by column; those that its version does not have are left out."""
    table = table_of(type(message))
    row: Row = {}
    for field in table.root.fields:
        column = column_of(table.name, field.attribute)
        if column is not None and within(version, field.versions):
            row[column] = _value(table, field, getattr(message, field.attribute), version)
    row[UNKNOWN] = _unknown(message)
    return row


def _value(table: MessageTable, field: FieldRow, value: Any, version: int) -> Any:
    if value is None:
        return None
    if field.array:
        return [_item(table, field, item, version) for item in value]
    return _item(table, field, value, version)


def _item(table: MessageTable, field: FieldRow, value: Any, version: int) -> Any:
    if field.type == "uuid":
        return uuid_text(bytes(value))
    if field.type == "bytes":
        return bytes(value)
    if field.is_primitive():
        return value
    return _struct(table, table.structs[field.type], value, version)


def _struct(table: MessageTable, struct: StructTable, value: Message, version: int) -> Row:
    row = {
        field.attribute: _value(table, field, getattr(value, field.attribute), version)
        for field in struct.fields
        if within(version, field.versions)
    }
    row[UNKNOWN] = _unknown(value)
    return row


def _unknown(value: Message) -> list[Row] | None:
    tags: tuple[tuple[int, bytes], ...] = getattr(value, "unknown_tags", ())
    return [{"tag": tag, "data": bytes(data)} for tag, data in tags] or None
