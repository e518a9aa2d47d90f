"""Batches of a metadata log into Arrow record batches, by the column builder in C where it was built.

decoder = Decoder(record_schema())
for batch in scan(file, 0, end):
    decoder.add(batch)
tables = decoder.take()
"""

from __future__ import annotations

import os
from collections.abc import Collection
from importlib import import_module
from typing import Any, Protocol, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraftd.spark.decoding.arrays import Buffers, array_of
from kraftd.spark.decoding.fields import ENVELOPE, MAX_TIMESTAMP_MS, metadata_types
from kraftd.spark.decoding.plans import column_tree, record_plans
from kraftd.spark.decoding.rows import Row, row_of
from kraftd.types import parse_uuid
from kraftd.wire.batch import (
    HEADER_BYTES,
    Batch,
    CorruptBatch,
    control_records,
    decompressed,
    records,
)
from kraftd.wire.errors import ProtocolError
from kraftd.wire.record_frame import decode_record
from kraftd.wire.table import table_of

LAST_OFFSET = (1 << 63) - 1


class _Builder(Protocol):
    """The type in `_columns.c`."""

    rows: int

    def append(
        self,
        records: memoryview,
        base_offset: int,
        base_timestamp_ms: int,
        last_offset_delta: int,
        count: int,
        first: int,
        last: int,
        /,
    ) -> int: ...

    def finish(self) -> tuple[tuple[Buffers, ...], tuple[Buffers, ...]]: ...


def _load_builder() -> Any:
    """The type of builders; None if it was not built, or KRAFTD_CODEC demands Python."""
    if os.environ.get("KRAFTD_CODEC") == "python":
        return None
    try:
        return import_module("kraftd.spark._columns").Builder
    except ImportError:
        return None


BUILDER = _load_builder()


class Decoder:
    """Collects rows of the columns of a schema. columns=False decodes record by record, which is slower.

    types and topic_ids, unless None, select the wanted records.
    """

    def __init__(
        self,
        schema: pa.Schema,
        *,
        types: Collection[str] | None = None,
        topic_ids: Collection[str] | None = None,
        columns: bool = True,
    ) -> None:
        self.schema = schema
        self._types = None if types is None else frozenset(types)
        self._topic_ids = None if topic_ids is None else frozenset(topic_ids)
        self._fields = [
            field for field in schema if field.name not in ENVELOPE.names and field.name != "damage"
        ]
        self._builder: _Builder | None = self._make_builder() if columns and BUILDER is not None else None
        self._batches: list[tuple[int, int, int]] = []  # rows, epoch and base offset of those in the builder
        self._rows: list[Row] = []
        self._ready: list[pa.RecordBatch] = []

    def __repr__(self) -> str:
        return f"<Decoder of {len(self.schema)} columns, {self.rows} rows>"

    @property
    def rows(self) -> int:
        """The number of added rows that are not yet taken."""
        waiting = len(self._rows) + (0 if self._builder is None else self._builder.rows)
        return waiting + sum(batch.num_rows for batch in self._ready)

    def add(self, batch: Batch, first: int = 0, last: int = LAST_OFFSET) -> None:
        """The records of a batch with offsets from first to last. Raises CorruptBatch, and adds none then."""
        header = batch.header
        if header.is_control or self._builder is None:
            found = [row for row in self.read_rows(batch) if first <= row["offset"] <= last]
            if found:
                self._finish_columns()
                self._rows += found
            return
        self._finish_rows()
        try:
            added = self._builder.append(
                decompressed(batch).view[HEADER_BYTES:],
                header.base_offset,
                header.base_timestamp_ms,
                header.last_offset_delta,
                header.record_count,
                first,
                last,
            )
        except ValueError as error:
            if isinstance(error, CorruptBatch):
                raise
            raise CorruptBatch(str(error), batch.position) from None
        if added:
            self._batches.append((added, header.leader_epoch, header.base_offset))

    def add_damage(self, path: str, position: int, reason: str, data: bytes, size_bytes: int) -> None:
        """A row of bytes that are no record."""
        self._finish_columns()
        damage = {
            "path": path,
            "position": position,
            "size_bytes": size_bytes,
            "reason": reason,
            "data": data,
        }
        self._rows.append({"damage": damage})

    def add_what_can_be(
        self, batch: Batch, path: str, why: str, first: int = 0, last: int = LAST_OFFSET
    ) -> None:
        """Add the records of a batch that can be decoded, and a row of damage for each other one. A batch of
        control records, or of records without clear bounds, is one row of damage, with the reason.
        """
        header = batch.header
        self._finish_columns()
        try:
            found = records(decompressed(batch))
        except CorruptBatch as error:
            self.add_damage(path, batch.position, error.reason, bytes(batch.view), header.size_bytes)
            return
        if header.is_control:
            self.add_damage(path, batch.position, why, bytes(batch.view), header.size_bytes)
            return
        for record in found:
            if not first <= record.offset <= last:
                continue
            value = b"" if record.value is None else bytes(record.value)
            try:
                message, version = decode_record(value)
            except ProtocolError as error:
                reason = f"record of offset {record.offset}: {error}"
                self.add_damage(path, batch.position, reason, value, len(value))
                continue
            name = table_of(type(message)).name
            row = self._wanted(
                batch, record.offset, record.timestamp_ms, name, version, row_of(message, version)
            )
            self._rows += [] if row is None else [row]

    def take(self) -> list[pa.RecordBatch]:
        """Remove and return the rows added since the last call, in order."""
        self._finish_columns()
        self._finish_rows()
        found, self._ready = self._ready, []
        return found

    def _finish_columns(self) -> None:
        if self._builder is not None and self._builder.rows:
            self._ready.append(self._take_columns(self._builder))

    def _finish_rows(self) -> None:
        if self._rows:
            self._ready.append(pa.RecordBatch.from_pylist(self._rows, schema=self.schema))
            self._rows = []

    def read_rows(self, batch: Batch) -> list[Row]:
        """The wanted records of a batch, one by one. Raises CorruptBatch."""
        rows = [self._wanted(batch, *parts) for parts in self._messages(batch)]
        return [row for row in rows if row is not None]

    def _wanted(
        self, batch: Batch, offset: int, timestamp_ms: int, name: str, version: int | None, fields: Row
    ) -> Row | None:
        """The row of a record, None for one that is not wanted."""
        if self._types is not None and name not in self._types:
            return None
        if self._topic_ids is not None and fields.get("topic_id") not in self._topic_ids:
            return None
        timestamp_ms = (timestamp_ms + (1 << 63)) % (1 << 64) - (1 << 63)  # wraps around as in Java
        return fields | {
            "offset": offset,
            "epoch": batch.header.leader_epoch,
            "timestamp_ms": timestamp_ms,
            "timestamp": timestamp_ms * 1000 if 0 <= timestamp_ms <= MAX_TIMESTAMP_MS else None,
            "type": name,
            "version": version,
            "batch_offset": batch.header.base_offset,
        }

    def _messages(self, batch: Batch) -> list[tuple[int, int, str, int | None, Row]]:
        """Offset, timestamp, type, version and fields of each record."""
        found: list[tuple[int, int, str, int | None, Row]] = []
        offset = batch.header.base_offset
        try:
            plain = decompressed(batch)
            if batch.header.is_control:
                for control in control_records(plain):
                    offset = control.offset
                    if control.message is None:
                        reason = f"record of offset {offset}: control record type {control.type} is not known"
                        raise CorruptBatch(reason, batch.position)
                    name = table_of(type(control.message)).name
                    fields = row_of(control.message, control.version or 0)
                    found.append((offset, batch.header.base_timestamp_ms, name, control.version, fields))
                return found
            for record in records(plain):
                offset = record.offset
                if record.value is None:
                    raise CorruptBatch(f"record of offset {offset}: it has no value", batch.position)
                message, version = decode_record(record.value)
                name = table_of(type(message)).name
                found.append((offset, record.timestamp_ms, name, version, row_of(message, version)))
        except ProtocolError as error:
            raise CorruptBatch(f"record of offset {offset}: {error}", batch.position) from None
        return found

    def _make_builder(self) -> _Builder:
        topics = None
        if self._topic_ids is not None:
            topics = b"".join(sorted(parse_uuid(text) for text in self._topic_ids))
        plans = record_plans(self._fields, self._types, by_topic=topics is not None)
        tree = tuple(column_tree(field.type) for field in self._fields)
        return cast("_Builder", BUILDER(tree, plans, topics))

    def _take_columns(self, builder: _Builder) -> pa.RecordBatch:
        own, fields = builder.finish()
        counts, epochs, bases = np.array(self._batches, dtype=np.int64).T
        self._batches = []
        found: dict[str, pa.Array] = {
            "offset": array_of(pa.int64(), own[0]),
            "timestamp_ms": array_of(pa.int64(), own[1]),
            "epoch": pa.array(np.repeat(epochs.astype(np.int32), counts)),
            "batch_offset": pa.array(np.repeat(bases, counts)),
            "version": array_of(pa.int32(), own[3]),
        }
        if "timestamp" in self.schema.names:
            found["timestamp"] = _timestamps(found["timestamp_ms"])
        if "type" in self.schema.names:
            found["type"] = _TYPE_NAMES.take(array_of(pa.int32(), own[2]))
        for field, buffers in zip(self._fields, fields, strict=True):
            found[field.name] = array_of(field.type, buffers)
        rows = len(found["offset"])
        if "damage" in self.schema.names:
            found["damage"] = pa.nulls(rows, self.schema.field("damage").type)
        return pa.RecordBatch.from_arrays([found[name] for name in self.schema.names], schema=self.schema)


def _timestamps(ms: pa.Array) -> pa.Array:
    """The times of milliseconds, null where there is no TIMESTAMP."""
    known = pc.and_(pc.greater_equal(ms, 0), pc.less_equal(ms, MAX_TIMESTAMP_MS))
    micros = pc.multiply(pc.if_else(known, ms, None), 1000)
    return micros.cast(ENVELOPE.field("timestamp").type)


def _type_names() -> pa.Array:
    """The name of a record's type at its key."""
    names: list[str | None] = [None] * (max(metadata_types().values()) + 1)
    for name, key in metadata_types().items():
        names[key] = name
    return pa.array(names, pa.string())


_TYPE_NAMES = _type_names()
