"""The input of the column builder in C: the wanted columns, and a plan for every record type and version.

A plan is ((fields of the body), (tagged fields), column of the unknown ones); a field is (kind, array,
nullable, column, tag, default, is the topic id, plan of its struct), a column of -1 is not wanted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from kraftd.spark.decoding.fields import UNKNOWN, column_of, metadata_types
from kraftd.wire.api import metadata_record_class
from kraftd.wire.table import FieldRow, MessageTable, StructTable, table_of, within

Columns = Mapping[str, tuple[int, pa.DataType]]
"""Name -> index and type of the columns that a struct is read into."""


def column_tree(kind: pa.DataType) -> tuple[str, tuple[Any, ...]]:
    """An Arrow type in the form for the builder."""
    if pa.types.is_list(kind):
        return "list", (column_tree(kind.value_type),)
    if pa.types.is_struct(kind):
        return "struct", tuple(column_tree(field.type) for field in kind)
    names = {pa.float64(): "float64", pa.binary(): "bytes"}
    return names.get(kind, str(kind)), ()


def record_plans(
    fields: Iterable[pa.Field], types: frozenset[str] | None, *, by_topic: bool
) -> dict[int, tuple[bool, tuple[Any, ...]]]:
    """Key -> (wanted, plan a version) of every metadata record.

    types, unless None, are the names of those wanted; by_topic wants only records that name a topic id.
    """
    columns = {field.name: (index, field.type) for index, field in enumerate(fields)}
    found: dict[int, tuple[bool, tuple[Any, ...]]] = {}
    for name, key in metadata_types().items():
        table = table_of(metadata_record_class(key))
        wanted = types is None or name in types
        if by_topic and all(row.attribute != "topic_id" for row in table.root.fields):
            wanted = False
        versions = range(table.valid[1] + 1)
        found[key] = wanted, tuple(_root_plan(table, version, columns) for version in versions)
    return found


def _root_plan(table: MessageTable, version: int, columns: Columns) -> tuple[Any, ...]:
    def find(attribute: str) -> tuple[int, pa.DataType] | None:
        name = column_of(table.name, attribute)
        return None if name is None else columns.get(name)

    return _plan(table, table.root, version, find, columns.get(UNKNOWN), root=True)


def _plan(
    table: MessageTable, struct: StructTable, version: int, find: Any, unknown: Any, *, root: bool = False
) -> tuple[Any, ...]:
    def field(row: FieldRow) -> tuple[Any, ...]:
        found = find(row.attribute)
        index, kind = (-1, None) if found is None else found
        nested = None
        if not row.is_primitive():
            if kind is not None and row.array:
                kind = kind.value_type
            inner = (
                {}
                if kind is None
                else {kind.field(at).name: (at, kind.field(at).type) for at in range(kind.num_fields)}
            )
            nested = _plan(table, table.structs[row.type], version, inner.get, inner.get(UNKNOWN))
        return (
            row.type if row.is_primitive() else "struct",
            bool(row.array),
            within(version, row.nullable),
            index,
            row.tag or 0,
            _standard(row),
            root and row.attribute == "topic_id" and row.type == "uuid",
            nested,
        )

    body = tuple(field(row) for row in struct.body(version))
    tagged = tuple(field(row) for row in struct.tags(version))
    return body, tagged, -1 if unknown is None else unknown[0]


def _standard(row: FieldRow) -> int | None:
    """The default of an absent tagged field: a number, 0 for empty, None for null."""
    if row.default is None:
        return None
    return row.default if isinstance(row.default, int) else 0
