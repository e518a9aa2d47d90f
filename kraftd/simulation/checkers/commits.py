"""S5, S6, S7, S8: what is committed, by whom, and that it stays so everywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.raft import effects as raft
from kraftd.simulation.checkers.checks import Checker, OnEffect
from kraftd.simulation.process import Process

if TYPE_CHECKING:
    from kraftd.simulation.world import World


class CommitChecker(Checker):
    """The committed log of the world is what leaders have shown as committed."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._marks: dict[Process, int] = {}
        self._led: set[int] = set()
        self._ends: dict[int, int] = {}  # by epoch: how far its leader has committed

    def effects(self) -> dict[type, OnEffect]:
        return {raft.HighWatermarkMoved: self.moved}

    def moved(self, process: Process, effect: raft.HighWatermarkMoved) -> None:
        mark = effect.high_watermark
        host, committed = process.host, self.world.committed
        mirror = host.mirror
        before = self._marks.get(process, -1)
        if mark <= before:
            self.fail("S7", f"{process!r}: high watermark from {before} to {mark}")
        self._marks[process] = mark
        if mark > mirror.synced_end:
            self.fail("S7", f"{process!r} commits {mark}, synced to {mirror.synced_end}")
        core = process.core
        epoch = core.epoch if core.is_leader else process.led_before  # it may have resigned in the same step
        if epoch >= 0 and mark > committed.end:
            self._by_majority(process, mark)
            start = self.world.epoch_starts.get(epoch)
            if start is None or mark <= start:
                self.fail("S8", f"{process!r} commits {mark}, its epoch starts at {start}")
            for entry in mirror.between(committed.end, mark):
                if entry.base != committed.end:
                    self.fail("S6", f"{process!r} commits {entry} behind {committed.end}")
                committed.add(entry)
            self._ends[epoch] = mark
            if committed.end != mark:
                self.fail("S7", f"{process!r} commits {mark}, which is inside of a batch")
        elif mark > committed.end:
            self.fail("S7", f"{process!r} follows to {mark}, leaders have committed {committed.end}")
        for entry in mirror.between(max(before, mirror.start, mark - 64), mark):
            if committed.entry_before(entry.end) != entry:
                self.fail(
                    "S6", f"{process!r} holds {entry}, committed is {committed.entry_before(entry.end)}"
                )

    def _by_majority(self, process: Process, mark: int) -> None:
        """A majority of the voters has synced this very log up to there (S7, S14)."""
        cluster, voters = self.world.cluster, process.core.voters
        entry = process.host.mirror.entry_before(mark)
        holders = 0
        for voter in voters:
            key = voter.key
            directory = key.directory_id
            if directory is None:
                host = cluster.hosts.get(key.id)
                directory = host.directory_id if host is not None else b""
            mirror = cluster.directories.get((key.id, directory))
            holders += (
                mirror is not None
                and mirror.synced_end >= mark
                and (mirror.start >= mark or mirror.entry_before(mark) == entry)
            )
        if holders * 2 <= len(voters):
            self.fail("S7", f"{process!r} commits {mark}, synced by {holders} of {voters!r}")

    def after_step(self, process: Process) -> None:
        core = process.core
        if core.is_leader and core.epoch not in self._led:
            self._led.add(core.epoch)
            self._complete(process)

    def _complete(self, process: Process) -> None:
        """S5: a new leader has everything that was committed in epochs before its own.

        One that learns late of its votes may come after the leader of a later epoch, and commits nothing.
        """
        epoch = process.core.epoch
        end = max((end for other, end in self._ends.items() if other < epoch), default=0)
        committed, mirror = self.world.committed, process.host.mirror
        if end > mirror.start and mirror.epoch_before(end) != committed.epoch_before(end):
            self.fail("S5", f"{process!r} leads without the committed {committed.entry_before(end)}")

    def __repr__(self) -> str:
        return f"<CommitChecker, committed to {self.world.committed.end}>"
