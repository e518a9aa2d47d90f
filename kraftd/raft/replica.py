"""The replica that all modules of the core work on: its epoch, role and view of the log, and the effects of
the current step.

Holds what several modules share: a change of role (checked against the table, persisted if necessary),
sending requests, waiting for a sync of the log.
"""

from __future__ import annotations

from kraftd.ground.destination import Destination
from kraftd.ground.effect import Effect
from kraftd.messages.quorum_state_data import QuorumStateData, Voter
from kraftd.raft import transitions
from kraftd.raft.config import DurableState, Parking, RaftConfig, Randomness
from kraftd.raft.connections import Connections
from kraftd.raft.effects import (
    AbandonSnapshot,
    AppendRecords,
    LeadershipChanged,
    PersistElection,
    Send,
    SyncLog,
    VotersChanged,
)
from kraftd.raft.measured import Measured
from kraftd.raft.quorum.voters import Listeners, VoterSet, listener_endpoint, replica_key
from kraftd.raft.roles import Download, Follower, Leader, NewVoter, Resigned, Role, Unattached
from kraftd.raft.transitions import Cause, State
from kraftd.types import ZERO_UUID, ReplicaKey
from kraftd.wire.message import Message

NO_LEADER = -1
CHECK_QUORUM_FACTOR = 1.5  # of the fetch timeout
STAGGER_MS = 15  # between voters that start elections for the same reason: a few round trips


class ConsensusBroken(RuntimeError):
    """An event that is impossible among correct replicas: stop before the damage spreads."""


class CommittedIsLost(ConsensusBroken):
    """The quorum continues without records that this replica knows are committed: an operator caused this.

    `committed` is the end of those records, `offset` where the leader's log parts from this one.
    `snapshot_offset` is the end of the leader's snapshot that was to replace the log, -1 for a truncation.
    """

    def __init__(self, replica: Replica, happened: str, offset: int, snapshot_offset: int = -1) -> None:
        super().__init__(
            f"{replica!r} {happened} by leader {replica.leader_id_or_none} of epoch {replica.epoch}, and "
            f"knows its records below {replica.committed} as committed: the quorum was recovered, or "
            "restored, without all of them. This node ends, now and at each start, and keeps its log. If the "
            "quorum is right, run kraftd quorum discard on this node: it names and keeps what it drops, and "
            "then the node can join. If this log is right, stop the other voters and recover the quorum "
            "from it"
        )
        self.committed = replica.committed
        self.leader_id = replica.leader_id_or_none
        self.leader_epoch = replica.epoch
        self.offset = offset
        self.snapshot_offset = snapshot_offset


class Replica:
    """One replica of the metadata log, between two events.

    `high_watermark` is the end of the records that this replica knows are committed, -1 for none; it never
    goes back. A new leader shows none (`Leader.high_watermark`) until a majority has reached its epoch.
    """

    def __init__(
        self, config: RaftConfig, durable: DurableState, rng: Randomness, fetches: Parking, appends: Parking
    ) -> None:
        self.config = config
        self.key = config.key
        self.log = durable.log
        self.history = durable.history
        self.rng = rng
        self.fetches = fetches
        self.appends = appends
        self.connections = Connections(config.request_timeout_ms, config.retry_backoff_ms)
        self.now_ms = 0
        self.wall_ahead_ms = 0  # of now_ms
        self.epoch = 0
        self.leader_id: int | None = None
        self.leader_listeners: Listeners = ()
        self.voted: ReplicaKey | None = None
        self.role: Role = Unattached(None)
        self.high_watermark = -1
        self.committed_before = durable.committed
        partial = durable.partial
        self.partial: Download | None = (
            None  # the part of a download, running or interrupted, that is on disk
        )
        if partial is not None:
            self.partial = Download(partial.snapshot_id, partial.position, partial.tail)
        self.effects: list[Effect] = []
        self.shutdown_deadline_ms: int | None = None
        self.shut_down = False
        self.measured = Measured()
        self.quick_rounds = 0  # pre-votes of this epoch that a lost connection to the leader caused
        self.unreached: set[int] = set()  # voters that did not answer at their last address
        self.searches: dict[
            int, int
        ] = {}  # by bootstrap server, a count that picks the voter to ask for next
        self.split_votes = 0  # elections in a row lost to split votes, until a leader is found
        self.locating: int | None = None  # where to truncate: the batch that holds it is being located
        self.truncation_waits = False  # for a sync that begins after it
        self.acknowledged: dict[ReplicaKey, int] = {}  # by voter, committed records, as this leader saw it
        self._syncing = False
        self._syncs_truncation = False  # the sync under way began after the last truncation
        self._sync_limit: int | None = None  # of the sync under way, if the log was truncated meanwhile
        self.starts_new = durable.is_new
        self.new_voter: NewVoter | None = None  # while its directory is new
        self.without_log: set[int] = (
            set()
        )  # voters that asked for pre-votes without a log, since the last leader
        self._persisted: tuple[QuorumStateData, int, bool] | None = None
        self._announced: tuple[int, int | None, bool] | None = None
        self._bootstrap: tuple[VoterSet, RaftConfig, list[Destination]] | None = None
        if durable.election is not None:
            election = durable.election
            self.epoch = max(0, election.leader_epoch)
            self.leader_id = election.leader_id if election.leader_id >= 0 else None
            if election.voted_id >= 0:
                self.voted = replica_key(election.voted_id, election.voted_directory_id)
            self._persisted = (election, self._election_version(), durable.is_new)

    def __repr__(self) -> str:
        leader = "" if self.leader_id is None else f" of leader {self.leader_id}"
        return (
            f"<{self.state.value.capitalize()} {self.config.key} epoch {self.epoch}{leader}, "
            f"log end {self.log.end_offset}, hw {self.high_watermark}>"
        )

    # --- reading ---

    @property
    def wall_ms(self) -> int:
        """The wall clock now: for record timestamps, never for timeouts."""
        return self.now_ms + self.wall_ahead_ms

    @property
    def state(self) -> State:
        return self.role.state

    @property
    def voters(self) -> VoterSet:
        return self.history.voters

    @property
    def is_voter(self) -> bool:
        return self.history.voters.has_voter(self.key)

    @property
    def may_be_elected(self) -> bool:
        """Return whether this replica may be elected: a voter, or one whose removal is not known to be
        committed.

        The latter holds the record of its own removal, which the remaining voters may lack. Without its vote
        they could then elect no leader (Raft, thesis 4.2.2; Apache Kafka's controllers wait forever there).
        """
        history = self.history
        if history.voters.has_voter(self.key):
            return True
        offset = history.voters_offset
        return (
            offset is not None
            and offset >= max(self.high_watermark, 0)
            and history.previous_voters.has_voter(self.key)
        )

    @property
    def committed(self) -> int:
        """The end of the records that this replica knows as committed, from before its start or since."""
        return max(self.high_watermark, self.committed_before)

    @property
    def is_only_voter(self) -> bool:
        return self.history.voters.is_only_voter(self.key)

    @property
    def shutting_down(self) -> bool:
        return self.shutdown_deadline_ms is not None

    @property
    def leader_id_or_none(self) -> int:
        """The leader's id as in messages: -1 if unknown."""
        return NO_LEADER if self.leader_id is None else self.leader_id

    def leader_destination(self) -> Destination | None:
        """The leader's endpoint on the quorum's listener."""
        if self.leader_id is None:
            return None
        endpoint = listener_endpoint(self.leader_listeners, self.config.listener_name)
        if endpoint is None:
            return None
        return Destination(self.leader_id, endpoint.host, endpoint.port)

    def voter_destination(self, node_id: int) -> Destination | None:
        endpoint = listener_endpoint(self.voters.listeners(node_id), self.config.listener_name)
        return None if endpoint is None else Destination(node_id, endpoint.host, endpoint.port)

    def bootstrap_destinations(self) -> list[Destination]:
        """The nodes that may know the leader, without this node: the configured bootstrap servers, else the
        static voters. The voters of the log follow, because none of the configured nodes may be left.
        """
        voters, config, known = self.voters, self.config, self._bootstrap
        if known is None or known[0] is not voters or known[1] is not config:
            # Every step of a replica without a leader needs them.
            known = self._bootstrap = voters, config, self._find_bootstrap(voters)
        return known[2]

    def _find_bootstrap(self, voters: VoterSet) -> list[Destination]:
        own = {(one.host, one.port) for one in self.config.listeners}
        if self.config.bootstrap_servers:
            found = [Destination(-2 - i, *one) for i, one in enumerate(self.config.bootstrap_servers)]
        else:
            found = [
                Destination(voter.key.id, voter.listeners[0].host, voter.listeners[0].port)
                for voter in self.history.static_voters
                if voter.key.id != self.config.node_id
            ]
        found += [one for voter in voters if (one := self.voter_destination(voter.key.id)) is not None]
        return list({at: one for one in found if (at := (one.host, one.port)) not in own}.values())

    # --- acting ---

    def emit(self, effect: Effect) -> None:
        self.effects.append(effect)

    def become(
        self,
        cause: Cause,
        role: Role,
        *,
        epoch: int | None = None,
        leader_id: int | None = None,
        leader_listeners: Listeners = (),
        voted: ReplicaKey | None = None,
    ) -> None:
        """Take `role`, with exactly these epoch, leader and vote. Persists them if they differ from before.

        Raises IllegalTransition if the table has no such transition.
        """
        new_epoch = self.epoch if epoch is None else epoch
        target = transitions.check(self.state, cause, self.epoch, new_epoch)
        if target is not role.state:
            raise transitions.IllegalTransition(
                f"{cause.value!r} leads to {target.value}, not to {role.state.value}"
            )
        if new_epoch != self.epoch:
            self.quick_rounds = 0
        if leader_id is not None:
            self.split_votes = 0
        if isinstance(role, Leader):
            self.without_log.clear()
        self.epoch = new_epoch
        self.leader_id = leader_id
        self.leader_listeners = leader_listeners
        self.voted = voted
        self.role = role
        self.locating = None
        self.connections.reset_all()
        if role.state not in (State.PROSPECTIVE, State.RESIGNED) or cause is Cause.VOTE_GRANTED:
            self.persist_election()

    def persist_election(self) -> None:
        """Persist epoch, leader and vote, unless the file holds them already.

        A new voter in epoch 0 has promised nothing: without the file its directory stays new.
        """
        is_new = self.new_voter is not None
        if is_new and not self.epoch:
            return
        version = self._election_version()
        state = QuorumStateData(
            leader_id=self.leader_id_or_none,
            leader_epoch=self.epoch,
            voted_id=-1 if self.voted is None else self.voted.id,
        )
        if version == 0:
            state.current_voters = [Voter(node_id) for node_id in self.voters.ids]
        elif self.voted is not None:
            state.voted_directory_id = self.voted.directory_id or ZERO_UUID
        if self._persisted == (state, version, is_new):
            return
        self._persisted = (state, version, is_new)
        if self.effects and isinstance(self.effects[-1], PersistElection):
            self.effects.pop()  # no effect has depended on it
        self.emit(PersistElection(state, version, is_new))

    def _election_version(self) -> int:
        """quorum-state v0 lists the voters of a static quorum, v1 the directory that was voted for."""
        return 0 if self.history.kraft_version == 0 else 1

    def announce_leadership(self) -> None:
        """Notify the node of a new leader; of this replica as the leader only once its high watermark is
        known.
        """
        role = self.role
        if isinstance(role, Leader):
            if not role.announced:
                return
            now = (self.epoch, self.leader_id, True)
        else:
            now = (self.epoch, None if isinstance(role, Resigned) else self.leader_id, False)
        if now != self._announced:
            self._announced = now
            self.emit(LeadershipChanged(*now))

    def send(self, destination: Destination | None, message: Message) -> bool:
        """Send a request if that node may get one now; returns whether it was sent."""
        if destination is None or not self.connections.is_ready(destination.node_id, self.now_ms):
            return False
        self.emit(Send(self.connections.sent(destination, message, self.now_ms), destination, message))
        return True

    def append(self, data: bytes | memoryview, base_offset: int, end_offset: int, epoch: int) -> None:
        """Append whole batches of one epoch, without a sync."""
        self.log.append(epoch, base_offset, end_offset)
        self.emit(AppendRecords(base_offset, end_offset, epoch, data))

    def read_control_records(self, data: bytes | memoryview) -> None:
        """Read the voters and kraft.version from control batches that were just appended."""
        if self.history.read(data):
            self.voters_changed()

    def voters_changed(self) -> None:
        """Note that another voter set or kraft.version is in force."""
        if isinstance(self.role, Leader):
            alone = len(self.role.progress.voters) == 1
            self.role.progress.set_voters(self.voters)
            if alone:  # until now it needed no other voter's fetches
                self.role.check_quorum_deadline_ms = self.check_quorum_deadline_ms()
        self.emit(VotersChanged())

    def drop_partial(self) -> None:
        """Abandon the part of a snapshot that was downloaded."""
        partial = self.partial
        if partial is not None and not partial.finishing:
            self.partial = None
            if isinstance(self.role, Follower):
                self.role.download = None
            self.emit(AbandonSnapshot(partial.snapshot_id))

    def request_sync(self) -> None:
        """Request a sync of the log to its end, now or when the sync under way is done."""
        log = self.log
        if (log.synced_end_offset < log.end_offset or self.truncation_waits) and not self._syncing:
            self._syncing = True
            self._syncs_truncation = True
            self.emit(SyncLog(log.end_offset))

    def synced(self, end_offset: int) -> bool:
        """Note that a sync is done; returns whether the synced end moved.

        Records that were truncated and written anew while it ran may not be synced.
        """
        if self._syncing and self._sync_limit is not None:
            end_offset = min(end_offset, self._sync_limit)
        if self._syncs_truncation:
            self.truncation_waits = False
        self._syncing, self._sync_limit = False, None
        return self.log.sync(end_offset)

    def truncated(self) -> None:
        """Note that the log was truncated."""
        if self._syncing:
            end_offset = self.log.end_offset
            limit = self._sync_limit
            self._sync_limit = end_offset if limit is None else min(limit, end_offset)

    def sync_truncation(self) -> None:
        """Fetch only once the truncation is durable, so that a crash leaves no log of two leaders."""
        self.truncation_waits, self._syncs_truncation = True, False
        self.request_sync()

    def check_quorum_deadline_ms(self) -> int:
        """When a leader resigns if no majority fetches from now on (S16)."""
        return self.now_ms + int(self.config.fetch_timeout_ms * CHECK_QUORUM_FACTOR)

    def random_election_timeout_ms(self) -> int:
        timeout_ms = self.config.election_timeout_ms
        return timeout_ms + self.rng.below(timeout_ms) if timeout_ms else 0

    def election_deadline_ms(self) -> int | None:
        """When an unattached voter starts an election; None for an observer."""
        return self.now_ms + self.random_election_timeout_ms() if self.may_be_elected else None

    def stagger_ms(self) -> int:
        """How long this voter waits for voters of lower ids when all lose the leader at once: of two that
        start elections together, neither may win.
        """
        own, leader_id = self.config.node_id, self.leader_id
        return STAGGER_MS * sum(1 for other in self.voters.ids if other < own and other != leader_id)

    def fetch_deadline_ms(self) -> int:
        """When a follower stops following its leader if no answer arrives from now on."""
        return self.now_ms + self.config.fetch_timeout_ms + self.stagger_ms()

    def new_follower(self) -> Follower:
        return Follower(self.fetch_deadline_ms(), self.now_ms + self.config.fetch_timeout_ms)
