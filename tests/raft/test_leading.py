"""A leader among other voters: announcing itself, resigning, leaving, and describing the quorum."""

from __future__ import annotations

from typing import Any

import pytest

from kraftd.fetch.purgatory import Purgatory
from kraftd.messages import fetch_snapshot_request
from kraftd.messages.describe_quorum_request import DescribeQuorumRequest, TopicData
from kraftd.messages.describe_quorum_request import PartitionData as DescribePartition
from kraftd.raft.config import DurableState
from kraftd.raft.core import RaftCore
from kraftd.raft.effects import (
    AppendAborted,
    AppendCommitted,
    HighWatermarkMoved,
    LeadershipChanged,
    RespondRecords,
    ShutdownCompleted,
)
from kraftd.raft.events import AppendRequested, ResignRequested, SendFailed, ShutdownRequested
from kraftd.raft.log_view import LogView
from kraftd.raft.quorum.history import ControlRecordHistory
from kraftd.raft.quorum.voters import VoterSet
from kraftd.raft.transitions import State
from kraftd.types import METADATA_TOPIC, OffsetAndEpoch
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.message import Message
from tests.raft.lone import (
    EPOCH,
    LOG_END,
    Lone,
    begin,
    begin_answer,
    end,
    end_answer,
    fetch,
    fetch_answer,
    partition_of,
    vote,
    vote_answer,
)
from tests.raft.world import LISTENER, SeededRandomness, bootstrap_batch, directory_id, node_config

LEADS = EPOCH + 1  # the epoch in which the replica is elected
END = 11  # of its log then
VERSIONS = [13, 14, 15, 16, 17, 18]


@pytest.fixture
def leader() -> Lone:
    """A leader of epoch 6 from offset 10 on; its first batch ends at 11, and only it has synced that."""
    lone = Lone().lead()
    lone.sync()
    return lone


def committed(lone: Lone) -> Lone:
    lone.ask(fetch(2, LEADS, END, LEADS, max_wait_ms=500))
    assert HighWatermarkMoved(END) in lone.effects
    return lone


# --- announcements --------------------------------------------------------------------------------


def test_leader_repeats_its_announcement_to_voters_that_do_not_fetch() -> None:
    leader = Lone().lead()
    for _ in range(2):
        for send in leader.sent("BeginQuorumEpoch"):
            leader.answer(send, begin_answer(LEADS, leader=1))
        leader.wait(1_000)
        assert leader.receivers("BeginQuorumEpoch") == [2, 3]


def test_leader_does_not_announce_itself_to_a_voter_that_fetches() -> None:
    leader = Lone().lead()
    for send in leader.sent("BeginQuorumEpoch"):
        leader.answer(send, begin_answer(LEADS, leader=1))
    leader.wait(900)
    leader.ask(fetch(2, LEADS, 10, 4))
    leader.wait(200)
    assert leader.receivers("BeginQuorumEpoch") == [3]


@pytest.mark.parametrize("error", [ErrorCode.NONE, ErrorCode.FENCED_LEADER_EPOCH])
def test_answer_of_a_later_epoch_ends_the_leadership(error: ErrorCode) -> None:
    lone = Lone().lead()
    lone.answer(lone.sent("BeginQuorumEpoch")[0], begin_answer(LEADS + 1, leader=3, error=error))
    assert (lone.core.state, lone.core.epoch, lone.core.leader_id) == (State.FOLLOWER, LEADS + 1, 3)


def test_fetch_of_a_voter_commits_what_a_majority_holds(leader: Lone) -> None:
    assert leader.core.high_watermark == -1
    answer = leader.ask(fetch(3, LEADS, END, LEADS))
    assert partition_of(answer).high_watermark == END
    assert HighWatermarkMoved(END) in leader.effects


def test_new_leader_is_unannounced_and_has_no_high_watermark_before_its_first_commit() -> None:
    """Before its commit it cannot know which records are committed; afterwards its reads are linearizable."""
    lone = Lone().lead()
    announced = LeadershipChanged(LEADS, 1, is_local=True)
    assert announced not in lone.effects
    lone.sync()
    answer = lone.ask(
        fetch(2, LEADS, LOG_END.offset, LOG_END.epoch)
    )  # all records of older epochs are on two disks
    assert (partition_of(answer).high_watermark, announced in lone.effects) == (-1, False)
    lone.ask(fetch(2, LEADS, END, LEADS))
    assert lone.effects.index(HighWatermarkMoved(END)) < lone.effects.index(announced)


@pytest.mark.parametrize("version", VERSIONS)
def test_fetch_counts_for_a_voter_of_a_dynamic_quorum_from_v17_on(leader: Lone, version: int) -> None:
    request = fetch(2, LEADS, END, LEADS)
    if version < 15:
        request.replica_id, request.replica_state.replica_id = 2, -1
    if version < 17:  # directory ids came with KIP-853: without one a voter of a dynamic quorum is not known
        request.topics[0].partitions[0].replica_directory_id = bytes(16)
    if version < 18:
        request.topics[0].partitions[0].high_watermark = (1 << 63) - 1
    leader.ask(request, version)
    assert (leader.core.high_watermark == END) is (version >= 17)


@pytest.mark.parametrize("version", VERSIONS)
def test_fetch_of_every_version_counts_in_a_static_quorum(version: int) -> None:
    leader = Lone(static=True).lead()
    leader.sync()
    request = fetch(2, LEADS, leader.core.log_end_offset, LEADS)
    if version < 15:
        request.replica_id, request.replica_state.replica_id = 2, -1
    if version < 17:
        request.topics[0].partitions[0].replica_directory_id = bytes(16)
    if version < 18:
        request.topics[0].partitions[0].high_watermark = (1 << 63) - 1
    leader.ask(request, version)
    assert leader.core.high_watermark == leader.core.log_end_offset


def test_replaced_disk_under_a_voters_id_does_not_count__kip853(leader: Lone) -> None:
    leader.ask(fetch(2, LEADS, END, LEADS, generation=1))
    assert leader.core.high_watermark == -1


# --- losing it ----------------------------------------------------------------------------------------


def test_leader_without_fetches_of_a_majority_resigns_within_1_5_fetch_timeouts() -> None:
    leader = Lone().lead()
    leader.wait(2_999)
    assert leader.core.state is State.LEADER
    leader.wait(1)
    assert leader.core.state is State.RESIGNED


def test_fetch_of_one_of_three_voters_keeps_the_leader(leader: Lone) -> None:
    for _ in range(10):
        leader.wait(2_000)
        leader.ask(fetch(3, LEADS, 10, 4))
    assert leader.core.state is State.LEADER


def test_fetches_of_observers_do_not_keep_the_leader(leader: Lone) -> None:
    for _ in range(3):
        leader.wait(1_000)
        leader.ask(fetch(9, LEADS, 10, 4))
    assert leader.core.state is State.RESIGNED


@pytest.mark.parametrize(("replica_id", "keeps"), [(1, False), (2, True)])
def test_fetches_of_a_snapshot_keep_the_leader_unless_they_have_its_id(replica_id: int, keeps: bool) -> None:
    snapshot_id = OffsetAndEpoch(5, 4)
    leader = Lone(snapshots={snapshot_id: 100}).lead()
    m = fetch_snapshot_request
    piece = m.PartitionSnapshot(0, LEADS, m.SnapshotId(*snapshot_id), 0, directory_id(replica_id))
    for _ in range(3):
        leader.wait(1_000)
        leader.ask(
            m.FetchSnapshotRequest("cluster", replica_id, 10, [m.TopicSnapshot(METADATA_TOPIC, [piece])])
        )
    assert (leader.core.state is State.LEADER) is keeps


def test_single_voter_keeps_leading_though_no_replica_fetches() -> None:
    lone = Lone(voters=[1])
    lone.wait(60_000)
    assert lone.core.state is State.LEADER


@pytest.mark.parametrize(
    "message", [vote(2, LEADS + 1, last=(99, LEADS)), vote(2, LEADS + 1, last=(0, 0)), begin(3, LEADS + 1)]
)
def test_appends_are_aborted_and_fetches_refused_when_a_later_epoch_comes(
    leader: Lone, message: Message
) -> None:
    committed(leader)
    leader.step(AppendRequested("a", [b"x"], LEADS))
    leader.step(AppendRequested("read", [], LEADS))
    assert leader.ask(fetch(9, LEADS, END, LEADS, high_watermark=99, max_wait_ms=500)) is None
    leader.ask(message)
    aborted = [one.append_id for one in leader.effects if isinstance(one, AppendAborted)]
    assert sorted(aborted) == ["a", "read"]
    errors = [
        partition_of(one.message).error_code  # type: ignore[attr-defined]
        for one in leader.effects
        if type(getattr(one, "message", None)).__name__ == "FetchResponse"
    ]
    assert errors == [ErrorCode.NOT_LEADER_OR_FOLLOWER]


# --- resigning ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("epoch", [LEADS - 1, LEADS + 1])
def test_resignation_from_another_epoch_is_ignored(leader: Lone, epoch: int) -> None:
    leader.step(ResignRequested(epoch))
    assert leader.core.state is State.LEADER


@pytest.mark.parametrize("voters", [(1, 2, 3), (2, 3, 4)])
def test_resignation_of_a_replica_that_does_not_lead_is_ignored(voters: tuple[int, ...]) -> None:
    lone = Lone(voters=voters).follow(2)
    lone.step(ResignRequested(EPOCH))
    assert (lone.core.state, lone.core.leader_id) == (State.FOLLOWER, 2)


def test_successors_are_named_the_most_caught_up_first(leader: Lone) -> None:
    committed(leader)
    leader.ask(fetch(3, LEADS, 10, 4))
    leader.step(ResignRequested(LEADS))
    to_2, _ = leader.sent("EndQuorumEpoch")
    message: Any = to_2.message
    assert message.topics[0].partitions[0].preferred_successors == (2, 3)
    candidates = message.topics[0].partitions[0].preferred_candidates
    assert [(one.candidate_id, one.candidate_directory_id) for one in candidates] == [
        (2, directory_id(2)),
        (3, directory_id(3)),
    ]


def test_end_of_the_epoch_is_resent_to_voters_that_have_not_answered(leader: Lone) -> None:
    leader.step(ResignRequested(LEADS))
    to_2, to_3 = leader.sent("EndQuorumEpoch")
    leader.answer(to_2, end_answer(LEADS, leader=1))
    leader.step(SendFailed(to_3.send_id))
    leader.wait(20)
    assert leader.receivers("EndQuorumEpoch") == [3]


def test_resigned_leader_becomes_unattached_after_an_election_timeout(leader: Lone) -> None:
    leader.step(ResignRequested(LEADS))
    leader.wait_for(State.PROSPECTIVE, longest_ms=2 * leader.config.election_timeout_ms)
    assert leader.core.epoch == LEADS + 1


def test_resigned_leader_follows_the_next_leader(leader: Lone) -> None:
    leader.step(ResignRequested(LEADS))
    partition_of(leader.ask(begin(3, LEADS + 1)))
    assert (leader.core.state, leader.core.leader_id) == (State.FOLLOWER, 3)


def test_end_of_the_epoch_by_another_leader_is_followed_and_succeeded(leader: Lone) -> None:
    leader.ask(end(3, LEADS + 1, (2, 1)))
    assert (leader.core.state, leader.core.epoch) == (State.FOLLOWER, LEADS + 1)
    leader.wait(500)
    assert leader.core.state is State.PROSPECTIVE


# --- leaving ------------------------------------------------------------------------------------------


def test_leader_that_shuts_down_waits_until_another_leads(leader: Lone) -> None:
    leader.step(ShutdownRequested(5_000))
    assert (leader.core.state, leader.receivers("EndQuorumEpoch")) == (State.RESIGNED, [2, 3])
    assert partition_of(leader.ask(vote(2, LEADS + 1, last=(END, LEADS)))).vote_granted
    assert ShutdownCompleted() not in leader.effects
    leader.ask(begin(2, LEADS + 1))
    assert ShutdownCompleted() in leader.effects


def test_leader_without_a_successor_shuts_down_when_its_time_is_over(leader: Lone) -> None:
    leader.step(ShutdownRequested(5_000))
    leader.wait(4_999)
    assert not any(isinstance(one, ShutdownCompleted) for one in leader.effects)
    leader.wait(1)
    assert ShutdownCompleted(graceful=False) in leader.effects


# --- DescribeQuorum -----------------------------------------------------------------------------------


def describe(lone: Lone) -> Any:
    message = DescribeQuorumRequest([TopicData(METADATA_TOPIC, [DescribePartition(0)])])
    return partition_of(lone.ask(message))


def ends(replicas: Any) -> dict[int, int]:
    return {one.replica_id: one.log_end_offset for one in replicas}


def test_followers_and_observers_are_described_by_their_last_fetch__kip836(leader: Lone) -> None:
    leader.ask(fetch(2, LEADS, 10, 4))
    leader.now_ms += 5
    leader.ask(fetch(9, LEADS, END, LEADS))
    quorum = describe(leader)
    assert (quorum.leader_id, quorum.leader_epoch, quorum.high_watermark) == (1, LEADS, -1)
    assert ends(quorum.current_voters) == {1: END, 2: 10, 3: -1}
    assert ends(quorum.observers) == {9: END}
    assert [one.last_fetch_timestamp for one in quorum.observers] == [leader.now_ms]
    assert [one.last_caught_up_timestamp for one in quorum.current_voters][1:] == [-1, -1]


def test_lower_fetch_offset_is_described_and_the_high_watermark_stays(leader: Lone) -> None:
    committed(leader)
    leader.ask(fetch(2, LEADS, 10, 4))  # it lost its disk's tail
    quorum = describe(leader)
    assert (ends(quorum.current_voters)[2], quorum.high_watermark) == (10, END)


def test_observer_that_is_silent_for_five_minutes_is_forgotten() -> None:
    lone = Lone(voters=[1])
    lone.sync()
    lone.ask(fetch(9, lone.core.epoch, lone.core.log_end_offset, lone.core.epoch))
    lone.wait(299_999)
    assert ends(describe(lone).observers) == {9: END}
    lone.wait(1)
    assert ends(describe(lone).observers) == {}


def test_static_voters_are_described_without_directory_ids() -> None:
    lone = Lone(static=True).lead()
    lone.sync()
    assert [one.replica_directory_id for one in describe(lone).current_voters] == [bytes(16)] * 3


# --- voters from two places ---------------------------------------------------------------------------


def test_voters_of_the_log_replace_configured_ones() -> None:
    addresses = {one: (f"n{one}", 9000 + one) for one in (1, 7, 8, 9)}
    history = ControlRecordHistory(VoterSet.from_static(LISTENER, addresses))
    assert (history.voters.ids, history.kraft_version) == ([1, 7, 8, 9], 0)
    bootstrap = bootstrap_batch(VoterSet.of(*(node_config(one).voter_node for one in (1, 2))))
    history.read(bootstrap, at_offset=-1)
    durable = DurableState(None, LogView(), history)
    core = RaftCore(node_config(1), durable, SeededRandomness(1), Purgatory(), Purgatory())
    assert (core.voters.ids, core.kraft_version) == ([1, 2], 1)


def test_commit_is_reported_by_a_fetch_at_the_new_end(leader: Lone) -> None:
    committed(leader)
    leader.step(AppendRequested("a", [b"x"], LEADS))
    leader.sync()
    leader.ask(fetch(3, LEADS, END + 1, LEADS))
    assert AppendCommitted("a", END + 1) in leader.effects


def test_other_voters_commit_what_a_leader_with_a_slow_disk_has_yet_to_sync(leader: Lone) -> None:
    """Two of three voters have synced the record, so the leader's own copy is neither needed nor counted."""
    committed(leader)
    leader.step(AppendRequested("a", [b"x"], LEADS))
    leader.ask(fetch(3, LEADS, END, LEADS))  # voter 3 gets the record at once
    assert isinstance(leader.effects[0], RespondRecords)
    leader.ask(fetch(3, LEADS, END + 1, LEADS, max_wait_ms=500))
    assert leader.core.high_watermark == END
    leader.ask(fetch(9, LEADS, END, LEADS, high_watermark=END, max_wait_ms=500))
    assert leader.effects == []  # an observer gets it after the commit only
    leader.ask(fetch(2, LEADS, END + 1, LEADS, max_wait_ms=500))
    assert AppendCommitted("a", END + 1) in leader.effects
    assert leader.core.log.synced_end_offset == END
    (response,) = (one for one in leader.effects if isinstance(one, RespondRecords))  # to the observer
    assert (response.offset, response.end_offset) == (END, END + 1)


def test_late_answer_to_an_earlier_fetch_does_not_disturb_a_leader() -> None:
    lone = Lone()
    (old,) = lone.sent("Fetch")
    lone.lead()
    assert lone.answer(old, fetch_answer(EPOCH, leader=3, diverging=OffsetAndEpoch(1, 1))) == []
    assert lone.core.state is State.LEADER


@pytest.mark.parametrize("error", [ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.INCONSISTENT_CLUSTER_ID])
def test_peer_that_refuses_gets_no_request_for_a_backoff(error: ErrorCode) -> None:
    lone = Lone()
    for send in lone.become_prospective():
        answer = vote_answer(EPOCH, True)
        answer.topics, answer.error_code = [], error
        lone.answer(send, answer)
    assert (lone.core.state, lone.receivers("Vote")) == (State.PROSPECTIVE, [])
    leader = Lone().lead()
    begin_refusal, resigned = begin_answer(LEADS), end_answer(LEADS)
    begin_refusal.topics, begin_refusal.error_code = [], error
    leader.answer(leader.sent("BeginQuorumEpoch")[0], begin_refusal)
    assert leader.core.state is State.LEADER
    leader.step(ResignRequested(LEADS))
    resigned.topics, resigned.error_code = [], error
    leader.answer(leader.sent("EndQuorumEpoch")[0], resigned)
    assert (leader.core.state, leader.receivers("EndQuorumEpoch")) == (State.RESIGNED, [])
    leader.wait(20)
    assert leader.receivers("EndQuorumEpoch") == [2]
