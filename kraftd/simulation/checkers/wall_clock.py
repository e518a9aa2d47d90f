"""T1 and T2: what is wall time follows the wall clock, and what is a timeout does not."""

from __future__ import annotations

from kraftd.ground.event import Event
from kraftd.host.executors.core_executor import FOLLOWED_MS
from kraftd.raft import effects as raft
from kraftd.raft.events import WallClockStepped
from kraftd.simulation.checkers.checker import Checker, OnEffect
from kraftd.simulation.processes.process import Process
from kraftd.wire.batch import iter_batches


class WallClockChecker(Checker):
    """Compares each step's time with the host's clocks, which may jump at any moment."""

    def effects(self) -> dict[type, OnEffect]:
        return {raft.AppendRecords: self.appending}

    def before_step(self, process: Process, event: Event) -> None:
        """T2: a step's time is monotonic since the start of the process, however the wall clock jumps."""
        clock = process.host.clock
        now_ms = clock.now_ms(self.world.schedule.now_us)
        if process.now_ms != now_ms:
            self.fail("T2", f"{process!r} takes {process.now_ms} ms for the time, not {now_ms} ms")
        process.wall_ms = now_ms + clock.wall_ahead_ms()
        if type(event) is WallClockStepped:
            self.world.trace.kinds["wall clock stepped"] += 1

    def appending(self, process: Process, effect: raft.AppendRecords) -> None:
        """T1: a leader stamps its records with the wall clock of that moment."""
        core = process.core
        if not core.is_leader or effect.epoch != core.epoch:
            return
        for batch in iter_batches(effect.data, verify=False):
            stamp_ms = batch.header.max_timestamp_ms
            if abs(stamp_ms - process.wall_ms) >= FOLLOWED_MS:
                self.fail("T1", f"{process!r} stamps {stamp_ms} ms on records of {process.wall_ms} ms")
