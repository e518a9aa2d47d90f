"""What the broker reports to a coordinator."""

from __future__ import annotations

from kraftd.ground.event import Event
from kraftd.wire.error_code import ErrorCode


class PartitionEvent(Event, frozen=True):
    """Of one partition of the coordinator's topic."""

    partition: int


class PartitionElected(PartitionEvent, frozen=True):
    """This broker leads a partition of the coordinator's topic now, from this log start to this log end."""

    leader_epoch: int
    log_start_offset: int
    log_end_offset: int


class PartitionResigned(PartitionEvent, frozen=True):
    """This broker leads a partition no more, or has lost its log."""


class RecordsRead(PartitionEvent, frozen=True):
    """Whole batches that begin at the offset of ReadRecords, or before it. Answers ReadRecords.

    An error stands for bytes that could not be read, here alone if they are damaged.
    """

    leader_epoch: int
    data: bytes | memoryview
    high_watermark: int
    error: str | None = None
    is_damaged: bool = False

    def __repr__(self) -> str:
        return f"<RecordsRead {len(self.data)} bytes of partition {self.partition}, {self.error or 'whole'}>"


class LoadingDue(PartitionEvent, frozen=True):
    """The next slice of loading a partition may run. Answers ScheduleLoading."""

    leader_epoch: int


class RecordsAppended(PartitionEvent, frozen=True):
    """A batch is in the log. Answers AppendRecords and AppendMarker."""

    batch_id: int


class AppendFailed(PartitionEvent, frozen=True):
    """A batch is not in the log, nor any after it. Answers AppendRecords and AppendMarker.

    log_end_offset: where the log ends, if it is not at the batch's base offset, although this broker leads.
    Then another writer was there, and the partition is loaded again.
    """

    batch_id: int
    error: ErrorCode
    log_end_offset: int | None = None


class HighWatermarkAdvanced(PartitionEvent, frozen=True):
    """All records of a partition below this offset are committed."""

    offset: int


class TopicsDeleted(Event, frozen=True):
    """Topics that are no more, by name and topic id."""

    topics: dict[str, bytes]
