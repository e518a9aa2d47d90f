"""The work of a Spark task: reads one split of a segment, or one checkpoint, into Arrow record batches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from kraftd.log.segment import find_valid_batch, scan
from kraftd.spark.decoding.decode import LAST_OFFSET, Decoder
from kraftd.spark.decoding.fields import source_schema
from kraftd.spark.decoding.redaction import needed_schema, redacted_batch
from kraftd.spark.errors import damaged
from kraftd.spark.inputs.planning import Split
from kraftd.spark.inputs.storage import StoredFile
from kraftd.wire.batch import Batch, CorruptBatch

CHUNK_BYTES = 4 << 20
ROWS_PER_BATCH = 16_384
DAMAGE_PIECE_BYTES = 1 << 20


@dataclass(frozen=True)
class Wanted:
    """The wanted records: offsets and timestamps inclusive; None is all types, all topics."""

    first_offset: int = 0
    last_offset: int = LAST_OFFSET
    first_timestamp_ms: int = -(1 << 63)
    last_timestamp_ms: int = LAST_OFFSET
    types: frozenset[str] | None = None
    topic_ids: frozenset[str] | None = None

    def may_hold(self, batch: Batch) -> bool:
        """Return whether a batch may hold a wanted record."""
        header = batch.header
        return (
            header.base_offset <= self.last_offset
            and header.last_offset >= self.first_offset
            and header.base_timestamp_ms <= self.last_timestamp_ms
            and max(header.max_timestamp_ms, header.base_timestamp_ms) >= self.first_timestamp_ms
        )


def read_split(
    split: Split,
    schema: pa.Schema,
    wanted: Wanted,
    *,
    permissive: bool = False,
    columns: bool = True,
    show_secrets: bool = False,
) -> Iterator[pa.RecordBatch]:
    """The wanted records of a split, without secrets unless they are to be shown.

    Raises InputError at damage and gaps, with file, byte and offset; permissive yields rows of damage
    instead.
    """
    if show_secrets:
        yield from _read_split(split, schema, wanted, permissive=permissive, columns=columns)
        return
    needed = needed_schema(schema, source_schema())
    for rows in _read_split(split, needed, wanted, permissive=permissive, columns=columns):
        yield redacted_batch(rows).select(schema.names)


def _read_split(
    split: Split, schema: pa.Schema, wanted: Wanted, *, permissive: bool, columns: bool
) -> Iterator[pa.RecordBatch]:
    decoder = make_decoder(schema, wanted, columns=columns)
    file = StoredFile(split.path, split.stored_at)
    try:
        expected, epoch = split.first_offset, -1
        position = split.start
        while position < split.end:
            try:
                for batch in scan(file, position, split.end, chunk_bytes=CHUNK_BYTES):
                    header = batch.header
                    if header.base_offset != expected:
                        reason = f"offset {header.base_offset} is where {expected} belongs"
                        _note(decoder, split, batch.position, expected, reason, permissive)
                    if header.leader_epoch < epoch:
                        reason = f"epoch {header.leader_epoch} follows epoch {epoch}"
                        _note(decoder, split, batch.position, header.base_offset, reason, permissive)
                    epoch = header.leader_epoch
                    if wanted.may_hold(batch):
                        add_batch(decoder, file, batch, wanted, permissive=permissive)
                        if decoder.rows >= ROWS_PER_BATCH:
                            yield from decoder.take()
                    expected = header.next_offset
                    position = batch.position + header.size_bytes
                break
            except CorruptBatch as error:
                following = find_valid_batch(file, error.position + 1, split.end, expected)
                stop = split.end if following is None else following
                if not permissive:
                    raise damaged(split.path, error.position, error.reason, expected) from None
                keep_damage(decoder, file, error.position, stop, error.reason)
                yield from decoder.take()
                position, expected = stop, _offset_at(file, following, expected)
        if expected < split.next_offset and position >= split.end:
            reason = f"offset {split.next_offset} is where {expected} belongs"
            _note(decoder, split, split.end, expected, reason, permissive)
        yield from decoder.take()
    finally:
        file.close()


def make_decoder(schema: pa.Schema, wanted: Wanted, *, columns: bool = True) -> Decoder:
    """A decoder of the wanted types and topics."""
    return Decoder(schema, types=wanted.types, topic_ids=wanted.topic_ids, columns=columns)


def add_batch(decoder: Decoder, file: StoredFile, batch: Batch, wanted: Wanted, *, permissive: bool) -> None:
    """A batch's wanted records; one that cannot be decoded raises InputError, or is kept as damage."""
    try:
        decoder.add(batch, wanted.first_offset, wanted.last_offset)
    except CorruptBatch as error:
        if not permissive:
            raise damaged(file.path, batch.position, error.reason, batch.header.base_offset) from None
        decoder.add_what_can_be(batch, file.path, error.reason, wanted.first_offset, wanted.last_offset)


def keep_damage(decoder: Decoder, file: StoredFile, start: int, stop: int, reason: str) -> None:
    """Rows that hold the bytes from start to stop."""
    for position in range(start, stop, DAMAGE_PIECE_BYTES):
        data = file.read(position, min(DAMAGE_PIECE_BYTES, stop - position))
        decoder.add_damage(file.path, position, reason, data, stop - start)


def _note(decoder: Decoder, split: Split, position: int, offset: int, reason: str, permissive: bool) -> None:
    """Report whole batches that do not follow one another: raise an error, or add a row of damage without
    bytes.
    """
    if not permissive:
        raise damaged(split.path, position, reason, offset)
    decoder.add_damage(split.path, position, reason, b"", 0)


def _offset_at(file: StoredFile, position: int | None, expected: int) -> int:
    """The first offset of the batch at a position; what was expected where there is none."""
    return expected if position is None else int.from_bytes(file.read(position, 8), "big", signed=True)
