"""Commands of scenario scripts that change the voters.

add 4 to 1 [early] [key=value ...]         AddRaftVoter to 1; early: answered before the commit (KIP-1186)
remove 3 from 1 [key=value ...]            RemoveRaftVoter to 1
update 2 at 1 [key=value ...]              UpdateRaftVoter of 2 to 1
    cluster=ID|null|empty disk=N|none      the cluster id; the directory id, that of the replica's disk N
    listeners=A,B|none port=N              the names of its endpoints, and their port
    supports=0-1 epoch=N                   of kraft.version, and the epoch of the leader (update only)
upgrade 1                                  the leader 1 upgrades kraft.version from 0 to 1
answer 1 as 4 supports=0-1|none [error=E]  what the puppet 4 supports of kraft.version (ApiVersions)
answer 1 as 2 [error=E] [leader=L] [epoch=E]  to AddRaftVoter, RemoveRaftVoter; UpdateRaftVoter, with a leader
records 1 [from=N]                         the control records in the log of 1
measured 1                                 1's metrics of the voters (raft-metrics)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from kraftd.messages.add_raft_voter_request import AddRaftVoterRequest
from kraftd.messages.add_raft_voter_request import Listener as AddListener
from kraftd.messages.add_raft_voter_response import AddRaftVoterResponse
from kraftd.messages.api_versions_request import ApiVersionsRequest
from kraftd.messages.api_versions_response import ApiVersionsResponse, SupportedFeatureKey
from kraftd.messages.kraft_version_record import KRaftVersionRecord
from kraftd.messages.leader_change_message import LeaderChangeMessage
from kraftd.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kraftd.messages.remove_raft_voter_response import RemoveRaftVoterResponse
from kraftd.messages.update_raft_voter_request import KRaftVersionFeature, UpdateRaftVoterRequest
from kraftd.messages.update_raft_voter_request import Listener as UpdateListener
from kraftd.messages.update_raft_voter_response import CurrentLeader, UpdateRaftVoterResponse
from kraftd.messages.voters_record import Voter, VotersRecord
from kraftd.raft.events import KRaftVersionUpgradeRequested
from kraftd.types import ZERO_UUID, Endpoint
from kraftd.wire.batch import control_records, iter_batches
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.message import Message
from tests.raft.world import directory_id, node_config
from tests.scripts.puppets import PuppetCommands
from tests.scripts.stage import cluster_id

Options = dict[str, str]


class MembershipCommands(PuppetCommands):
    # --- requests ---

    def do_add(self, words: list[str], options: Options) -> None:
        new, leader = int(words[0]), int(words[2])
        request = AddRaftVoterRequest(
            cluster_id(options),
            5000,
            new,
            self._directory(new, options),
            [AddListener(one.listener, one.host, one.port) for one in self._listeners(new, options)],
            ack_when_committed="early" not in words,
        )
        self.ask("admin", leader, request)

    def do_remove(self, words: list[str], options: Options) -> None:
        old, leader = int(words[0]), int(words[2])
        request = RemoveRaftVoterRequest(cluster_id(options), old, self._directory(old, options, leader))
        self.ask("admin", leader, request)

    def do_update(self, words: list[str], options: Options) -> None:
        voter, leader = int(words[0]), int(words[2])
        lowest, _, highest = options.get("supports", "0-1").partition("-")
        request = UpdateRaftVoterRequest(
            cluster_id(options),
            int(options.get("epoch", self.world.core(leader).epoch)),
            voter,
            self._directory(voter, options),
            [UpdateListener(one.listener, one.host, one.port) for one in self._listeners(voter, options)],
            KRaftVersionFeature(int(lowest), int(highest)),
        )
        self.ask(words[0], leader, request)

    def do_upgrade(self, words: list[str], options: Options) -> None:
        node_id = int(words[0])
        event = KRaftVersionUpgradeRequested("kraft.version=1", 1, self.world.core(node_id).epoch)
        self.world.step(node_id, event)

    def _directory(self, node_id: int, options: Options, voter_of: int | None = None) -> bytes:
        """The option `disk`, else the directory id of the voter with that id, else that of the replica."""
        named = options.get("disk")
        if named is not None:
            return ZERO_UUID if named == "none" else directory_id(node_id, int(named))
        if voter_of is not None and (voter := self.world.core(voter_of).voters.get(node_id)) is not None:
            return voter.key.directory_id or ZERO_UUID
        node = self.world.nodes.get(node_id)
        return directory_id(node_id) if node is None else node.config.directory_id

    def _listeners(self, node_id: int, options: Options) -> list[Endpoint]:
        node = self.world.nodes.get(node_id)
        (own,) = (node_config(node_id) if node is None else node.config).listeners
        names = options.get("listeners", own.listener)
        port = int(options.get("port", own.port))
        return [Endpoint(name, own.host, port) for name in names.split(",") if name != "none"]

    # --- answers ---

    def answer_apiversions(
        self, puppet: int, request: ApiVersionsRequest, flags: list[str], options: Options
    ) -> Message:
        lowest, _, highest = options.get("supports", "0-1").partition("-")
        features = (
            [] if lowest == "none" else [SupportedFeatureKey("kraft.version", int(lowest), int(highest))]
        )
        return ApiVersionsResponse(ErrorCode[options.get("error", "NONE")], supported_features=features)

    def answer_updateraftvoter(
        self, puppet: int, request: UpdateRaftVoterRequest, flags: list[str], options: Options
    ) -> Message:
        leader = int(options.get("leader", puppet))
        at = self.world.nodes[leader].config.listeners[0]
        epoch = int(options.get("epoch", request.current_leader_epoch))
        current_leader = CurrentLeader(leader, epoch, at.host, at.port)
        return UpdateRaftVoterResponse(0, ErrorCode[options.get("error", "NONE")], current_leader)

    def answer_addraftvoter(
        self, puppet: int, request: AddRaftVoterRequest, flags: list[str], options: Options
    ) -> Message:
        return AddRaftVoterResponse(error_code=ErrorCode[options.get("error", "NONE")])

    def answer_removeraftvoter(
        self, puppet: int, request: RemoveRaftVoterRequest, flags: list[str], options: Options
    ) -> Message:
        return RemoveRaftVoterResponse(error_code=ErrorCode[options.get("error", "NONE")])

    def request_text(self, requester: int, puppet: int, message: Message) -> str:
        text = super().request_text(requester, puppet, message)
        match message:
            case AddRaftVoterRequest():
                early = "" if message.ack_when_committed else ", early"
                return f"{text} {_of(message.voter_id, message.voter_directory_id, message.listeners)}{early}"
            case RemoveRaftVoterRequest():
                return f"{text} {_of(message.voter_id, message.voter_directory_id, [])}"
            case UpdateRaftVoterRequest():
                voter = _of(message.voter_id, message.voter_directory_id, message.listeners)
                feature = message.kraft_version_feature
                supports = f"{feature.min_supported_version}-{feature.max_supported_version}"
                return f"{text} epoch={message.current_leader_epoch}, {voter}, supports {supports}"
        return text

    def update_text(self, answer: UpdateRaftVoterResponse) -> str:
        leader = answer.current_leader
        text = f", leader {leader.leader_id} at {leader.host}:{leader.port}" if leader.leader_id >= 0 else ""
        return f"{ErrorCode(answer.error_code).name}{text}, epoch {leader.leader_epoch}"

    # --- output ---

    def do_records(self, words: list[str], options: Options) -> None:
        first = int(options.get("from", "0"))
        for _, _, epoch, data in self.world.nodes[int(words[0])].disk.batches:
            for batch in iter_batches(data):
                if batch.header.is_control and batch.header.base_offset >= first:
                    for record in control_records(batch):
                        self.write(f"{record.offset} of epoch {epoch}: {_record_text(record.message)}")
                        if isinstance(record.message, VotersRecord):
                            for voter in record.message.voters:
                                self.write(f"    {_voter_text(voter)}")

    def do_measured(self, words: list[str], options: Options) -> None:
        measured = self.world.core(int(words[0])).metrics(self.world.now_ms).by_name()
        names = ("number-of-voters", "number-of-observers", "uncommitted-voter-change")
        self.write(f"{words[0]}: " + ", ".join(f"{one} {measured[one]}" for one in names if one in measured))


def _record_text(message: Message | None) -> str:
    match message:
        case LeaderChangeMessage():
            voters = " ".join(str(one.voter_id) for one in message.voters)
            granting = " ".join(str(one.voter_id) for one in message.granting_voters)
            return f"LeaderChange, {message.leader_id} leads the voters {voters} by the votes of {granting}"
        case KRaftVersionRecord():
            return f"KRaftVersion {message.kraft_version}"
    return type(message).__name__.removesuffix("Record")


def _voter_text(voter: Voter) -> str:
    supported = voter.kraft_version_feature
    voter_text = _of(voter.voter_id, voter.voter_directory_id, voter.endpoints)
    return f"{voter_text}, supports {supported.min_supported_version}-{supported.max_supported_version}"


class _Endpoint(Protocol):
    name: str
    host: str
    port: int


def _of(voter_id: int, directory: bytes, endpoints: Sequence[_Endpoint]) -> str:
    """A voter with its endpoints and its disk, if it has them."""
    at = " and ".join(f"{one.name} {one.host}:{one.port}" for one in endpoints)
    disk = "" if directory == ZERO_UUID else f", disk {directory[1]}"
    return f"{voter_id}{' at ' if at else ''}{at}{disk}"
