"""What the broker does for a coordinator, in the given order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kraftd.ground.effect import Effect
from kraftd.ground.pace import Slices
from kraftd.groups.records import KeyAndValue
from kraftd.wire.message import Message


class Respond(Effect, frozen=True):
    """Answer the request of a token. Each token is answered at most once. again, varied: as in Call."""

    token: Any
    response: Message
    again: Callable[[int], bool] | None = None
    varied: Any = None


class RespondAgain(Effect, frozen=True):
    """Answer the request of a token as the one that it repeats. Each token is answered at most once."""

    token: Any


class RespondInSlices(Effect, frozen=True):
    """Answer the request of a token by what these slices build. Each token is answered at most once."""

    token: Any
    response: Slices[Message]


class AppendRecords(Effect, frozen=True):
    """Append one batch to a partition of the coordinator's topic, at this offset, as its leader.

    Answered by RecordsAppended or AppendFailed. If the partition's log end is another one, by AppendFailed
    with NOT_COORDINATOR and that end. producer_id: of the transaction whose offsets these are, else -1; with
    the guard of its verification.
    """

    partition: int
    leader_epoch: int
    batch_id: int
    base_offset: int
    timestamp_ms: int
    records: list[KeyAndValue]
    producer_id: int = -1
    producer_epoch: int = -1
    guard: int = 0

    def __repr__(self) -> str:
        span = f"[{self.base_offset}, {self.base_offset + len(self.records)})"
        return f"<AppendRecords {span} to partition {self.partition}, batch {self.batch_id}>"


class AppendMarker(Effect, frozen=True):
    """Append the marker of a transaction's end, a batch of one record. Answered as AppendRecords is."""

    partition: int
    leader_epoch: int
    batch_id: int
    base_offset: int
    timestamp_ms: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    is_commit: bool
    transaction_version: int


class ReadRecords(Effect, frozen=True):
    """Read whole batches of a partition from an offset, or from its log start if that is later.

    Answered by RecordsRead with one batch at least.
    """

    partition: int
    leader_epoch: int
    offset: int
    max_bytes: int


class ScheduleLoading(Effect, frozen=True):
    """Answer LoadingDue once the event loop has handled what is ready: a slice of loading is done."""

    partition: int
    leader_epoch: int


class PartitionLoaded(Effect, frozen=True):
    """The coordinator of a partition serves requests now, of so many groups or transactional ids, took_ms
    after it began to load.
    """

    partition: int
    leader_epoch: int
    record_count: int
    count: int
    took_ms: int = 0


class PartitionFailed(Effect, frozen=True):
    """A partition cannot be loaded, for this reason, or has to be loaded again; log it. Other replicas may be
    able to load theirs if this log is damaged.
    """

    partition: int
    leader_epoch: int
    reason: str
    is_damaged: bool = False
