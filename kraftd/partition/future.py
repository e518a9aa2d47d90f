"""A future replica: a copy of a partition's log in another directory of the same broker (KIP-113).

It follows the current log, as a follower its leader, by the rules of `reading.py` and `replication.py`.
"""

from __future__ import annotations

from kraftd.ground.effect import Effect
from kraftd.named_tuple import NamedTuple
from kraftd.partition.effects import StartLogAt
from kraftd.partition.partition import NO_EPOCH, Partition
from kraftd.partition.producers import ProducerStates
from kraftd.partition.reading import Isolation, judge_fetch
from kraftd.partition.replication import diverged, out_of_range
from kraftd.partition.views import EpochView
from kraftd.types import OffsetAndEpoch
from kraftd.wire.error_code import ErrorCode

ANY_EPOCH = 2**31 - 1  # the current log holds nothing of a later epoch than it should


class _CurrentLog(NamedTuple):
    """The current log as the leader of the future one."""

    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()
    leader: int = -1
    leader_epoch: int = ANY_EPOCH
    partition_epoch: int = 0
    leader_recovery_state: int = 0


class Read(NamedTuple):
    """What the future log is to copy next; nothing, if both offsets are equal."""

    offset: int
    end_offset: int


def future_of(
    current: Partition,
    epochs: EpochView,
    log_start_offset: int,
    log_end_offset: int,
    producers: ProducerStates | None = None,
) -> Partition:
    """The future replica whose log has these epochs and bounds."""
    future = Partition(
        f"the future {current.topic}",
        current.index,
        current.local_id,
        current.config,
        current.brokers,
        epochs,
        log_start_offset=log_start_offset,
        log_end_offset=log_end_offset,
        producers=producers,
    )
    future.follow_metadata(_CurrentLog(), 0)
    return future


def next_copy(current: Partition, future: Partition) -> Read | list[Effect] | ErrorCode:
    """What to copy next, or how the future log is to be cut first, as it has parted from the current one.

    Errors: KAFKA_STORAGE_ERROR and NOT_LEADER_OR_FOLLOWER while the current log does not serve.
    """
    last, known = future.epochs.latest, current.epochs.latest
    if last is not None and known is not None and last > known:
        return diverged(future, OffsetAndEpoch(current.log_end_offset, known))
    verdict = judge_fetch(
        current,
        future.log_end_offset,
        Isolation.LOG_END,
        last_fetched_epoch=NO_EPOCH if last is None else last,
        only_leader=False,
    )
    if verdict is ErrorCode.OFFSET_OUT_OF_RANGE:
        start, end = current.log_start_offset, current.log_end_offset
        return out_of_range(future, start, end) or [
            StartLogAt(start, start),
            *future.truncated(start, start),
        ]
    if isinstance(verdict, ErrorCode):
        return verdict
    if verdict.diverging is not None:
        return diverged(future, verdict.diverging)
    return Read(verdict.offset, verdict.end_offset)
