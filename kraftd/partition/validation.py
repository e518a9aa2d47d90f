"""What a partition takes from a producer: the rules of Kafka's LogValidator, of analyzeAndValidateRecords,
and of ProduceRequest.validateRecords, with their error codes and the texts that an answer shows.

The record engine judges (`kraftd.wire.records`); this module names the outcome. Since format v2 is the only
one that Apache Kafka 4 writes, a partition's records are exactly one batch.

Differs from Apache Kafka: records that decompress to more than 64 MiB, and more than max.message.bytes, are
refused as too large, so that producers split the batch. An answer lists at most 10,000 faulty records.
"""

from __future__ import annotations

from typing import Any, Protocol

from msgspec import Struct

from kraftd.named_tuple import NamedTuple
from kraftd.partition.config import PRODUCERS_CODEC, PartitionConfig
from kraftd.types import as_long
from kraftd.wire import records
from kraftd.wire.batch import HEADER_BYTES, LENGTH_END, BatchHeader
from kraftd.wire.compression import (
    MAX_DECOMPRESSED_BYTES,
    DecompressionError,
    OutputTooLarge,
    compress,
    decompress,
    is_read_by_kafka,
)
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.python_batches import Buffer
from kraftd.wire.records import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    FaultKind,
    Options,
    Outcome,
    RecordFault,
    finish_batch,
)

FIRST_VERSION_WITH_ZSTD = 7
ERRORS_IN_MESSAGE = 3

_CODEC, _APPEND_TIME, _TRANSACTIONAL = 0x07, 0x08, 0x10
_ATTRIBUTES_LOW_AT = 22


class Named(Protocol):
    """What texts say of a partition."""

    @property
    def name(self) -> str:
        """Its topic and index."""


class RecordError(NamedTuple):
    """The fault of one record: its index in the batch, and a text."""

    batch_index: int
    message: str

    def __repr__(self) -> str:
        return f"RecordError(batchIndex={self.batch_index}, message='{self.message}')"


class ProduceRefusal(Struct, frozen=True, gc=False):
    """Why nothing of a partition's records was appended.

    With `shows_log_start` the answer has the partition's log start offset, as in Kafka. `message` and
    `record_errors` are what the answer shows from v8 on.
    """

    error: ErrorCode
    message: str | None = None
    record_errors: tuple[RecordError, ...] = ()
    shows_log_start: bool = False

    def __repr__(self) -> str:
        return f"<ProduceRefusal {self.error.name}, {len(self.record_errors)} record errors: {self.message}>"


class ValidBatch(Struct, frozen=True, gc=False):
    """A batch that may be appended as it is: offsets, leader epoch and timestamps are set.

    `append_time_ms` is what an answer says: NO_TIMESTAMP unless the topic has LogAppendTime.
    """

    header: BatchHeader
    view: memoryview
    append_time_ms: int

    def __repr__(self) -> str:
        header = self.header
        return f"<ValidBatch {header.base_offset}..{header.last_offset}, {header.size_bytes} bytes>"


_INVALID, _CORRUPT = ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE
_UNKNOWN = ErrorCode.UNKNOWN_SERVER_ERROR

# Found before anything is known of the partition: wrong on any broker.
OF_THE_REQUEST: dict[int, ProduceRefusal] = {
    Outcome.NO_BATCH: ProduceRefusal(_INVALID),
    Outcome.BAD_LENGTH: ProduceRefusal(_CORRUPT),
    Outcome.BAD_MAGIC: ProduceRefusal(_CORRUPT),
    Outcome.OLD_MAGIC: ProduceRefusal(_INVALID),
    Outcome.ZSTD_TOO_EARLY: ProduceRefusal(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
    Outcome.MORE_BATCHES: ProduceRefusal(_INVALID),
}
_OF_THE_BATCH: dict[int, ProduceRefusal] = {
    Outcome.BASE_OFFSET: ProduceRefusal(_INVALID, shows_log_start=True),
    Outcome.TOO_LARGE: ProduceRefusal(ErrorCode.MESSAGE_TOO_LARGE),
    Outcome.TOO_SHORT: ProduceRefusal(_CORRUPT),
    Outcome.BAD_CRC: ProduceRefusal(_CORRUPT),
    Outcome.UNKNOWN_CODEC: ProduceRefusal(_UNKNOWN, shows_log_start=True),
    Outcome.OFFSET_RANGE: ProduceRefusal(_INVALID, shows_log_start=True),
    Outcome.RECORD_COUNT: ProduceRefusal(_INVALID, shows_log_start=True),
    Outcome.COUNT_DIFFERS: ProduceRefusal(_INVALID, shows_log_start=True),
    Outcome.CONTROL_BATCH: ProduceRefusal(_INVALID, shows_log_start=True),
    Outcome.SEQUENCE: ProduceRefusal(_INVALID, shows_log_start=True),
    Outcome.STRUCTURE: ProduceRefusal(_INVALID, shows_log_start=True),
    # Kafka's validator would write them again, and its reader of such a batch has skipped keys and values.
    Outcome.OFFSETS_DIFFER: ProduceRefusal(_UNKNOWN, shows_log_start=True),
}
TOO_LARGE = ProduceRefusal(ErrorCode.MESSAGE_TOO_LARGE)
LIST_TOO_LARGE = ProduceRefusal(ErrorCode.RECORD_LIST_TOO_LARGE)
UNREADABLE = ProduceRefusal(_UNKNOWN, shows_log_start=True)


def validate(
    data: Buffer,
    config: PartitionConfig,
    partition: Named,
    base_offset: int,
    leader_epoch: int,
    now_ms: int,
    *,
    version: int = FIRST_VERSION_WITH_ZSTD,
    is_client: bool = True,
) -> ValidBatch | ProduceRefusal:
    """Judge a partition's records of a Produce of that version, and give them offsets from `base_offset` on.

    The batch is changed in place if `data` is writable, else copied.
    Bytes behind the batch that are no whole batch are not part of the result.
    """
    view = memoryview(data)
    options = config.options
    if is_client:
        options |= 1  # Options.CLIENT, without its cost
    if version < FIRST_VERSION_WITH_ZSTD:
        options |= Options.NO_ZSTD
    most_bytes, codec = config.max_message_bytes, config.compression
    before_ms, after_ms = config.timestamp_before_max_ms, config.timestamp_after_max_ms
    if view.readonly:
        if len(view) > most_bytes:  # refused most likely: then it is not copied
            found = records.ENGINE.judge(
                view, None, now_ms, base_offset, leader_epoch, most_bytes, before_ms, after_ms, codec,
                options | Options.KEEP,
            )  # fmt: skip
            if found[0] not in (0, Outcome.NEEDS_BODY):
                return refusal_of(found, config, partition, now_ms)
        view = memoryview(bytearray(view))
    found = records.ENGINE.judge(
        view, None, now_ms, base_offset, leader_epoch, most_bytes, before_ms, after_ms, codec, options
    )
    outcome = found[0]
    if not outcome:
        return _accepted(found[1], view, config, now_ms)
    if outcome != Outcome.NEEDS_BODY:
        return refusal_of(found, config, partition, now_ms)
    return _validate_body(view, found[1], config, partition, base_offset, leader_epoch, now_ms, options)


def find_refusal(data: Buffer, version: int) -> ProduceRefusal | None:
    """What refuses records on any partition, led here or not; None if nothing does."""
    options = Options.KEEP | (Options.NO_ZSTD if version < FIRST_VERSION_WITH_ZSTD else 0)
    outcome = records.ENGINE.judge(data, None, 0, 0, 0, 0, 0, 0, PRODUCERS_CODEC, options)[0]
    return OF_THE_REQUEST.get(outcome)


def _accepted(
    header: BatchHeader, view: memoryview, config: PartitionConfig, now_ms: int
) -> ValidBatch | ProduceRefusal:
    size = header.length_bytes + LENGTH_END
    if size > config.segment_bytes:
        return LIST_TOO_LARGE
    batch = view if size == len(view) else view[:size]
    return ValidBatch(header, batch, now_ms if config.sets_append_time else NO_TIMESTAMP)


def _validate_body(
    view: memoryview,
    codec: int,
    config: PartitionConfig,
    partition: Named,
    base_offset: int,
    leader_epoch: int,
    now_ms: int,
    options: int,
) -> ValidBatch | ProduceRefusal:
    """Judge records that are compressed, or that the topic wants compressed by another codec."""
    size = int.from_bytes(view[8:12], "big") + 12
    packed = view[HEADER_BYTES:size]
    stays = config.compression in (PRODUCERS_CODEC, codec)
    body: Buffer = packed
    if codec:
        if not is_read_by_kafka(codec, packed):
            return UNREADABLE
        try:
            body = decompress(codec, packed, max(MAX_DECOMPRESSED_BYTES, config.max_message_bytes))
        except OutputTooLarge:
            return TOO_LARGE
        except DecompressionError:
            return UNREADABLE
    options |= Options.LENIENT if stays else Options.KEEP
    limits = config.max_message_bytes, config.timestamp_before_max_ms, config.timestamp_after_max_ms
    found = records.ENGINE.judge(
        view, body, now_ms, base_offset, leader_epoch, *limits, config.compression, options
    )
    if found[0]:
        return refusal_of(found, config, partition, now_ms, is_partial=stays)
    if stays:
        return _accepted(found[1], view, config, now_ms)
    return _recompressed(found[1], view, body, config, base_offset, leader_epoch, now_ms)


def _recompressed(
    header: BatchHeader,
    view: memoryview,
    body: Buffer,
    config: PartitionConfig,
    base_offset: int,
    leader_epoch: int,
    now_ms: int,
) -> ValidBatch | ProduceRefusal:
    """Write valid records again, with the topic's codec."""
    plain = bytearray(view[:HEADER_BYTES]) + body
    plain[_ATTRIBUTES_LOW_AT] &= ~_CODEC
    rewritten = records.ENGINE.rewrite(plain)
    if rewritten is None or not _is_writable(header):
        return UNREADABLE
    written, base_timestamp_ms, max_timestamp_ms = rewritten
    attributes = config.compression | header.attributes & _TRANSACTIONAL
    if config.sets_append_time:
        attributes |= _APPEND_TIME
        max_timestamp_ms = now_ms
    batch = finish_batch(
        compress(config.compression, written, config.compression_level), header.record_count, base_offset,
        leader_epoch, attributes, base_timestamp_ms, max_timestamp_ms, header.producer_id,
        header.producer_epoch, header.base_sequence,
    )  # fmt: skip
    if len(batch) > config.max_message_bytes:
        return TOO_LARGE
    written_header = records.ENGINE.batch_headers(batch, 0, 1, False)[0][0]
    return _accepted(written_header, memoryview(batch), config, now_ms)


def _is_writable(header: BatchHeader) -> bool:
    """Return whether Kafka's builder takes such a producer."""
    if header.producer_id == NO_PRODUCER_ID:
        return not header.attributes & _TRANSACTIONAL
    return header.producer_epoch != NO_PRODUCER_EPOCH and header.base_sequence >= 0


def refusal_of(
    found: tuple[Any, ...],
    config: PartitionConfig,
    partition: Named,
    now_ms: int,
    *,
    is_partial: bool = False,
) -> ProduceRefusal:
    """The refusal of an outcome; `is_partial` if Kafka's reader would have skipped keys and values."""
    outcome = found[0]
    if outcome != Outcome.RECORDS:
        return OF_THE_REQUEST.get(outcome) or _OF_THE_BATCH[outcome]
    faults = [RecordFault(*fields) for fields in found[1]]
    errors = tuple(
        RecordError(fault.record_index, _text(fault, config, partition, now_ms, is_partial))
        for fault in faults
    )
    if any(fault.kind != FaultKind.NO_KEY for fault in faults):
        message = "One or more records have been rejected due to invalid timestamp"
        return ProduceRefusal(ErrorCode.INVALID_TIMESTAMP, message, errors, shows_log_start=True)
    message = (
        f"One or more records have been rejected due to {found[2]} record errors in total, and only showing "
        f"the first three errors at most: {list(errors[:ERRORS_IN_MESSAGE])}"
    )
    return ProduceRefusal(_INVALID, message, errors, shows_log_start=True)


def _text(
    fault: RecordFault, config: PartitionConfig, partition: Named, now_ms: int, is_partial: bool
) -> str:
    if fault.kind == FaultKind.NO_KEY:
        return f"Compacted topic cannot accept message without key in topic partition {partition.name}"
    if fault.kind == FaultKind.OUT_OF_RANGE:
        first = as_long(now_ms - config.timestamp_before_max_ms)
        last = as_long(now_ms + config.timestamp_after_max_ms)
        return (
            f"Timestamp {fault.timestamp_ms} of message with offset {fault.offset} is out of range. "
            f"The timestamp should be within [{first}, {last}]"
        )
    kind, key, value = "PartialDefaultRecord", fault.key_bytes, fault.value_bytes
    if not is_partial:
        kind, key, value = "DefaultRecord", max(key, 0), max(value, 0)
    record = (
        f"{kind}(offset={fault.offset}, timestamp={fault.timestamp_ms}, key={key} bytes, value={value} bytes)"
    )
    return (
        f"Invalid timestamp type in message {record}. "
        "Producer should not set timestamp type to LogAppendTime."
    )
