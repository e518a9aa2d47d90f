"""One replica whose peers the test plays: it gets every request and gives every answer.

Replica 1 of the voters 1, 2 and 3. They know each other's directory ids (kraft.version 1) unless they are
static. `ask` brings the replica a request, `answer` an answer; `wait` lets time pass.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kraftd.fetch.purgatory import Purgatory
from kraftd.ground.effect import Effect
from kraftd.ground.event import DeadlineReached, Event
from kraftd.messages import begin_quorum_epoch_request as begin_request
from kraftd.messages import begin_quorum_epoch_response as begin_response
from kraftd.messages import end_quorum_epoch_request as end_request
from kraftd.messages import end_quorum_epoch_response as end_response
from kraftd.messages import fetch_request, fetch_response, vote_request, vote_response
from kraftd.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from kraftd.messages.quorum_state_data import QuorumStateData
from kraftd.raft.config import DurableState, RaftConfig
from kraftd.raft.core import RaftCore
from kraftd.raft.effects import LocateBatch, PersistElection, Respond, RespondRecords, Send
from kraftd.raft.events import BatchLocated, RecordsSynced, RequestReceived, ResponseReceived, Started
from kraftd.raft.log_view import LogView
from kraftd.raft.quorum.history import ControlRecordHistory
from kraftd.raft.quorum.voters import NO_VOTERS, VoterSet
from kraftd.raft.transitions import State
from kraftd.types import METADATA_TOPIC, METADATA_TOPIC_ID, OffsetAndEpoch
from kraftd.wire.message import Message
from tests.raft.world import (
    LISTENER,
    START_MS,
    SeededRandomness,
    bootstrap_batch,
    directory_id,
    node_config,
    over_the_wire,
    version_of,
)

EPOCH = 5  # of the replica when it starts
LOG_END = OffsetAndEpoch(10, 4)


class Lone:
    """Replica 1 in epoch 5, its log [0, 10) of epoch 4.

    `election` is the content of `quorum-state`. A log that starts where it ends is empty: a snapshot replaces
    the records before.
    """

    def __init__(
        self,
        election: QuorumStateData | None = None,
        *,
        voters: Iterable[int] = (1, 2, 3),
        static: bool = False,
        log_end: OffsetAndEpoch = LOG_END,
        snapshots: dict[OffsetAndEpoch, int] | None = None,
        log_start: int = 0,
        committed: int = 0,
        **options: Any,
    ) -> None:
        ids = list(voters)
        servers = tuple((f"n{one}", 9000 + one) for one in dict.fromkeys([*ids, 2, 3]))
        self.config: RaftConfig = node_config(1, bootstrap_servers=() if static else servers, **options)
        nodes = VoterSet.of(*(node_config(one).voter_node for one in ids))
        addresses = {one: (f"n{one}", 9000 + one) for one in ids}
        history = ControlRecordHistory(VoterSet.from_static(LISTENER, addresses) if static else NO_VOTERS)
        if not static and ids:
            history.read(bootstrap_batch(nodes), at_offset=0)
        epochs = [(log_end.epoch, log_start)] if log_end.offset > log_start else []
        start = QuorumStateData(leader_id=-1, leader_epoch=EPOCH) if election is None else election
        log = LogView(log_start, log_end.offset, epochs, snapshots)
        self.core = RaftCore(
            self.config,
            DurableState(start, log, history, committed=committed),
            SeededRandomness(1),
            Purgatory(),
            Purgatory(),
        )
        self.now_ms = START_MS
        self.effects: list[Effect] = []
        self.locates = True  # answer LocateBatch at once
        self.batches: list[int] = []  # the base offsets of batches that a truncation finds, the last first
        self.last_request_id = 0  # the id of the last request
        self.step(Started())

    # --- driving ---

    def step(self, event: Event) -> list[Effect]:
        self.effects = self.core.step(event, self.now_ms)
        for effect in self.effects:
            if isinstance(effect, LocateBatch) and self.locates:
                start = next((one for one in self.batches if one <= effect.offset), effect.offset)
                located = BatchLocated(effect.offset, start)
                self.effects = [*self.effects, *self.core.step(located, self.now_ms)]
        return self.effects

    def wait(self, duration_ms: int) -> list[Effect]:
        """Let time pass and run what is due; return all effects. No other replica answers meanwhile."""
        end_ms, effects = self.now_ms + duration_ms, list[Effect]()
        for _ in range(10_000):
            due = self.core.deadline_ms()
            if due is None or due > end_ms:
                break
            self.now_ms = max(self.now_ms, due)
            effects += self.step(DeadlineReached())
        self.now_ms = end_ms
        self.effects = effects
        return effects

    def wait_for(self, state: State, longest_ms: int = 10_000) -> list[Effect]:
        """Let time pass until the replica is in that state."""
        for _ in range(longest_ms):
            if self.core.state is state:
                return self.effects
            self.now_ms += 1
            self.step(DeadlineReached())
        raise AssertionError(f"{self.core!r} does not become {state.value}")

    def ask(self, message: Message, version: int | None = None) -> Any:
        """Bring the replica a request; return its answer, or None if it parks the request."""
        self.last_request_id += 1
        version = version_of(message) if version is None else version
        request = over_the_wire(message, version)
        self.step(RequestReceived(self.last_request_id, request, version, LISTENER))
        for effect in self.effects:
            if isinstance(effect, Respond | RespondRecords) and effect.request_id == self.last_request_id:
                return effect.message
        return None

    def sent(self, kind: str) -> list[Send]:
        """The requests of that kind among the last effects, by destination."""
        found = [one for one in self.effects if isinstance(one, Send)]
        found = [one for one in found if type(one.message).__name__ == f"{kind}Request"]
        return sorted(found, key=lambda one: one.destination.node_id)

    def receivers(self, kind: str) -> list[int]:
        """The nodes to which the last effects send such a request."""
        return [one.destination.node_id for one in self.sent(kind)]

    def answer(self, send: Send, message: Message) -> list[Effect]:
        """Answer a request of the replica."""
        return self.step(ResponseReceived(send.send_id, message))

    def sync(self) -> list[Effect]:
        return self.step(RecordsSynced(self.core.log_end_offset))

    @property
    def persisted(self) -> list[QuorumStateData]:
        return [one.state for one in self.effects if isinstance(one, PersistElection)]

    # --- into each state ---

    def become_prospective(self) -> list[Send]:
        """Let the replica ask for pre-votes; return those requests."""
        self.wait_for(State.PROSPECTIVE)
        return self.sent("Vote")

    def become_candidate(self) -> list[Send]:
        """Let the replica win the pre-vote; return its requests for votes."""
        send = self.become_prospective()[0]
        self.answer(send, vote_answer(self.core.epoch, True))
        assert self.core.state is State.CANDIDATE
        return self.sent("Vote")

    def lead(self) -> Lone:
        """Let the replica win the election with 2's vote."""
        send = self.become_candidate()[0]
        self.answer(send, vote_answer(self.core.epoch, True))
        assert self.core.state is State.LEADER
        return self

    def follow(self, leader: int = 2, epoch: int = EPOCH) -> Lone:
        self.ask(begin(leader, epoch))
        assert self.core.state is State.FOLLOWER
        return self


# --- messages of others ----------------------------------------------------------------------------------


def vote(
    candidate: int = 2,
    epoch: int = EPOCH,
    *,
    last: tuple[int, int] = LOG_END,
    pre_vote: bool = False,
    voter: int = 1,
    directory: bytes | None = None,
) -> vote_request.VoteRequest:
    """Vote or PreVote of a candidate whose log ends at `last` (offset, epoch)."""
    to = directory_id(1) if directory is None else directory
    partition = vote_request.PartitionData(
        0, epoch, candidate, directory_id(candidate), to, last[1], last[0], pre_vote
    )
    return vote_request.VoteRequest("cluster", voter, [vote_request.TopicData(METADATA_TOPIC, [partition])])


def vote_answer(epoch: int, granted: bool, *, leader: int = -1, error: int = 0) -> vote_response.VoteResponse:
    partition = vote_response.PartitionData(0, error, leader, epoch, granted)
    nodes = [vote_response.NodeEndpoint(leader, f"n{leader}", 9000 + leader)] if leader >= 0 else []
    topics = [vote_response.TopicData(METADATA_TOPIC, [partition])]
    return vote_response.VoteResponse(topics=topics, node_endpoints=nodes)


def begin(
    leader: int = 2, epoch: int = EPOCH, *, endpoints: Iterable[str] = (LISTENER,)
) -> begin_request.BeginQuorumEpochRequest:
    partition = begin_request.PartitionData(0, directory_id(1), leader, epoch)
    at = [begin_request.LeaderEndpoint(name, f"n{leader}", 9000 + leader) for name in endpoints]
    topics = [begin_request.TopicData(METADATA_TOPIC, [partition])]
    return begin_request.BeginQuorumEpochRequest("cluster", 1, topics, at)


def begin_answer(epoch: int, *, leader: int = -1, error: int = 0) -> begin_response.BeginQuorumEpochResponse:
    partition = begin_response.PartitionData(0, error, leader, epoch)
    nodes = [begin_response.NodeEndpoint(leader, f"n{leader}", 9000 + leader)] if leader >= 0 else []
    topics = [begin_response.TopicData(METADATA_TOPIC, [partition])]
    return begin_response.BeginQuorumEpochResponse(topics=topics, node_endpoints=nodes)


def end(
    leader: int = 2, epoch: int = EPOCH, successors: Iterable[int] = (1, 3)
) -> end_request.EndQuorumEpochRequest:
    candidates = [end_request.ReplicaInfo(one, directory_id(one)) for one in successors]
    partition = end_request.PartitionData(0, leader, epoch, tuple(successors), candidates)
    at = [end_request.LeaderEndpoint(LISTENER, f"n{leader}", 9000 + leader)]
    topics = [end_request.TopicData(METADATA_TOPIC, [partition])]
    return end_request.EndQuorumEpochRequest("cluster", topics, at)


def end_answer(epoch: int, *, leader: int = -1, error: int = 0) -> end_response.EndQuorumEpochResponse:
    partition = end_response.PartitionData(0, error, leader, epoch)
    return end_response.EndQuorumEpochResponse(topics=[end_response.TopicData(METADATA_TOPIC, [partition])])


def fetch(
    replica: int,
    epoch: int,
    offset: int,
    last_epoch: int,
    *,
    high_watermark: int = -1,
    max_wait_ms: int = 0,
    generation: int = 0,
) -> fetch_request.FetchRequest:
    """A fetch of a replica whose log ends at (offset, last_epoch)."""
    partition = fetch_request.FetchPartition(
        0,
        epoch,
        offset,
        last_epoch,
        replica_directory_id=directory_id(replica, generation),
        high_watermark=high_watermark,
    )
    return fetch_request.FetchRequest(
        cluster_id="cluster",
        replica_state=fetch_request.ReplicaState(replica),
        max_wait_ms=max_wait_ms,
        max_bytes=1 << 20,
        topics=[fetch_request.FetchTopic(METADATA_TOPIC, METADATA_TOPIC_ID, [partition])],
    )


def fetch_answer(
    epoch: int,
    *,
    leader: int = 2,
    high_watermark: int = -1,
    records: bytes = b"",
    error: int = 0,
    diverging: OffsetAndEpoch | None = None,
    snapshot: OffsetAndEpoch | None = None,
) -> fetch_response.FetchResponse:
    partition = fetch_response.PartitionData(
        0,
        error,
        high_watermark,
        current_leader=fetch_response.LeaderIdAndEpoch(leader, epoch),
        records=records,
    )
    if diverging is not None:
        partition.diverging_epoch = fetch_response.EpochEndOffset(diverging.epoch, diverging.offset)
    if snapshot is not None:
        partition.snapshot_id = fetch_response.SnapshotId(snapshot.offset, snapshot.epoch)
    nodes = [fetch_response.NodeEndpoint(leader, f"n{leader}", 9000 + leader)] if leader >= 0 else []
    topic = fetch_response.FetchableTopicResponse(METADATA_TOPIC, METADATA_TOPIC_ID, [partition])
    return fetch_response.FetchResponse(responses=[topic], node_endpoints=nodes)


def partition_of(answer: Any) -> Any:
    """The one partition of an answer without an error of its own."""
    assert answer is not None and not answer.error_code, answer
    topics = answer.responses if hasattr(answer, "responses") else answer.topics
    return topics[0].partitions[0]


def broker_fetch(
    broker_id: int, epoch: int, offset: int, last_epoch: int, high_watermark: int, max_wait_ms: int = 500
) -> FetchRequest:
    """The Fetch of a broker."""
    partition = FetchPartition(0, epoch, offset, last_epoch, high_watermark=high_watermark)
    return FetchRequest(
        cluster_id="cluster",
        replica_state=ReplicaState(broker_id),
        max_wait_ms=max_wait_ms,
        max_bytes=1 << 20,
        topics=[FetchTopic(METADATA_TOPIC, METADATA_TOPIC_ID, [partition])],
    )
