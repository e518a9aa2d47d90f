"""S10, S11: snapshots are of what is committed, equal what the log says, and only followers load them."""

from __future__ import annotations

from kraftd.raft import effects as raft
from kraftd.simulation.checkers.checks import Checker, OnEffect
from kraftd.simulation.process import Process
from kraftd.types import OffsetAndEpoch


class SnapshotChecker(Checker):
    """The first snapshot of an id says what every other of the same id must hold."""

    def effects(self) -> dict[type, OnEffect]:
        return {raft.ResetLog: self.resetting, raft.BeginSnapshot: self.beginning}

    def beginning(self, process: Process, effect: raft.BeginSnapshot) -> None:
        if process.core.is_leader:
            self.fail("S11", f"{process!r} downloads {effect.snapshot_id}")

    def resetting(self, process: Process, effect: raft.ResetLog) -> None:
        if process.core.is_leader:
            self.fail("S11", f"{process!r} loads {effect.snapshot_id}")
        self.world.trace.kinds["snapshot loaded"] += 1

    def named(self, process: Process, snapshot_id: OffsetAndEpoch) -> None:
        """A checkpoint has its name: taken here, or downloaded."""
        committed = self.world.committed
        if snapshot_id.offset > committed.end:
            self.fail("S10", f"{process!r} has a snapshot at {snapshot_id}, committed is {committed.end}")
        entry = committed.entry_before(snapshot_id.offset)
        if entry is None or (entry.end, entry.epoch) != snapshot_id:
            self.fail("S10", f"{process!r} has a snapshot {snapshot_id}, the log has {entry} there")
        values = process.files.snapshot_values(snapshot_id)
        first = self.world.snapshots.setdefault(snapshot_id, values)
        if first != values:
            self.fail(
                "S10", f"{process!r}: snapshot {snapshot_id} holds something else than another of that id"
            )
