"""A snapshot download that continues with another leader's copy, or after a restart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from kraftd.fetch.purgatory import Purgatory
from kraftd.ground.effect import Effect
from kraftd.ground.event import DeadlineReached
from kraftd.messages import fetch_snapshot_request as snapshot_request
from kraftd.messages import fetch_snapshot_response
from kraftd.messages.fetch_response import (
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    PartitionData,
    SnapshotId,
)
from kraftd.messages.fetch_snapshot_response import FetchSnapshotResponse, PartitionSnapshot, TopicSnapshot
from kraftd.messages.quorum_state_data import QuorumStateData
from kraftd.raft.config import DurableState, PartialSnapshot
from kraftd.raft.core import RaftCore
from kraftd.raft.effects import (
    AbandonSnapshot,
    BeginSnapshot,
    FinishSnapshot,
    ResetLog,
    Respond,
    Send,
    WriteSnapshot,
)
from kraftd.raft.events import (
    AppendRequested,
    LogStartMoved,
    RequestReceived,
    ResponseReceived,
    SendFailed,
    SnapshotFinished,
    SnapshotRefused,
    SnapshotTaken,
    Started,
)
from kraftd.raft.log_view import LogView
from kraftd.raft.quorum.history import ControlRecordHistory
from kraftd.raft.quorum.voters import VoterSet
from kraftd.raft.replica import ConsensusBroken
from kraftd.raft.transitions import State
from kraftd.types import METADATA_TOPIC, METADATA_TOPIC_ID, OffsetAndEpoch
from kraftd.wire.error_code import ErrorCode
from tests.raft.lone import vote
from tests.raft.world import LISTENER, START_MS, SeededRandomness, World, node_config
from tests.simulation.mutants import replicas as mutants

WANTED = OffsetAndEpoch(100, 3)
RESET = ResetLog(WANTED, 0, 2, 3)
COPY = bytes(range(200))
POSITION = 50


@dataclass
class Follower:
    """Replica 1, which follows leader 2 in epoch 3 and holds the first bytes of a snapshot."""

    core: RaftCore
    now_ms: int = START_MS

    def step(self, event: Any) -> list[Effect]:
        return self.core.step(event, self.now_ms)

    def request_in(self, effects: list[Effect]) -> Send:
        """The request to the leader in `effects`, or after a backoff; requests to other voters fail."""
        for _ in range(10):
            for send in [one for one in effects if isinstance(one, Send)]:
                if send.destination.node_id == 2:
                    return send
                self.step(SendFailed(send.send_id))
            self.now_ms += 30
            effects = self.step(DeadlineReached())
        raise AssertionError("the leader gets no request")

    def start_download(self) -> Send:
        """Start, and receive the wanted snapshot's id; return the request for its first piece."""
        effects = self.receive_snapshot_id(WANTED, self.request_in(self.step(Started())))
        return self.request_in(effects)

    def receive_snapshot_id(self, snapshot_id: OffsetAndEpoch, send: Send) -> list[Effect]:
        partition = PartitionData(
            current_leader=LeaderIdAndEpoch(2, 3),
            snapshot_id=SnapshotId(snapshot_id.offset, snapshot_id.epoch),
        )
        topic = FetchableTopicResponse(METADATA_TOPIC, METADATA_TOPIC_ID, [partition])
        return self.step(ResponseReceived(send.send_id, FetchResponse(responses=[topic])))

    def receive_piece(
        self, send: Send, data: bytes, *, size: int = len(COPY), error: int = 0
    ) -> list[Effect]:
        position = send.message.topics[0].partitions[0].position  # type: ignore[attr-defined]
        piece = PartitionSnapshot(
            0,
            error,
            fetch_snapshot_response.SnapshotId(WANTED.offset, WANTED.epoch),
            fetch_snapshot_response.LeaderIdAndEpoch(2, 3),
            size,
            position,
            data,
        )
        topics = [TopicSnapshot(METADATA_TOPIC, [piece])]
        return self.step(ResponseReceived(send.send_id, FetchSnapshotResponse(topics=topics)))


@pytest.fixture
def follower() -> Follower:
    addresses = {one: (f"n{one}", 9000 + one) for one in (1, 2, 3)}
    history = ControlRecordHistory(VoterSet.from_static(LISTENER, addresses))
    partial = PartialSnapshot(WANTED, POSITION, COPY[POSITION - 20 : POSITION])
    durable = DurableState(QuorumStateData(leader_id=2, leader_epoch=3), LogView(), history, partial)
    return Follower(RaftCore(node_config(1), durable, SeededRandomness(1), Purgatory(), Purgatory()))


def download_effects(effects: list[Effect]) -> list[Effect]:
    kinds = BeginSnapshot | WriteSnapshot | FinishSnapshot | AbandonSnapshot | ResetLog
    return [one for one in effects if isinstance(one, kinds)]


def test_download_continues_after_the_bytes_of_an_earlier_process__kip630(follower: Follower) -> None:
    effects = follower.receive_snapshot_id(WANTED, follower.request_in(follower.step(Started())))
    assert download_effects(effects) == [BeginSnapshot(WANTED, POSITION)]
    send = follower.request_in(effects)
    assert send.message.topics[0].partitions[0].position == POSITION - 20  # type: ignore[attr-defined]
    effects = follower.receive_piece(send, COPY[POSITION - 20 : POSITION - 5])
    assert download_effects(effects) == []  # equal so far
    effects = follower.receive_piece(follower.request_in(effects), COPY[POSITION - 5 : 80])
    assert download_effects(effects) == [WriteSnapshot(WANTED, POSITION, COPY[POSITION:80])]
    effects = follower.receive_piece(follower.request_in(effects), COPY[80:])
    assert download_effects(effects) == [WriteSnapshot(WANTED, 80, COPY[80:]), FinishSnapshot(WANTED)]
    assert download_effects(follower.step(SnapshotFinished(WANTED, len(COPY)))) == [RESET]


def test_complete_download_is_compared_and_finished(follower: Follower) -> None:
    effects = follower.receive_snapshot_id(WANTED, follower.request_in(follower.step(Started())))
    send = follower.request_in(effects)
    effects = follower.receive_piece(send, COPY[POSITION - 20 : POSITION], size=POSITION)
    assert download_effects(effects) == [FinishSnapshot(WANTED)]


@pytest.mark.parametrize(
    ("data", "size", "error"),
    [
        (b"other bytes, same place....", len(COPY), ErrorCode.NONE),
        (COPY[POSITION - 20 : 80], POSITION, ErrorCode.NONE),
        (b"", 10, ErrorCode.POSITION_OUT_OF_RANGE),
        (b"", len(COPY), ErrorCode.SNAPSHOT_NOT_FOUND),
        (b"", len(COPY), ErrorCode.NONE),
    ],
)
def test_download_starts_over_if_the_leader_has_another_copy(
    follower: Follower, data: bytes, size: int, error: ErrorCode
) -> None:
    send = follower.start_download()
    effects = follower.receive_piece(send, data, size=size, error=error)
    assert download_effects(effects) == [AbandonSnapshot(WANTED)]
    effects = follower.receive_snapshot_id(WANTED, follower.request_in(effects))
    assert download_effects(effects) == [BeginSnapshot(WANTED)]
    assert follower.request_in(effects).message.topics[0].partitions[0].position == 0  # type: ignore[attr-defined]


def test_leader_that_deleted_the_snapshot_is_asked_at_once_for_another(follower: Follower) -> None:
    send = follower.start_download()
    effects = follower.receive_piece(send, b"", error=ErrorCode.SNAPSHOT_NOT_FOUND)
    assert [one.destination.node_id for one in effects if isinstance(one, Send)] == [2]


def test_partial_download_of_another_snapshot_is_abandoned(follower: Follower) -> None:
    newer = OffsetAndEpoch(120, 3)
    effects = follower.receive_snapshot_id(newer, follower.request_in(follower.step(Started())))
    assert download_effects(effects) == [AbandonSnapshot(WANTED), BeginSnapshot(newer)]


def test_damaged_download_starts_over_before_any_other_request(follower: Follower) -> None:
    send = follower.start_download()
    effects = follower.receive_piece(send, COPY[POSITION - 20 :])
    assert download_effects(effects)[-1] == FinishSnapshot(WANTED)
    assert [one for one in effects if isinstance(one, Send)] == []
    effects = follower.step(SnapshotRefused(WANTED))
    effects = follower.receive_snapshot_id(WANTED, follower.request_in(effects))
    assert download_effects(effects) == [BeginSnapshot(WANTED)]


def test_no_fetch_is_under_way_when_a_snapshot_replaces_the_log(follower: Follower) -> None:
    """Its answer would be of the log before, and ask for a truncation of what the snapshot holds."""
    send = follower.start_download()
    follower.receive_piece(send, COPY[POSITION - 20 :])
    elected = RequestReceived("v", vote(3, 4, last=(200, 3)), 2, LISTENER)
    effects = follower.step(elected)
    assert follower.core.state is State.UNATTACHED
    assert [one for one in effects if isinstance(one, Send)] == []
    effects = follower.step(SnapshotFinished(WANTED, len(COPY)))
    (send,) = [one for one in effects if isinstance(one, Send)]
    assert send.message.topics[0].partitions[0].fetch_offset == WANTED.offset  # type: ignore[attr-defined]


def test_snapshot_that_ends_below_the_log_start_is_not_requested(follower: Follower) -> None:
    send = follower.start_download()
    assert download_effects(follower.receive_piece(send, COPY[POSITION - 20 :]))[-1] == FinishSnapshot(WANTED)
    effects = follower.step(SnapshotFinished(WANTED, len(COPY)))
    assert download_effects(effects) == [RESET]
    older = OffsetAndEpoch(WANTED.offset - 1, WANTED.epoch)
    effects = follower.receive_snapshot_id(older, follower.request_in(effects))
    assert download_effects(effects) == []
    assert follower.request_in(effects).message.topics[0].partitions[0].fetch_offset == WANTED.offset  # type: ignore[attr-defined]


@pytest.mark.parametrize("log_start", [0, 120])
def test_snapshot_of_other_records_than_those_known_as_committed_ends_the_process(log_start: int) -> None:
    """The quorum was recovered without those records; the leader's log begins after the divergence."""
    log = LogView(log_start, 130, [(2, log_start)], {OffsetAndEpoch(120, 2): 10})
    addresses = {one: (f"n{one}", 9000 + one) for one in (1, 2, 3)}
    history = ControlRecordHistory(VoterSet.from_static(LISTENER, addresses))
    durable = DurableState(QuorumStateData(leader_id=2, leader_epoch=3), log, history)
    ahead = Follower(RaftCore(node_config(1), durable, SeededRandomness(1), Purgatory(), Purgatory()))
    send = ahead.request_in(ahead.step(Started()))
    effects = ahead.receive_snapshot_id(OffsetAndEpoch(110, 2), send)
    with pytest.raises(ConsensusBroken, match="recovered, or restored, without all of them"):
        ahead.receive_snapshot_id(OffsetAndEpoch(110, 3), ahead.request_in(effects))


# --- answers that count ------------------------------------------------------------------------------


def piece_of(epoch: int, leader_id: int, error: ErrorCode = ErrorCode.NONE) -> FetchSnapshotResponse:
    leader = fetch_snapshot_response.LeaderIdAndEpoch(leader_id, epoch)
    wanted = fetch_snapshot_response.SnapshotId(WANTED.offset, WANTED.epoch)
    piece = PartitionSnapshot(0, error, wanted, leader, len(COPY), POSITION - 20, COPY[POSITION - 20 :])
    nodes = [fetch_snapshot_response.NodeEndpoint(3, "n3", 9003)] if leader_id == 3 else []
    return FetchSnapshotResponse(topics=[TopicSnapshot(METADATA_TOPIC, [piece])], node_endpoints=nodes)


@pytest.mark.parametrize(
    ("epoch", "leader_id", "state"),
    [(4, 3, State.FOLLOWER), (4, -1, State.UNATTACHED), (2, 2, State.FOLLOWER)],
)
def test_piece_of_another_epoch_is_not_written_and_a_later_epoch_is_followed(
    follower: Follower, epoch: int, leader_id: int, state: State
) -> None:
    send = follower.start_download()
    effects = follower.step(ResponseReceived(send.send_id, piece_of(epoch, leader_id)))
    assert download_effects(effects) == []
    assert (follower.core.state, follower.core.epoch) == (state, max(epoch, 3))


def test_piece_that_arrives_after_the_leader_was_abandoned_is_ignored(follower: Follower) -> None:
    send = follower.start_download()
    follower.now_ms += 3_000
    follower.step(DeadlineReached())
    assert follower.core.state is State.PROSPECTIVE
    assert download_effects(follower.step(ResponseReceived(send.send_id, piece_of(3, 2)))) == []


def test_fetch_snapshot_of_a_follower_names_the_leader(follower: Follower) -> None:
    follower.step(Started())
    piece = snapshot_request.PartitionSnapshot(0, 3, snapshot_request.SnapshotId(100, 3), 0, bytes(16))
    topics = [snapshot_request.TopicSnapshot(METADATA_TOPIC, [piece])]
    message = snapshot_request.FetchSnapshotRequest("cluster", 3, 100, topics)
    (effect,) = [
        one for one in follower.step(RequestReceived("r", message, 1, LISTENER)) if isinstance(one, Respond)
    ]
    partition = effect.message.topics[0].partitions[0]  # type: ignore[attr-defined]
    assert (partition.error_code, partition.current_leader.leader_id) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, 2)


# --- its own snapshots --------------------------------------------------------------------------------


@pytest.mark.parametrize("snapshot_id", [OffsetAndEpoch(4, 1), OffsetAndEpoch(3, 2), OffsetAndEpoch(2, 0)])
@pytest.mark.parametrize("leads", [True, False])
def test_snapshot_of_uncommitted_records_or_another_epoch_ends_the_process(
    snapshot_id: OffsetAndEpoch, leads: bool
) -> None:
    world = World()
    world.add_voters([1, 2])
    for node_id in (1, 2):
        world.start(node_id)
    world.run(5_000)
    node_id = next(one for one in (1, 2) if world.core(one).is_leader is leads)
    assert (world.core(node_id).high_watermark, world.core(node_id).epoch) == (3, 1)
    with pytest.raises(ConsensusBroken):
        world.step(node_id, SnapshotTaken(snapshot_id, 100))


def test_the_log_start_moves_only_to_the_end_of_a_snapshot() -> None:
    world = World()
    world.add_voters([1])
    world.start(1)
    world.run(10)
    with pytest.raises(ConsensusBroken):
        world.step(1, LogStartMoved(3))


# --- among others -------------------------------------------------------------------------------------


def leader_changes_while_one_downloads(copies_differ: bool) -> World:
    """The leader changes while the third voter downloads; the leaders' copies may differ in bytes."""
    world = World()
    world.copies_differ = copies_differ
    world.add_voters([1, 2, 3], fetch_snapshot_max_bytes=10)
    for node_id in (1, 2, 3):
        world.start(node_id)
    assert world.run(10_000, until=lambda: world.leader() is not None)
    first = world.leader()
    assert first is not None
    late, second = (one for one in (1, 2, 3) if one != first.id)
    world.crash(late)
    world.step(first.id, AppendRequested("a", [b"x"] * 3, world.core(first.id).epoch))
    world.run(100)
    assert world.take_snapshot(first.id) == world.take_snapshot(second) == OffsetAndEpoch(6, 1)
    world.start(late)
    world.run(60)
    assert world.nodes[late].disk.part
    world.crash(first.id)
    world.run(5_000)
    assert world.core(late).log.start_offset == 6
    return world


@pytest.mark.parametrize("copies_differ", [False, True])
def test_download_across_a_change_of_leader_is_a_copy_of_one_leader(copies_differ: bool) -> None:
    leader_changes_while_one_downloads(copies_differ)


def test_download_that_continues_without_comparing_would_be_a_mixture(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mutants.go_on_without_comparing(monkeypatch)
    with pytest.raises(AssertionError, match="S10"):
        leader_changes_while_one_downloads(True)
