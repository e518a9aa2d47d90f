"""Commands of scenario scripts that send votes and begin and end epochs as another replica.

vote 1 as 2 [pre] [last=N@E] [generation=G] MORE
                                           Vote or PreVote of 2; `last` is its log's end, by default 1's
begin 1 as 2 [at=NAME:HOST:PORT,...] MORE  BeginQuorumEpoch: 2 announces itself to 1 as the leader
end 1 as 2 [successors=1,3] MORE           EndQuorumEpoch: 2 has resigned
    MORE of each: [epoch=E] [voter=ID] [directory=ID] [cluster=ID|null|empty] [topic=NAME|none] [version=V]
answer 1 as 2 [granted|refused] MORE       the puppet 2 answers 1's last such request (see puppets)
    MORE: [epoch=E] [leader=L] [error=NAME] [refused=NAME]
fail 1 as 2 [error=NAME]                   1's last request to 2 cannot be sent
log 1 3@2 10@4                             1's log, while it is down: up to 3 of epoch 2, up to 10 of epoch 4
quorum-state 1 epoch=5 [leader=2] [voted=3] [generation=G]
                                           1's quorum-state, while it is down
formatted 1                                give the observer 1 the bootstrap checkpoint, while it is down
until 1 prospective                        let time pass until 1 is in that state
state 1                                    1's state, leader and vote
knows 1                                    the voters that 1 knows, and its leader's endpoints
configured 1 as 1 2                        1 is configured with these static voters, while it is down
show states                                print like `state` whenever a state changes
anew                                       begin with another world

`voter` and `directory` name the replica for which the request is meant. `generation` is that of the
candidate's disk: 0 for its first.
"""

from __future__ import annotations

from collections.abc import Callable

from kraftd.messages import begin_quorum_epoch_request as begin_request
from kraftd.messages import end_quorum_epoch_request as end_request
from kraftd.messages import vote_request
from kraftd.messages.begin_quorum_epoch_response import BeginQuorumEpochResponse
from kraftd.messages.end_quorum_epoch_response import EndQuorumEpochResponse
from kraftd.messages.quorum_state_data import QuorumStateData, Voter
from kraftd.messages.vote_response import VoteResponse
from kraftd.raft.events import SendFailed
from kraftd.raft.quorum.voters import VoterSet
from kraftd.types import METADATA_TOPIC, OffsetAndEpoch
from kraftd.wire.batch import build_batch
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.message import Message
from tests.raft.lone import begin_answer, end_answer, vote_answer
from tests.raft.world import LISTENER, World, directory_id, node_config
from tests.scripts.puppets import PuppetCommands, position, refuse
from tests.scripts.stage import cluster_id

ElectionAnswer = VoteResponse | BeginQuorumEpochResponse | EndQuorumEpochResponse
LONGEST_MS = 30_000


class VotingCommands(PuppetCommands):
    def enter(self, world: World) -> None:
        super().enter(world)
        self.states: dict[int, str] = {}
        world.stepped = self._stepped

    # --- requests ---

    def do_vote(self, words: list[str], options: dict[str, str]) -> None:
        to, _, candidate = words[:3]
        core = self.world.core(int(to))
        last = position(options["last"]) if "last" in options else core.log.end
        partition = vote_request.PartitionData(
            0,
            int(options.get("epoch", core.epoch)),
            int(candidate),
            directory_id(int(candidate), int(options.get("generation", "0"))),
            directory_id(int(options.get("directory", to))),
            last.epoch,
            last.offset,
            "pre" in words,
        )
        topics = [vote_request.TopicData(options.get("topic", METADATA_TOPIC), [partition])]
        voter = int(options.get("voter", to))
        self._ask(words, options, vote_request.VoteRequest(cluster_id(options), voter, topics))

    def do_begin(self, words: list[str], options: dict[str, str]) -> None:
        to, _, leader = words
        epoch = int(options.get("epoch", self.world.core(int(to)).epoch))
        partition = begin_request.PartitionData(
            0, directory_id(int(options.get("directory", to))), int(leader), epoch
        )
        topics = [begin_request.TopicData(options.get("topic", METADATA_TOPIC), [partition])]
        endpoint = node_config(int(leader)).listeners[0]
        at = options.get("at", f"{LISTENER}:{endpoint.host}:{endpoint.port}")
        endpoints = [begin_request.LeaderEndpoint(*_endpoint(one)) for one in at.split(",")]
        voter = int(options.get("voter", to))
        message = begin_request.BeginQuorumEpochRequest(cluster_id(options), voter, topics, endpoints)
        self._ask(words, options, message)

    def do_end(self, words: list[str], options: dict[str, str]) -> None:
        to, _, leader = words
        epoch = int(options.get("epoch", self.world.core(int(to)).epoch))
        successors = [int(one) for one in options.get("successors", to).split(",")]
        candidates = [end_request.ReplicaInfo(one, directory_id(one)) for one in successors]
        partition = end_request.PartitionData(0, int(leader), epoch, tuple(successors), candidates)
        topics = [end_request.TopicData(options.get("topic", METADATA_TOPIC), [partition])]
        endpoint = node_config(int(leader)).listeners[0]
        at = [end_request.LeaderEndpoint(LISTENER, endpoint.host, endpoint.port)]
        self._ask(words, options, end_request.EndQuorumEpochRequest(cluster_id(options), topics, at))

    def _ask(
        self,
        words: list[str],
        options: dict[str, str],
        message: vote_request.VoteRequest
        | begin_request.BeginQuorumEpochRequest
        | end_request.EndQuorumEpochRequest,
    ) -> None:
        if options.get("topic") == "none":
            message.topics = []
        version = int(options["version"]) if "version" in options else None
        self.ask(words[2], int(words[0]), message, version)

    def election_text(self, answer: ElectionAnswer) -> str:
        if answer.error_code:
            return ErrorCode(answer.error_code).name
        partition = answer.topics[0].partitions[0]
        result = ErrorCode(partition.error_code).name
        if isinstance(answer, VoteResponse) and not partition.error_code:
            result = "granted" if partition.vote_granted else "refused"  # type: ignore[union-attr]
        leader = f", leader {partition.leader_id}" if partition.leader_id >= 0 else ""
        at = "".join(f" at {one.host}:{one.port}" for one in answer.node_endpoints)
        return f"{result}, epoch {partition.leader_epoch}{leader}{at}"

    # --- puppets ---

    def answer_vote(
        self, puppet: int, request: vote_request.VoteRequest, flags: list[str], options: dict[str, str]
    ) -> Message:
        epoch, leader, error = _answered(request.topics[0].partitions[0].replica_epoch, options)
        return refuse(vote_answer(epoch, "granted" in flags, leader=leader, error=error), options)

    def answer_beginquorumepoch(
        self,
        puppet: int,
        request: begin_request.BeginQuorumEpochRequest,
        flags: list[str],
        options: dict[str, str],
    ) -> Message:
        return _answer_about_leader(begin_answer, request.topics[0].partitions[0], options)

    def answer_endquorumepoch(
        self,
        puppet: int,
        request: end_request.EndQuorumEpochRequest,
        flags: list[str],
        options: dict[str, str],
    ) -> Message:
        return _answer_about_leader(end_answer, request.topics[0].partitions[0], options)

    def do_fail(self, words: list[str], options: dict[str, str]) -> None:
        requester, puppet = int(words[0]), int(words[2])
        source, _ = [one for one in self.unanswered[puppet] if one[0][0] == requester][-1]
        self.unanswered[puppet] = [one for one in self.unanswered[puppet] if one[0] != source]
        error = ErrorCode[options.get("error", "BROKER_NOT_AVAILABLE")]
        self.world.step(requester, SendFailed(source[2], error))

    # --- the files of a replica before it starts ---

    def do_quorum_state(self, words: list[str], options: dict[str, str]) -> None:
        node = self.world.nodes[int(words[0])]
        state = QuorumStateData(
            leader_id=int(options.get("leader", "-1")),
            leader_epoch=int(options["epoch"]),
            voted_id=int(options.get("voted", "-1")),
        )
        version = 0 if node.disk.static_voters.ids and not node.disk.snapshots else 1
        if version == 0:
            state.current_voters = [Voter(one) for one in node.disk.static_voters.ids]
        elif state.voted_id >= 0:
            state.voted_directory_id = directory_id(state.voted_id, int(options.get("generation", "0")))
        node.disk.election = state, version

    def do_log(self, words: list[str], options: dict[str, str]) -> None:
        disk = self.world.nodes[int(words[0])].disk
        for end in map(position, words[1:]):
            values = [b"record"] * (end.offset - disk.end)
            batch = build_batch(values, disk.end, end.epoch, 0)
            disk.batches.append((disk.end, end.offset, end.epoch, bytes(batch)))
            disk.synced_end = end.offset

    def do_formatted(self, words: list[str], options: dict[str, str]) -> None:
        checkpoint = OffsetAndEpoch(0, 0)
        known = next(one for one in self.world.nodes.values() if checkpoint in one.disk.snapshots)
        self.world.nodes[int(words[0])].disk.snapshots[checkpoint] = known.disk.snapshots[checkpoint]

    def do_configured(self, words: list[str], options: dict[str, str]) -> None:
        endpoints = {int(one): node_config(int(one)).listeners[0] for one in words[2:]}
        addresses = {one: (at.host, at.port) for one, at in endpoints.items()}
        self.world.nodes[int(words[0])].disk.static_voters = VoterSet.from_static(LISTENER, addresses)

    # --- states ---

    def do_until(self, words: list[str], options: dict[str, str]) -> None:
        node_id, before = int(words[0]), self.world.now_ms
        if self.world.run(LONGEST_MS, until=lambda: self.world.core(node_id).state.value == words[1]):
            if "times" not in self.shown:
                self.write(f"{self.world.now_ms - before} ms later")
        else:
            self.write(f"{node_id}: not {words[1]} within {LONGEST_MS} ms")

    def do_state(self, words: list[str], options: dict[str, str]) -> None:
        for one in words:
            self.write(self.state_of(int(one)))

    def do_knows(self, words: list[str], options: dict[str, str]) -> None:
        core = self.world.core(int(words[0]))
        ids = " ".join(map(str, core.voters.ids))
        at = ", ".join(f"{one.listener} {one.host}:{one.port}" for one in core._replica.leader_listeners)
        leader = f"; leader {core.leader_id} at {at}" if at else ""
        self.write(f"{words[0]}: voters {ids}, kraft.version {core.kraft_version}{leader}")

    def state_of(self, node_id: int) -> str:
        core = self.world.core(node_id)
        voted = core._replica.voted
        leader = "" if core.leader_id is None else f", leader {core.leader_id}"
        vote = "" if voted is None else f", vote for {voted.id}"
        return f"{node_id}: {core.state.value} in epoch {core.epoch}{leader}{vote}"

    def _stepped(self, node_id: int) -> None:
        """Print a replica's state if it has changed."""
        state = self.state_of(node_id)
        if "states" in self.shown and self.states.get(node_id) != state:
            self.write(state)
        self.states[node_id] = state

    def do_anew(self, words: list[str], options: dict[str, str]) -> None:
        self.enter(World(seed=1))


def _answer_about_leader(
    make: Callable[..., Message],
    partition: begin_request.PartitionData | end_request.PartitionData,
    options: dict[str, str],
) -> Message:
    epoch, leader, error = _answered(partition.leader_epoch, options, partition.leader_id)
    return refuse(make(epoch, leader=leader, error=error), options)


def _answered(epoch: int, options: dict[str, str], leader: int = -1) -> tuple[int, int, ErrorCode]:
    """Epoch, leader and error of an answer; options replace the arguments."""
    error = ErrorCode[options.get("error", "NONE")]
    return int(options.get("epoch", epoch)), int(options.get("leader", leader)), error


def _endpoint(text: str) -> tuple[str, str, int]:
    name, host, port = text.split(":")
    return name, host, int(port)
