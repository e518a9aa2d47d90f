"""Replication of one partition: a leader's followers and their ISR, and what a follower does with fetched
records."""

from __future__ import annotations

from collections.abc import Iterator

from kraftd.ground.effect import Effect
from kraftd.partition.effects import (
    AppendBatches,
    LowWatermarkMoved,
    ProposeIsr,
    StartLogAt,
    TruncateLog,
)
from kraftd.partition.isr import AfterError
from kraftd.partition.partition import FOLLOWER, LEADER, NO_EPOCH, Partition
from kraftd.partition.producer_entry import LEGACY_TRANSACTIONS, Origin, ProducerError
from kraftd.partition.producers import CompletedTransaction
from kraftd.partition.reading import low_watermark
from kraftd.partition.replicas import NO_BROKER_EPOCH, NO_FETCHES, FetchTimes, FollowerProgress
from kraftd.types import OffsetAndEpoch
from kraftd.wire import records
from kraftd.wire.batch import LENGTH_END, BatchHeader
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.python_batches import Buffer

ALL = 1 << 30  # batches
MAX_SPAN = (1 << 31) - 1  # between the first and the last offset of an append
MAX_OFFSET = (1 << 63) - 1

# --- a leader ---


def follower_fetched(
    partition: Partition,
    follower_id: int,
    fetch_offset: int,
    log_start_offset: int,
    now_ms: int,
    *,
    broker_epoch: int = NO_BROKER_EPOCH,
    local_broker_epoch: int = NO_BROKER_EPOCH,
    times: FetchTimes = NO_FETCHES,
) -> list[Effect] | ErrorCode:
    """Note the fetch of a follower that `judge_fetch` has admitted, and that does not diverge.

    It may join the ISR, and let the high watermark move. NOT_LEADER_OR_FOLLOWER: its broker epoch is stale,
    so no records are served (KIP-903).
    """
    follower = partition.followers.get(follower_id)
    if partition.role is not LEADER or follower is None:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if is_of_former_epoch(partition, follower_id, broker_epoch):
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    before = follower.log_end_offset
    low_before = None if log_start_offset == follower.log_start_offset else low_watermark(partition)
    follower.fetched(fetch_offset, log_start_offset, partition.log_end_offset, broker_epoch, now_ms, times)
    effects: list[Effect] = []
    if _is_due_to_join(partition, follower):
        isr = (*partition.isr.committed, follower_id)
        effects.append(_propose(partition, isr, local_broker_epoch))
    if before != follower.log_end_offset:
        effects += partition.advance_high_watermark(now_ms)
    if low_before is not None and (low := low_watermark(partition)) > low_before:
        effects.append(LowWatermarkMoved(low))
    return effects


def rejoin_isr(
    partition: Partition, now_ms: int, *, local_broker_epoch: int = NO_BROKER_EPOCH
) -> list[Effect]:
    """Propose a follower that fetches, and is due to join the ISR.

    Its fetch may have come before the leader knew its registration, or while another proposal was on its way.
    The fetches after it find nothing new, and are not noted one by one.
    """
    if partition.role is not LEADER or partition.isr.pending is not None:
        return []
    lag_ms = partition.config.replica_lag_time_max_ms
    for follower in partition.followers.values():
        fetched_ms = max(follower.last_fetch_ms, follower.times.last_fetch_ms)
        if now_ms - fetched_ms <= lag_ms and _is_due_to_join(partition, follower):
            isr = (*partition.isr.committed, follower.broker_id)
            return [_propose(partition, isr, local_broker_epoch)]
    return []


def is_of_former_epoch(partition: Partition, follower_id: int, broker_epoch: int) -> bool:
    """Return whether a fetch is of a run of its broker before the registered one (KIP-903)."""
    if broker_epoch == NO_BROKER_EPOCH:
        return False
    alive_epoch = partition.brokers.alive_epoch(follower_id)
    return alive_epoch is not None and alive_epoch > broker_epoch


def _is_due_to_join(partition: Partition, follower: FollowerProgress) -> bool:
    """Return whether a follower is to be proposed: it has all that is committed, and the leader's epoch
    start."""
    isr = partition.isr
    if isr.pending is not None or follower.broker_id in isr.committed:
        return False
    start = partition.leader_epoch_start
    if start is None or follower.log_end_offset < max(start, partition.high_watermark):
        return False
    return partition.may_join_isr(follower)


def may_lag(partition: Partition) -> bool:
    """Return whether a member of the ISR lacks something; else `shrink_isr` does nothing. Most partitions
    are idle, and this is asked of all of them again and again.
    """
    end, local_id, followers = partition.log_end_offset, partition.local_id, partition.followers
    for member in partition.isr.committed:
        if member != local_id:
            follower = followers.get(member)
            if follower is None or follower.log_end_offset != end:
                return True
    return False


def shrink_isr(
    partition: Partition, now_ms: int, *, local_broker_epoch: int = NO_BROKER_EPOCH
) -> list[Effect]:
    """Propose an ISR without members that lag; called every half of replica.lag.time.max.ms."""
    if partition.role is not LEADER or partition.isr.pending is not None:
        return []
    isr = tuple(each for each in partition.isr.committed if not _lags(partition, each, now_ms))
    if isr == partition.isr.committed:
        return []
    return [_propose(partition, isr, local_broker_epoch)]


def _lags(partition: Partition, member: int, now_ms: int) -> bool:
    if member == partition.local_id:
        return False
    follower = partition.followers.get(member)
    lag_ms = partition.config.replica_lag_time_max_ms
    return follower is None or not follower.is_caught_up(partition.log_end_offset, now_ms, lag_ms)


def _propose(partition: Partition, isr: tuple[int, ...], local_broker_epoch: int) -> ProposeIsr:
    def broker_epoch_of(member: int) -> int:
        if member == partition.local_id:
            return local_broker_epoch
        follower = partition.followers.get(member)
        return NO_BROKER_EPOCH if follower is None or follower.broker_epoch is None else follower.broker_epoch

    if not partition.isr.has_proposed:
        partition.isr = partition.isr.copy()
    return partition.isr.propose(isr, partition.leader_epoch, partition.partition_epoch, broker_epoch_of)


def isr_answered(
    partition: Partition,
    number: int,
    error: ErrorCode,
    now_ms: int,
    *,
    leader_epoch: int = NO_EPOCH,
    partition_epoch: int = NO_EPOCH,
    isr: tuple[int, ...] = (),
    leader_recovery_state: int = 0,
) -> list[Effect]:
    """The controller answered a proposal. One that metadata has overtaken is ignored; after an error that
    is no verdict, the same proposal is sent again.
    """
    if partition.role is not LEADER or not partition.isr.is_current(number):
        return []
    pending = partition.isr.pending
    assert pending is not None
    if error is not ErrorCode.NONE:
        after = partition.isr.failed(error)
        # Refused proposals no longer hold the high watermark back.
        return [pending] if after is AfterError.SENT_AGAIN else partition.advance_high_watermark(now_ms)
    if leader_epoch != partition.leader_epoch or partition_epoch < partition.partition_epoch:
        return []
    partition.commit_isr(isr, leader_recovery_state)
    partition.partition_epoch = partition_epoch
    return partition.advance_high_watermark(now_ms)


# --- a follower ---


def fetched_from_leader(
    partition: Partition, data: Buffer, leader_epoch: int, gaps_end: int = MAX_OFFSET
) -> list[Effect] | ErrorCode:
    """Judge records that a leader of that epoch sent; when they are written, `replicated_up_to` follows.

    Batches of a later epoch are left out: the leader lost its leadership meanwhile. A torn batch at the end
    is left out too. One append has no more than a segment. Compaction leaves gaps between offsets, each of
    which ends at the leader's high watermark at the latest: `gaps_end`.

    Errors: NOT_LEADER_OR_FOLLOWER if it no longer follows in that epoch. CORRUPT_MESSAGE, also for a lower
    epoch than the one before, and INVALID_RECORD for a control record that cannot be read.
    RECORD_LIST_TOO_LARGE for a batch that exceeds a segment, UNKNOWN_SERVER_ERROR for offsets that go back,
    or leave a gap past `gaps_end`.
    """
    if partition.role is not FOLLOWER or leader_epoch != partition.leader_epoch:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    headers, _, reason = records.ENGINE.batch_headers(data, 0, ALL, True)
    if reason not in (None, "truncated"):
        return ErrorCode.CORRUPT_MESSAGE
    end, segment_bytes = partition.next_offset, partition.config.segment_bytes
    latest = partition.epochs.latest
    epoch = NO_EPOCH if latest is None else latest
    kept = kept_bytes = 0
    for header in headers:
        if header.leader_epoch > leader_epoch:
            break
        if header.base_offset != end and not (
            end < header.base_offset <= gaps_end if kept else _may_begin_with(partition, header, gaps_end)
        ):
            return ErrorCode.UNKNOWN_SERVER_ERROR
        if header.leader_epoch < epoch or header.last_offset >= MAX_OFFSET:
            return ErrorCode.CORRUPT_MESSAGE
        size_bytes = header.length_bytes + LENGTH_END
        if size_bytes > segment_bytes:
            return ErrorCode.RECORD_LIST_TOO_LARGE
        epoch = header.leader_epoch
        kept, kept_bytes, end = kept + 1, kept_bytes + size_bytes, header.next_offset
    if not kept:
        return []
    start, base = partition.next_offset, headers[0].base_offset
    headers, view = headers[:kept], memoryview(data)[:kept_bytes]
    appends = [(headers, view)]
    if kept_bytes > segment_bytes or end - base > MAX_SPAN:
        appends = list(_segments_full(headers, view, segment_bytes))
    effects: list[Effect] = []
    if base < start:
        effects.append(StartLogAt(base, base))
        _begin_at(partition, base)
    try:
        effects += [append_judged(partition, *some) for some in appends]
    except ProducerError as error:
        if base < start:
            _begin_at(partition, start)
        else:
            partition.append_failed(start)
        return error.error
    return effects


def is_torn(data: Buffer) -> bool:
    """Return whether fetched records end within their first batch."""
    headers, _, reason = records.ENGINE.batch_headers(data, 0, 1, True)
    return reason == "truncated" and not headers


def _may_begin_with(partition: Partition, header: BatchHeader, gaps_end: int) -> bool:
    """Return whether the first fetched batch may begin elsewhere than at the log's end: after a gap, or an
    empty log within it, for its leader's log start lies there.
    """
    end = partition.next_offset
    if header.base_offset > end:
        return header.base_offset <= gaps_end
    return header.base_offset >= 0 and partition.log_start_offset == end <= header.last_offset


def _begin_at(partition: Partition, offset: int) -> None:
    """Let an empty log begin at an offset."""
    partition.producers.load((), offset, partition.config, 0)
    partition.truncated(offset, offset)


def _segments_full(
    headers: list[BatchHeader], view: memoryview, segment_bytes: int
) -> Iterator[tuple[list[BatchHeader], memoryview]]:
    """Batches in groups that each fit into a segment, by bytes and offsets."""
    group: list[BatchHeader] = []
    first = after = 0
    for header in headers:
        is_full = after + header.size_bytes - first > segment_bytes
        if group and (is_full or header.last_offset - group[0].base_offset >= MAX_SPAN):
            yield group, view[first:after]
            group, first = [], after
        group.append(header)
        after += header.size_bytes
    yield group, view[first:after]


def continues(partition: Partition, headers: list[BatchHeader], size_bytes: int) -> bool:
    """Return whether batches simply continue a follower's log in its epoch, and fit into a segment together.

    They are of one epoch and follow each other, without a transaction. Nothing else is to be judged then.
    """
    for each in headers:
        if each.producer_id > -1 and partition.has_transaction(each.producer_id):
            return False
    first, last = headers[0], headers[-1]
    base, epoch = first.base_offset, first.leader_epoch
    return (
        base == partition.next_offset
        and epoch == partition.leader_epoch
        and epoch == partition.epochs.latest
        and size_bytes <= partition.config.segment_bytes
        and last.base_offset + last.last_offset_delta - base < MAX_SPAN
    )


def append_judged(partition: Partition, headers: list[BatchHeader], view: memoryview) -> AppendBatches:
    """Append batches, whose bytes are one view. Raises ProducerError."""
    base, end = headers[0].base_offset, headers[-1].next_offset
    aborted: list[CompletedTransaction] = []
    at = 0
    for header in headers:
        after = at + header.length_bytes + LENGTH_END
        if header.producer_id > -1:
            completed = partition.producers.append(
                header, view[at:after], Origin.REPLICATION, partition.config,
                transaction_version=LEGACY_TRANSACTIONS,
            )  # fmt: skip
            if completed is not None and completed.is_aborted:
                aborted.append(completed)
        at = after
    partition.next_offset = end
    return AppendBatches(base, end, headers, (view,), aborted)


def replicated_up_to(
    partition: Partition, end_offset: int, high_watermark: int, log_start_offset: int, now_ms: int
) -> list[Effect]:
    """A follower has written everything below `end_offset`: take the leader's high watermark and log
    start."""
    effects = partition.appended(end_offset, now_ms)
    if partition.role is not FOLLOWER:
        return effects
    if high_watermark != partition.high_watermark:
        effects = partition.move_high_watermark(high_watermark)
    if partition.log_start_offset < log_start_offset <= partition.high_watermark:
        effects += partition.move_log_start(log_start_offset)
    return effects


def out_of_range(partition: Partition, leader_start: int, leader_end: int) -> list[Effect]:
    """The leader does not have the end of this log: truncate to the leader's, or begin anew at its start, if
    that lies behind this log's end.
    """
    if leader_end < partition.log_end_offset:
        partition.next_offset = leader_end
        return [TruncateLog(leader_end)]
    if leader_start <= partition.log_end_offset:
        return []
    partition.producers.load((), leader_start, partition.config, 0)
    return [StartLogAt(leader_start, leader_start), *partition.truncated(leader_start, leader_start)]


def without_epochs(partition: Partition) -> list[Effect]:
    """A log that knows no epoch, as after the loss of its checkpoint, cannot be compared with its leader's.
    What is not known to be committed goes, as in Kafka.
    """
    if partition.epochs.latest is not None or partition.log_end_offset <= partition.high_watermark:
        return []
    partition.next_offset = partition.high_watermark
    return [TruncateLog(partition.high_watermark)]


def diverged(partition: Partition, leader_end: OffsetAndEpoch) -> list[Effect]:
    """The leader's log ended an epoch earlier than this one's: truncate to where both agree (KIP-320,
    KIP-595).

    `leader_end` is the largest epoch at or below this log's last, and where it ended there.
    """
    own = partition.epochs.end_offset_for(leader_end.epoch, partition.log_end_offset)
    offset = leader_end.offset
    if own is not None:
        # Without the leader's epoch here, the next fetch finds whether the epoch before it ended alike.
        offset = min(offset, own.offset) if own.epoch == leader_end.epoch else own.offset
    if offset >= partition.log_end_offset:
        entries = partition.epochs.entries
        if not entries or entries[-1][1] < partition.log_end_offset:
            return []
        offset = partition.log_end_offset  # an epoch without records, which the leader does not have, goes
    partition.next_offset = offset
    return [TruncateLog(offset)]
