"""S19 of appends: settled in the step that commits them, or that ends the leadership."""

from __future__ import annotations

from typing import Any

from kraftd.raft import effects as raft
from kraftd.simulation.checkers.checker import Checker, OnEffect
from kraftd.simulation.processes.process import Process
from kraftd.simulation.protocols import World


class ParkedAppendChecker(Checker):
    """Appends that a core has accepted, by id, with their end offsets."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._waiting: dict[Process, dict[Any, int]] = {}

    def effects(self) -> dict[type, OnEffect]:
        return {
            raft.AppendAccepted: self.accepted,
            raft.AppendCommitted: self.settled,
            raft.AppendAborted: self.settled,
        }

    def accepted(self, process: Process, effect: raft.AppendAccepted) -> None:
        self._waiting.setdefault(process, {})[effect.append_id] = effect.end_offset

    def settled(self, process: Process, effect: Any) -> None:
        if self._waiting.get(process, {}).pop(effect.append_id, None) is None:
            self.fail("S19", f"{process!r}: {effect!r}, which does not wait")

    def after_step(self, process: Process) -> None:
        waiting = self._waiting.get(process)
        if not waiting:
            return
        core = process.core
        first = next(iter(waiting.values()))  # they are in the order of the log
        if not core.is_leader or first <= core.high_watermark:
            self.fail("S19", f"{process!r} has not settled an append to {first}")
