"""The ports of a host in virtual time: its timer, its threads, and its child processes.

An action planned for a process happens only while it runs: after a pause, and never after its end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from kraftd.host.disk_job import RETRY_MS, DiskJob
from kraftd.host.ports import FilesChecked, ProcessFailed
from kraftd.host.snapshots.checkpointing import CheckpointFailed, CheckpointMade, CheckpointOrder, carry_out
from kraftd.host.upkeep.scrubbing import check_files
from kraftd.log.errors import StorageError
from kraftd.raft.effects import WriteSnapshot
from kraftd.simulation.protocols import Process
from kraftd.simulation.schedule import MS

T = TypeVar("T")

CALLBACK_US = 5  # until the next event loop callback
LATE_US = 1_000 * MS  # a slow read of a snapshot's piece
HANG_CHANCE = 0.03  # of a process that makes a snapshot


class Planned:
    """An action that is planned, unless it is cancelled."""

    __slots__ = ("action", "arguments")

    def __init__(self, action: Callable[..., object], arguments: tuple[Any, ...]) -> None:
        self.action: Callable[..., object] | None = action
        self.arguments = arguments

    def cancel(self) -> None:
        self.action = None


class VirtualTimer:
    """The clock of the process's host, and its event loop."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._schedule = process.world.schedule

    def now_ms(self) -> int:
        return self._process.host.clock.now_ms(self._schedule.now_us)

    def wall_ahead_ms(self) -> int:
        return self._process.host.clock.wall_ahead_ms()

    def call_soon(self, action: Callable[..., object], *arguments: Any) -> None:
        self._schedule.after(CALLBACK_US, self._run, Planned(action, arguments))

    def call_at(self, at_ms: int, action: Callable[..., object], *arguments: Any) -> Planned:
        planned = Planned(action, arguments)
        self._schedule.at(self._process.host.clock.when_us(at_ms), self._run, planned)
        return planned

    def _run(self, planned: Planned) -> None:
        if planned.action is not None and not self._process.asleep(self._run, planned):
            self._process.guarded(planned.action, *planned.arguments)


class VirtualDiskThread:
    """Runs one job after the other, each for as long as the disk takes."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._schedule = process.world.schedule
        self._jobs: deque[DiskJob[Any]] = deque()
        self._notified_us = 0  # when the event loop is notified of the last job

    def run(self, job: DiskJob[Any]) -> None:
        self._jobs.append(job)
        if len(self._jobs) == 1:
            self._schedule.after(self._takes_us(job), self._work)

    def finish(self) -> None:
        """Do the waiting jobs, except those that a full disk prevents; the event loop is not notified."""
        while self._jobs and self._jobs[0].attempt(lambda *_: None):
            self._jobs.popleft()

    def _takes_us(self, job: DiskJob[Any]) -> int:
        host = self._process.host
        if job.syncs:
            return host.sync_delay_us()
        return host.callback_delay_us() * host.sync_factor if type(job.effect) is WriteSnapshot else 1

    def _work(self) -> None:
        if not self._process.asleep(self._work):
            self._process.guarded(self._attempt, self._jobs[0])

    def _attempt(self, job: DiskJob[Any]) -> None:
        process = self._process
        process.begin_job(job)
        try:
            done = job.attempt(self._notify)
        except Exception as error:
            self._notify(process.executor.fail, error)
            return
        finally:
            process.note_what_is_synced()
        if not done:
            self._schedule.after(RETRY_MS * MS, self._work)
            return
        self._jobs.popleft()
        process.end_job(job)
        if self._jobs:
            self._schedule.after(self._takes_us(self._jobs[0]), self._work)

    def _notify(self, function: Callable[..., object], *arguments: Any) -> None:
        delay_us = self._process.host.callback_delay_us()
        self._notified_us = max(self._notified_us, self._schedule.now_us + delay_us)
        self._schedule.at(self._notified_us, self._call_now, function, arguments)

    def _call_now(self, function: Callable[..., object], arguments: tuple[Any, ...]) -> None:
        if not self._process.asleep(self._call_now, function, arguments):
            self._process.guarded(function, *arguments)


class VirtualThreads:
    """Work beside the event loop; the next job may be planned to be slow."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._schedule = process.world.schedule
        self.next_is_late = False

    def run(
        self, work: Callable[[], T], done: Callable[[T], object], failed: Callable[[Exception], object]
    ) -> None:
        delay_us = LATE_US if self.next_is_late else self.delay_us()
        self.next_is_late = False
        self._schedule.after(delay_us, self._run, work, done, failed)

    def delay_us(self) -> int:
        """How long a job takes."""
        return self._process.host.callback_delay_us()

    def _run(
        self, work: Callable[[], T], done: Callable[[T], object], failed: Callable[[Exception], object]
    ) -> None:
        if not self._process.asleep(self._run, work, done, failed):
            self._process.guarded(self._do, work, done, failed)

    def _do(
        self, work: Callable[[], T], done: Callable[[T], object], failed: Callable[[Exception], object]
    ) -> None:
        try:
            result = work()
        except Exception as error:
            failed(error)
        else:
            self._process.note_what_is_synced()
            done(result)


class VirtualChild:
    """A process beside the simulated one; `ended` is called once, unless it is killed."""

    pid = 1

    def __init__(self, process: Process, ended: Callable[[Any], object]) -> None:
        self.is_over = False
        self._process = process
        self._ended = ended

    def end(self, result: Any) -> None:
        """Deliver the result a little later."""
        if not self.is_over:
            self.is_over = True
            world, host = self._process.world, self._process.host
            world.schedule.after(host.callback_delay_us(), self._notify, self._ended, result)

    def abandon(self) -> None:
        self.end(ProcessFailed("it was killed"))

    def kill(self) -> None:
        self.is_over = True
        self._ended = _nothing

    def _notify(self, ended: Callable[[Any], object], result: Any) -> None:
        if not self._process.asleep(self._notify, ended, result):
            self._process.guarded(ended, result)


class VirtualProcesses:
    """The code of the real child processes does the work, in one moment and on its state."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._world = process.world

    def make_checkpoint(
        self, order: CheckpointOrder, ended: Callable[[CheckpointMade | ProcessFailed], object]
    ) -> VirtualChild:
        child, rng = VirtualChild(self._process, ended), self._process.host.rng
        if rng.chance(HANG_CHANCE):
            self._world.note("snapshot writer hangs", self._process.id)
            return child
        delay_us = rng.between(1 * MS, rng.choice((5, 300, 3_000)) * MS)
        self._world.schedule.after(delay_us, self._write, child, order)
        return child

    def _write(self, child: VirtualChild, order: CheckpointOrder) -> None:
        process = self._process
        if not child.is_over and not process.asleep(self._write, child, order):
            process.guarded(self._make, child, order)

    def _make(self, child: VirtualChild, order: CheckpointOrder) -> None:
        process, world = self._process, self._world
        now_ms = process.executor.wall_ms()
        process.host.spring_snapshot_trap()
        made: CheckpointMade | ProcessFailed
        try:
            made = carry_out(process.files.disk, order, now_ms)
        except CheckpointFailed as error:
            made = ProcessFailed(str(error))
        outcome = made.outcome if isinstance(made, CheckpointMade) else "failed"
        world.note("snapshot writer", process.id, outcome)
        world.trace.kinds[f"snapshot {outcome}"] += 1
        child.end(made)

    def check_files(
        self, directory: str, end_offset: int, ended: Callable[[FilesChecked], object]
    ) -> VirtualChild:
        process = self._process
        errors: list[StorageError] = []
        rows = list(check_files(process.files.disk, directory, end_offset, errors.append))
        self._world.trace.kinds["scrub"] += 1
        self._world.checks.scrubbed(process, {row["path"] for row in rows})
        child = VirtualChild(process, ended)
        child.end(FilesChecked(rows, "; ".join(map(str, errors))))
        return child


def _nothing(_: Any) -> None:
    """No peer is notified."""
