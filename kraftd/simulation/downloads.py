"""The thread that writes a leader's snapshot to a replica's disk, as the daemon's.

One thing after the other, in the order in which the core wants it, tried again on a full disk.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from kraftd.raft import effects as raft
from kraftd.raft.events import SnapshotFinished, SnapshotRefused
from kraftd.simulation.schedule import MS
from kraftd.storage.errors import CorruptStorage, DiskFull, StorageError
from kraftd.storage.memory_disk import SimulatedCrash
from kraftd.types import OffsetAndEpoch

if TYPE_CHECKING:
    from kraftd.simulation.process import Process

Outcome = SnapshotFinished | SnapshotRefused
Job = Callable[[], Outcome | None]
RETRY_US = 500 * MS


class Downloads:
    """`under_way` is the snapshot whose pieces are being written."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.download = process.files.download
        self.under_way: OffsetAndEpoch | None = None
        self._jobs: deque[tuple[Job, int]] = deque()  # with how long each takes
        self._waits_for_room = False

    # --- what the core wants ---

    def begin(self, effect: raft.BeginSnapshot) -> None:
        self._put(lambda: self._begin(effect), 1)

    def write(self, effect: raft.WriteSnapshot) -> None:
        self._put(lambda: self._write(effect), self.process.host.told_delay_us())

    def finish(self, effect: raft.FinishSnapshot) -> None:
        self._put(self._finish_of(effect), self.process.host.sync_delay_us())

    def abandon(self, effect: raft.AbandonSnapshot) -> None:
        self._put(lambda: self._abandon(effect), 1)

    # --- the thread's part ---

    def _put(self, job: Job, takes_us: int) -> None:
        self._jobs.append((job, takes_us))
        if len(self._jobs) == 1:
            self.process.world.schedule.after(takes_us, self._run)

    def _run(self) -> None:
        process = self.process
        if process.asleep(self._run):
            return
        try:
            outcome = self._jobs[0][0]()
        except SimulatedCrash as crash:
            process.world.cluster.crashed(process.host, type(crash).__name__)
            return
        except DiskFull:
            if not self._waits_for_room:
                process.world.note("download waits for room", process.id)
            self._waits_for_room = True
            process.world.schedule.after(RETRY_US, self._run)
            return
        except StorageError as error:
            process.world.cluster.failed(process.host, error)
            return
        self._waits_for_room = False
        self._jobs.popleft()
        if outcome is not None:
            process.world.schedule.after(1, self._done, outcome)
        if self._jobs:
            process.world.schedule.after(self._jobs[0][1], self._run)

    def _begin(self, effect: raft.BeginSnapshot) -> None:
        self.download.begin(effect)
        self.under_way = effect.snapshot_id
        host, kinds = self.process.host, self.process.world.trace.kinds
        if effect.position:
            again = host.downloaded == (effect.snapshot_id, host.starts)
            kinds["download goes on" if again else "download goes on after a restart"] += 1
        else:
            kinds["download begun"] += 1
        host.downloaded = effect.snapshot_id, host.starts

    def _write(self, effect: raft.WriteSnapshot) -> None:
        self.download.write(effect)
        trap = self.process.host.download_trap
        if trap is not None:
            self.process.world.schedule.after(0, trap, self.process)

    def _finish_of(self, effect: raft.FinishSnapshot) -> Job:
        def finish() -> Outcome | None:
            if not self._waits_for_room:
                self.process.host.spring_snapshot_trap()
            try:
                return self.download.finish(effect)
            except CorruptStorage:
                refused = self.download.refuse()
                return None if refused is None else SnapshotRefused(refused)

        return finish

    def _abandon(self, effect: raft.AbandonSnapshot) -> None:
        self.download.abandon(effect)
        self.under_way = None
        self.process.world.trace.kinds["download given up"] += 1

    # --- back on the loop ---

    def _done(self, outcome: Outcome) -> None:
        process = self.process
        if process.asleep(self._done, outcome):
            return
        self.under_way = None
        if type(outcome) is SnapshotFinished:
            process.world.trace.kinds["download finished"] += 1
            self.download.named(outcome)
            process.world.checks.snapshot_named(process, outcome.snapshot_id)
        else:
            process.world.note("download refused", process.id)
            self._distrust_the_leader()
        process.tell(outcome)

    def _distrust_the_leader(self) -> None:
        """Whoever reads of a damaged download has the leader's files checked."""
        leader = self.process.world.cluster.leader()
        if leader is not None and leader.host.was_damaged:
            self.process.world.schedule.after(1_000 * MS, leader.keeper.check_files)

    def __repr__(self) -> str:
        return f"<Downloads of {self.under_way}, {len(self._jobs)} things to do>"
