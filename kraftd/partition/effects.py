"""The effects of a partition: what its executor does, in the given order.

The log is written before anything that depends on it is answered: `AppendBatches` is reported back by
`Partition.appended`, or by `Partition.append_failed`.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from kraftd.ground.effect import Effect
from kraftd.partition.producers import CompletedTransaction
from kraftd.wire.batch import BatchHeader


class AppendBatches(Effect, frozen=True, gc=False):
    """Write whole batches at the end of the log, and the aborted transactions that they complete.

    Gaps between offsets are legal. The views are the bytes of the batches of the headers, in order, verified:
    nothing is parsed again.
    """

    base_offset: int
    end_offset: int
    headers: Sequence[BatchHeader]
    views: Sequence[memoryview]
    aborted: Sequence[CompletedTransaction] = ()

    def __repr__(self) -> str:
        count, size = len(self.headers), sum(map(len, self.views))
        return f"<AppendBatches [{self.base_offset}, {self.end_offset}) {count} batches, {size} bytes>"


class AssignEpoch(Effect, frozen=True, gc=False):
    """Let a leader epoch begin at an offset in the epoch cache, before any record of it is there."""

    leader_epoch: int
    start_offset: int


class MarksMoved(Effect, frozen=True, gc=False):
    """The high watermark or the last stable offset moved: fetches and produces that wait may be complete."""

    high_watermark: int
    last_stable_offset: int


class LogStartMoved(Effect, frozen=True, gc=False):
    """Records below an offset are deleted: the log drops whole segments below it."""

    log_start_offset: int


class LowWatermarkMoved(Effect, frozen=True, gc=False):
    """Every replica's log start may have moved: a DeleteRecords that waits may be complete."""

    low_watermark: int


class TruncateLog(Effect, frozen=True, gc=False):
    """Drop every record from an offset on and load the producers anew, then report `Partition.truncated`."""

    end_offset: int


class StartLogAt(Effect, frozen=True, gc=False):
    """Drop the whole log, which begins and ends at an offset; then report `Partition.truncated`."""

    offset: int
    log_start_offset: int


class ProposedMember(Struct, frozen=True, gc=False):
    """A member of a proposed ISR, and its broker epoch: -1 if it has not fetched from this leader."""

    broker_id: int
    broker_epoch: int


class ProposeIsr(Effect, frozen=True, gc=False):
    """Send an AlterPartition, then report `Partition.isr_answered` with its number. One is on its way at a
    time."""

    number: int
    leader_epoch: int
    partition_epoch: int
    leader_recovery_state: int
    members: tuple[ProposedMember, ...]

    @property
    def isr(self) -> tuple[int, ...]:
        return tuple(member.broker_id for member in self.members)

    def __repr__(self) -> str:
        return f"<ProposeIsr {self.number}: {self.isr} at partition epoch {self.partition_epoch}>"
