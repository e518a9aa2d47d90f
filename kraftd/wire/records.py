"""Record batches of data partitions: judged and patched in one call, searched, decoded, written again.

    engine.judge(...)        # is this what a client may produce? If so it has its offsets afterwards
    scan_batches(data)       # the headers of what a follower has fetched, or of a segment that is recovered
    decode_records(batch)    # what a coordinator reads from its own partition

`_records.c` does the work if it is built, `python_records.py` otherwise; ``KRAFTD_CODEC`` chooses, as for
messages.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from importlib import import_module
from struct import Struct
from typing import Any, Protocol, cast

from kraftd.named_tuple import NamedTuple
from kraftd.wire import python_records
from kraftd.wire.batch import HEADER_BYTES, Batch, BatchHeader, CorruptBatch, decompressed
from kraftd.wire.compression import compress
from kraftd.wire.engine import C_ENGINE
from kraftd.wire.errors import DamagedRecords
from kraftd.wire.python_batches import Buffer, PlainRow
from kraftd.wire.python_records import MOST_ERRORS as MOST_ERRORS
from kraftd.wire.python_records import NewRecord

_TUPLE_OF: Any = tuple.__new__
_AFTER_CRC = Struct(">hiqqqhii")
_BEFORE_CRC = Struct(">qiibI")
_CRC_END, _LENGTH_END, _MAGIC = 21, 12, 2

CREATE_TIME, LOG_APPEND_TIME = range(2)  # message.timestamp.type
NO_TIMESTAMP = -1
NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
_CODEC = 0x07  # of attributes
MAX_SEQUENCE = (1 << 31) - 1


class Outcome(enum.IntEnum):
    """What `judge` finds. VALID comes with the header; most others come with two numbers."""

    VALID = 0
    NO_BATCH = 1
    BAD_LENGTH = 2  # the length
    BAD_MAGIC = 3  # the magic
    OLD_MAGIC = 4  # the magic
    ZSTD_TOO_EARLY = 5
    MORE_BATCHES = 6
    BASE_OFFSET = 7  # the base offset
    TOO_LARGE = 8  # the size in bytes
    TOO_SHORT = 9  # the size in bytes
    BAD_CRC = 10  # stored, computed
    UNKNOWN_CODEC = 11  # the codec
    NEEDS_BODY = 12  # the codec: to be called again with the decompressed records
    OFFSET_RANGE = 13  # the last offset delta
    RECORD_COUNT = 14  # the count
    COUNT_DIFFERS = 15  # the last offset delta, the count
    CONTROL_BATCH = 16
    SEQUENCE = 17  # the base sequence, the producer id
    RECORDS = 18  # a list of faults, each the fields of a RecordFault; how many there are of them
    STRUCTURE = 19  # the index of the record that cannot be read
    OFFSETS_DIFFER = 20  # compressed records whose offsets are not 0, 1, 2: valid, and to be written again


class Options(enum.IntFlag):
    """How `judge` judges."""

    CLIENT = 1  # a client's batch: begins at offset 0, has records, is no control batch
    COMPACTED = 2  # records need keys
    SET_APPEND_TIME = 4  # message.timestamp.type=LogAppendTime
    NO_ZSTD = 8  # Produce before v7
    LENIENT = 16  # lengths of records are not compared: the batch was compressed, and stays as it is
    KEEP = 32  # nothing is patched


class FaultKind(enum.IntEnum):
    """The fault of one record."""

    NO_KEY = 1
    OUT_OF_RANGE = 2
    APPEND_TIME_SET = 3


class RecordFault(NamedTuple):
    """A record that must not be appended; sizes are -1 where key or value are null."""

    record_index: int
    kind: int
    offset: int
    timestamp_ms: int
    key_bytes: int
    value_bytes: int


class Record(NamedTuple):
    """One decoded record."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[bytes, bytes | None], ...] = ()


class RecordEngine(Protocol):
    """The functions that both engines have."""

    def judge(
        self,
        data: Buffer,
        body: Buffer | None,
        now_ms: int,
        base_offset: int,
        leader_epoch: int,
        most_bytes: int,
        before_ms: int,
        after_ms: int,
        target: int,
        options: int,
        /,
    ) -> tuple[Any, ...]:
        """Judge the only batch of `data`: its header, checksum, and records. What is behind the batch and
        no whole batch is left alone, as Kafka does.

        `target` is the codec that the topic demands, -1 if it takes the producer's. For NEEDS_BODY, call
        again with the records decompressed. A VALID batch has its offsets from `base_offset` on, the leader
        epoch and its timestamp type afterwards. `data` must be writable unless KEEP is among the options.
        Returns an Outcome and what it comes with.
        """

    def find_timestamp(
        self, data: Buffer, target_ms: int, start_offset: int, exact: bool, /
    ) -> tuple[int, int] | None:
        """Offset and timestamp of the first record at or after an offset that has at least the timestamp,
        or exactly it. `data` is one uncompressed batch. Raises DamagedRecords."""

    def decode_records(self, data: Buffer, /) -> list[tuple[Any, ...]]:
        """The records of one uncompressed batch, with the fields of Record. Raises DamagedRecords."""

    def batch_headers(
        self, data: Buffer, position: int, most: int, verify: bool, /
    ) -> tuple[list[BatchHeader], int, str | None]:
        """The headers of up to `most` whole batches from a position on, and the position after them. The
        text is None at the end of the data, or says why the next batch is none: "format", "length",
        "truncated", "offsets", "checksum"."""

    def plain_answer(self, frame: memoryview, session_id: int, /) -> list[PlainRow] | None:
        """The partitions of an answer to a fetch, v13 or later, of a session; None if there is more in it
        than plain records: whole batches that follow each other in one epoch, of no transaction."""

    def verify_batches(
        self, data: Buffer, position: int, end_offset: int, leader_epoch: int, /
    ) -> tuple[int, str | None]:
        """The position after the whole batches that begin below an offset and have a leader epoch, any if it
        is negative. The text is as of `batch_headers`, or "leader epoch"; checksums are verified."""

    def select_batches(
        self, data: Buffer, offset: int, max_bytes: int, end_offset: int, limit_offset: int, /
    ) -> tuple[int, int, int, int]:
        """Start and stop of the batches from the first on that ends at or past an offset: one at least, as
        many as max_bytes hold, none that ends at or past end_offset. Without one both are where to read on,
        and the third number is how many bytes that takes, 0 beyond the end. The fourth one is the offset
        after the batches. A stop of -1 says that the header at the start is damaged: offsets ascend, and are
        below limit_offset."""

    def write_records(self, records: Sequence[NewRecord], /) -> tuple[bytes, int, int]:
        """Records as a batch holds them, uncompressed, with the first timestamp and the maximum."""

    def rewrite(self, data: Buffer, /) -> tuple[bytes, int, int] | None:
        """The records of one uncompressed batch as Kafka's builder writes them, from offset delta 0 on,
        with base and maximum timestamp. None for a timestamp below -1. Raises DamagedRecords."""

    def keep_records(
        self, data: Buffer, kept: bytes, base_timestamp_ms: int, /
    ) -> tuple[bytes, int, int] | None:
        """As `rewrite`, of the records of which `kept` has a byte that is not 0, at their offsets. A base
        timestamp of -1 is that of the first one kept."""

    def note_keys(
        self, slots: bytearray, secret: bytes, data: Buffer, start_offset: int, room: int, /
    ) -> tuple[int, int, bool]:
        """Note in a table, zeros at first, the offset of each record with a key from start_offset on, until
        `room` new keys are there. How many keys are new, the last offset noted or -1, and whether all fitted.
        Raises DamagedRecords."""

    def newest_records(
        self, slots: bytearray, secret: bytes, data: Buffer, latest_offset: int, drops_tombstones: bool, /
    ) -> tuple[bytes, int, bool]:
        """A byte for each record of an uncompressed batch, 1 if it stays; how many do; whether a tombstone
        does. A record past latest_offset stays, of the others those with a key that are not older than the
        table's. Raises DamagedRecords."""

    def crc32c(self, data: Buffer, /) -> int:
        """The checksum of some bytes."""

    def room(self, size_bytes: int, /) -> bytearray:
        """A buffer to be filled: what it holds at first is nothing to show."""


def _engine() -> RecordEngine:
    if C_ENGINE is None:
        return cast("RecordEngine", python_records)
    try:
        return cast("RecordEngine", import_module("kraftd.wire._records"))
    except ImportError:
        return cast("RecordEngine", python_records)


ENGINE = _engine()


def scan_batches(
    data: Buffer, position: int = 0, *, most: int = 1 << 30, verify: bool = True
) -> tuple[list[Batch], int, str | None]:
    """Up to `most` whole batches from a position on, the position after them, and why the next is none.

    The reason is None at the end of the data, else "format", "length", "truncated", "offsets" or "checksum".
    """
    view = memoryview(data)
    headers, end, reason = ENGINE.batch_headers(data, position, most, verify)
    found = []
    for header in headers:
        after = position + header.length_bytes + _LENGTH_END
        found.append(Batch(header, view[position:after], position))
        position = after
    return found, end, reason


def plain_view(batch: Batch) -> memoryview:
    """The bytes of a batch, its records decompressed. Raises CorruptBatch."""
    return decompressed(batch).view


def decode_records(batch: Batch) -> list[Record]:
    """The records of a batch, decompressed if necessary. Raises CorruptBatch."""
    return [_TUPLE_OF(Record, fields) for fields in decode_fields(batch)]


def decode_fields(batch: Batch) -> list[tuple[Any, ...]]:
    """As `decode_records`, each record as the tuple of a Record's fields."""
    try:
        return ENGINE.decode_records(plain_view(batch))
    except DamagedRecords as error:
        raise CorruptBatch(str(error), batch.position) from None


def first_of_timestamp(
    batch: Batch, target_ms: int, start_offset: int = 0, *, exact: bool = False
) -> tuple[int, int] | None:
    """Offset and timestamp of a batch's first record from an offset on of at least a timestamp, or exactly
    it.

    Raises CorruptBatch.
    """
    try:
        return ENGINE.find_timestamp(plain_view(batch), target_ms, start_offset, exact)
    except DamagedRecords as error:
        raise CorruptBatch(str(error), batch.position) from None


def last_sequence(header: BatchHeader) -> int:
    """The sequence of a batch's last record; after the largest follows 0."""
    if header.base_sequence == NO_SEQUENCE:
        return NO_SEQUENCE
    return increment_sequence(header.base_sequence, header.last_offset_delta)


def increment_sequence(sequence: int, increment: int) -> int:
    """A sequence some records later."""
    after = sequence + increment
    return after - MAX_SEQUENCE - 1 if after > MAX_SEQUENCE else after


def decrement_sequence(sequence: int, decrement: int) -> int:
    """A sequence some records before."""
    before = sequence - decrement
    return before + MAX_SEQUENCE + 1 if before < 0 else before


def build_records_batch(
    records: Sequence[NewRecord],
    *,
    base_offset: int = 0,
    leader_epoch: int = -1,
    attributes: int = 0,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
) -> bytearray:
    """One batch of (timestamp, key, value, headers), as a producer or coordinator builds it; it is compressed
    if the attributes name a codec.

    Raises ValueError without records.
    """
    if not records:
        raise ValueError("a batch holds at least one record")
    out: Buffer
    out, first, most = ENGINE.write_records(records)
    codec = attributes & _CODEC
    if codec:
        out = compress(codec, out)
    return finish_batch(
        out, len(records), base_offset, leader_epoch, attributes, first, most, producer_id, producer_epoch,
        base_sequence,
    )  # fmt: skip


def finish_batch(
    body: Buffer,
    count: int,
    base_offset: int,
    leader_epoch: int,
    attributes: int,
    base_timestamp_ms: int,
    max_timestamp_ms: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
) -> bytearray:
    """The batch of records that are written, and compressed if the attributes say so."""
    batch = bytearray(HEADER_BYTES) + body
    _AFTER_CRC.pack_into(
        batch, _CRC_END, attributes, count - 1, base_timestamp_ms, max_timestamp_ms, producer_id,
        producer_epoch, base_sequence, count,
    )  # fmt: skip
    crc = ENGINE.crc32c(memoryview(batch)[_CRC_END:])
    _BEFORE_CRC.pack_into(batch, 0, base_offset, len(batch) - _LENGTH_END, leader_epoch, _MAGIC, crc)
    return batch
