"""S5, S6, S7, S8, S14: which records are committed, by which leader, and that they stay so everywhere."""

from __future__ import annotations

from kraftd.raft import effects as raft
from kraftd.raft.roles import Leader
from kraftd.simulation.checkers.checker import Checker, OnEffect
from kraftd.simulation.cluster import Cluster
from kraftd.simulation.processes.process import Process
from kraftd.simulation.protocols import Host, World


class CommitChecker(Checker):
    """The world's committed log: the records that leaders have shown as committed."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._marks: dict[Process, int] = {}
        self._led: set[int] = set()
        self._ends: dict[int, int] = {}  # by epoch: how far its leader has committed
        self._shown: dict[int, int] = {}  # by epoch: how far its leader has shown commits, new or not
        self._resets: dict[Process, int] = {}  # where a leader's snapshot replaced a process's log
        self._by_directory: dict[tuple[int, bytes], int] = {}  # high watermarks, also of lost directories

    def effects(self) -> dict[type, OnEffect]:
        return {raft.HighWatermarkMoved: self.moved, raft.ResetLog: self._resetting}

    def known_before(self, end: int) -> None:
        """Begin with a log whose records all count as committed."""
        self._ends[0] = end

    def shown(self, process: Process) -> int:
        """The process's high watermark; -1 while it knows none."""
        return self._marks.get(process, -1)

    def shown_by_leader(self, epoch: int) -> int:
        """The high watermark of the leader of an epoch; -1 while it knows none."""
        return self._shown.get(epoch, -1)

    def restored(self, host: Host) -> None:
        """An old copy of a directory may hold records that were dropped since, and knows little."""
        self._by_directory.pop((host.id, host.directory_id), None)

    def _resetting(self, process: Process, effect: raft.ResetLog) -> None:
        """Note that from there on the process has the leader's records, and none that were lost."""
        self._resets[process] = effect.snapshot_id.offset
        self.world.cluster.ahead.discard((process.host.id, process.host.directory_id))

    def moved(self, process: Process, effect: raft.HighWatermarkMoved) -> None:
        mark = effect.high_watermark
        host, committed = process.host, self.world.committed
        mirror = host.mirror
        before = self._marks.get(process, -1)
        if mark <= before:
            self.fail("S7", f"{process!r}: high watermark from {before} to {mark}")
        self._marks[process] = mark
        if self.world.cluster.is_ahead(host):
            return  # this process must end
        self._by_directory[host.id, host.directory_id] = mark
        core = process.core
        epoch = core.epoch if core.is_leader else process.led_before  # it may have resigned in the same step
        if mark > mirror.synced_end and epoch < 0:  # others may have synced records before their leader
            self.fail("S7", f"{process!r} follows to {mark}, synced to {mirror.synced_end}")
        if mark == self._resets.get(process, -1):
            if mark > committed.end:
                self.fail("S7", f"{process!r} has a snapshot to {mark}, committed is {committed.end}")
        elif epoch >= 0:
            self._led_to(process, epoch, mark)
        elif mark > self._shown.get(core.epoch, -1):
            shown = self._shown.get(core.epoch)
            self.fail("S7", f"{process!r} follows to {mark}, the leader of its epoch has shown {shown}")
        for entry in mirror.between(max(before, mirror.start, mark - 64), mark):
            if committed.entry_before(entry.end) != entry:
                self.fail(
                    "S6", f"{process!r} holds {entry}, committed is {committed.entry_before(entry.end)}"
                )

    def _led_to(self, process: Process, epoch: int, mark: int) -> None:
        """Check a leader's high watermark, even if another leader has committed as much before."""
        committed = self.world.committed
        self._by_majority(process, mark)
        self._shown[epoch] = mark  # a leader that resigns in this step has shown it
        start = self.world.epoch_starts.get(epoch)
        if start is None or mark <= start:
            self.fail("S8", f"{process!r} commits {mark}, its epoch starts at {start}")
        if mark <= committed.end:
            return
        for entry in process.host.mirror.between(committed.end, mark):
            if entry.base != committed.end:
                self.fail("S6", f"{process!r} commits {entry} behind {committed.end}")
            committed.add(entry)
            self.world.reference.commit(entry)
        self._ends[epoch] = mark
        if committed.end != mark:
            self.fail("S7", f"{process!r} commits {mark}, which is inside of a batch")

    def at_rest(self) -> None:
        """S6: no directory of any replica holds other records than those that it has shown as committed."""
        committed = self.world.committed
        for where, mirror in self.world.cluster.directories.items():
            mark = self._by_directory.get(where, -1)
            for entry in mirror.entries:
                if entry.end <= mark and committed.entry_before(entry.end) != entry:
                    self.fail("S6", f"the directory of {where[0]} was committed to {mark} and holds {entry}")

    def _by_majority(self, process: Process, mark: int) -> None:
        """Check that a majority of the voters has synced this exact log up to there (S7, S14)."""
        cluster: Cluster = self.world.cluster
        voters = process.core.voters
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

    def started(self, process: Process) -> None:
        """Note a start. A snapshot's records were committed, so a process that has one knows that much at
        once.
        """
        latest = process.files.log.latest_snapshot
        if latest is not None:
            self._resets[process] = latest.offset

    def after_step(self, process: Process) -> None:
        core = process.core
        role = core._replica.role
        if not isinstance(role, Leader):
            return
        epoch = core.epoch
        if epoch not in self._led:
            self._led.add(epoch)
            self._complete(process)
        # A leader may report less to its followers than it knew as a follower.
        if role.high_watermark != self._shown.get(epoch, -1):
            if role.high_watermark < self._shown.get(epoch, -1):
                self.fail("S7", f"{process!r} shows {role.high_watermark} after {self._shown[epoch]}")
            self._shown[epoch] = role.high_watermark

    def _complete(self, process: Process) -> None:
        """S5: a new leader has everything that was committed in earlier epochs.

        A leader whose votes arrive late may follow the leader of a later epoch; it commits nothing.
        """
        epoch = process.core.epoch
        end = max((end for other, end in self._ends.items() if other < epoch), default=0)
        committed, mirror = self.world.committed, process.host.mirror
        if end > mirror.start and mirror.epoch_before(end) != committed.epoch_before(end):
            self.fail("S5", f"{process!r} leads without the committed {committed.entry_before(end)}")

    def __repr__(self) -> str:
        return f"<CommitChecker, committed to {self.world.committed.end}>"
