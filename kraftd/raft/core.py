"""The consensus core of one replica: an event and the time in, effects out (KIP-595, 853, 996, 1166).

No clock, no socket, no file: the runner performs the effects in their order and reports the results. The
module that an event is dispatched to handles it. This module holds only the dispatch and the deadlines.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kraftd.ground.destination import Destination
from kraftd.ground.effect import Effect
from kraftd.ground.event import DeadlineReached, Event
from kraftd.messages.add_raft_voter_request import AddRaftVoterRequest
from kraftd.messages.add_raft_voter_response import AddRaftVoterResponse
from kraftd.messages.api_versions_request import ApiVersionsRequest
from kraftd.messages.api_versions_response import ApiVersionsResponse
from kraftd.messages.begin_quorum_epoch_request import BeginQuorumEpochRequest
from kraftd.messages.begin_quorum_epoch_response import BeginQuorumEpochResponse
from kraftd.messages.describe_quorum_request import DescribeQuorumRequest
from kraftd.messages.end_quorum_epoch_request import EndQuorumEpochRequest
from kraftd.messages.end_quorum_epoch_response import EndQuorumEpochResponse
from kraftd.messages.fetch_request import FetchRequest
from kraftd.messages.fetch_response import FetchResponse
from kraftd.messages.fetch_snapshot_request import FetchSnapshotRequest
from kraftd.messages.fetch_snapshot_response import FetchSnapshotResponse
from kraftd.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kraftd.messages.remove_raft_voter_response import RemoveRaftVoterResponse
from kraftd.messages.update_raft_voter_request import UpdateRaftVoterRequest
from kraftd.messages.update_raft_voter_response import UpdateRaftVoterResponse
from kraftd.messages.vote_request import VoteRequest
from kraftd.messages.vote_response import VoteResponse
from kraftd.raft import (
    describe_quorum,
    election,
    fetch_answers,
    fetch_requests,
    follower,
    leader,
    quorum_epochs,
    reconfiguration,
    snapshots,
)
from kraftd.raft.config import DurableState, Parking, RaftConfig, Randomness
from kraftd.raft.connections import Sent
from kraftd.raft.events import (
    AppendRequested,
    BatchLocated,
    ConnectionLost,
    KRaftVersionUpgradeRequested,
    LogStartMoved,
    RecordsSynced,
    RequestAbandoned,
    RequestReceived,
    ResignRequested,
    ResponseReceived,
    SendFailed,
    ShutdownRequested,
    SnapshotFinished,
    SnapshotRefused,
    SnapshotsDeleted,
    SnapshotTaken,
    Started,
    WallClockStepped,
)
from kraftd.raft.log_view import LogView
from kraftd.raft.metrics import RaftMetrics, take_metrics
from kraftd.raft.quorum.voters import VoterSet, listener_endpoint
from kraftd.raft.replica import ConsensusBroken, Replica
from kraftd.raft.replica_views import ReplicaView, replica_views
from kraftd.raft.roles import Candidate, Follower, Leader, NewVoter, Prospective, Resigned, Unattached
from kraftd.raft.transitions import IllegalTransition, State
from kraftd.types import Endpoint, ReplicaKey
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.message import Message

# All but Fetch, which is by far the most frequent and is dispatched without a table.
_ON_REQUEST: dict[type[Message], Callable[[Replica, RequestReceived, Any], None]] = {
    VoteRequest: election.on_vote_request,
    BeginQuorumEpochRequest: quorum_epochs.on_begin_quorum_epoch_request,
    EndQuorumEpochRequest: quorum_epochs.on_end_quorum_epoch_request,
    FetchSnapshotRequest: snapshots.on_fetch_snapshot_request,
    DescribeQuorumRequest: describe_quorum.on_describe_quorum_request,
    AddRaftVoterRequest: reconfiguration.on_add_voter_request,
    RemoveRaftVoterRequest: reconfiguration.on_remove_voter_request,
    UpdateRaftVoterRequest: reconfiguration.on_update_voter_request,
}

_ON_RESPONSE: dict[type[Message], Callable[[Replica, Destination, Any], bool]] = {
    FetchResponse: follower.on_fetch_response,
    VoteResponse: election.on_vote_response,
    BeginQuorumEpochResponse: quorum_epochs.on_begin_quorum_epoch_response,
    EndQuorumEpochResponse: quorum_epochs.on_end_quorum_epoch_response,
    FetchSnapshotResponse: snapshots.on_fetch_snapshot_response,
    ApiVersionsResponse: reconfiguration.on_api_versions_response,
    AddRaftVoterResponse: reconfiguration.on_add_voter_response,
    RemoveRaftVoterResponse: reconfiguration.on_remove_voter_response,
    UpdateRaftVoterResponse: reconfiguration.on_update_voter_response,
}

_ON_REPORT: dict[type[Event], Callable[[Replica, Any], None]] = {
    AppendRequested: leader.on_append_requested,
    KRaftVersionUpgradeRequested: reconfiguration.on_kraft_version_upgrade,
    BatchLocated: follower.on_batch_located,
    SnapshotTaken: snapshots.on_snapshot_taken,
    SnapshotFinished: snapshots.on_snapshot_finished,
    SnapshotRefused: snapshots.on_snapshot_refused,
    SnapshotsDeleted: snapshots.on_snapshots_deleted,
    LogStartMoved: snapshots.on_log_start_moved,
}

_QUIET_EVENTS = (AppendRequested, RecordsSynced)  # on a leader that stays leader; so are fetches

_MAX_STEP_TRANSITIONS = 16  # more than a replica can need


class RaftCore:
    """One replica. It parks waiting requests in the purgatories `fetches` and `appends`
    (kraftd.fetch.purgatory.Purgatory).
    """

    def __init__(
        self, config: RaftConfig, durable: DurableState, rng: Randomness, fetches: Parking, appends: Parking
    ) -> None:
        self._replica = Replica(config, durable, rng, fetches, appends)
        self._deadline_ms: int | None = None
        self._calm = False
        self._started = False

    def __repr__(self) -> str:
        due = "" if self._deadline_ms is None else f", due in {self._deadline_ms - self._replica.now_ms} ms"
        return f"{repr(self._replica)[:-1]}{due}>"

    # --- what the node may read ---

    @property
    def state(self) -> State:
        return self._replica.state

    @property
    def key(self) -> ReplicaKey:
        """This replica's id and directory id."""
        return self._replica.key

    @property
    def epoch(self) -> int:
        return self._replica.epoch

    @property
    def leader_id(self) -> int | None:
        """The leader of the epoch, if known; one that resigned is still named until the epoch ends."""
        return self._replica.leader_id

    @property
    def is_leader(self) -> bool:
        return isinstance(self._replica.role, Leader)

    @property
    def leader_answers(self) -> bool:
        """Return whether this replica leads, or the leader that it follows has answered it.

        One that asks for pre-votes still knows the leader of the epoch, which may be gone for good. So does
        an observer, which stays a follower: it counts the leader as gone after the fetch timeout, unless a
        downloaded snapshot keeps it from fetching.
        """
        replica, role = self._replica, self._replica.role
        if not isinstance(role, Follower):
            return isinstance(role, Leader)
        silent = replica.now_ms >= role.fetch_deadline_ms and not replica.may_be_elected
        is_held_up = role.download is not None and role.download.finishing
        return role.has_fetched and (is_held_up or not silent)

    @property
    def high_watermark(self) -> int:
        """The offset below which everything is committed, as far as this replica knows; -1 while it knows
        nothing.
        """
        return self._replica.high_watermark

    @property
    def log_start_limit(self) -> int:
        """How far this replica may move its log start (KIP-630): a leader up to its high watermark, a
        follower up to the leader's log start, which fetch responses carry. Without a leader -1: not at all.
        """
        role = self._replica.role
        if isinstance(role, Leader):
            return role.high_watermark
        return role.leader_log_start_offset if isinstance(role, Follower) else -1

    @property
    def live_replicas_end(self) -> int | None:
        """The smallest log end of the live replicas that fetch from this leader: its log start waits for them
        (KIP-630). None without any, and for a follower, which follows its leader's log start.

        -1 while a new leader of several voters waits one fetch timeout for their first fetches.
        """
        replica, role = self._replica, self._replica.role
        if not isinstance(role, Leader):
            return None
        alone = len(role.progress.voters) == 1
        if not alone and replica.now_ms < role.since_ms + replica.config.fetch_timeout_ms:
            return -1
        return role.progress.slowest_live_end(replica.now_ms)

    @property
    def log(self) -> LogView:
        """The core's view of the log, to be read only."""
        return self._replica.log

    @property
    def log_end_offset(self) -> int:
        return self._replica.log.end_offset

    @property
    def max_batch_bytes(self) -> int:
        """The size of the largest batch that a leader appends."""
        return self._replica.config.max_batch_bytes

    @property
    def voters(self) -> VoterSet:
        return self._replica.voters

    @property
    def kraft_version(self) -> int:
        return self._replica.history.kraft_version

    def voters_at(self, offset: int) -> VoterSet:
        """The voters in force at `offset`, for the header of a snapshot that ends right after it."""
        return self._replica.history.voters_at(offset)

    def kraft_version_at(self, offset: int) -> int:
        return self._replica.history.kraft_version_at(offset)

    def leader_sources(self) -> list[Destination]:
        """The nodes that may know the leader, without this one."""
        return self._replica.bootstrap_destinations()

    def other_voters(self) -> list[Destination]:
        """Where this replica reaches each voter but itself."""
        replica = self._replica
        others = [one for one in replica.voters.ids if one != replica.config.node_id]
        return [at for one in others if (at := replica.voter_destination(one)) is not None]

    def leader_endpoint(self, listener: str) -> Endpoint | None:
        """The leader's endpoint on that listener, if known."""
        return listener_endpoint(self._replica.leader_listeners, listener)

    def metrics(self, now_ms: int) -> RaftMetrics:
        """The current values of Kafka's `raft-metrics`."""
        return take_metrics(self._replica, now_ms)

    def replicas(self, now_ms: int) -> list[ReplicaView]:
        """Voters and observers, with what this replica knows of their progress."""
        return replica_views(self._replica, now_ms)

    @property
    def new_voter(self) -> NewVoter | None:
        """What this voter knows of the others while its directory is new, to be read only."""
        return self._replica.new_voter

    @property
    def voters_without_log(self) -> frozenset[int]:
        """Voters that have asked for votes without a log, since the last leader was lost."""
        return frozenset(self._replica.without_log)

    # --- being driven ---

    def deadline_ms(self) -> int | None:
        """When `step` has work to do even without an event; None for never."""
        return self._deadline_ms

    def step(self, event: Event, now_ms: int) -> list[Effect]:
        """Handle one event; returns the effects, to be performed in this order.

        `now_ms` never goes back: a smaller one counts as the last. Raises ConsensusBroken or
        IllegalTransition, which end the process: the event is impossible among correct replicas, or a fault
        has left this one half changed. Any other exception has changed nothing.
        """
        replica = self._replica
        role = replica.role
        if now_ms > replica.now_ms:
            replica.now_ms = now_ms
        replica.effects = []
        try:
            if type(event) is RequestReceived and type(event.message) is FetchRequest:
                fetch_requests.on_fetch_request(replica, event, event.message)
                quiet = self._calm
            else:
                self._take_in(event)
                quiet = self._calm and type(event) in _QUIET_EVENTS
            due_ms = self._deadline_ms
            if quiet and replica.role is role and (due_ms is None or replica.now_ms < due_ms):
                parked_ms = replica.fetches.deadline_ms()
                if parked_ms is not None and (due_ms is None or parked_ms < due_ms):
                    self._deadline_ms = parked_ms
            else:
                self._poll()
        except (ConsensusBroken, IllegalTransition):
            raise
        except Exception as error:
            if replica.effects or replica.role is not role:
                raise ConsensusBroken(f"a step broke off half way: {error!r}") from error
            raise
        return replica.effects

    def _is_calm(self) -> bool:
        """Return whether quiet events, which are almost all, need nothing beyond their own handler.

        No quiet event changes what is checked here, so the result holds until another event comes.
        """
        replica, role = self._replica, self._replica.role
        return (
            isinstance(role, Leader)
            and role.voter_change is None
            and replica.is_voter
            and not (role.resign_requested or replica.shutting_down)
        )

    def _take_in(self, event: Event) -> None:
        replica = self._replica
        if isinstance(event, RequestReceived):
            handler = _ON_REQUEST.get(type(event.message))
            if handler is None:
                raise ValueError(f"{type(event.message).__name__} is no request of the raft core")
            handler(replica, event, event.message)
        elif isinstance(event, RecordsSynced):
            if isinstance(replica.role, Leader):
                leader.on_records_synced(replica, replica.role, event.end_offset)
            else:
                follower.on_records_synced(replica, event.end_offset)
        elif isinstance(event, ResponseReceived):
            self._on_response(event)
        elif isinstance(event, SendFailed):
            self._on_send_failed(event)
        elif isinstance(event, Started):
            election.start(replica)
            self._started = True
        elif isinstance(event, RequestAbandoned):
            replica.fetches.abandon(event.request_id)
            reconfiguration.forget_request(replica, event.request_id)
        elif isinstance(event, ConnectionLost):
            follower.on_connection_lost(replica, event.node_id)
        elif isinstance(event, ResignRequested):
            if isinstance(replica.role, Leader) and replica.epoch == event.epoch:
                replica.role.resign_requested = True
        elif isinstance(event, ShutdownRequested):
            if replica.shutdown_deadline_ms is None:
                replica.shutdown_deadline_ms = replica.now_ms + event.timeout_ms
        elif isinstance(event, WallClockStepped):
            replica.wall_ahead_ms = event.ahead_ms
        elif not isinstance(event, DeadlineReached):
            _ON_REPORT[type(event)](replica, event)

    def _on_response(self, event: ResponseReceived) -> None:
        replica = self._replica
        sent = replica.connections.answered(event.send_id)
        if sent is None:
            return  # its request was sent in another state, or given up
        replica.unreached.discard(sent.destination.node_id)
        handler = _ON_RESPONSE.get(type(event.message))
        if handler is None or not handler(replica, _source(sent), event.message):
            replica.connections.back_off(sent.destination.node_id, replica.now_ms)

    def _on_send_failed(self, event: SendFailed) -> None:
        replica = self._replica
        sent = replica.connections.answered(event.send_id)
        if sent is None:
            return
        replica.connections.back_off(sent.destination.node_id, replica.now_ms)
        if isinstance(sent.message, VoteRequest):
            replica.unreached.add(sent.destination.node_id)
        unsupported = event.error is ErrorCode.UNSUPPORTED_VERSION
        if isinstance(sent.message, VoteRequest) and unsupported and sent.destination.node_id >= 0:
            election.on_pre_vote_unsupported(replica, sent.destination.node_id)
        elif isinstance(sent.message, ApiVersionsRequest):
            reconfiguration.on_api_versions_failed(replica, sent.destination)

    def _poll(self) -> None:
        """Do what is due, and again after each change of role that this causes."""
        replica = self._replica
        if not self._started:
            return
        fetch_answers.expire(replica)
        deadline_ms: int | None = None
        for _ in range(_MAX_STEP_TRANSITIONS):
            quorum_epochs.poll_shutdown(replica)
            if replica.shut_down:
                break
            role = replica.role
            deadline_ms = self._poll_role()
            if replica.role is role:
                break
        replica.announce_leadership()
        self._deadline_ms = _earliest(
            deadline_ms,
            None if replica.shut_down else replica.connections.next_deadline_ms(replica.now_ms),
            None if replica.shut_down else replica.shutdown_deadline_ms,
            replica.fetches.deadline_ms(),
        )
        self._calm = self._is_calm()

    def _poll_role(self) -> int | None:
        replica, role = self._replica, self._replica.role
        if isinstance(role, Leader):
            return poll_leader(replica, role)
        if isinstance(role, Follower):
            return follower.poll_follower(replica, role)
        if isinstance(role, Unattached):
            return election.poll_unattached(replica, role)
        if isinstance(role, Prospective):
            return election.poll_prospective(replica, role)
        if isinstance(role, Candidate):
            return election.poll_candidate(replica, role)
        assert isinstance(role, Resigned)
        return quorum_epochs.poll_resigned(replica, role)


def _earliest(*deadlines_ms: int | None) -> int | None:
    earliest_ms: int | None = None
    for one in deadlines_ms:
        if one is not None and (earliest_ms is None or one < earliest_ms):
            earliest_ms = one
    return earliest_ms


def poll_leader(replica: Replica, role: Leader) -> int | None:
    """Resign on request, or if no majority fetches any more (S16); otherwise keep the voters notified."""
    change_deadline_ms = reconfiguration.poll_voter_change(replica, role)
    alone = len(role.progress.voters) == 1
    lost = not alone and replica.now_ms >= role.check_quorum_deadline_ms
    if role.resign_requested or lost or (replica.shutting_down and not replica.is_only_voter):
        leader.resign(replica, role)
        return None
    deadlines = [] if change_deadline_ms is None else [change_deadline_ms]
    if not alone or replica.config.node_id not in role.progress.voters:
        if replica.now_ms >= role.begin_deadline_ms:
            leader.begin_quorum_epoch(replica, role)
        deadlines += [role.begin_deadline_ms]
    if not alone:
        deadlines += [role.check_quorum_deadline_ms]
    return min(deadlines, default=None)


def _source(sent: Sent) -> Destination:
    """The replica that sent an answer: at a bootstrap server, the voter that the vote request names."""
    at, message = sent.destination, sent.message
    if at.node_id < 0 and isinstance(message, VoteRequest):
        return Destination(message.voter_id, at.host, at.port)
    return at
