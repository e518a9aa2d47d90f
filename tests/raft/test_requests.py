"""The answers of a single voter that leads epoch 1 to every other raft request, and their effects."""

from __future__ import annotations

from typing import Any

import pytest

from kraftd.messages import begin_quorum_epoch_request as begin
from kraftd.messages import end_quorum_epoch_request as end
from kraftd.messages import fetch_snapshot_request as snapshot
from kraftd.messages import vote_request as vote
from kraftd.messages.add_raft_voter_request import AddRaftVoterRequest
from kraftd.messages.add_raft_voter_request import Listener as AddListener
from kraftd.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kraftd.messages.update_raft_voter_request import KRaftVersionFeature, UpdateRaftVoterRequest
from kraftd.messages.update_raft_voter_request import Listener as UpdateListener
from kraftd.raft.effects import RespondSnapshot
from kraftd.raft.events import ShutdownRequested, SnapshotTaken
from kraftd.raft.transitions import State
from kraftd.types import METADATA_TOPIC, OffsetAndEpoch
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.message import Message
from tests.raft.world import World, directory_id


@pytest.fixture
def world() -> World:
    world = World()
    world.add_voters([1])
    world.start(1)
    world.run(10)
    return world


def answer(world: World, message: Message, version: int | None = None) -> Any:
    world.ask(1, object(), message, version)
    return world.answers[world.last_request_id][1]


def vote_request(
    *, epoch: int = 1, candidate: int = 2, last: tuple[int, int] = (0, 0), pre_vote: bool = False, **more: Any
) -> vote.VoteRequest:
    partition = vote.PartitionData(
        0,
        epoch,
        candidate,
        directory_id(candidate),
        more.get("directory", directory_id(1)),
        last[1],
        last[0],
        pre_vote,
    )
    topic = more.get("topic", METADATA_TOPIC)
    return vote.VoteRequest(
        more.get("cluster", "cluster"), more.get("voter", 1), [vote.TopicData(topic, [partition])]
    )


def partition(response: Any) -> Any:
    assert response.error_code == ErrorCode.NONE
    return response.topics[0].partitions[0]


# --- Vote ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (vote_request(cluster="other"), ErrorCode.INCONSISTENT_CLUSTER_ID),
        (vote_request(topic="other"), ErrorCode.INVALID_REQUEST),
        (vote.VoteRequest("cluster", 1, []), ErrorCode.INVALID_REQUEST),
    ],
)
def test_vote_for_another_cluster_or_topic_is_refused_as_a_whole(
    world: World, request_: vote.VoteRequest, error: ErrorCode
) -> None:
    response = answer(world, request_)
    assert (response.error_code, response.topics) == (error, [])


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (vote_request(epoch=0, last=(0, -1)), ErrorCode.INVALID_REQUEST),
        (vote_request(epoch=0), ErrorCode.INVALID_REQUEST),  # a candidate's log is of an older epoch
        (vote_request(epoch=0, pre_vote=True), ErrorCode.FENCED_LEADER_EPOCH),
        (vote_request(epoch=1, last=(5, 1)), ErrorCode.INVALID_REQUEST),
        (vote_request(epoch=1, last=(-1, 0)), ErrorCode.INVALID_REQUEST),
        (vote_request(candidate=-1), ErrorCode.INVALID_REQUEST),
        (vote_request(epoch=2_000_000_001, last=(99, 1)), ErrorCode.INVALID_REQUEST),
        (vote_request(voter=5), ErrorCode.INVALID_VOTER_KEY),
        (vote_request(directory=directory_id(9)), ErrorCode.INVALID_VOTER_KEY),
    ],
)
def test_invalid_vote_request_is_refused(world: World, request_: vote.VoteRequest, error: ErrorCode) -> None:
    response = partition(answer(world, request_))
    assert (response.error_code, response.vote_granted) == (error, False)
    assert (response.leader_id, response.leader_epoch) == (1, 1)
    assert world.core(1).is_leader


@pytest.mark.parametrize("version", [0, 1, 2])
def test_leader_grants_no_vote_of_its_epoch_and_names_its_address(world: World, version: int) -> None:
    request = vote_request(last=(99, 0))
    if version == 0:
        request.voter_id = -1
        candidacy = request.topics[0].partitions[0]
        candidacy.replica_directory_id = candidacy.voter_directory_id = bytes(16)
    response = answer(world, request, version)
    assert partition(response).vote_granted is False
    assert [one.host for one in response.node_endpoints] == (["n1"] if version else [])


@pytest.mark.parametrize("log_end", [(2, 1), (3, 1), (99, 1)])
def test_vote_of_a_higher_epoch_ends_the_leadership_and_is_granted_for_a_log_as_long(
    world: World, log_end: tuple[int, int]
) -> None:
    response = partition(answer(world, vote_request(epoch=7, last=log_end)))
    assert response.vote_granted is (log_end[0] >= 3)
    assert (world.core(1).state, world.core(1).epoch) == (State.UNATTACHED, 7)


def test_second_candidate_of_an_epoch_gets_no_vote_and_the_first_gets_it_again(world: World) -> None:
    ask = {one: vote_request(epoch=7, candidate=one, last=(99, 1)) for one in (2, 3)}
    granted = [partition(answer(world, ask[one])).vote_granted for one in (2, 3, 2)]
    assert granted == [True, False, True]


def test_leader_grants_no_pre_vote_of_its_epoch__kip996(world: World) -> None:
    response = partition(answer(world, vote_request(last=(99, 1), pre_vote=True)))
    assert response.vote_granted is False
    assert world.core(1).is_leader


# --- BeginQuorumEpoch, EndQuorumEpoch -----------------------------------------------------------------


def begin_request(leader: int, epoch: int, *, voter: int = 1, cluster: str = "cluster") -> Message:
    data = begin.PartitionData(0, directory_id(1), leader, epoch)
    endpoints = [begin.LeaderEndpoint("CONTROLLER", f"n{leader}", 9002)]
    return begin.BeginQuorumEpochRequest(cluster, voter, [begin.TopicData(METADATA_TOPIC, [data])], endpoints)


def test_leader_of_a_higher_epoch_is_followed(world: World) -> None:
    assert partition(answer(world, begin_request(2, 5))).error_code == ErrorCode.NONE
    core = world.core(1)
    assert (core.state, core.epoch, core.leader_id) == (State.FOLLOWER, 5, 2)


@pytest.mark.parametrize(
    ("message", "error"),
    [
        (begin_request(2, 0), ErrorCode.FENCED_LEADER_EPOCH),
        (begin_request(-1, 1), ErrorCode.INVALID_REQUEST),
        (begin_request(2, 1), ErrorCode.INVALID_REQUEST),  # a second leader of the epoch
        (begin_request(1, 5), ErrorCode.INVALID_REQUEST),  # this replica itself
        (begin_request(1, 1, voter=3), ErrorCode.INVALID_VOTER_KEY),
    ],
)
def test_contradictory_begin_quorum_epoch_changes_nothing(
    world: World, message: Message, error: ErrorCode
) -> None:
    assert partition(answer(world, message)).error_code == error
    assert world.core(1).is_leader and world.core(1).epoch == 1


def test_begin_and_end_of_another_cluster_are_refused_as_a_whole(world: World) -> None:
    response = answer(world, begin_request(2, 5, cluster="other"))
    assert response.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
    response = answer(world, end.EndQuorumEpochRequest("other", []))
    assert response.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
    response = answer(world, end.EndQuorumEpochRequest("cluster", []))
    assert response.error_code == ErrorCode.INVALID_REQUEST
    assert world.core(1).is_leader


@pytest.mark.parametrize(("epoch", "error"), [(0, ErrorCode.FENCED_LEADER_EPOCH), (1, ErrorCode.NONE)])
def test_end_quorum_epoch_does_not_end_this_leaders_epoch(world: World, epoch: int, error: ErrorCode) -> None:
    topics = [end.TopicData(METADATA_TOPIC, [end.PartitionData(0, 1, epoch)])]
    assert partition(answer(world, end.EndQuorumEpochRequest("cluster", topics))).error_code == error
    assert world.core(1).is_leader


# --- FetchSnapshot ------------------------------------------------------------------------------------


def snapshot_request(
    *, at: tuple[int, int] = (3, 1), position: int = 0, epoch: int = 1, **more: Any
) -> snapshot.FetchSnapshotRequest:
    data = snapshot.PartitionSnapshot(
        more.get("partition", 0), epoch, snapshot.SnapshotId(*at), position, directory_id(7)
    )
    topic = snapshot.TopicSnapshot(more.get("topic", METADATA_TOPIC), [data])
    return snapshot.FetchSnapshotRequest(
        more.get("cluster", "cluster"), 7, more.get("max_bytes", 40), [topic]
    )


@pytest.fixture
def with_snapshot(world: World) -> World:
    world.nodes[1].disk.snapshots[OffsetAndEpoch(3, 1)] = bytes(range(100))
    world.step(1, SnapshotTaken(OffsetAndEpoch(3, 1), 100))
    return world


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (snapshot_request(topic="other"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (snapshot_request(partition=1), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (snapshot_request(epoch=0), ErrorCode.FENCED_LEADER_EPOCH),
        (snapshot_request(epoch=2), ErrorCode.UNKNOWN_LEADER_EPOCH),
        (snapshot_request(at=(2, 1)), ErrorCode.SNAPSHOT_NOT_FOUND),
        (snapshot_request(at=(0, 0)), ErrorCode.SNAPSHOT_NOT_FOUND),  # the bootstrap checkpoint
        (snapshot_request(position=-1), ErrorCode.POSITION_OUT_OF_RANGE),
        (snapshot_request(position=100), ErrorCode.POSITION_OUT_OF_RANGE),
    ],
)
def test_unservable_fetch_snapshot_is_refused_with_an_error__kip630(
    with_snapshot: World, request_: snapshot.FetchSnapshotRequest, error: ErrorCode
) -> None:
    assert partition(answer(with_snapshot, request_)).error_code == error


@pytest.mark.parametrize(("position", "max_bytes", "piece"), [(0, 40, 40), (80, 40, 20), (99, 40, 1)])
def test_fetch_snapshot_returns_a_piece_and_the_size_of_the_whole(
    with_snapshot: World, position: int, max_bytes: int, piece: int
) -> None:
    response = partition(answer(with_snapshot, snapshot_request(position=position, max_bytes=max_bytes)))
    assert bytes(response.unaligned_records) == bytes(range(100))[position : position + piece]
    assert (response.size, response.position, response.snapshot_id.end_offset) == (100, position, 3)
    effect, _ = with_snapshot.answers[with_snapshot.last_request_id]
    assert isinstance(effect, RespondSnapshot)


def test_metadata_partition_gets_the_spare_bytes_of_others__kip630(
    with_snapshot: World,
) -> None:
    request = snapshot_request(max_bytes=40)
    piece = request.topics[0].partitions[0]
    other = snapshot.PartitionSnapshot(1, 1, piece.snapshot_id, 0, piece.replica_directory_id)
    request.topics[0].partitions.insert(0, other)
    response = partition(answer(with_snapshot, request))
    assert (response.index, len(response.unaligned_records)) == (0, 40)
    request.topics.append(snapshot.TopicSnapshot("other", [other]))
    assert answer(with_snapshot, request).error_code == ErrorCode.INVALID_REQUEST


def test_fetch_snapshot_of_another_cluster_or_without_a_partition_is_refused(world: World) -> None:
    assert answer(world, snapshot_request(cluster="x")).error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
    empty = snapshot.FetchSnapshotRequest("cluster", 7, 40, [])
    assert answer(world, empty).error_code == ErrorCode.INVALID_REQUEST


# --- voters -------------------------------------------------------------------------------------------


def add_request(**more: Any) -> AddRaftVoterRequest:
    listeners = [AddListener(more.get("listener", "CONTROLLER"), "n2", 9002)]
    directory = more.get("directory", directory_id(2))
    return AddRaftVoterRequest(
        more.get("cluster", "cluster"), 1000, more.get("voter", 2), directory, listeners
    )


def update_request(**more: Any) -> UpdateRaftVoterRequest:
    return UpdateRaftVoterRequest(
        more.get("cluster", "cluster"),
        more.get("epoch", 1),
        more.get("voter", 1),
        more.get("directory", directory_id(1)),
        [UpdateListener(more.get("listener", "CONTROLLER"), "n1", 9001)],
        KRaftVersionFeature(*more.get("versions", (0, 1))),
    )


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (add_request(cluster="other"), ErrorCode.INCONSISTENT_CLUSTER_ID),
        (add_request(voter=-1), ErrorCode.INVALID_REQUEST),
        (add_request(directory=bytes(16)), ErrorCode.INVALID_REQUEST),
        (add_request(listener="OTHER"), ErrorCode.INVALID_REQUEST),
        (add_request(voter=1), ErrorCode.DUPLICATE_VOTER),
        (RemoveRaftVoterRequest("other", 1, directory_id(1)), ErrorCode.INCONSISTENT_CLUSTER_ID),
        (RemoveRaftVoterRequest("cluster", -1, directory_id(1)), ErrorCode.INVALID_REQUEST),
        (RemoveRaftVoterRequest("cluster", 1, bytes(16)), ErrorCode.INVALID_REQUEST),
        (RemoveRaftVoterRequest("cluster", 2, directory_id(2)), ErrorCode.VOTER_NOT_FOUND),
        (RemoveRaftVoterRequest("cluster", 1, directory_id(1)), ErrorCode.VOTER_NOT_FOUND),  # the last one
        (update_request(cluster="other"), ErrorCode.INCONSISTENT_CLUSTER_ID),
        (update_request(epoch=0), ErrorCode.FENCED_LEADER_EPOCH),
        (update_request(epoch=2), ErrorCode.UNKNOWN_LEADER_EPOCH),
        (update_request(voter=-1), ErrorCode.INVALID_REQUEST),
        (update_request(directory=bytes(16)), ErrorCode.INVALID_REQUEST),
        (update_request(listener="OTHER"), ErrorCode.INVALID_REQUEST),
        (update_request(versions=(1, 0)), ErrorCode.INVALID_REQUEST),
        (update_request(versions=(0, 0)), ErrorCode.INVALID_REQUEST),  # not the one in force
        (update_request(voter=2), ErrorCode.VOTER_NOT_FOUND),
        (update_request(directory=directory_id(9)), ErrorCode.VOTER_NOT_FOUND),
    ],
)
def test_impossible_change_of_the_voters_is_refused_with_an_error__kip853(
    world: World, request_: Message, error: ErrorCode
) -> None:
    end_offset = world.core(1).log_end_offset
    assert answer(world, request_).error_code == error
    assert world.core(1).log_end_offset == end_offset


def test_new_voter_that_cannot_be_asked_for_its_versions_is_not_added(world: World) -> None:
    world.ask(1, "add", add_request())
    world.run(100)
    response: Any = world.answers["add"][1]
    assert response.error_code == ErrorCode.REQUEST_TIMED_OUT


def test_new_voter_that_does_not_fetch_is_not_added(world: World) -> None:
    world.add_observer(2)
    world.start(2)
    world.crash(2)
    world.start(2)
    world.ask(1, "add", add_request())
    world.run(100)
    response: Any = world.answers["add"][1]
    assert response.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert "lags" in response.error_message


@pytest.mark.parametrize(
    "message", [add_request(), RemoveRaftVoterRequest("cluster", 1, directory_id(1)), update_request()]
)
def test_changes_are_refused_while_the_leader_shuts_down(message: Message) -> None:
    world = World()
    world.autosync = False
    world.add_voters([1])
    world.start(1)
    world.step(1, ShutdownRequested(1000))
    assert answer(world, message).error_code == ErrorCode.BROKER_NOT_AVAILABLE


@pytest.mark.parametrize("message", [add_request(), RemoveRaftVoterRequest("cluster", 1, directory_id(1))])
def test_no_change_begins_before_a_commit_in_the_epoch__kip853(message: Message) -> None:
    world = World()
    world.autosync = False
    world.add_voters([1])
    world.start(1)
    assert answer(world, message).error_code == ErrorCode.REQUEST_TIMED_OUT


def test_update_of_a_voter_writes_its_new_endpoints(world: World) -> None:
    request = update_request()
    request.listeners[0].port = 9999
    response = answer(world, request)
    assert response.error_code == ErrorCode.NONE
    assert (response.current_leader.leader_id, response.current_leader.host) == (1, "n1")
    world.run(10)
    assert [one.port for one in world.core(1).voters.listeners(1)] == [9999]
    assert world.core(1).high_watermark == 4
