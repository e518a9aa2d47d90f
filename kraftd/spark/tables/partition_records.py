"""The records of partitions, brought together by partition, and what was replayed of each.

Tasks read them as Arrow, divide them among groups of partitions, and replay a group. Spark moves some blobs
in between. It would move, sort and convert rows, for several times the cost. Memory holds one group a task,
and what becomes of a part of it.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from kraftd.spark.decoding.arrays import return_freed_memory
from kraftd.spark.source.pieces import Piece
from kraftd.spark.tables.filling import COLUMNS, IN_CHECKPOINT, TYPES

ROWS_PER_BLOCK = 1 << 15
"""About how many records of a task are divided at a time."""
ROWS_PER_PART = 1 << 17
"""About how many records of a group are replayed at a time: a replay takes four times their memory."""
_ROWS_PER_BATCH = 1 << 14
_BLOBS = "place int, records binary"
_SPREAD = 0x9E3779B1


@dataclass(frozen=True)
class Read:
    """What one task reads: a piece's records of offsets first to last, and what they are."""

    piece: Piece
    origin: int
    first: int
    last: int


def by_group(
    session: SparkSession,
    reads: Sequence[Read],
    groups: int,
    work: Callable[[pa.Table], pa.Table],
    schema: pa.Schema,
    *,
    aborted: Sequence[tuple[int, int]],
    permissive: bool,
) -> DataFrame:
    """What work returns, with that schema, for the records of each of some groups of partitions.

    Its argument has COLUMNS and `origin`, in any order, without what lies in the aborted offsets, first to
    last.
    """

    def divide(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return_freed_memory()
        for batch in batches:
            for number in batch["id"].to_pylist():
                yield from divided(read_records(reads[number], aborted, permissive=permissive), groups)

    def replay(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return_freed_memory()
        blobs = [blob.as_buffer() for batch in batches for blob in batch["records"]]
        if blobs:
            rows = pa.concat_tables([pa.ipc.open_stream(blob).read_all() for blob in blobs])
            for part in parts_of(rows, groups):
                yield from work(part).to_batches(_ROWS_PER_BATCH)

    numbers = session.range(0, len(reads), 1, max(1, len(reads)))
    blobs = numbers.mapInArrow(divide, _BLOBS).repartitionById(groups, "place")
    return blobs.mapInArrow(replay, from_arrow_schema(schema))


def read_records(
    read: Read, aborted: Sequence[tuple[int, int]], *, permissive: bool
) -> Iterator[pa.RecordBatch]:
    """The records of partitions, without those of aborted transactions, and what they are (`origin`)."""
    lost = np.array(sorted(aborted), np.int64).reshape(-1, 2)
    for rows in read.piece.read(COLUMNS, TYPES, read.first, read.last, permissive=permissive):
        if len(lost) and read.origin != IN_CHECKPOINT:
            offsets = rows["offset"].to_numpy()
            before = np.searchsorted(lost[:, 0], offsets, side="right") - 1
            rows = rows.filter(pa.array((before < 0) | (offsets > lost[before, 1])))
        yield rows.append_column("origin", pa.array(np.full(rows.num_rows, read.origin, np.int8)))


def divided(batches: Iterable[pa.RecordBatch], groups: int) -> Iterator[pa.RecordBatch]:
    """The records as blobs, one for each group that has any, of some batches at a time."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting += [batch] if batch.num_rows else []
        if sum(each.num_rows for each in waiting) >= ROWS_PER_BLOCK:
            yield _blobs_of(waiting, groups)
            waiting = []
    if waiting:
        yield _blobs_of(waiting, groups)


def parts_of(rows: pa.Table, groups: int) -> Iterator[pa.Table]:
    """The records of one of some groups in parts of about ROWS_PER_PART at most, each of whole partitions."""
    count = -(-len(rows) // ROWS_PER_PART)
    if count <= 1:
        yield rows
        return
    places = _hashes(rows) // groups % count
    for part in range(count):
        yield rows.filter(pa.array(places == part))


def _hashes(rows: pa.Table) -> Any:
    """A number for the partition of each record."""
    topics = rows["topic_id"].combine_chunks().dictionary_encode()
    hashes = np.array([zlib.crc32(topic.encode()) for topic in topics.dictionary.to_pylist()], np.int64)
    numbers = rows["partition_id"].to_numpy().astype(np.int64)
    return hashes[topics.indices.to_numpy()] + numbers * _SPREAD


def _blobs_of(batches: Sequence[pa.RecordBatch], groups: int) -> pa.RecordBatch:
    """One blob for each group that has records."""
    rows = pa.Table.from_batches(batches).combine_chunks()
    places = _hashes(rows) % groups
    order = np.argsort(places, kind="stable")
    rows = rows.take(pa.array(order)).combine_chunks()
    found, starts = np.unique(places[order], return_index=True)
    ends: list[int] = np.append(starts[1:], len(order)).tolist()
    blobs = [_blob(rows.slice(start, end - start)) for start, end in zip(starts.tolist(), ends, strict=True)]
    return pa.record_batch([pa.array(found, pa.int32()), pa.array(blobs, pa.binary())], ["place", "records"])


def _blob(rows: pa.Table) -> bytes:
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, rows.schema) as writer:
        writer.write_table(rows)
    found: bytes = stream.getvalue().to_pybytes()
    return found
