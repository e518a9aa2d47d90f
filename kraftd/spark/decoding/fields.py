"""The columns of a record: Kafka's field names in snake_case, one column for a field that several types
share.

A column has one type, so four fields whose type differs from another's of the same name are renamed
(`RENAMED`). The secrets of SCRAM credentials have no column (`SECRET`).
"""

from __future__ import annotations

from functools import cache

import pyarrow as pa

from kraftd.messages import registry
from kraftd.redaction.records import SCRAM_SECRETS
from kraftd.wire.api import control_record_class, metadata_record_class
from kraftd.wire.message import Message
from kraftd.wire.table import FieldRow, MessageTable, StructTable, table_of

RENAMED = {
    ("FenceBrokerRecord", "id"): "broker_id",
    ("FenceBrokerRecord", "epoch"): "broker_epoch",
    ("UnfenceBrokerRecord", "id"): "broker_id",
    ("UnfenceBrokerRecord", "epoch"): "broker_epoch",
    ("BrokerRegistrationChangeRecord", "fenced"): "fenced_change",
    ("BrokerRegistrationChangeRecord", "in_controlled_shutdown"): "in_controlled_shutdown_change",
    ("ClientQuotaRecord", "value"): "quota_value",
    ("VotersRecord", "voters"): "voter_set",
}
SECRET = frozenset(("UserScramCredentialRecord", name) for name in SCRAM_SECRETS)
UNKNOWN = "unknown_tagged_fields"

_PRIMITIVES = {
    "bool": pa.bool_(),
    "int8": pa.int32(),
    "int16": pa.int32(),
    "uint16": pa.int32(),
    "int32": pa.int32(),
    "uint32": pa.int64(),
    "int64": pa.int64(),
    "float64": pa.float64(),
    "uuid": pa.string(),
    "string": pa.string(),
    "bytes": pa.binary(),
}
UNKNOWN_TYPE = pa.list_(pa.struct([("tag", pa.int64()), ("data", pa.binary())]))

ENVELOPE = pa.schema(
    [
        ("offset", pa.int64()),
        ("epoch", pa.int32()),
        ("timestamp_ms", pa.int64()),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("type", pa.string()),
        ("version", pa.int32()),
        ("batch_offset", pa.int64()),
    ]
)
"""What every record has: its place in the log, its type, and the first offset of its batch."""

MAX_TIMESTAMP_MS = 253_402_300_799_999
"""The end of the year 9999: a later time, like one before 1970, has no TIMESTAMP."""

DAMAGE = pa.field(
    "damage",
    pa.struct(
        [
            ("path", pa.string()),
            ("position", pa.int64()),
            ("size_bytes", pa.int64()),
            ("reason", pa.string()),
            ("data", pa.binary()),
        ]
    ),
)
"""In mode PERMISSIVE, bytes that are no record: in a row of their own, in which all other columns are
null."""


@cache
def metadata_types() -> dict[str, int]:
    """Name -> key of every metadata record."""
    return {table_of(metadata_record_class(key)).name: key for key in registry.METADATA_RECORDS}


@cache
def control_types() -> dict[str, int]:
    """Name -> type of the control records of a metadata log."""
    return {table_of(control_record_class(kind)).name: kind for kind in registry.CONTROL_RECORDS if kind >= 2}


def record_classes() -> list[type[Message]]:
    """The classes of all records that a metadata log or a checkpoint can hold."""
    metadata = [metadata_record_class(key) for key in sorted(metadata_types().values())]
    return metadata + [control_record_class(kind) for kind in sorted(control_types().values())]


def column_of(record: str, attribute: str) -> str | None:
    """The column of a record's field; None for a secret, and for a control record's own version."""
    if (record, attribute) in SECRET or (attribute == "version" and record in control_types()):
        return None
    return RENAMED.get((record, attribute), attribute)


def type_of(table: MessageTable, row: FieldRow) -> pa.DataType:
    """The Arrow type of a field."""
    item = _PRIMITIVES.get(row.type)
    if item is None:
        item = struct_type(table, table.structs[row.type])
    return pa.list_(item) if row.array else item


def struct_type(table: MessageTable, struct: StructTable) -> pa.DataType:
    """The Arrow type of a struct within a message."""
    fields = [(row.attribute, type_of(table, row)) for row in struct.fields]
    return pa.struct([*fields, (UNKNOWN, UNKNOWN_TYPE)])


@cache
def record_schema() -> pa.Schema:
    """Every column of `records`: the envelope, the fields of all types, and the unknown tagged fields."""
    found: dict[str, pa.DataType] = {}
    for cls in record_classes():
        table = table_of(cls)
        for row in table.root.fields:
            name, kind = column_of(table.name, row.attribute), type_of(table, row)
            if name is not None and found.setdefault(name, kind) != kind:
                raise TypeError(f"{table.name}.{row.attribute} is {kind}, column {name} is {found[name]}")
    fields = [pa.field(name, kind) for name, kind in found.items()]
    return pa.schema([*ENVELOPE, *fields, pa.field(UNKNOWN, UNKNOWN_TYPE)])


@cache
def source_schema() -> pa.Schema:
    """The columns of the data source: those of `records`, and `damage`."""
    return record_schema().append(DAMAGE)
