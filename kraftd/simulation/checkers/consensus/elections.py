"""S1, S2, S3, S14, S16 and the durability of quorum-state (D1): epochs, votes, and leaders without a
majority.
"""

from __future__ import annotations

from typing import Any

from kraftd.ground.event import Event
from kraftd.messages.fetch_request import FetchRequest
from kraftd.messages.update_raft_voter_response import UpdateRaftVoterResponse
from kraftd.messages.vote_request import VoteRequest
from kraftd.messages.vote_response import VoteResponse
from kraftd.raft import effects as raft
from kraftd.raft.events import RequestReceived
from kraftd.raft.log_view import Fit
from kraftd.raft.quorum.voters import matches, replica_key
from kraftd.simulation.checkers.checker import Checker, OnEffect
from kraftd.simulation.processes.files import CLUSTER_ID
from kraftd.simulation.processes.process import Process
from kraftd.simulation.protocols import Host, World
from kraftd.types import ReplicaKey


class ElectionChecker(Checker):
    """Votes count from the moment at which they are sent."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._leaders: dict[int, Process] = {}  # by epoch: one run of one replica
        self._votes: dict[int, dict[tuple[int, bytes], tuple[int, bytes]]] = {}  # by epoch, then by voter
        # The last epoch in which each replica asked for votes.
        self.last_candidacies: dict[ReplicaKey, int] = {}
        # S16, by process that leads: epoch, deadline, and the voters that have fetched since it was set
        self._quorum: dict[Process, tuple[int, int, set[int]]] = {}

    def effects(self) -> dict[type, OnEffect]:
        return {
            raft.PersistElection: self.persisting,
            raft.AppendRecords: self.leading,
            raft.Respond: self.responding,
            raft.RespondSnapshot: self._snapshot_sent,
            raft.Send: self.sending,
        }

    def started(self, process: Process) -> None:
        epoch, voted_id = process.host.persisted
        election = process.files.quorum_state.read()
        found = (0, -1) if election is None else (election.leader_epoch, election.voted_id)
        leads = election is not None and election.leader_id >= 0  # later votes do not matter
        if found[0] < epoch or (found[0] == epoch and voted_id >= 0 and found[1] != voted_id and not leads):
            self.fail("S2", f"{process!r} persisted epoch and vote {(epoch, voted_id)}, finds {found}")
        process.host.persisted = found  # a crash may have come between the write of the file and its note

    def restored(self, host: Host) -> None:
        """S3: an old copy of a directory may vote again in the epochs that it has forgotten."""
        for votes in self._votes.values():
            votes.pop((host.id, host.directory_id), None)

    def persisting(self, process: Process, effect: raft.PersistElection) -> None:
        state = effect.state
        epoch, voted_id = process.host.persisted
        if state.leader_epoch < epoch:
            self.fail("S2", f"{process!r}: epoch from {epoch} to {state.leader_epoch}")
        if state.leader_epoch == epoch and voted_id >= 0 and state.voted_id not in (voted_id, -1):
            self.fail("S3", f"{process!r}: vote from {voted_id} to {state.voted_id} in epoch {epoch}")

    def leading(self, process: Process, _: raft.AppendRecords | None = None) -> None:
        """S1, before a second leader writes anything."""
        core = process.core
        if not core.is_leader:
            return
        leader = self._leaders.get(core.epoch)
        if leader is None:
            self._leaders[core.epoch] = process
            self._elected(process)
        elif leader is not process:
            self.fail("S1", f"{leader!r} and {process!r} lead epoch {core.epoch}")

    def _elected(self, process: Process) -> None:
        """S14: a majority of the voters, by id and directory, has given its vote for this epoch."""
        core = process.core
        votes = self._votes.get(core.epoch, {})
        own = process.id, process.host.directory_id
        count = 0
        for voter in core.voters:
            key = voter.key
            count += any(
                candidate[0] == process.id and matches(key, ReplicaKey(*granter))
                for granter, candidate in votes.items()
            ) or matches(key, ReplicaKey(*own))
        if count * 2 <= len(core.voters):
            self.fail("S14", f"{process!r} leads by {count} votes of {core.voters!r}: {votes}")

    def responding(self, process: Process, effect: raft.Respond) -> None:
        message: Any = effect.message
        if type(message) is not VoteResponse or not message.topics:
            self.updated(process, effect)
            return
        answer = message.topics[0].partitions[0]
        request = effect.request_id
        vote_request: Any = getattr(request, "message", None)
        if not answer.vote_granted or vote_request is None:
            return
        partition = vote_request.topics[0].partitions[0]
        if not partition.pre_vote:
            self._vote(process, partition.replica_epoch, partition.replica_id, partition.replica_directory_id)

    def sending(self, process: Process, effect: raft.Send) -> None:
        message: Any = effect.message
        if type(message) is VoteRequest:
            partition = message.topics[0].partitions[0]
            if not partition.pre_vote:
                self.last_candidacies[process.host.key] = partition.replica_epoch
                self._vote(process, partition.replica_epoch, process.id, process.host.directory_id)

    def _vote(self, process: Process, epoch: int, candidate_id: int, directory_id: bytes) -> None:
        if process.host.persisted != (epoch, candidate_id):
            self.fail(
                "S3",
                f"{process!r} sends a vote for {candidate_id} in {epoch}, durable: {process.host.persisted}",
            )
        where = process.id, process.host.directory_id
        vote = self._votes.setdefault(epoch, {}).setdefault(where, (candidate_id, directory_id))
        if vote[0] != candidate_id or (any(vote[1]) and any(directory_id) and vote[1] != directory_id):
            self.fail("S3", f"{process!r} votes for {vote} and {candidate_id, directory_id} in epoch {epoch}")

    def before_step(self, process: Process, event: Event) -> None:
        """Note a fetch: one of this epoch that continues the leader's log keeps it leader."""
        if process not in self._quorum or type(event) is not RequestReceived:
            return
        message: Any = event.message
        if type(message) is not FetchRequest or message.cluster_id != CLUSTER_ID:
            return
        partition, core = message.topics[0].partitions[0], process.core
        if partition.current_leader_epoch == core.epoch and partition.last_fetched_epoch <= core.epoch:
            position = core.log.locate(partition.fetch_offset, partition.last_fetched_epoch)
            if position.fit is Fit.VALID:
                self._note_contact(process, message.replica_state.replica_id, partition.replica_directory_id)

    def updated(self, process: Process, effect: raft.Respond) -> None:
        message: Any = effect.message
        if type(message) is UpdateRaftVoterResponse and not message.error_code:
            request: Any = effect.request_id
            self._note_contact(process, request.message.voter_id, request.message.voter_directory_id)

    def _snapshot_sent(self, process: Process, effect: raft.RespondSnapshot) -> None:
        request: Any = effect.request_id
        partition = request.message.topics[0].partitions[0]
        self._note_contact(process, request.message.replica_id, partition.replica_directory_id)

    def _note_contact(self, process: Process, replica_id: int, directory_id: bytes) -> None:
        voters = process.core.voters
        held = self._quorum.get(process)
        if held is None or not voters.has_voter(replica_key(replica_id, directory_id)):
            return
        contacts = held[2]
        contacts.add(replica_id)
        if len(contacts) >= len(voters) // 2 + 1 - (voters.get(process.id) is not None):
            self._quorum[process] = held[0], self._quorum_deadline(process), set()

    def _quorum_deadline(self, process: Process) -> int:
        return (
            process.host.clock.now_ms(self.world.schedule.now_us) + process.config.fetch_timeout_ms * 3 // 2
        )

    def after_step(self, process: Process) -> None:
        core = process.core
        if not core.is_leader:
            self._quorum.pop(process, None)
            return
        epoch = core.epoch
        self.leading(process)
        held = self._quorum.get(process)
        if len(core.voters) == 1 or core.deadline_ms() is None:
            self._quorum.pop(process, None)  # alone, or about to end
        elif held is None or held[0] != epoch:
            self._quorum[process] = epoch, self._quorum_deadline(process), set()
        elif process.now_ms > held[1]:
            self.fail(
                "S16", f"{process!r} leads at {process.now_ms} ms, without a majority since {held[1]} ms"
            )
        else:
            deadline_ms = core.deadline_ms()
            assert deadline_ms is not None
            if deadline_ms > held[1] + 1:
                self.fail(
                    "S16", f"{process!r} looks again at {deadline_ms} ms, its quorum is due at {held[1]} ms"
                )
