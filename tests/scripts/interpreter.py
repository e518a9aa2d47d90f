"""Scenario scripts: one command a line, its output in the lines below, each indented and with an arrow.

voters 1 2 3 [static] [option=value ...]   three formatted replicas, not started
observer 4 [option=value ...]              a replica that knows only the addresses of the others
start 1 2 | start                          start these replicas, or all
elect 1 [uncommitted]                      end 1's election timeout first; runs until 1 leads and all follow
run 500                                    let 500 ms pass
settle                                     let time pass until every replica agrees with the leader
append 1 a b c [epoch=E] [size=BYTES]      the leader 1 appends these records as one batch
hold 1 | sync 1 | release 1                hold back syncs of 1; end the one that is held; sync freely again
cut 1 2 | cut 1->2                         lose messages between two replicas, or one way
partition 1 | 2 3                          lose messages between groups
heal                                       lose no messages any more
crash 1 | vanish 1                         kill -9, connections are reset; or the host is gone, none is reset
resign 1 [epoch=E] | shutdown 1            resign as leader; shut down gracefully
offer 1 Fetch=17                           1 is older: it offers no later version of Fetch
move 2 [bootstrap]                         2 gets another port while it is down; bootstrap: in all files, too
wipe 2                                     2 gets an empty disk with another directory id while it is down
copy 2 | restore 2 [unchecked]             2's disk is copied; 2 gets the copy while it is down. unchecked:
                                           what was committed may be lost from here on
snapshot 1                                 1 makes a snapshot at its high watermark and drops the log below
show elections|messages|appends|times|Fetch  print more from here on; Fetch: the messages of that kind
status                                     each replica's state, log and high watermark

The modules beside this one have more: describing, fetching, membership, puppets, snapshots, voting.
High watermarks, leaders, truncations, the fate of appends and answers to clients are always printed. Empty
lines and lines that begin with # are kept as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from kraftd.ground.effect import Effect
from kraftd.messages.describe_quorum_response import DescribeQuorumResponse
from kraftd.messages.fetch_response import FetchResponse
from kraftd.messages.fetch_snapshot_response import FetchSnapshotResponse
from kraftd.messages.update_raft_voter_response import UpdateRaftVoterResponse
from kraftd.raft.config import RaftConfig
from kraftd.raft.effects import (
    AbandonSnapshot,
    AppendAborted,
    AppendCommitted,
    AppendRecords,
    AppendRefused,
    BeginSnapshot,
    FinishSnapshot,
    HighWatermarkMoved,
    LeadershipChanged,
    PersistElection,
    ReplicaWentBack,
    ResetLog,
    Respond,
    RespondRecords,
    RespondSnapshot,
    Send,
    ShutdownCompleted,
    TruncateLog,
    VotersChanged,
    WriteSnapshot,
)
from kraftd.raft.events import (
    AppendRequested,
    ConnectionLost,
    ResignRequested,
    ShutdownRequested,
)
from kraftd.types import Endpoint
from kraftd.wire.error_code import ErrorCode
from tests.raft.world import START_MS, Disk, Node, World, directory_id
from tests.scripts.describing import DescribingCommands
from tests.scripts.fetching import FetchCommands
from tests.scripts.membership import MembershipCommands
from tests.scripts.snapshots import SnapshotCommands
from tests.scripts.voting import ElectionAnswer, VotingCommands

Answer = Respond | RespondRecords | RespondSnapshot


class Script(DescribingCommands, FetchCommands, MembershipCommands, SnapshotCommands, VotingCommands):
    """One run of a script: `play` returns its text with the output of each command."""

    def __init__(self) -> None:
        super().__init__()
        self.generation: dict[int, int] = {}
        self.copies: dict[int, Disk] = {}

    def enter(self, world: World) -> None:
        super().enter(world)
        world.log = self._effect

    def play(self, text: str) -> str:
        out: list[str] = []
        for line in text.splitlines():
            if line.startswith("    "):
                continue  # the recorded output
            out.append(line.rstrip())
            if line.strip() and not line.startswith("#"):
                self.lines = []
                self._command(line.split())
                out += [f"    -> {text_line}" for text_line in self.lines]
        return "\n".join(out) + "\n"

    def _command(self, words: list[str]) -> None:
        name, *rest = words
        handler: Callable[..., None] | None = getattr(self, f"do_{name.replace('-', '_')}", None)
        if handler is None:
            raise ValueError(f"no such command: {name}")
        options = {key: value for key, _, value in (w.partition("=") for w in rest) if value}
        handler([word for word in rest if "=" not in word], options)

    def write(self, text: str) -> None:
        stamp = f"{self.world.now_ms - START_MS:>6} ms  " if "times" in self.shown else ""
        super().write(stamp + text)

    # --- output ---

    def _effect(self, node_id: int, effect: Effect) -> None:
        match effect:
            case HighWatermarkMoved(offset):
                self.write(f"{node_id}: high watermark {offset}")
            case LeadershipChanged(epoch, leader_id, is_local):
                leader = "no leader" if leader_id is None else f"leader {leader_id}"
                text = f"leads epoch {epoch}" if is_local else f"epoch {epoch}, {leader}"
                self.write(f"{node_id}: {text}")
            case AppendCommitted(append_id, end_offset):
                self.write(f"{node_id}: {append_id} is committed below {end_offset}")
            case AppendAborted(append_id, error):
                self.write(f"{node_id}: {append_id} is aborted, {ErrorCode(error).name}")
            case AppendRefused(append_id, error):
                self.write(f"{node_id}: {append_id} is refused, {ErrorCode(error).name}")
            case AppendRecords(base_offset, end_offset, epoch) if "appends" in self.shown:
                self.write(f"{node_id}: appends {base_offset}..{end_offset} of epoch {epoch}")
            case TruncateLog(end_offset):
                self.write(f"{node_id}: truncates to {end_offset}")
            case ResetLog(snapshot_id):
                self.write(f"{node_id}: starts over from snapshot {snapshot_id}")
            case BeginSnapshot(snapshot_id, position):
                how, at = ("goes on with", f" at {position}") if position else ("downloads", "")
                self.write(f"{node_id}: {how} snapshot {snapshot_id}{at}")
            case AbandonSnapshot(snapshot_id):
                self.write(f"{node_id}: gives up snapshot {snapshot_id}")
            case WriteSnapshot(_, position, data) if "pieces" in self.shown:
                self.write(f"{node_id}: writes {len(data)} bytes at {position}")
            case FinishSnapshot(snapshot_id):
                self.write(f"{node_id}: has downloaded snapshot {snapshot_id}")
            case ReplicaWentBack(_, key, _, acknowledged, leader_epoch, offset, epoch):
                at = f"epoch {epoch}" if offset is None else f"{offset}@{epoch}"
                before = f"epoch {leader_epoch}" if offset is None else f"{acknowledged}"
                self.write(f"{node_id}: {key.id} went back to {at}, had acknowledged {before}")
            case VotersChanged():
                core = self.world.core(node_id)
                ids = " ".join(map(str, core.voters.ids))
                self.write(f"{node_id}: voters {ids}, kraft.version {core.kraft_version}")
            case ShutdownCompleted(graceful):
                self.write(f"{node_id}: is shut down" + ("" if graceful else ", its time is over"))
            case PersistElection(state) if "elections" in self.shown:
                vote = f", vote for {state.voted_id}" if state.voted_id >= 0 else ""
                self.write(f"{node_id}: persists epoch {state.leader_epoch}, leader {state.leader_id}{vote}")
            case Send(_, destination, message):
                kind = type(message).__name__.removesuffix("Request")
                if getattr(message, "topics", None) and kind == "Vote":
                    kind = "PreVote" if message.topics[0].partitions[0].pre_vote else "Vote"  # type: ignore[attr-defined]
                if {"messages", kind} & self.shown:
                    self.write(f"{node_id}: asks {destination.host[1:]}: {kind}")
            case Respond(request_id) | RespondRecords(request_id) | RespondSnapshot(request_id) if isinstance(
                request_id, str
            ):
                self.write_answer(node_id, effect)

    def write_answer(self, node_id: int, effect: Answer) -> None:
        """Print the answer to a client: by a method for its type if there is one, else its error."""
        client = str(effect.request_id).rpartition("#")[0]
        answer: Any = self.world.answers[effect.request_id][1]
        if isinstance(answer, FetchResponse):
            self.write(f"{node_id} answers {client}: {self.fetch_text(answer, effect)}")
            return
        if isinstance(answer, ElectionAnswer):
            self.write(f"{node_id} answers {client}: {self.election_text(answer)}")
            return
        if isinstance(answer, UpdateRaftVoterResponse):
            self.write(f"{node_id} answers {client}: {self.update_text(answer)}")
            return
        if isinstance(answer, FetchSnapshotResponse):
            self.write(f"{node_id} answers {client}: {self.piece_text(answer)}")
            return
        if isinstance(answer, DescribeQuorumResponse):
            self.write_quorum(node_id, answer)
            return
        text = f": {answer.error_message}" if getattr(answer, "error_message", None) else ""
        partitions = [one for topic in getattr(answer, "topics", []) for one in topic.partitions]
        error = answer.error_code or next((one.error_code for one in partitions), ErrorCode.NONE)
        self.write(f"{node_id} answers {client}: {ErrorCode(error).name}{text}")

    # --- replicas ---

    def do_voters(self, ids: list[str], options: dict[str, str]) -> None:
        numbers = [int(one) for one in ids if one != "static"]
        self.world.add_voters(numbers, static="static" in ids, **_numbers(options))

    def do_observer(self, ids: list[str], options: dict[str, str]) -> None:
        for one in ids:
            self.world.add_observer(int(one), **_numbers(options))

    def do_start(self, ids: list[str], options: dict[str, str]) -> None:
        for node_id in map(int, ids) if ids else self._down():
            self.world.start(node_id)

    def _down(self) -> list[int]:
        nodes = self.world.nodes.values()
        return [node.id for node in nodes if node.core is None and node.id not in self.world.puppets]

    def do_elect(self, ids: list[str], options: dict[str, str]) -> None:
        """End the election timeout of one voter now and of the others later. With "uncommitted" the command
        ends when the voter leads, even if its first record has not committed.
        """
        chosen = int(ids[0])
        for one in self._down():
            self.world.start(one)
        for node in self.world.nodes.values():
            role = node.core._replica.role if node.core else None
            deadline = getattr(role, "deadline_ms", None)
            if deadline is not None and role is not None:
                role.deadline_ms = self.world.now_ms + (0 if node.id == chosen else 5_000)  # type: ignore[union-attr]
        core = self.world.core(chosen)
        core._deadline_ms = self.world.now_ms
        elected = self.world.run(
            5_000, until=lambda: core.is_leader and ("uncommitted" in ids or self._settled())
        )
        if not {"elections", "messages"} & self.shown:
            self.lines = [line for line in self.lines if "leads epoch" in line]
        if not elected:
            self.write(f"{chosen} is not elected")

    def do_crash(self, ids: list[str], options: dict[str, str]) -> None:
        for one in ids:
            self.world.crash(int(one))
            self.world.held.discard(int(one))

    def do_vanish(self, ids: list[str], options: dict[str, str]) -> None:
        for one in ids:
            self.world.crash(int(one), silent=True)
            self.world.cut |= {(int(one), other) for other in self.world.nodes}
            self.world.cut |= {(other, int(one)) for other in self.world.nodes}

    def do_wipe(self, ids: list[str], options: dict[str, str]) -> None:
        node = self.world.nodes[int(ids[0])]
        self.generation[node.id] = self.generation.get(node.id, 0) + 1
        config = _replace(node.config, directory_id=directory_id(node.id, self.generation[node.id]))
        static = node.disk.static_voters
        self.world.nodes[node.id] = Node(config, Disk(static, b""), node.id)
        if self.world.invariants:
            self.world.invariants.durable_epoch.pop(node.id, None)

    def do_copy(self, ids: list[str], options: dict[str, str]) -> None:
        self.copies[int(ids[0])] = deepcopy(self.world.nodes[int(ids[0])].disk)

    def do_restore(self, ids: list[str], options: dict[str, str]) -> None:
        node = self.world.nodes[int(ids[0])]
        node.disk = deepcopy(self.copies[node.id])
        if "unchecked" in ids:
            self.world.invariants = None
        elif self.world.invariants:
            self.world.invariants.durable_epoch.pop(node.id, None)

    def do_move(self, ids: list[str], options: dict[str, str]) -> None:
        node = self.world.nodes[int(ids[0])]
        old = node.config.listeners[0]
        node.config = _replace(node.config, listeners=(Endpoint(old.listener, old.host, old.port + 100),))
        if "bootstrap" in ids:
            for other in self.world.nodes.values():
                servers = [
                    (host, port + 100 if (host, port) == (old.host, old.port) else port)
                    for host, port in other.config.bootstrap_servers
                ]
                other.config = _replace(other.config, bootstrap_servers=tuple(servers))

    # --- time and network ---

    def do_run(self, words: list[str], options: dict[str, str]) -> None:
        self.world.run(int(words[0]))

    def _settled(self) -> bool:
        leader = self.world.leader()
        if leader is None or leader.core is None or leader.core.high_watermark < leader.core.log_end_offset:
            return False
        cores = [node.core for node in self.world.nodes.values() if node.core is not None]
        return all(
            (core.epoch, core.high_watermark) == (leader.core.epoch, leader.core.high_watermark)
            for core in cores
        )

    def do_settle(self, words: list[str], options: dict[str, str]) -> None:
        before = self.world.now_ms
        if not self.world.run(60_000, until=self._settled):
            self.write("nothing settles within a minute")
        elif "within" in options and self.world.now_ms - before > int(options["within"]):
            self.write(f"that took {self.world.now_ms - before} ms")

    def do_partition(self, words: list[str], options: dict[str, str]) -> None:
        groups = [group.split() for group in " ".join(words).split("|")]
        self.world.isolate(*([int(one) for one in group] for group in groups))

    def do_cut(self, words: list[str], options: dict[str, str]) -> None:
        if "->" in words[0]:
            a, b = map(int, words[0].split("->"))
            self.world.cut.add((a, b))
        else:
            a, b = map(int, words)
            self.world.cut |= {(a, b), (b, a)}

    def do_heal(self, words: list[str], options: dict[str, str]) -> None:
        self.world.heal()

    def do_reset(self, words: list[str], options: dict[str, str]) -> None:
        """Break the connection of one node to another, nothing else."""
        self.world.step(int(words[0]), ConnectionLost(int(words[1])))

    # --- the log ---

    def do_append(self, words: list[str], options: dict[str, str]) -> None:
        """Append records of `size` bytes that were decided in `epoch`, by default the current one."""
        node_id, values, size_bytes = int(words[0]), words[1:], int(options.get("size", 0))
        epoch = int(options.get("epoch", self.world.core(node_id).epoch))
        records = [one.encode().ljust(size_bytes) for one in values]
        self.world.step(node_id, AppendRequested(" ".join(values), records, epoch))

    def do_offer(self, words: list[str], options: dict[str, str]) -> None:
        self.world.fetch_versions[int(words[0])] = int(options["Fetch"])

    def do_hold(self, words: list[str], options: dict[str, str]) -> None:
        self.world.held |= {int(one) for one in words}

    def do_sync(self, words: list[str], options: dict[str, str]) -> None:
        for one in words:
            self.world.sync(int(one))

    def do_release(self, words: list[str], options: dict[str, str]) -> None:
        for one in map(int, words):
            self.world.held.discard(one)
            if self.world.nodes[one].sync_due:
                self.world.sync(one)

    def do_snapshot(self, words: list[str], options: dict[str, str]) -> None:
        self.world.take_snapshot(int(words[0]))

    # --- the end of a leadership ---

    def do_resign(self, words: list[str], options: dict[str, str]) -> None:
        epoch = int(options.get("epoch", self.world.core(int(words[0])).epoch))
        self.world.step(int(words[0]), ResignRequested(epoch))

    def do_shutdown(self, words: list[str], options: dict[str, str]) -> None:
        self.world.step(int(words[0]), ShutdownRequested(int(options.get("timeout", "5000"))))

    # --- status ---

    def do_show(self, words: list[str], options: dict[str, str]) -> None:
        self.shown |= set(words)

    def do_hide(self, words: list[str], options: dict[str, str]) -> None:
        self.shown -= set(words)

    def do_status(self, words: list[str], options: dict[str, str]) -> None:
        for node in self.world.nodes.values():
            if node.core is None:
                self.write(f"{node.id}: " + ("a puppet" if node.id in self.world.puppets else "down"))
                continue
            core = node.core
            leader = "" if core.leader_id is None else f", leader {core.leader_id}"
            self.write(
                f"{node.id}: {core.state.value} in epoch {core.epoch}{leader}, "
                f"log {core.log.start_offset}..{core.log_end_offset}, hw {core.high_watermark}"
            )


def _numbers(options: dict[str, str]) -> dict[str, Any]:
    return {key: int(value) for key, value in options.items()}


def _replace(config: RaftConfig, **changes: Any) -> RaftConfig:
    fields = {name: getattr(config, name) for name in config.__struct_fields__}
    return RaftConfig(**{**fields, **changes})
