"""Messages as the JSON of Kafka's converters."""

from __future__ import annotations

import base64
from typing import Any

from kraftd.wire.message import Message
from kraftd.wire.table import FieldRow, MessageTable, StructTable, table_of, within


def to_json(message: Message, version: int) -> Any:
    """A message as the JSON of Kafka's converter in a version; ``records`` keep their bytes."""
    table = table_of(type(message))
    return struct_json(table, table.root, message, version)


def struct_json(table: MessageTable, struct: StructTable, value: object, version: int) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for row in struct.fields:
        item = getattr(value, row.attribute)
        if not within(version, row.versions) or (row.in_tags(version) and is_default(row, item)):
            continue
        name = row.name[0].lower() + row.name[1:]
        if item is None:
            out[name] = None
        elif row.array:
            out[name] = [value_json(table, row, element, version) for element in item]
        else:
            out[name] = value_json(table, row, item, version)
    return out


def value_json(table: MessageTable, row: FieldRow, value: Any, version: int) -> Any:
    if not row.is_primitive():
        return struct_json(table, table.structs[row.type], value, version)
    if row.type == "uuid":
        return base64.urlsafe_b64encode(value).decode().rstrip("=")
    if row.type in ("bytes", "records"):
        return base64.b64encode(value).decode()
    return value


def is_default(row: FieldRow, value: Any) -> bool:
    if not row.array and not row.is_primitive() and row.default is not None:
        return value is not None and bool(value == type(value)())
    return bool(value == row.default_value())


def without_records(table: MessageTable, struct: StructTable, value: Any) -> Any:
    """JSON with empty ``records``: Kafka's converter always writes them so."""
    out = dict(value)
    for row in struct.fields:
        name = row.name[0].lower() + row.name[1:]
        if out.get(name) is None:
            continue
        if row.type == "records":
            out[name] = ""
        elif not row.is_primitive():
            inner = table.structs[row.type]
            if row.array:
                out[name] = [without_records(table, inner, element) for element in out[name]]
            else:
                out[name] = without_records(table, inner, out[name])
    return out
