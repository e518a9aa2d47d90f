"""Messages with odd contents: no endpoint, an impossible epoch, an unknown error, a field of one version."""

from __future__ import annotations

import pytest

from kraftd.messages import vote_response
from kraftd.messages.add_raft_voter_request import AddRaftVoterRequest, Listener
from kraftd.messages.add_raft_voter_response import AddRaftVoterResponse
from kraftd.messages.api_versions_request import ApiVersionsRequest
from kraftd.messages.fetch_snapshot_request import (
    FetchSnapshotRequest,
    PartitionSnapshot,
    SnapshotId,
    TopicSnapshot,
)
from kraftd.messages.fetch_snapshot_response import FetchSnapshotResponse
from kraftd.messages.fetch_snapshot_response import LeaderIdAndEpoch as SnapshotLeader
from kraftd.messages.fetch_snapshot_response import PartitionSnapshot as Piece
from kraftd.messages.fetch_snapshot_response import SnapshotId as PieceId
from kraftd.messages.fetch_snapshot_response import TopicSnapshot as TopicPiece
from kraftd.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kraftd.messages.remove_raft_voter_response import RemoveRaftVoterResponse
from kraftd.messages.update_raft_voter_response import CurrentLeader, UpdateRaftVoterResponse
from kraftd.raft.checks import LARGEST_EPOCH
from kraftd.raft.effects import (
    AbandonSnapshot,
    BeginSnapshot,
    ResetLog,
    RespondRecords,
    RespondSnapshot,
    Send,
    TruncateLog,
    WriteSnapshot,
)
from kraftd.raft.events import (
    RequestReceived,
    ResignRequested,
    SendFailed,
    SnapshotFinished,
    SnapshotsDeleted,
    SnapshotTaken,
)
from kraftd.raft.roles import Resigned
from kraftd.raft.transitions import State
from kraftd.raft.voter_change import MAX_TEXT_LENGTH, cut
from kraftd.types import METADATA_TOPIC, OffsetAndEpoch
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.message import Message
from tests.raft.lone import (
    EPOCH,
    Lone,
    begin,
    end,
    fetch,
    fetch_answer,
    partition_of,
    vote,
    vote_answer,
)
from tests.raft.test_membership import JOINS, add_of, serve
from tests.raft.world import directory_id

LEADS = EPOCH + 1
END = 11


def snapshot_of(at: OffsetAndEpoch, epoch: int, *, topic: str = METADATA_TOPIC, index: int = 0) -> Message:
    piece = PartitionSnapshot(index, epoch, SnapshotId(at.offset, at.epoch), 0, directory_id(2))
    return FetchSnapshotRequest("cluster", 2, 1000, [TopicSnapshot(topic, [piece])])


def leader_of_its_epoch() -> Lone:
    """A leader whose whole log is committed."""
    lone = Lone(snapshots={OffsetAndEpoch(8, 4): 100}).lead()
    lone.sync()
    lone.ask(fetch(2, LEADS, END, LEADS))
    return lone


# --- contents of answers ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "first"),
    [
        (vote(3, EPOCH), 1),
        (begin(2), 1),
        (end(2), 1),
        (fetch(3, EPOCH, 10, 4), 17),
        (snapshot_of(OffsetAndEpoch(8, 4), EPOCH), 1),
    ],
)
def test_answers_name_the_leaders_endpoint_from_one_version_on(message: Message, first: int) -> None:
    lone = Lone().follow(2)
    assert not lone.ask(message, first - 1).node_endpoints
    (node,) = lone.ask(message, first).node_endpoints
    assert (node.node_id, node.host, node.port) == (2, "n2", 9002)


def test_a_leader_that_answers_a_fetch_with_news_names_itself() -> None:
    lone = leader_of_its_epoch()
    answers = [
        lone.ask(fetch(3, LEADS, 10, 4)),  # records
        lone.ask(fetch(3, LEADS, 0, 0)),  # a snapshot
        lone.ask(fetch(3, LEADS, 12, 5)),  # where the logs diverge
    ]
    for answer in answers:
        (node,) = answer.node_endpoints
        assert (node.node_id, node.host, node.port) == (1, "n1", 9001)
    assert partition_of(answers[1]).snapshot_id.end_offset == 8
    assert partition_of(answers[2]).diverging_epoch.end_offset == 10


def test_a_snapshot_of_another_partition_is_refused_under_its_name() -> None:
    lone = leader_of_its_epoch()
    answer = lone.ask(snapshot_of(OffsetAndEpoch(8, 4), LEADS, topic="other", index=5))
    (topic,) = answer.topics
    (partition,) = topic.partitions
    assert (topic.name, partition.index) == ("other", 5)
    assert partition.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert partition.current_leader.leader_id <= 0


def test_a_snapshot_that_was_deleted_is_not_served() -> None:
    lone = leader_of_its_epoch()
    kept, deleted = OffsetAndEpoch(8, 4), OffsetAndEpoch(9, 4)
    lone.step(SnapshotTaken(deleted, 50))
    lone.step(SnapshotsDeleted((deleted,)))
    assert partition_of(lone.ask(snapshot_of(deleted, LEADS))).error_code == ErrorCode.SNAPSHOT_NOT_FOUND
    lone.ask(snapshot_of(kept, LEADS))
    assert any(isinstance(one, RespondSnapshot) for one in lone.effects)


def test_a_text_for_an_answer_is_cut_to_its_limit() -> None:
    fits = "a" * MAX_TEXT_LENGTH
    assert cut(fits) == fits
    assert cut(fits + "b") == "a" * (MAX_TEXT_LENGTH - 1) + "…"


def test_a_new_voter_is_asked_under_kraftds_name() -> None:
    lone = leader_of_its_epoch()
    lone.ask(add_of(4))
    (probe,) = lone.sent("ApiVersions")
    assert probe.message == ApiVersionsRequest("kraftd", "1")


# --- invalid answers ----------------------------------------------------------------------------------


def test_an_epoch_beyond_the_largest_is_not_learned() -> None:
    lone = Lone()
    (first, _) = lone.become_prospective()
    lone.answer(first, vote_answer(LARGEST_EPOCH + 1, True))
    assert (lone.core.epoch, lone.core.state) == (EPOCH, State.PROSPECTIVE)
    assert lone.receivers("Vote") == []  # that voter gets no request for a backoff
    lone.wait(lone.config.retry_backoff_ms)
    (again,) = lone.sent("Vote")
    lone.answer(again, vote_answer(LARGEST_EPOCH, True))
    assert lone.core.epoch == LARGEST_EPOCH


def test_a_vote_with_an_error_does_not_count() -> None:
    lone = Lone()
    first, _ = lone.become_prospective()
    lone.answer(first, vote_answer(EPOCH, True, error=ErrorCode.UNKNOWN_SERVER_ERROR))
    assert (lone.core.state, lone.receivers("Vote")) == (State.PROSPECTIVE, [])


def test_a_leader_without_a_known_endpoint_is_not_followed() -> None:
    lone = Lone()
    first, _ = lone.become_prospective()
    partition = vote_response.PartitionData(0, 0, 9, EPOCH + 1, False)
    topics = [vote_response.TopicData(METADATA_TOPIC, [partition])]
    lone.answer(first, vote_response.VoteResponse(topics=topics))
    assert (lone.core.epoch, lone.core.state, lone.core.leader_id) == (EPOCH + 1, State.UNATTACHED, None)


def test_a_voter_0_without_pre_votes_starts_the_election_at_once__kip996() -> None:
    lone = Lone(voters=(0, 1, 2))
    send = lone.become_prospective()[0]
    assert send.destination.node_id == 0
    lone.step(SendFailed(send.send_id, ErrorCode.UNSUPPORTED_VERSION))
    assert lone.core.state is State.CANDIDATE


def test_a_log_that_diverges_at_its_end_is_not_truncated() -> None:
    lone = Lone().follow()
    (send,) = lone.sent("Fetch")
    lone.answer(send, fetch_answer(EPOCH, diverging=OffsetAndEpoch(20, 4)))
    assert not any(isinstance(one, TruncateLog) for one in lone.effects)
    assert lone.receivers("Fetch") == [2]


def test_a_snapshot_of_the_epoch_0_is_fetched() -> None:
    lone = Lone().follow()
    (send,) = lone.sent("Fetch")
    lone.answer(send, fetch_answer(EPOCH, snapshot=OffsetAndEpoch(20, 0)))
    assert BeginSnapshot(OffsetAndEpoch(20, 0)) in lone.effects


@pytest.mark.parametrize("data", [None, b""])
def test_a_piece_without_bytes_ends_the_download(data: bytes | None) -> None:
    wanted = OffsetAndEpoch(50, EPOCH)
    lone = Lone().follow()
    (send,) = lone.sent("Fetch")
    lone.answer(send, fetch_answer(EPOCH, snapshot=wanted))
    (request,) = lone.sent("FetchSnapshot")
    piece = Piece(0, 0, PieceId(50, EPOCH), SnapshotLeader(2, EPOCH), 100, 0, data)
    lone.answer(request, FetchSnapshotResponse(topics=[TopicPiece(METADATA_TOPIC, [piece])]))
    assert AbandonSnapshot(wanted) in lone.effects
    assert not any(isinstance(one, WriteSnapshot) for one in lone.effects)


def test_a_snapshot_that_comes_too_late_is_only_kept() -> None:
    lone = Lone().follow()
    lone.step(SnapshotFinished(OffsetAndEpoch(8, 4), 100, ()))
    assert not any(isinstance(one, ResetLog) for one in lone.effects)
    assert (lone.core.log_end_offset, dict(lone.core.log.snapshots)) == (10, {OffsetAndEpoch(8, 4): 100})


def test_a_leader_keeps_even_a_later_snapshot_and_its_log() -> None:
    lone = Lone().lead()
    lone.step(SnapshotFinished(OffsetAndEpoch(50, LEADS), 100, ()))
    assert not any(isinstance(one, ResetLog) for one in lone.effects)
    assert lone.core.log.latest_snapshot == OffsetAndEpoch(50, LEADS)


def test_records_are_read_up_to_the_log_end_by_voters_only() -> None:
    lone = Lone().lead()
    lone.ask(fetch(3, LEADS, 10, 4))
    (records,) = (one for one in lone.effects if isinstance(one, RespondRecords))
    assert (records.offset, records.end_offset) == (10, END)
    lone.ask(fetch(9, LEADS, 10, 4))
    assert not any(isinstance(one, RespondRecords) for one in lone.effects)


# --- changes of the voters, as a follower -------------------------------------------------------------


def request_to_the_leader(lone: Lone, kind: str) -> Send:
    """Let time pass until a follower requests a change of the voters; return that request."""
    (send,) = serve(lone, 2_500, kind, answer=False)
    assert isinstance(send, Send)
    return send


def test_a_replica_whose_addition_fails_leaves_the_leader_alone_for_a_backoff() -> None:
    lone = Lone(voters=(2, 3), **JOINS).follow()
    send = request_to_the_leader(lone, "AddRaftVoter")
    listeners = [Listener("CONTROLLER", "n1", 9001)]
    timeout_ms = lone.config.request_timeout_ms
    assert send.message == AddRaftVoterRequest(
        "cluster", timeout_ms, 1, directory_id(1), listeners, ack_when_committed=False
    )
    lone.answer(send, AddRaftVoterResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR))
    assert 2 not in lone.receivers("Fetch")


@pytest.mark.parametrize("error", [ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.DUPLICATE_VOTER])
def test_a_replica_whose_addition_is_settled_fetches_on(error: ErrorCode) -> None:
    lone = Lone(voters=(2, 3), **JOINS).follow()
    lone.answer(request_to_the_leader(lone, "AddRaftVoter"), AddRaftVoterResponse(error_code=error))
    assert lone.receivers("Fetch") == [2]
    assert serve(lone, lone.config.fetch_timeout_ms - 100, "AddRaftVoter") == []
    assert len(serve(lone, 200, "AddRaftVoter")) == 1


@pytest.mark.parametrize("error", [ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.VOTER_NOT_FOUND])
def test_a_replica_whose_old_voter_is_gone_fetches_on(error: ErrorCode) -> None:
    lone = Lone(generation=7, **JOINS).follow()
    send = request_to_the_leader(lone, "RemoveRaftVoter")
    assert send.message == RemoveRaftVoterRequest("cluster", 1, directory_id(1))
    lone.answer(send, RemoveRaftVoterResponse(error_code=error))
    assert lone.receivers("Fetch") == [2]


@pytest.mark.parametrize("leader", [0, 3])
def test_an_answer_to_an_update_that_names_another_leader_is_followed(leader: int) -> None:
    lone = Lone(static=True, fetch_max_wait_ms=10).follow()
    send = request_to_the_leader(lone, "UpdateRaftVoter")
    new_leader = CurrentLeader(leader, EPOCH + 1, "elsewhere", 9)
    lone.answer(send, UpdateRaftVoterResponse(current_leader=new_leader))
    assert (lone.core.epoch, lone.core.leader_id, lone.core.state) == (EPOCH + 1, leader, State.FOLLOWER)
    (at,) = lone.sent("Fetch")
    assert (at.destination.node_id, at.destination.host, at.destination.port) == (leader, "elsewhere", 9)


# --- time ---------------------------------------------------------------------------------------------


def test_a_resigned_leader_moves_on_in_the_moment_of_its_deadline() -> None:
    lone = Lone().lead()
    lone.step(ResignRequested(LEADS))
    role = lone.core._replica.role
    assert isinstance(role, Resigned)
    lone.now_ms = role.deadline_ms - 1
    lone.wait(0)
    assert lone.core.state is State.RESIGNED
    lone.wait(1)
    assert (lone.core.epoch, lone.core.state) == (LEADS + 1, State.PROSPECTIVE)


def test_the_largest_epoch_is_still_one() -> None:
    lone = Lone()
    assert partition_of(lone.ask(begin(2, LARGEST_EPOCH))).error_code == ErrorCode.NONE
    assert (lone.core.epoch, lone.core.leader_id) == (LARGEST_EPOCH, 2)


def test_requests_name_the_cluster() -> None:
    follower = Lone().follow()
    prospective = Lone()
    prospective.become_prospective()
    leader = leader_of_its_epoch()
    leader.step(ResignRequested(LEADS))
    sends = [*follower.sent("Fetch"), *prospective.sent("Vote"), *leader.sent("EndQuorumEpoch")]
    assert len(sends) == 5
    assert [one.message.cluster_id for one in sends] == ["cluster"] * 5  # type: ignore[attr-defined]


def test_a_message_that_is_no_request_of_the_core_is_a_defect() -> None:
    with pytest.raises(ValueError, match=r"^ApiVersionsRequest is no request of the raft core$"):
        Lone().step(RequestReceived(1, ApiVersionsRequest(), 4))
