"""K2, K3: a leader names each voter that fetches from below what it has acknowledged, and commits nothing by
it until it has caught up.
"""

from __future__ import annotations

from typing import Any

from kraftd.ground.event import Event
from kraftd.messages.fetch_request import FetchRequest
from kraftd.raft import effects as raft
from kraftd.raft.events import RequestReceived
from kraftd.raft.log_view import Fit
from kraftd.raft.quorum.voters import matches, replica_key
from kraftd.simulation.checkers.checker import Checker, OnEffect
from kraftd.simulation.processes.files import CLUSTER_ID
from kraftd.simulation.processes.process import Process
from kraftd.simulation.protocols import World
from kraftd.types import ReplicaKey


class WentBackChecker(Checker):
    """What each voter has acknowledged, by leader and epoch. A fetch that arrives late counts like any other:
    the core cannot tell it from a replica that went back, and its node can.
    """

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._epochs: dict[Process, int] = {}
        self._acknowledged: dict[Process, dict[ReplicaKey, int]] = {}
        self._ends: dict[Process, dict[ReplicaKey, int]] = {}
        self._short: dict[Process, set[ReplicaKey]] = {}
        self._expected: ReplicaKey | None = None

    def effects(self) -> dict[type, OnEffect]:
        return {raft.ReplicaWentBack: self.named, raft.HighWatermarkMoved: self.moved}

    def before_step(self, process: Process, event: Event) -> None:
        self._expected = None
        if type(event) is not RequestReceived or type(event.message) is not FetchRequest:
            return
        core, message = process.core, event.message
        if not core.is_leader or message.cluster_id != CLUSTER_ID:
            return
        partition = message.topics[0].partitions[0]
        if partition.current_leader_epoch != core.epoch or message.replica_state.replica_id < 0:
            return
        offset = partition.fetch_offset
        if core.log.locate(offset, partition.last_fetched_epoch).fit is not Fit.VALID:
            return
        if self._epochs.get(process) != core.epoch:
            self._epochs[process] = core.epoch
            self._acknowledged[process], self._ends[process], self._short[process] = {}, {}, set()
        key = replica_key(message.replica_state.replica_id, partition.replica_directory_id)
        acknowledged, short = self._acknowledged[process], self._short[process]
        if not core.voters.has_voter(key):
            acknowledged.pop(key, None)  # the leader forgets observers that are silent for long
            self._ends[process].pop(key, None)
            short.discard(key)
            return
        self._ends[process][key] = offset
        if offset >= acknowledged.get(key, 0):
            acknowledged[key] = offset
            short.discard(key)
        elif key not in short:
            short.add(key)
            self._expected = key

    def moved(self, process: Process, effect: raft.HighWatermarkMoved) -> None:
        """K3: voters that have shown no less since they acknowledged the records are a majority."""
        core, mark = process.core, effect.high_watermark
        if not core.is_leader:
            return
        counted = sum(self._may_count(process, voter.key, mark) for voter in core.voters)
        if counted * 2 <= len(core.voters):
            self.fail("K3", f"{process!r} commits {mark} by a voter that went back: {self._ends[process]}")

    def _may_count(self, process: Process, voter: ReplicaKey, mark: int) -> bool:
        if matches(voter, process.host.key):
            return process.host.mirror.synced_end >= mark
        if self._epochs.get(process) != process.core.epoch:
            return True  # no voter has fetched in this epoch
        acknowledged = self._acknowledged[process]
        return all(
            end >= max(mark, acknowledged[key])
            for key, end in self._ends[process].items()
            if matches(voter, key)
        )

    def named(self, process: Process, effect: raft.ReplicaWentBack) -> None:
        self.world.trace.kinds["replica went back"] += 1
        self._short.setdefault(process, set()).add(effect.key)
        if self._expected == effect.key:
            self._expected = None

    def after_step(self, process: Process) -> None:
        key, self._expected = self._expected, None
        if key is not None:
            at: Any = self._acknowledged[process][key]
            self.fail("K2", f"{process!r} does not name {key}, which had acknowledged {at}")
