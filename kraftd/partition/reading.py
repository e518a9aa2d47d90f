"""Reads of a partition judged: Fetch, ListOffsets, OffsetForLeaderEpoch, DeleteRecords. No record is touched.

A verdict says what the log is to be asked; the marks in it are those of this moment, before the read.
"""

from __future__ import annotations

import enum

from msgspec import Struct

from kraftd.ground.effect import Effect
from kraftd.partition.partition import HIGH_WATERMARK_SENTINEL, LEADER, NO_EPOCH, NO_OFFSET, Partition
from kraftd.types import OffsetAndEpoch
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.records import NO_TIMESTAMP

LATEST_TIMESTAMP = -1
EARLIEST_TIMESTAMP = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL_TIMESTAMP = -4
LATEST_TIERED_TIMESTAMP = -5
EARLIEST_PENDING_UPLOAD_TIMESTAMP = -6
# The first version of ListOffsets that has a timestamp's meaning.
FIRST_VERSIONS = {
    LATEST_TIMESTAMP: 1,
    EARLIEST_TIMESTAMP: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL_TIMESTAMP: 8,
    LATEST_TIERED_TIMESTAMP: 9,
    EARLIEST_PENDING_UPLOAD_TIMESTAMP: 11,
}
FIRST_VERSION_WITH_LEADER_EPOCH = 4
FIRST_VERSION_WITH_OFFSET_NOT_AVAILABLE = 5


class Isolation(enum.Enum):
    """Up to where a reader may see the log."""

    LOG_END = "log end"  # replicas
    HIGH_WATERMARK = "high watermark"  # read_uncommitted
    LAST_STABLE = "last stable offset"  # read_committed


class Marks(Struct, frozen=True, gc=False):
    """A partition's offsets at one moment."""

    log_start_offset: int
    last_stable_offset: int
    high_watermark: int
    log_end_offset: int


class FetchVerdict(Struct, frozen=True, gc=False):
    """What a fetch reads: batches from `offset` on, none at or past `end_offset`. With `diverging` it reads
    nothing, and the follower truncates: the largest epoch at or below its own, and where that ended here.
    """

    offset: int
    end_offset: int
    marks: Marks
    diverging: OffsetAndEpoch | None = None

    @property
    def is_empty(self) -> bool:
        return self.diverging is not None or self.offset >= self.end_offset


def marks(partition: Partition) -> Marks:
    """The offsets of now."""
    return Marks(
        partition.log_start_offset, partition.last_stable_offset, partition.high_watermark,
        partition.log_end_offset
    )  # fmt: skip


def judge_fetch(
    partition: Partition,
    offset: int,
    isolation: Isolation,
    *,
    current_leader_epoch: int = NO_EPOCH,
    last_fetched_epoch: int = NO_EPOCH,
    follower_id: int | None = None,
    only_leader: bool = True,
) -> FetchVerdict | ErrorCode:
    """What a consumer or follower may read.

    Errors: FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, NOT_LEADER_OR_FOLLOWER, KAFKA_STORAGE_ERROR,
    OFFSET_OUT_OF_RANGE. Consumers of v11 and later may read from followers: `only_leader` is false for them.
    """
    error = partition.check_readable(current_leader_epoch, only_leader=only_leader)
    if error is not ErrorCode.NONE:
        return error
    if follower_id is not None and follower_id not in partition.followers:
        # A reassignment may have added it, in metadata that this broker has not seen.
        unknown = current_leader_epoch != NO_EPOCH
        return ErrorCode.UNKNOWN_LEADER_EPOCH if unknown else ErrorCode.NOT_LEADER_OR_FOLLOWER
    now = marks(partition)
    is_within = now.log_start_offset <= offset <= now.log_end_offset
    if last_fetched_epoch != NO_EPOCH and not (is_within and last_fetched_epoch == partition.epochs.latest):
        end = partition.epochs.end_offset_for(last_fetched_epoch, now.log_end_offset)
        if end is None or end.epoch == NO_EPOCH or offset < now.log_start_offset:
            return ErrorCode.OFFSET_OUT_OF_RANGE
        if end.epoch < last_fetched_epoch or end.offset < offset:
            return FetchVerdict(offset, offset, now, end)
    if not is_within:
        return ErrorCode.OFFSET_OUT_OF_RANGE
    if isolation is Isolation.LOG_END:
        return FetchVerdict(offset, now.log_end_offset, now)
    end_offset = now.high_watermark if isolation is Isolation.HIGH_WATERMARK else now.last_stable_offset
    return FetchVerdict(offset, end_offset, now)


def end_offset_for_epoch(
    partition: Partition, leader_epoch: int, *, current_leader_epoch: int = NO_EPOCH, only_leader: bool = True
) -> OffsetAndEpoch | ErrorCode:
    """OffsetForLeaderEpoch: the largest epoch at or below one, and where it ended; (-1, -1) if it is
    unknown."""
    error = partition.check_readable(current_leader_epoch, only_leader=only_leader)
    if error is not ErrorCode.NONE:
        return error
    nowhere = OffsetAndEpoch(NO_OFFSET, NO_EPOCH)
    if leader_epoch == NO_EPOCH:
        return nowhere
    return partition.epochs.end_offset_for(leader_epoch, partition.log_end_offset) or nowhere


# --- ListOffsets ---


class ListedOffset(Struct, frozen=True, gc=False):
    """An answer of ListOffsets; all are -1 if nothing was found."""

    timestamp_ms: int = NO_TIMESTAMP
    offset: int = NO_OFFSET
    leader_epoch: int = NO_EPOCH


class TimestampLookup(Struct, frozen=True, gc=False):
    """The log is to find the first record of at least `target_ms` from the log start on, or with
    `wants_maximum` the first one of the largest timestamp. `answer` takes what it found.
    """

    target_ms: int
    wants_maximum: bool
    log_start_offset: int
    last_fetchable_offset: int
    error_beyond: ErrorCode | None
    has_epoch: bool

    def answer(self, found: tuple[int, int, int] | None) -> ListedOffset | ErrorCode:
        """The answer for (offset, timestamp, leader epoch), or None if the log has no such record.

        What is not yet fetchable counts as not found, or as not available while a new leader's high
        watermark is behind its epoch's start.
        """
        if found is None or found[0] >= self.last_fetchable_offset:
            return self.error_beyond or ListedOffset()
        offset, timestamp_ms, epoch = found
        return ListedOffset(timestamp_ms, offset, epoch if self.has_epoch else NO_EPOCH)


def is_unsupported(timestamp_ms: int, version: int) -> bool:
    """Return whether a version of ListOffsets lacks this special timestamp."""
    return timestamp_ms < 0 and version < FIRST_VERSIONS.get(timestamp_ms, version + 1)


def list_offset(
    partition: Partition,
    timestamp_ms: int,
    version: int,
    *,
    isolation: Isolation = Isolation.HIGH_WATERMARK,
    current_leader_epoch: int = NO_EPOCH,
    only_leader: bool = True,
) -> ListedOffset | TimestampLookup | ErrorCode:
    """The offset of a timestamp, special or not; replicas ask with the isolation LOG_END.

    Errors: UNSUPPORTED_VERSION for a special timestamp that the version lacks, those of `check_readable`,
    OFFSET_NOT_AVAILABLE (LEADER_NOT_AVAILABLE before v5).
    """
    if is_unsupported(timestamp_ms, version):
        return ErrorCode.UNSUPPORTED_VERSION
    error = partition.check_readable(current_leader_epoch, only_leader=only_leader)
    if error is not ErrorCode.NONE:
        return error
    has_epoch = version >= FIRST_VERSION_WITH_LEADER_EPOCH
    beyond = _not_available(partition, version) if isolation is not Isolation.LOG_END else None
    fetchable = {
        Isolation.LOG_END: partition.log_end_offset,
        Isolation.HIGH_WATERMARK: partition.high_watermark,
        Isolation.LAST_STABLE: partition.last_stable_offset,
    }[isolation]
    if timestamp_ms == LATEST_TIMESTAMP:
        epoch = partition.leader_epoch if has_epoch else NO_EPOCH
        return beyond or ListedOffset(NO_TIMESTAMP, fetchable, epoch)
    if timestamp_ms in (EARLIEST_TIMESTAMP, EARLIEST_LOCAL_TIMESTAMP):
        return ListedOffset(
            NO_TIMESTAMP, partition.log_start_offset, _first_epoch(partition) if has_epoch else NO_EPOCH
        )
    if timestamp_ms in (LATEST_TIERED_TIMESTAMP, EARLIEST_PENDING_UPLOAD_TIMESTAMP):
        return ListedOffset()  # nothing is in tiered storage
    return TimestampLookup(
        timestamp_ms, timestamp_ms == MAX_TIMESTAMP, partition.log_start_offset, fetchable, beyond, has_epoch
    )  # fmt: skip


def _not_available(partition: Partition, version: int) -> ErrorCode | None:
    """The error while a new leader's high watermark has not reached the start of its epoch."""
    start = partition.leader_epoch_start
    if start is None or start <= partition.high_watermark:
        return None
    known = version >= FIRST_VERSION_WITH_OFFSET_NOT_AVAILABLE
    return ErrorCode.OFFSET_NOT_AVAILABLE if known else ErrorCode.LEADER_NOT_AVAILABLE


def _first_epoch(partition: Partition) -> int:
    entries = partition.epochs.entries
    return entries[0][0] if entries and entries[0][1] <= partition.log_start_offset else NO_EPOCH


# --- DeleteRecords ---


class DeletedRecords(Struct, frozen=True, gc=False):
    """A DeleteRecords that is accepted: it is answered once the low watermark is at `offset`."""

    offset: int
    low_watermark: int
    effects: tuple[Effect, ...]


def delete_records(partition: Partition, offset: int) -> DeletedRecords | ErrorCode:
    """Delete records below an offset, or with -1 below the high watermark.

    Errors: NOT_LEADER_OR_FOLLOWER, KAFKA_STORAGE_ERROR, POLICY_VIOLATION, OFFSET_OUT_OF_RANGE.
    """
    error = partition.check_readable(NO_EPOCH, only_leader=True)
    if error is not ErrorCode.NONE:
        return error
    if partition.config.is_compacted and not partition.config.is_deleted:
        return ErrorCode.POLICY_VIOLATION
    if offset == HIGH_WATERMARK_SENTINEL:
        offset = partition.high_watermark
    if not 0 <= offset <= partition.high_watermark:
        return ErrorCode.OFFSET_OUT_OF_RANGE
    effects = tuple(partition.move_log_start(offset))
    return DeletedRecords(offset, low_watermark(partition), effects)


def low_watermark(partition: Partition) -> int:
    """Where the log of every replica that is alive begins at the earliest."""
    lowest = partition.log_start_offset
    for follower in partition.followers.values():
        if partition.brokers.alive_epoch(follower.broker_id) is not None:
            lowest = min(lowest, follower.log_start_offset)
    return lowest


def records_deleted(partition: Partition, offset: int) -> ErrorCode | None:
    """The answer to a DeleteRecords that waits; None while it has to wait on."""
    if partition.role is not LEADER:
        return partition.check_readable(NO_EPOCH, only_leader=True)
    return ErrorCode.NONE if low_watermark(partition) >= offset else None
