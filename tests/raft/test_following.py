"""A follower, an observer and a replica without a leader: their requests, and the effect of answers."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from kraftd.messages.fetch_request import FetchRequest
from kraftd.messages.fetch_snapshot_request import (
    FetchSnapshotRequest,
    PartitionSnapshot,
    SnapshotId,
    TopicSnapshot,
)
from kraftd.messages.quorum_state_data import QuorumStateData
from kraftd.raft.effects import (
    AppendRecords,
    HighWatermarkMoved,
    LocateBatch,
    ResetLog,
    Respond,
    RespondRecords,
    RespondSnapshot,
    Send,
    ShutdownCompleted,
    SyncLog,
    TruncateLog,
)
from kraftd.raft.events import BatchLocated, ConnectionLost, SendFailed, ShutdownRequested
from kraftd.raft.replica import CommittedIsLost
from kraftd.raft.transitions import State
from kraftd.types import METADATA_TOPIC, OffsetAndEpoch
from kraftd.wire.batch import build_batch
from kraftd.wire.error_code import ErrorCode
from tests.raft.lone import EPOCH, LOG_END, Lone, begin, fetch, fetch_answer, partition_of, vote
from tests.raft.world import directory_id


def batch(base_offset: int = 10, epoch: int = EPOCH, values: Iterable[bytes] = (b"a",)) -> bytes:
    return bytes(build_batch(list(values), base_offset, epoch, 0))


def appended(lone: Lone) -> list[tuple[int, int, int]]:
    found = [one for one in lone.effects if isinstance(one, AppendRecords)]
    return [(one.base_offset, one.end_offset, one.epoch) for one in found]


def fetch_of(lone: Lone) -> Send:
    return lone.sent("Fetch")[0]


@pytest.fixture
def follower() -> Lone:
    return Lone().follow(2)


# --- requests -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("log_end", [LOG_END, OffsetAndEpoch(0, 0)])
def test_fetch_has_epoch_log_end_directory_and_high_watermark__kip1166(log_end: OffsetAndEpoch) -> None:
    lone = Lone(QuorumStateData(leader_id=2, leader_epoch=EPOCH), log_end=log_end, fetch_max_bytes=12345)
    message = fetch_of(lone).message
    partition = message.topics[0].partitions[0]  # type: ignore[attr-defined]
    assert (message.max_bytes, message.replica_state.replica_id) == (12345, 1)  # type: ignore[attr-defined]
    assert message.replica_state.replica_epoch == -1  # type: ignore[attr-defined]
    assert (partition.fetch_offset, partition.last_fetched_epoch) == log_end
    assert partition.current_leader_epoch == EPOCH
    assert (partition.replica_directory_id, partition.high_watermark) == (directory_id(1), -1)


def test_next_fetch_has_the_high_watermark_of_the_last_answer__kip1166(follower: Lone) -> None:
    follower.answer(fetch_of(follower), fetch_answer(EPOCH, high_watermark=7))
    assert HighWatermarkMoved(7) in follower.effects
    assert fetch_of(follower).message.topics[0].partitions[0].high_watermark == 7  # type: ignore[attr-defined]


def test_next_fetch_waits_until_the_last_records_are_synced(follower: Lone) -> None:
    follower.answer(fetch_of(follower), fetch_answer(EPOCH, records=batch(), high_watermark=11))
    assert (appended(follower), follower.receivers("Fetch")) == ([(10, 11, EPOCH)], [])
    assert HighWatermarkMoved(10) in follower.effects and SyncLog(11) in follower.effects
    follower.sync()
    assert HighWatermarkMoved(11) in follower.effects
    assert follower.receivers("Fetch") == [2]


# --- answers -----------------------------------------------------------------------------------


def test_answer_without_records_moves_the_high_watermark_only(follower: Lone) -> None:
    follower.answer(fetch_of(follower), fetch_answer(EPOCH, high_watermark=10))
    assert (appended(follower), HighWatermarkMoved(10) in follower.effects) == ([], True)
    follower.answer(fetch_of(follower), fetch_answer(EPOCH, high_watermark=10))
    assert not any(isinstance(one, HighWatermarkMoved) for one in follower.effects)


@pytest.mark.parametrize(
    ("records", "taken"),
    [
        (batch(), [(10, 11, EPOCH)]),
        (batch() + batch(11)[:-3], [(10, 11, EPOCH)]),  # the leader cut its last batch short
        (batch(epoch=4) + batch(11), [(10, 11, 4), (11, 12, EPOCH)]),
        (batch() + batch(11, EPOCH + 1), [(10, 11, EPOCH)]),  # of an epoch that is not followed yet
        (batch(epoch=EPOCH + 1), []),
        (batch(epoch=3), []),  # of an epoch that the log has passed
        (batch(9), []),
        (batch(11), []),
        (batch()[:20], []),
        (b"no batch at all, but long enough to look like the header of one, and more", []),
        (batch()[:-1] + b"?", []),
    ],
)
def test_only_the_leading_batches_that_continue_the_log_are_appended(
    follower: Lone, records: bytes, taken: list[tuple[int, int, int]]
) -> None:
    follower.answer(fetch_of(follower), fetch_answer(EPOCH, records=records))
    assert appended(follower) == taken
    assert follower.core.state is State.FOLLOWER


def test_log_is_truncated_at_the_divergence_that_the_leader_reports(follower: Lone) -> None:
    follower.answer(fetch_of(follower), fetch_answer(EPOCH, diverging=OffsetAndEpoch(8, 4)))
    assert TruncateLog(8, 2, EPOCH) in follower.effects
    assert not follower.sent("Fetch")  # a crash must not leave the old records behind new ones
    follower.sync()
    partition = fetch_of(follower).message.topics[0].partitions[0]  # type: ignore[attr-defined]
    assert (partition.fetch_offset, partition.last_fetched_epoch) == (8, 4)


def test_a_log_that_diverges_inside_a_batch_is_cut_before_it(follower: Lone) -> None:
    follower.batches = [6]
    follower.answer(fetch_of(follower), fetch_answer(EPOCH, diverging=OffsetAndEpoch(8, 4)))
    assert TruncateLog(6, 2, EPOCH) in follower.effects
    assert follower.core.log_end_offset == 6
    follower.sync()
    partition = fetch_of(follower).message.topics[0].partitions[0]  # type: ignore[attr-defined]
    assert (partition.fetch_offset, partition.last_fetched_epoch) == (6, 4)


def test_a_batch_that_also_holds_committed_records_is_not_cut_off(follower: Lone) -> None:
    follower.answer(fetch_of(follower), fetch_answer(EPOCH, high_watermark=7))
    follower.batches = [6]
    with pytest.raises(CommittedIsLost, match="truncate to 8, in a batch from 6 on"):
        follower.answer(fetch_of(follower), fetch_answer(EPOCH, diverging=OffsetAndEpoch(8, 4)))


def test_what_was_committed_before_a_restart_is_not_truncated() -> None:
    lone = Lone(committed=9).follow()
    assert lone.core.high_watermark == -1
    with pytest.raises(CommittedIsLost) as refused:
        lone.answer(fetch_of(lone), fetch_answer(EPOCH, diverging=OffsetAndEpoch(8, 4)))
    found = refused.value
    assert (found.committed, found.offset, found.snapshot_offset) == (9, 8, -1)
    assert (found.leader_id, found.leader_epoch) == (2, EPOCH)
    lone = Lone(committed=8).follow()
    lone.answer(fetch_of(lone), fetch_answer(EPOCH, diverging=OffsetAndEpoch(8, 4)))
    assert TruncateLog(8, 2, EPOCH) in lone.effects


@pytest.mark.parametrize(("committed", "reported", "waits"), [(0, -1, True), (9, 9, False)])
def test_a_fetch_carries_what_was_committed_before_a_restart__kip1166(
    committed: int, reported: int, waits: bool
) -> None:
    lone = Lone(committed=committed)
    lone.ask(begin(2, EPOCH))
    (send,) = lone.sent("Fetch")
    assert send.message.topics[0].partitions[0].high_watermark == reported
    assert (send.message.max_wait_ms > 0) is waits, "a leader with this high watermark would park it"
    lone.answer(send, fetch_answer(EPOCH, high_watermark=8))
    (send,) = lone.sent("Fetch")
    assert send.message.topics[0].partitions[0].high_watermark == 8
    assert send.message.max_wait_ms > 0, "the leader holds this log: it waits, however low its mark is"


def test_a_fetch_after_a_truncation_carries_the_mark_still__kip1166() -> None:
    lone = Lone(committed=7).follow()
    lone.answer(fetch_of(lone), fetch_answer(EPOCH, diverging=OffsetAndEpoch(8, 4)))
    lone.sync()
    (send,) = lone.sent("Fetch")
    assert send.message.topics[0].partitions[0].high_watermark == 7
    assert send.message.max_wait_ms == 0


def test_a_snapshot_below_what_was_committed_before_a_restart_is_refused() -> None:
    lone = Lone(committed=9).follow()
    with pytest.raises(CommittedIsLost) as refused:
        lone.answer(fetch_of(lone), fetch_answer(EPOCH, snapshot=OffsetAndEpoch(8, 5)))
    assert (refused.value.offset, refused.value.snapshot_offset) == (0, 8)


def test_a_batch_located_for_an_earlier_leader_truncates_nothing(follower: Lone) -> None:
    answer = fetch_answer(EPOCH, diverging=OffsetAndEpoch(8, 4))
    follower.locates = False
    follower.answer(fetch_of(follower), answer)
    assert LocateBatch(8) in follower.effects and not follower.sent("Fetch")
    follower.ask(begin(3, EPOCH + 1))
    assert not any(isinstance(one, TruncateLog) for one in follower.step(BatchLocated(8, 8)))
    assert follower.core.log_end_offset == 10


def test_answer_of_the_epoch_before_is_ignored(follower: Lone) -> None:
    old = fetch_of(follower)
    follower.ask(begin(3, EPOCH + 1))
    assert follower.answer(old, fetch_answer(EPOCH, records=batch())) == []
    assert (follower.core.leader_id, follower.core.log_end_offset) == (3, 10)


def test_answer_is_ignored_once_the_follower_is_prospective(follower: Lone) -> None:
    old = fetch_of(follower)
    follower.wait_for(State.PROSPECTIVE)
    follower.answer(old, fetch_answer(EPOCH, records=batch()))
    assert (appended(follower), follower.core.state) == ([], State.PROSPECTIVE)


@pytest.mark.parametrize("error", [ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER])
def test_error_that_names_a_later_leader_is_followed(follower: Lone, error: ErrorCode) -> None:
    follower.answer(fetch_of(follower), fetch_answer(EPOCH + 1, leader=3, error=error))
    assert (follower.core.epoch, follower.core.leader_id, follower.receivers("Fetch")) == (EPOCH + 1, 3, [3])


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.INCONSISTENT_CLUSTER_ID,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    ],
)
def test_refusal_as_a_whole_is_asked_again_after_a_backoff(follower: Lone, error: ErrorCode) -> None:
    answer = fetch_answer(EPOCH)
    answer.responses, answer.error_code = [], error
    follower.answer(fetch_of(follower), answer)
    assert (follower.core.state, follower.core.leader_id) == (State.FOLLOWER, 2)
    assert 2 not in follower.receivers("Fetch")


def test_answers_of_the_leader_keep_the_follower_from_an_election(follower: Lone) -> None:
    for _ in range(5):
        send = fetch_of(follower)
        follower.wait(1_500)
        assert follower.core.state is State.FOLLOWER
        follower.answer(send, fetch_answer(EPOCH))
    follower.wait_for(State.PROSPECTIVE, 2_100)


# --- snapshots ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", [(-1, 3), (20, -1)])
def test_invalid_snapshot_id_is_not_fetched(follower: Lone, at: tuple[int, int]) -> None:
    follower.answer(fetch_of(follower), fetch_answer(EPOCH, snapshot=OffsetAndEpoch(*at)))
    assert follower.receivers("FetchSnapshot") == []
    assert not any(isinstance(one, ResetLog) for one in follower.effects)


def test_incomplete_snapshot_id_of_a_leader_is_ignored_with_a_backoff(follower: Lone) -> None:
    follower.now_ms += 1_000
    follower.answer(fetch_of(follower), fetch_answer(EPOCH, snapshot=OffsetAndEpoch(20, -1)))
    assert follower.receivers("Fetch") == [3]
    follower.wait(999)
    assert follower.core.state is State.FOLLOWER
    follower.wait(1)
    assert follower.core.state is State.PROSPECTIVE


def test_snapshot_id_is_fetched_from_the_leader_piece_by_piece__kip630(follower: Lone) -> None:
    follower.answer(fetch_of(follower), fetch_answer(EPOCH, snapshot=OffsetAndEpoch(20, 5)))
    (send,) = follower.sent("FetchSnapshot")
    partition = send.message.topics[0].partitions[0]  # type: ignore[attr-defined]
    assert (partition.snapshot_id.end_offset, partition.snapshot_id.epoch, partition.position) == (20, 5, 0)
    assert partition.current_leader_epoch == EPOCH


def test_a_part_of_a_snapshot_counts_for_no_vote__kip630(follower: Lone) -> None:
    follower.answer(fetch_of(follower), fetch_answer(EPOCH, snapshot=OffsetAndEpoch(20, 5)))
    assert follower.receivers("FetchSnapshot") == [2]
    for send in follower.become_prospective():
        place = send.message.topics[0].partitions[0]  # type: ignore[attr-defined]
        assert (place.last_offset, place.last_offset_epoch) == LOG_END
    assert not partition_of(follower.ask(vote(2, EPOCH + 1, last=(LOG_END[0] - 1, LOG_END[1])))).vote_granted
    assert partition_of(follower.ask(vote(2, EPOCH + 1, last=LOG_END))).vote_granted


def test_log_start_may_move_as_far_as_the_leaders_and_no_further__kip630(follower: Lone) -> None:
    assert follower.core.log_start_limit == -1  # no message of it arrived
    answer = fetch_answer(EPOCH, high_watermark=0)
    answer.responses[0].partitions[0].log_start_offset = 7
    follower.answer(fetch_of(follower), answer)
    assert follower.core.log_start_limit == 7


# --- losing the leader --------------------------------------------------------------------------------


def test_voter_starts_an_election_when_the_leader_is_silent_for_the_fetch_timeout(follower: Lone) -> None:
    follower.wait(1_999)
    assert follower.core.state is State.FOLLOWER
    follower.wait(100)
    assert follower.core.state is State.PROSPECTIVE


def test_voter_starts_an_election_at_once_when_the_leaders_connection_is_lost(follower: Lone) -> None:
    follower.step(ConnectionLost(2))
    assert follower.core.state is State.PROSPECTIVE


def test_lost_connection_of_another_node_does_not_affect_the_leader(follower: Lone) -> None:
    follower.step(ConnectionLost(3))
    assert follower.core.state is State.FOLLOWER


@pytest.mark.parametrize("voters", [(1, 2, 3), (2, 3, 4)])
@pytest.mark.parametrize("failure", ["BROKER_NOT_AVAILABLE in the answer", "connection", "request timeout"])
def test_another_voter_is_asked_while_the_leader_does_not_answer(
    voters: tuple[int, ...], failure: str
) -> None:
    lone = Lone(voters=voters, request_timeout_ms=300, fetch_timeout_ms=60_000).follow(2)
    send = fetch_of(lone)
    if failure == "request timeout":
        lone.wait(300)
    elif failure == "connection":
        lone.step(SendFailed(send.send_id))
    else:
        lone.answer(send, fetch_answer(EPOCH, error=ErrorCode.BROKER_NOT_AVAILABLE))
    assert fetch_of(lone).destination.node_id != 2
    for _ in range(10):
        if 2 in lone.receivers("Fetch"):
            return  # and the leader again, in time
        for other in lone.sent("Fetch"):
            lone.answer(other, fetch_answer(EPOCH, leader=2, error=ErrorCode.NOT_LEADER_OR_FOLLOWER))
        if not lone.sent("Fetch"):
            lone.wait(20)
    raise AssertionError("the leader gets no second request")


# --- search for a leader ------------------------------------------------------------------------------


def test_observer_asks_bootstrap_servers_one_by_one_until_one_names_the_leader() -> None:
    lone = Lone(QuorumStateData(), voters=(), log_end=OffsetAndEpoch(0, 0))
    (first,) = lone.sent("Fetch")
    assert first.destination.node_id <= -2
    lone.step(SendFailed(first.send_id))
    (second,) = lone.sent("Fetch")
    assert second.destination.node_id not in (1, first.destination.node_id)
    lone.answer(second, fetch_answer(EPOCH, leader=3, error=ErrorCode.FENCED_LEADER_EPOCH))
    assert (lone.core.state, lone.core.leader_id, lone.receivers("Fetch")) == (State.FOLLOWER, 3, [3])


def test_observer_without_an_answer_keeps_asking() -> None:
    lone = Lone(QuorumStateData(), voters=(), request_timeout_ms=100)
    for _ in range(3):
        assert len(lone.sent("Fetch")) == 1
        lone.wait(100)
    assert (lone.core.state, lone.core.epoch) == (State.UNATTACHED, 4)


def test_records_in_the_answer_that_names_the_leader_are_appended() -> None:
    lone = Lone(voters=(2, 3, 4))
    lone.answer(fetch_of(lone), fetch_answer(EPOCH, records=batch(), high_watermark=10))
    assert (lone.core.state, appended(lone)) == (State.FOLLOWER, [(10, 11, EPOCH)])


def test_unattached_voter_asks_other_voters_and_finds_the_leader() -> None:
    lone = Lone()
    lone.answer(fetch_of(lone), fetch_answer(EPOCH, leader=3, error=ErrorCode.NOT_LEADER_OR_FOLLOWER))
    assert (lone.core.state, lone.core.leader_id) == (State.FOLLOWER, 3)


def test_leader_without_an_address_is_followed_once_the_address_is_known() -> None:
    lone = Lone(QuorumStateData(leader_id=7, leader_epoch=EPOCH))
    assert (lone.core.state, lone.core.leader_id) == (State.UNATTACHED, 7)
    lone.ask(begin(7))
    assert (lone.core.state, lone.receivers("Fetch")) == (State.FOLLOWER, [7])


def test_additional_endpoints_of_the_leader_are_stored_and_none_is_dropped(follower: Lone) -> None:
    partition_of(follower.ask(begin(2, endpoints=("CONTROLLER", "OTHER"))))
    assert follower.core.leader_endpoint("OTHER") is not None
    partition_of(follower.ask(begin(2)))
    assert follower.core.leader_endpoint("OTHER") is not None


# --- leaving ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("voters", [(1, 2, 3), (2, 3, 4)])
def test_follower_and_observer_shut_down_at_once(voters: tuple[int, ...]) -> None:
    lone = Lone(voters=voters).follow(2)
    lone.step(ShutdownRequested(5_000))
    assert ShutdownCompleted() in lone.effects
    assert lone.core.deadline_ms() is None


@pytest.mark.parametrize("voters", [(1, 2, 3), (2, 3)])
def test_a_leader_that_is_silent_for_the_fetch_timeout_answers_no_more(voters: tuple[int, ...]) -> None:
    lone = Lone(voters=voters).follow(2)
    assert not lone.core.leader_answers
    lone.answer(fetch_of(lone), fetch_answer(EPOCH, high_watermark=8))
    assert lone.core.leader_answers
    lone.wait(lone.config.fetch_timeout_ms - 1)
    assert lone.core.leader_answers
    lone.wait(lone.config.fetch_timeout_ms)
    assert not lone.core.leader_answers


# --- readers ----------------------------------------------------------------------------------------------


def read(offset: int = 5, last_epoch: int = 4, *, replica: int = -1, epoch: int = -1) -> FetchRequest:
    return fetch(replica, epoch, offset, last_epoch, max_wait_ms=500)


def test_reader_gets_committed_records_from_a_replica_that_is_without_a_leader(follower: Lone) -> None:
    follower.answer(fetch_of(follower), fetch_answer(EPOCH, high_watermark=8))
    assert follower.ask(read()).error_code or partition_of(follower.ask(read())).error_code
    follower.step(ConnectionLost(2))
    partition = partition_of(follower.ask(read()))
    assert (partition.error_code, partition.high_watermark) == (ErrorCode.NONE, 8)
    [records] = [one for one in follower.effects if isinstance(one, RespondRecords)]
    assert (records.offset, records.end_offset) == (5, 8)
    assert partition_of(follower.ask(read(8))).records == b""  # at once: it is not parked
    assert partition_of(follower.ask(read(5, 3))).diverging_epoch.end_offset == 0
    for other in (read(replica=7), read(epoch=EPOCH)):
        answer = follower.ask(other)
        assert answer.error_code or partition_of(answer).error_code
    follower.step(ShutdownRequested(100))
    assert follower.ask(read()).error_code or partition_of(follower.ask(read())).error_code


def test_reader_gets_the_snapshot_from_a_replica_that_is_without_a_leader() -> None:
    snapshot_id = OffsetAndEpoch(10, 4)
    lone = Lone(log_end=snapshot_id, log_start=10, snapshots={snapshot_id: 100})
    found = partition_of(lone.ask(read(0))).snapshot_id
    assert (found.end_offset, found.epoch) == snapshot_id
    for replica, epoch, error in ((-1, -1, 0), (7, -1, ErrorCode.FENCED_LEADER_EPOCH)):
        wanted = PartitionSnapshot(0, epoch, SnapshotId(*snapshot_id), 0)
        topic = TopicSnapshot(METADATA_TOPIC, [wanted])
        lone.ask(FetchSnapshotRequest(replica_id=replica, max_bytes=1 << 20, topics=[topic]))
        [answer] = [one for one in lone.effects if isinstance(one, Respond | RespondSnapshot)]
        assert isinstance(answer, Respond if error else RespondSnapshot)
        assert answer.message.topics[0].partitions[0].error_code == error  # type: ignore[attr-defined]
