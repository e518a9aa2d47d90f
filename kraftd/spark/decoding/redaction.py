"""What rows show of secrets, by the rules of `kraftd.redaction`; salts and keys of SCRAM credentials have no
column.

Everything that reads files or topics passes through here, so tables and reports have no secret.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from kraftd.redaction.configs import REDACTED, is_sensitive, public_configs
from kraftd.spark.decoding.fields import DAMAGE, UNKNOWN

VALUE = "value"  # of a ConfigRecord
_JUDGED_BY = {VALUE: ("resource_type", "name"), UNKNOWN: ("type",)}
_SECRETIVE = pa.array(["ConfigRecord", "UserScramCredentialRecord"])


def needed_schema(schema: pa.Schema, known: pa.Schema) -> pa.Schema:
    """The columns to read so that those of a schema can be judged: some more than are wanted."""
    more = {name for column, names in _JUDGED_BY.items() if column in schema.names for name in names}
    return pa.schema([*schema, *(known.field(name) for name in sorted(more - set(schema.names)))])


def redacted_batch(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows with the columns of `needed_schema`, without secrets, and without the bytes of damage."""
    names = rows.schema.names
    if VALUE in names:
        rows = _with_column(rows, VALUE, _shown_values(rows))
    if UNKNOWN in names and rows.column(UNKNOWN).null_count < len(rows):
        tags = rows.column(UNKNOWN)
        hidden = pc.fill_null(pc.is_in(rows.column("type"), value_set=_SECRETIVE), False)
        rows = _with_column(rows, UNKNOWN, pc.if_else(hidden, pa.scalar(None, tags.type), tags))
    if DAMAGE.name in names and rows.column(DAMAGE.name).null_count < len(rows):
        damage = rows.column(DAMAGE.name)
        parts = {field.name: pc.struct_field(damage, field.name) for field in damage.type}
        parts["data"] = pa.nulls(len(rows), pa.binary())
        without = pa.StructArray.from_arrays(list(parts.values()), list(parts), mask=damage.is_null())
        rows = _with_column(rows, DAMAGE.name, without)
    return rows


def _shown_values(rows: pa.RecordBatch) -> pa.Array:
    values, types, keys = rows.column(VALUE), rows.column("resource_type"), rows.column("name")
    hidden = pc.is_valid(values)
    for resource_type, known in _public_keys().items():
        public = pc.and_(pc.equal(types, resource_type), pc.is_in(keys, value_set=known))
        hidden = pc.and_(hidden, pc.invert(pc.fill_null(public, False)))
    if not pc.any(hidden).as_py():
        return values
    # What is left are passwords, unknown keys, and keys of single listeners, which are judged by name.
    pairs = zip(types.filter(hidden).to_pylist(), keys.filter(hidden).to_pylist(), strict=True)
    judged = {pair: pair[0] is None or pair[1] is None or is_sensitive(*pair) for pair in set(pairs)}
    if not all(judged.values()):
        all_pairs = zip(hidden.to_pylist(), types.to_pylist(), keys.to_pylist(), strict=True)
        hidden = pa.array([is_left and judged[kind, key] for is_left, kind, key in all_pairs])
    return pc.if_else(hidden, REDACTED, values)


def _public_keys() -> dict[int, pa.Array]:
    found: dict[int, list[str]] = {}
    for kind, name in public_configs():
        found.setdefault(kind, []).append(name)
    return {kind: pa.array(names) for kind, names in found.items()}


def _with_column(rows: pa.RecordBatch, name: str, column: pa.Array) -> pa.RecordBatch:
    place = rows.schema.get_field_index(name)
    return rows.set_column(place, rows.schema.field(place), column)
