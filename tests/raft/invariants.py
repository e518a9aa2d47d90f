"""The consensus invariants that are visible from outside a core, checked after every event of a world."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kraftd.messages.fetch_request import FetchRequest
from kraftd.raft.effects import PersistElection, Send
from kraftd.raft.transitions import State
from kraftd.wire.batch import iter_batches

if TYPE_CHECKING:
    from tests.raft.world import Node, World


class InvariantBroken(AssertionError):
    """An invariant does not hold: the message is its name, then the violation."""


class Invariants:
    """S1, S2, S3, S5, S6, S7, S8, S9, S12, and of S19 that a request gets one answer in time."""

    def __init__(self) -> None:
        self.leader_of: dict[int, int] = {}  # epoch -> node id
        self.votes: dict[tuple[int, bytes, int], Any] = {}  # node, directory, epoch -> vote
        self.durable_epoch: dict[int, int] = {}
        self.high_watermark: dict[tuple[int, int], int] = {}  # node, incarnation -> last
        self.incarnation: dict[int, int] = {}
        self.committed: list[bytes] = []  # by offset: the batch that holds it
        self.batch_end: list[int] = []
        self.batch_epoch: list[int] = []
        self.answers: set[Any] = set()
        self.epoch_start: dict[int, int] = {}
        self.parked: dict[
            Any, tuple[int, int, int]
        ] = {}  # request -> deadline, epoch, high watermark at parking

    def started(self, node: Node) -> None:
        self.incarnation[node.id] = self.incarnation.get(node.id, 0) + 1
        newest = max((one.offset for one in node.disk.snapshots), default=0)
        if newest:  # the records of a snapshot were committed before, by an earlier leader
            self.high_watermark[node.id, self.incarnation[node.id]] = newest

    def persisting(self, node: Node, effect: PersistElection) -> None:
        state = effect.state
        if state.leader_epoch < self.durable_epoch.get(node.id, 0):
            raise InvariantBroken(f"S2: epoch of {node.id} goes back to {state.leader_epoch}")
        self.durable_epoch[node.id] = state.leader_epoch
        if state.voted_id >= 0:
            where = node.id, node.config.directory_id, state.leader_epoch
            vote = state.voted_id
            if self.votes.setdefault(where, vote) != vote:
                raise InvariantBroken(f"S3: {node.id} votes for {self.votes[where]} and {vote} in one epoch")

    def truncating(self, node: Node, end_offset: int) -> None:
        known = self.high_watermark.get((node.id, self.incarnation[node.id]), 0)
        if end_offset < known:
            raise InvariantBroken(f"S9: {node.id} truncates to {end_offset}, below {known}")

    def sending(self, node: Node, effect: Send) -> None:
        message = effect.message
        if isinstance(message, FetchRequest):
            offset = message.topics[0].partitions[0].fetch_offset
            if offset > node.disk.synced_end:
                raise InvariantBroken(f"S12: {node.id} fetches at {offset}, synced {node.disk.synced_end}")

    def answered(self, node_id: int, incarnation: int, request_id: Any) -> None:
        request = node_id, incarnation, request_id
        if request in self.answers:
            raise InvariantBroken(f"S19: request {request_id} is answered twice by {node_id}")
        self.answers.add(request)
        self.parked.pop(request, None)

    def request_received(self, node: Node, request_id: Any, deadline_ms: int) -> None:
        """Note a client's fetch, which is parked if it has no answer yet."""
        request = node.id, self.incarnation[node.id], request_id
        if request not in self.answers and node.core is not None:
            self.parked[request] = deadline_ms, node.core.epoch, node.core.high_watermark

    def _check_parked(self, node: Node, now_ms: int) -> None:
        core = node.core
        assert core is not None
        for request, (deadline_ms, epoch, high_watermark) in self.parked.items():
            if request[:2] != (node.id, self.incarnation[node.id]):
                continue
            if now_ms > deadline_ms:
                raise InvariantBroken(f"S19: request {request[2]} waits longer than its max wait")
            if not core.is_leader or core.epoch != epoch:
                raise InvariantBroken(f"S19: request {request[2]} is parked at a replica that does not lead")
            if core.high_watermark > high_watermark:
                raise InvariantBroken(f"S19: request {request[2]} is not answered at {core.high_watermark}")

    def check(self, world: World, node: Node) -> None:
        core = node.core
        assert core is not None
        if core.is_leader:
            first = self.leader_of.setdefault(core.epoch, node.id)
            if first != node.id:
                raise InvariantBroken(f"S1: {first} and {node.id} lead epoch {core.epoch}")
            self._check_election(node, core.epoch)
        self._check_parked(node, world.now_ms)
        where = node.id, self.incarnation[node.id]
        before = self.high_watermark.get(where, -1)
        if core.high_watermark < before:
            raise InvariantBroken(f"S7: high watermark of {node.id}: {before} -> {core.high_watermark}")
        if core.high_watermark > max(before, 0):
            self._check_commit(world, node, core.high_watermark)
        self.high_watermark[where] = core.high_watermark

    def _check_election(self, node: Node, epoch: int) -> None:
        """S5: a leader has all records that were ever committed."""
        if epoch in self.epoch_start:
            return
        self.epoch_start[epoch] = next(
            (one[0] for one in node.disk.batches if one[2] == epoch), node.disk.end
        )
        if node.disk.end < len(self.committed):
            raise InvariantBroken(
                f"S5: {node.id} leads with {node.disk.end} of {len(self.committed)} committed"
            )
        self._check_prefix(node, min(node.disk.end, len(self.committed)))

    def _check_prefix(self, node: Node, end_offset: int) -> None:
        """S6: committed records have the same bytes here."""
        for base, end, _, data in node.disk.batches:
            if base < end_offset and base < len(self.committed) and self.committed[base] != data:
                raise InvariantBroken(f"S6: {node.id} holds another batch at committed offset {base}..{end}")

    def _check_commit(self, world: World, node: Node, high_watermark: int) -> None:
        for base, end, epoch, data in node.disk.batches:
            if end <= high_watermark and base >= len(self.committed):
                for _ in range(base, end):
                    self.committed.append(data)
                    self.batch_end.append(end)
                    self.batch_epoch.append(epoch)
        self._check_prefix(node, high_watermark)
        core = node.core
        assert core is not None
        if core.state not in (
            State.LEADER,
            State.RESIGNED,
        ):  # a leader that resigns may commit in the same step
            if high_watermark > node.disk.synced_end:
                raise InvariantBroken(
                    f"S7: {node.id} commits {high_watermark}, synced {node.disk.synced_end}"
                )
            return
        synced = 0
        for voter in core.voters:
            disk = world.nodes[voter.key.id].disk if voter.key.id in world.nodes else None
            synced += disk is not None and _holds(disk, node.disk, high_watermark)
        if synced * 2 <= len(core.voters):
            raise InvariantBroken(f"S7: {high_watermark} is synced by {synced} of {len(core.voters)} voters")
        start = self.epoch_start.get(core.epoch)
        if start is not None and high_watermark <= start:
            raise InvariantBroken(f"S8: {node.id} commits {high_watermark} before its epoch's start {start}")


def _holds(disk: Any, of: Any, end_offset: int) -> bool:
    """Return whether a disk has synced the records of another up to there."""
    if disk.synced_end < end_offset:
        return False
    mine = [one for one in disk.batches if one[1] <= end_offset]
    theirs = [one for one in of.batches if one[1] <= end_offset]
    return not mine or not theirs or mine[-1] == theirs[-1]


def batch_count(data: bytes) -> int:
    return sum(1 for _ in iter_batches(data))
