"""A partition's answers: leadership, epochs, replicas, reads, and appends that fail."""

from __future__ import annotations

from typing import Any

import pytest

from kraftd.partition.config import PartitionConfig
from kraftd.partition.effects import (
    AppendBatches,
    AssignEpoch,
    LogStartMoved,
    LowWatermarkMoved,
    MarksMoved,
    ProposeIsr,
    StartLogAt,
    TruncateLog,
)
from kraftd.partition.partition import Produced
from kraftd.partition.reading import (
    EARLIEST_LOCAL_TIMESTAMP,
    EARLIEST_PENDING_UPLOAD_TIMESTAMP,
    EARLIEST_TIMESTAMP,
    FIRST_VERSIONS,
    LATEST_TIERED_TIMESTAMP,
    LATEST_TIMESTAMP,
    MAX_TIMESTAMP,
    DeletedRecords,
    FetchVerdict,
    Isolation,
    ListedOffset,
    TimestampLookup,
    delete_records,
    end_offset_for_epoch,
    judge_fetch,
    list_offset,
    records_deleted,
)
from kraftd.partition.replication import (
    MAX_OFFSET,
    diverged,
    fetched_from_leader,
    follower_fetched,
    is_torn,
    isr_answered,
    replicated_up_to,
    shrink_isr,
)
from kraftd.partition.validation import ProduceRefusal
from kraftd.types import OffsetAndEpoch
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.records import build_records_batch
from testkit.random_batches import NOW_MS
from tests.partition.places import LOCAL, OTHER, THIRD, Place, Registered

ALL = (LOCAL, OTHER, THIRD)
NONE, NOT_LEADER = ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER


def batch(count: int = 1, **header: int) -> bytearray:
    return build_records_batch([(NOW_MS, b"k", b"v", [])] * count, **header)


def error_of(found: object) -> ErrorCode:
    assert isinstance(found, ProduceRefusal), found
    return found.error


def led(**registration: Any) -> Place:
    place = Place(registration.pop("config", None))
    place.lead(**registration)
    return place


def led_by_three(min_isr: int = 1, isr: tuple[int, ...] = ALL) -> Place:
    return led(config=PartitionConfig(min_insync_replicas=min_isr), replicas=ALL, isr=isr)


def fetch(place: Place, follower: int, offset: int, broker_epoch: int = -1) -> Any:
    return follower_fetched(place.partition, follower, offset, 0, place.now_ms, broker_epoch=broker_epoch)


# --- leadership ---


def test_only_a_leader_takes_records_and_bad_ones_are_refused_before() -> None:
    place = Place()
    assert error_of(place.produce(batch())) is NOT_LEADER
    assert error_of(place.produce(b"")) is ErrorCode.INVALID_RECORD
    effects = place.lead()
    assert effects == [AssignEpoch(7, 0)]
    assert isinstance(place.produce(batch()), Produced)
    place.partition.follow_metadata(Registered(leader=OTHER, leader_epoch=8, partition_epoch=2), NOW_MS)
    assert error_of(place.produce(batch())) is NOT_LEADER
    assert error_of(place.append_own(batch())) is NOT_LEADER
    assert place.partition.active_producers() == []
    place.partition.go_offline()
    assert error_of(place.produce(batch())) is ErrorCode.KAFKA_STORAGE_ERROR
    assert place.partition.active_producers() is NOT_LEADER
    assert place.partition.follow_metadata(Registered(partition_epoch=9), NOW_MS) == []
    assert not place.partition.is_leader


def test_metadata_of_an_older_partition_epoch_is_ignored() -> None:
    place = led(partition_epoch=5)
    assert place.partition.follow_metadata(Registered(leader=OTHER, partition_epoch=4), NOW_MS) == []
    assert place.partition.is_leader
    place.partition.follow_metadata(Registered(leader=OTHER, leader_epoch=8, partition_epoch=5), NOW_MS)
    assert not place.partition.is_leader


def test_a_partition_without_producers_keeps_no_state_of_them() -> None:
    place = led()
    place.produce(batch(3))
    assert place.partition._producers is None
    assert place.partition.snapshot_before(3) == []
    assert place.partition.expire_producers(NOW_MS) == 0
    assert not place.partition.has_late_transaction(NOW_MS)


# --- acks and the ISR ---


def test_min_insync_replicas_counts_the_committed_isr() -> None:
    place = led_by_three(min_isr=2, isr=(LOCAL,))
    assert place.partition.is_under_min_isr and place.partition.lacks_member
    refusal = place.produce(batch(), acks=-1)
    assert error_of(refusal) is ErrorCode.NOT_ENOUGH_REPLICAS
    assert isinstance(refusal, ProduceRefusal) and refusal.shows_log_start
    assert error_of(place.produce(b"", acks=-1)) is ErrorCode.INVALID_RECORD
    assert isinstance(place.produce(batch(), acks=1), Produced)
    assert place.partition.high_watermark == 0, "below min.insync.replicas the high watermark stays (KIP-966)"


def test_fewer_replicas_than_min_insync_replicas_are_enough() -> None:
    place = led(config=PartitionConfig(min_insync_replicas=2))
    assert isinstance(place.produce(batch(), acks=-1), Produced)
    assert place.partition.is_at_min_isr and place.partition.high_watermark == 1


def test_acks_of_all_wait_for_every_member_of_the_isr() -> None:
    place = led_by_three(min_isr=2)
    found = place.produce(batch(2))
    assert isinstance(found, Produced) and found.required_offset == 2
    partition = place.partition
    assert partition.acknowledged(2) is None
    fetch(place, OTHER, 0)
    fetch(place, THIRD, 0)
    assert fetch(place, OTHER, 2) == []
    assert fetch(place, THIRD, 2) == [MarksMoved(2, 2)]
    assert partition.acknowledged(2) is NONE
    place.lead(replicas=ALL, isr=(LOCAL,), partition_epoch=2)
    assert partition.acknowledged(2) is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    partition.follow_metadata(Registered(leader=OTHER, leader_epoch=8, partition_epoch=3), NOW_MS)
    assert partition.acknowledged(2) is NOT_LEADER


def test_a_follower_with_a_stale_broker_epoch_is_refused__kip903() -> None:
    place = led_by_three(isr=(LOCAL,))
    place.produce(batch())
    assert fetch(place, OTHER, 1, broker_epoch=11) is NOT_LEADER
    assert place.partition.followers[OTHER].broker_epoch is None
    effects = fetch(place, OTHER, 1, broker_epoch=12)
    assert [type(effect) for effect in effects] == [ProposeIsr]
    assert effects[0].isr == (LOCAL, OTHER)
    assert [member.broker_epoch for member in effects[0].members] == [-1, 12]


def test_a_member_without_a_fetch_from_this_leader_has_no_epoch__kip903() -> None:
    place = led_by_three(isr=(LOCAL, THIRD))
    place.produce(batch())
    (proposal,) = follower_fetched(
        place.partition, OTHER, 1, 0, place.now_ms, broker_epoch=12, local_broker_epoch=11
    )
    assert [(one.broker_id, one.broker_epoch) for one in proposal.members] == [
        (LOCAL, 11),
        (THIRD, -1),
        (OTHER, 12),
    ]


def test_a_leader_that_leads_anew_knows_no_epoch_of_a_follower__kip903() -> None:
    place = led_by_three()
    place.produce(batch())
    fetch(place, OTHER, 1, broker_epoch=12)
    assert place.partition.followers[OTHER].broker_epoch == 12
    for epoch, leader in ((8, THIRD), (9, LOCAL)):
        place.lead(replicas=ALL, isr=ALL, leader=leader, leader_epoch=epoch, partition_epoch=epoch)
    assert place.partition.followers[OTHER].broker_epoch is None
    assert not place.partition.may_join_isr(place.partition.followers[OTHER])


@pytest.mark.parametrize("state", ["fenced", "shutting down", "behind", "unknown"])
def test_a_follower_that_may_not_join_is_not_proposed(state: str) -> None:
    place = led_by_three(isr=(LOCAL,))
    place.produce(batch())
    offset = 1
    if state == "fenced":
        del place.brokers.epochs[OTHER]
    elif state == "shutting down":
        place.brokers.shutting_down.add(OTHER)
    elif state == "behind":
        offset = 0
    if state == "unknown":
        assert fetch(place, 9, offset) is NOT_LEADER
        return
    assert not [each for each in fetch(place, OTHER, offset) if isinstance(each, ProposeIsr)]


def test_one_proposal_is_on_its_way_and_the_maximal_isr_holds_the_mark_back() -> None:
    place = led_by_three(isr=(LOCAL,))
    place.produce(batch())
    fetch(place, THIRD, 0)
    (proposal, *_) = fetch(place, OTHER, 1)
    assert fetch(place, THIRD, 1) == []
    place.produce(batch())
    assert place.partition.high_watermark == 1, "the proposed member lacks the second record"
    effects = isr_answered(
        place.partition, proposal.number, NONE, NOW_MS, leader_epoch=7, partition_epoch=2, isr=(LOCAL, OTHER)
    )
    assert effects == []
    assert place.partition.isr.committed == (LOCAL, OTHER) and place.partition.partition_epoch == 2
    fetch(place, OTHER, 2)
    assert place.partition.high_watermark == 1, "a follower that is caught up and may join holds it back, too"
    assert MarksMoved(2, 2) in fetch(place, THIRD, 2)


def test_partitions_share_an_isr_until_one_proposes_another() -> None:
    place, other = led_by_three(isr=(LOCAL,)), led_by_three(isr=(LOCAL,))
    shared = other.partition.isr
    assert place.partition.isr is shared
    (proposal, *_) = fetch(place, OTHER, 0)
    own = place.partition.isr
    assert own is not shared and shared.pending is None and shared.maximal == (LOCAL,)
    isr_answered(
        place.partition, proposal.number, NONE, NOW_MS, leader_epoch=7, partition_epoch=2, isr=(LOCAL, OTHER)
    )
    assert (place.partition.isr, own.committed, shared.committed) == (own, (LOCAL, OTHER), (LOCAL,))
    (second, *_) = fetch(place, THIRD, 0)
    assert second.number == proposal.number + 1


def test_a_shrinking_proposal_counts_when_it_is_committed() -> None:
    place = led_by_three(isr=(LOCAL, OTHER))
    place.produce(batch())
    place.now_ms += 30_001
    (proposal,) = shrink_isr(place.partition, place.now_ms, local_broker_epoch=11)
    assert isinstance(proposal, ProposeIsr) and proposal.isr == (LOCAL,)
    assert proposal.members[0].broker_epoch == 11
    assert shrink_isr(place.partition, place.now_ms) == [], "one is on its way"
    assert place.partition.high_watermark == 0
    effects = isr_answered(
        place.partition, proposal.number, NONE, place.now_ms, leader_epoch=7, partition_epoch=2, isr=(LOCAL,)
    )
    assert effects == [MarksMoved(1, 1)]


def test_a_follower_that_had_all_lately_stays_in_the_isr() -> None:
    place = led_by_three(isr=(LOCAL, OTHER))
    place.produce(batch())
    place.now_ms += 20_000
    fetch(place, OTHER, 1)
    place.produce(batch())
    place.now_ms += 30_000
    assert shrink_isr(place.partition, place.now_ms) == []
    place.now_ms += 1
    assert len(shrink_isr(place.partition, place.now_ms)) == 1


@pytest.mark.parametrize(
    ("error", "again"),
    [
        (ErrorCode.INELIGIBLE_REPLICA, False), (ErrorCode.OPERATION_NOT_ATTEMPTED, False),
        (ErrorCode.INVALID_UPDATE_VERSION, False), (ErrorCode.FENCED_LEADER_EPOCH, False),
        (ErrorCode.NEW_LEADER_ELECTED, False), (ErrorCode.REQUEST_TIMED_OUT, True),
        (ErrorCode.UNKNOWN_SERVER_ERROR, True), (ErrorCode.STALE_BROKER_EPOCH, True),
    ],
)  # fmt: skip
def test_an_error_for_a_proposal_is_a_verdict_or_it_is_sent_again(error: ErrorCode, again: bool) -> None:
    place = led_by_three(isr=(LOCAL,))
    (proposal,) = fetch(place, OTHER, 0)
    assert isr_answered(place.partition, proposal.number, error, NOW_MS) == ([proposal] if again else [])
    is_refused = error in (ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED)
    assert (place.partition.isr.pending is None) == is_refused
    assert isr_answered(place.partition, proposal.number + 1, NONE, NOW_MS) == []
    place.lead(replicas=ALL, isr=(LOCAL, THIRD), partition_epoch=2)
    assert (
        isr_answered(place.partition, proposal.number, NONE, NOW_MS, leader_epoch=7, partition_epoch=9) == []
    )
    assert place.partition.isr.committed == (LOCAL, THIRD)


# --- appends ---


def test_batches_are_judged_ahead_of_their_write_and_undone_if_it_fails() -> None:
    place = led()
    place.produce(batch(2, producer_id=5, producer_epoch=0, base_sequence=0))
    partition = place.partition
    first = partition.produce(batch(producer_id=5, producer_epoch=0, base_sequence=2), 12, -1, NOW_MS)
    second = partition.produce(batch(producer_id=6, producer_epoch=0, base_sequence=0), 12, -1, NOW_MS)
    assert isinstance(first, Produced) and isinstance(second, Produced)
    assert (first.base_offset, second.base_offset, partition.next_offset) == (2, 3, 4)
    assert [each.producer_id for each in partition.snapshot_before(2)] == [5]
    assert partition.snapshot_before(2)[0].last_sequence == 1
    partition.append_failed(2)
    assert (partition.next_offset, partition.log_end_offset) == (2, 2)
    assert [each.producer_id for each in partition.producers] == [5]
    again = place.produce(batch(producer_id=5, producer_epoch=0, base_sequence=2))
    assert isinstance(again, Produced) and again.append is not None and again.base_offset == 2


def test_a_duplicate_has_the_offset_and_timestamp_of_the_first() -> None:
    place = led()
    sequences = [0, 1, 2, 3, 4, 5]
    for sequence in sequences:
        place.produce(batch(producer_id=5, producer_epoch=0, base_sequence=sequence))
    for sequence in sequences[1:]:
        found = place.produce(batch(producer_id=5, producer_epoch=0, base_sequence=sequence))
        assert isinstance(found, Produced) and found.append is None
        assert (found.base_offset, found.append_time_ms, found.required_offset) == (
            sequence,
            NOW_MS,
            sequence + 1,
        )
    forgotten = place.produce(batch(producer_id=5, producer_epoch=0, base_sequence=0))
    assert error_of(forgotten) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert place.partition.log_end_offset == 6


def test_producers_are_known_after_a_load_of_their_snapshot() -> None:
    place = led()
    for sequence in (0, 1):
        place.produce(batch(producer_id=5, producer_epoch=3, base_sequence=sequence))
    entries = place.partition.snapshot_before(2)
    assert tuple(entries[0]) == (5, 3, 1, 1, 0, NOW_MS, -1, -1)
    other = led()
    other.partition.producers.load(entries, 2, other.partition.config, NOW_MS)
    other.partition.truncated(0, 2)
    found = other.produce(batch(producer_id=5, producer_epoch=3, base_sequence=1))
    assert isinstance(found, Produced) and found.append is None and found.base_offset == 1


# --- reads ---


def verdict(found: FetchVerdict | ErrorCode) -> FetchVerdict:
    assert isinstance(found, FetchVerdict), found
    return found


def test_a_fetch_ends_where_its_isolation_does() -> None:
    place = led_by_three()
    open_transaction = batch(producer_id=5, producer_epoch=0, base_sequence=0, attributes=16)
    place.produce(batch())
    place.partition.config = PartitionConfig(verifies_transactions=False)
    assert isinstance(place.produce(open_transaction), Produced)
    place.produce(batch())
    for follower in (OTHER, THIRD):
        fetch(place, follower, 2)
    ends = [verdict(judge_fetch(place.partition, 0, each)).end_offset for each in Isolation]
    assert ends == [3, 2, 1]
    assert verdict(judge_fetch(place.partition, 2, Isolation.LAST_STABLE)).is_empty
    for offset in (-1, 4):
        assert judge_fetch(place.partition, offset, Isolation.LOG_END) is ErrorCode.OFFSET_OUT_OF_RANGE
    assert verdict(judge_fetch(place.partition, 3, Isolation.HIGH_WATERMARK)).is_empty


def test_epochs_of_a_request_are_compared_before_all_else__kip320() -> None:
    place = led()
    for read in (
        lambda epoch: judge_fetch(place.partition, 99, Isolation.LOG_END, current_leader_epoch=epoch),
        lambda epoch: list_offset(place.partition, LATEST_TIMESTAMP, 9, current_leader_epoch=epoch),
        lambda epoch: end_offset_for_epoch(place.partition, 7, current_leader_epoch=epoch),
    ):
        assert read(6) is ErrorCode.FENCED_LEADER_EPOCH
        assert read(8) is ErrorCode.UNKNOWN_LEADER_EPOCH
    place.partition.follow_metadata(Registered(leader=OTHER, leader_epoch=8, partition_epoch=2), NOW_MS)
    assert judge_fetch(place.partition, 0, Isolation.HIGH_WATERMARK) is NOT_LEADER
    assert isinstance(
        judge_fetch(place.partition, 0, Isolation.HIGH_WATERMARK, only_leader=False), FetchVerdict
    )


def test_a_follower_that_is_no_replica_here_retries() -> None:
    place = led_by_three()
    for epoch, error in ((7, ErrorCode.UNKNOWN_LEADER_EPOCH), (-1, NOT_LEADER)):
        found = judge_fetch(place.partition, 0, Isolation.LOG_END, current_leader_epoch=epoch, follower_id=9)
        assert found is error


def test_a_follower_that_diverges_learns_where() -> None:
    place = led(leader_epoch=2)
    place.produce(batch(3))
    place.lead(leader_epoch=5, partition_epoch=2)
    place.produce(batch(2))

    def judge(offset: int, epoch: int) -> Any:
        return judge_fetch(place.partition, offset, Isolation.LOG_END, last_fetched_epoch=epoch)

    assert verdict(judge(3, 2)).diverging is None
    assert verdict(judge(4, 2)).diverging == OffsetAndEpoch(3, 2)
    assert verdict(judge(4, 3)).diverging == OffsetAndEpoch(3, 2)
    assert judge(4, 6) is ErrorCode.OFFSET_OUT_OF_RANGE
    assert verdict(judge(4, 1)).diverging == OffsetAndEpoch(0, 1)
    for epoch, end in ((2, (3, 2)), (4, (3, 2)), (5, (5, 5)), (1, (0, 1)), (6, (-1, -1)), (-1, (-1, -1))):
        assert end_offset_for_epoch(place.partition, epoch) == end


def test_special_timestamps_have_their_versions_and_answers() -> None:
    place = led(leader_epoch=2)
    place.produce(batch(4))
    place.lead(leader_epoch=5, partition_epoch=2)
    for timestamp, first in FIRST_VERSIONS.items():
        assert list_offset(place.partition, timestamp, first - 1) is ErrorCode.UNSUPPORTED_VERSION
        assert list_offset(place.partition, timestamp, first) is not ErrorCode.UNSUPPORTED_VERSION
    assert list_offset(place.partition, -7, 11) is ErrorCode.UNSUPPORTED_VERSION
    expected = {
        LATEST_TIMESTAMP: ListedOffset(-1, 4, 5),
        EARLIEST_TIMESTAMP: ListedOffset(-1, 0, 2),
        EARLIEST_LOCAL_TIMESTAMP: ListedOffset(-1, 0, 2),
        LATEST_TIERED_TIMESTAMP: ListedOffset(),
        EARLIEST_PENDING_UPLOAD_TIMESTAMP: ListedOffset(),
    }
    for timestamp, answer in expected.items():
        assert list_offset(place.partition, timestamp, 11) == answer
    assert list_offset(place.partition, LATEST_TIMESTAMP, 3) == ListedOffset(-1, 4, -1)
    lookup = list_offset(place.partition, MAX_TIMESTAMP, 11)
    assert isinstance(lookup, TimestampLookup) and lookup.wants_maximum
    assert lookup.answer((3, NOW_MS, 2)) == ListedOffset(NOW_MS, 3, 2)
    assert lookup.answer((4, NOW_MS, 2)) == lookup.answer(None) == ListedOffset()
    assert isinstance(list_offset(place.partition, 5, 1), TimestampLookup)


def test_a_new_leader_names_no_latest_offset_before_its_mark_is_known() -> None:
    place = led_by_three()
    place.produce(batch(2))
    place.lead(replicas=ALL, isr=ALL, leader_epoch=8, partition_epoch=2)
    assert place.partition.high_watermark == 0
    assert list_offset(place.partition, LATEST_TIMESTAMP, 5) is ErrorCode.OFFSET_NOT_AVAILABLE
    assert list_offset(place.partition, LATEST_TIMESTAMP, 4) is ErrorCode.LEADER_NOT_AVAILABLE
    latest = list_offset(place.partition, LATEST_TIMESTAMP, 5, isolation=Isolation.LOG_END)
    assert latest == ListedOffset(-1, 2, 8)
    lookup = list_offset(place.partition, 7, 5)
    assert isinstance(lookup, TimestampLookup)
    assert lookup.answer((1, 9, 7)) is ErrorCode.OFFSET_NOT_AVAILABLE
    for follower in (OTHER, THIRD):
        fetch(place, follower, 2)
    assert list_offset(place.partition, LATEST_TIMESTAMP, 5) == ListedOffset(-1, 2, 8)


def test_deleted_records_are_acknowledged_when_every_replica_has_deleted_them() -> None:
    place = led_by_three()
    place.produce(batch(5))
    for follower in (OTHER, THIRD):
        fetch(place, follower, 4)
    partition = place.partition
    for offset in (-2, 5):
        assert delete_records(partition, offset) is ErrorCode.OFFSET_OUT_OF_RANGE
    found = delete_records(partition, 2)
    assert isinstance(found, DeletedRecords)
    assert (found.effects, found.low_watermark) == ((LogStartMoved(2),), 0)
    assert records_deleted(partition, 2) is None
    follower_fetched(partition, OTHER, 4, 2, NOW_MS)
    effects = follower_fetched(partition, THIRD, 4, 2, NOW_MS)
    assert effects == [LowWatermarkMoved(2)]
    assert records_deleted(partition, 2) is NONE
    found = delete_records(partition, -1)
    assert isinstance(found, DeletedRecords) and found.offset == 4 and partition.log_start_offset == 4
    assert judge_fetch(partition, 3, Isolation.LOG_END) is ErrorCode.OFFSET_OUT_OF_RANGE
    partition.config = PartitionConfig(is_compacted=True, is_deleted=False)
    assert delete_records(partition, 0) is ErrorCode.POLICY_VIOLATION
    partition.follow_metadata(Registered(leader=OTHER, leader_epoch=8, partition_epoch=2), NOW_MS)
    assert delete_records(partition, 0) is NOT_LEADER and records_deleted(partition, 9) is NOT_LEADER


# --- a follower ---


def following() -> Place:
    place = Place()
    place.partition.follow_metadata(Registered(ALL, ALL, leader=OTHER), NOW_MS)
    return place


def test_a_follower_takes_batches_with_gaps_and_none_of_a_later_epoch() -> None:
    place = following()
    data = (
        batch(2, leader_epoch=7)
        + batch(base_offset=9, leader_epoch=7)
        + batch(base_offset=10, leader_epoch=8)
    )
    effects = fetched_from_leader(place.partition, bytes(data) + b"torn", 7)
    assert isinstance(effects, list)
    (append,) = effects
    assert isinstance(append, AppendBatches)
    assert (append.base_offset, append.end_offset, len(append.headers)) == (0, 10, 2)
    place.write(append)
    assert replicated_up_to(place.partition, 10, 5, 1, NOW_MS) == [MarksMoved(5, 5), LogStartMoved(1)]
    assert replicated_up_to(place.partition, 10, 50, 0, NOW_MS) == [MarksMoved(10, 10)]


def test_a_follower_refuses_what_does_not_continue_its_log() -> None:
    place = following()
    partition = place.partition
    assert fetched_from_leader(partition, bytes(batch()), 6) is NOT_LEADER
    damaged = batch(leader_epoch=7)
    damaged[-1] ^= 2
    assert fetched_from_leader(partition, bytes(damaged), 7) is ErrorCode.CORRUPT_MESSAGE
    place.settle(fetched_from_leader(partition, bytes(batch(2, leader_epoch=7)), 7))  # type: ignore[arg-type]
    two = batch(2, base_offset=2, leader_epoch=7)
    for data in (batch(leader_epoch=7), two + batch(2, base_offset=3, leader_epoch=7)):
        assert fetched_from_leader(partition, bytes(data), 7) is ErrorCode.UNKNOWN_SERVER_ERROR
    of_former_epoch = batch(base_offset=4, leader_epoch=6)
    too_high = batch(2, base_offset=MAX_OFFSET - 1, leader_epoch=7)
    for data in (two + of_former_epoch, too_high):
        assert fetched_from_leader(partition, bytes(data), 7) is ErrorCode.CORRUPT_MESSAGE
    assert partition.next_offset == 2


@pytest.mark.parametrize("size_bytes", [1, 11, 16, 61, -1])
def test_a_follower_writes_nothing_of_a_torn_batch_alone(size_bytes: int) -> None:
    """As Kafka's log, which its own tests give random bytes; the caller waits before it fetches again."""
    partition = following().partition
    data = bytes(batch(2, leader_epoch=7)[:size_bytes])
    assert fetched_from_leader(partition, data, 7) == [] and is_torn(data)
    assert not is_torn(bytes(batch(2, leader_epoch=7)) + data)


def test_a_gap_that_a_follower_takes_ends_at_the_high_watermark() -> None:
    """Compaction leaves out nothing above it, and no checksum covers the offset of a batch."""
    partition = following().partition
    data = bytes(batch(base_offset=3, leader_epoch=7) + batch(base_offset=6, leader_epoch=7))
    for gaps_end in (2, 5):
        assert fetched_from_leader(partition, data, 7, gaps_end) is ErrorCode.UNKNOWN_SERVER_ERROR
    (append,) = fetched_from_leader(partition, data, 7, 6)  # type: ignore[misc]
    assert isinstance(append, AppendBatches) and append.end_offset == 7


@pytest.mark.parametrize("log_start", [0, 3])
def test_a_follower_forgets_batches_before_a_control_record_that_cannot_be_read(log_start: int) -> None:
    partition = following().partition
    partition.truncated(log_start, log_start)
    written = batch(4, leader_epoch=7, producer_id=9, producer_epoch=0, base_sequence=0)
    control = batch(base_offset=4, leader_epoch=7, producer_id=9, producer_epoch=0, attributes=0x30)
    assert fetched_from_leader(partition, bytes(written + control), 7) is ErrorCode.INVALID_RECORD
    assert (partition.next_offset, partition.log_start_offset) == (log_start, log_start)
    assert partition.producer_count == 0


def test_an_empty_follower_begins_within_the_batch_of_its_leaders_log_start() -> None:
    place = following()
    place.partition.truncated(3, 3)
    effects = fetched_from_leader(place.partition, bytes(batch(5, base_offset=1, leader_epoch=7)), 7)
    assert isinstance(effects, list)
    assert effects[0] == StartLogAt(1, 1)
    assert isinstance(effects[1], AppendBatches) and effects[1].end_offset == 6


def test_a_follower_truncates_to_where_both_logs_agree() -> None:
    place = led(leader_epoch=2)
    place.produce(batch(3))
    place.lead(leader_epoch=4, partition_epoch=2)
    for _ in range(3):
        place.produce(batch())
    partition = place.partition
    partition.follow_metadata(Registered(leader=OTHER, leader_epoch=6, partition_epoch=3), NOW_MS)
    assert diverged(partition, OffsetAndEpoch(9, 4)) == []
    assert diverged(partition, OffsetAndEpoch(5, 4)) == [TruncateLog(5)]
    place.truncate(5)
    assert diverged(partition, OffsetAndEpoch(2, 3)) == [TruncateLog(3)], "epoch 3 is not here: 2 ended at 3"


def test_a_former_leader_forgets_its_epoch_without_records() -> None:
    """Else the leader, which does not have that epoch, would report the same divergence for good."""
    place = led(leader_epoch=2)
    place.produce(batch(3))
    place.lead(leader_epoch=4, partition_epoch=2)
    partition = place.partition
    assert partition.epochs.entries[-1] == (4, 3)
    partition.follow_metadata(Registered(leader=OTHER, leader_epoch=5, partition_epoch=3), NOW_MS)
    assert diverged(partition, OffsetAndEpoch(3, 2)) == [TruncateLog(3)]
    place.truncate(3)
    assert partition.epochs.latest == 2
    assert diverged(partition, OffsetAndEpoch(3, 2)) == []


def test_a_restart_keeps_the_marks_within_the_log() -> None:
    for checkpoint, expected in ((0, 2), (3, 3), (9, 5)):
        place = Place()
        made = type(place.partition)(
            "t", 0, LOCAL, PartitionConfig(), place.brokers, place.epochs, log_start_offset=2,
            log_end_offset=5, high_watermark=checkpoint,
        )  # fmt: skip
        assert made.high_watermark == expected
        assert "t-0" in repr(made)


# --- what a follower's progress is worth ---


def test_a_follower_of_an_earlier_registration_may_not_join__kip903() -> None:
    place = led_by_three(isr=(LOCAL,))
    place.brokers.epochs[OTHER] = 22
    assert fetch(place, OTHER, 0, broker_epoch=12) is NOT_LEADER
    place.brokers.epochs[OTHER] = 12
    place.produce(batch())
    fetch(place, OTHER, 0, broker_epoch=12)
    place.brokers.epochs[OTHER] = 22
    assert not place.partition.may_join_isr(place.partition.followers[OTHER])
    # One that is registered anew may be known here later than its fetches arrive.
    assert not isinstance(fetch(place, OTHER, 1, broker_epoch=30), ErrorCode)


def test_a_follower_that_is_registered_anew_joins_once_that_is_known__kip903() -> None:
    place = led_by_three(isr=(LOCAL,))
    place.brokers.epochs[OTHER] = 22
    place.produce(batch())
    for known, proposals in ((22, 0), (30, 1)):
        place.brokers.epochs[OTHER] = known
        found = fetch(place, OTHER, 1, broker_epoch=30)
        assert not isinstance(found, ErrorCode)
        assert len([each for each in found if isinstance(each, ProposeIsr)]) == proposals


def test_a_follower_behind_the_high_watermark_does_not_join() -> None:
    place = led_by_three(isr=(LOCAL,))
    place.produce(batch())
    place.produce(batch())
    assert place.partition.high_watermark == 2
    for offset, proposals in ((0, 0), (1, 0), (2, 1)):
        found = fetch(place, OTHER, offset)
        assert len([each for each in found if isinstance(each, ProposeIsr)]) == proposals


def test_a_follower_behind_the_start_of_the_epoch_does_not_join() -> None:
    place = led_by_three(min_isr=2, isr=(LOCAL,))
    place.produce(batch(), acks=1)
    place.lead(replicas=ALL, isr=(LOCAL,), leader_epoch=8, partition_epoch=2)
    assert place.partition.high_watermark == 0 and place.partition.leader_epoch_start == 1
    for offset, proposals in ((0, 0), (1, 1)):
        found = fetch(place, OTHER, offset)
        assert len([each for each in found if isinstance(each, ProposeIsr)]) == proposals


def test_metadata_of_the_same_leader_epoch_begins_none() -> None:
    place = led_by_three()
    fetch(place, OTHER, 0)
    place.produce(batch())
    assert place.lead(replicas=ALL, isr=ALL, partition_epoch=2) == []
    assert place.partition.leader_epoch_start == 0
    assert place.partition.followers[OTHER].log_end_offset == 0


def test_a_follower_outside_of_the_isr_does_not_hold_a_new_epoch_back() -> None:
    place = led_by_three(isr=(LOCAL,))
    fetch(place, OTHER, 0)
    place.lead(replicas=ALL, isr=(LOCAL,), leader_epoch=8, partition_epoch=2)
    place.produce(batch())
    assert place.partition.high_watermark == 1
    # Its next fetch reaches where the leader ended when the epoch began: that alone is no progress.
    fetch(place, OTHER, 0)
    place.produce(batch())
    assert place.partition.high_watermark == 2


def test_a_follower_counts_as_caught_up_when_it_fetched_the_end_before() -> None:
    place = led_by_three(isr=(LOCAL, OTHER))
    for _ in range(4):
        place.produce(batch())
        place.now_ms += 20_000
        fetch(place, OTHER, max(place.partition.log_end_offset - 1, 0))
    assert shrink_isr(place.partition, place.now_ms) == [], "each fetch reaches the end of the one before"
    place.now_ms += 30_001
    assert len(shrink_isr(place.partition, place.now_ms)) == 1


def test_a_refused_proposal_holds_the_mark_back_no_longer() -> None:
    place = led_by_three(isr=(LOCAL,))
    (proposal, *_) = fetch(place, OTHER, 0)
    place.now_ms += 30_001
    place.produce(batch())
    assert place.partition.high_watermark == 0
    error = ErrorCode.INELIGIBLE_REPLICA
    assert isr_answered(place.partition, proposal.number, error, place.now_ms) == [MarksMoved(1, 1)]


def test_an_answer_of_an_older_partition_epoch_is_ignored() -> None:
    place = led_by_three(isr=(LOCAL,))
    (proposal, *_) = fetch(place, OTHER, 0)
    for leader_epoch, partition_epoch in ((7, 0), (6, 2), (8, 2)):
        isr_answered(
            place.partition, proposal.number, NONE, NOW_MS, leader_epoch=leader_epoch,
            partition_epoch=partition_epoch, isr=(LOCAL, OTHER),
        )  # fmt: skip
        assert place.partition.isr.committed == (LOCAL,)


def test_brokers_that_are_down_do_not_delay_a_deletion() -> None:
    place = led_by_three(isr=(LOCAL,))
    place.produce(batch(2))
    del place.brokers.epochs[OTHER], place.brokers.epochs[THIRD]
    found = delete_records(place.partition, 1)
    assert isinstance(found, DeletedRecords) and found.low_watermark == 1


def test_the_earliest_offset_has_an_epoch_only_if_it_is_known() -> None:
    place = led(leader_epoch=4)
    place.produce(batch(3))
    place.epochs.clear()
    place.epochs.assign(4, 2)
    assert list_offset(place.partition, EARLIEST_TIMESTAMP, 11) == ListedOffset(-1, 0, -1)


def test_a_follower_takes_no_log_start_above_its_high_watermark() -> None:
    place = following()
    (append,) = fetched_from_leader(place.partition, bytes(batch(4, leader_epoch=7)), 7)  # type: ignore[misc]
    assert isinstance(append, AppendBatches)
    place.write(append)
    assert replicated_up_to(place.partition, 4, 2, 3, NOW_MS) == [MarksMoved(2, 2)]
    assert place.partition.log_start_offset == 0
