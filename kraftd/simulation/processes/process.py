"""One run of one replica: the consensus core, its files, and its effects performed in virtual time.

The daemon's own code (`kraftd.host`) performs the effects; only its `ports` are simulated. A crash may follow
any effect, and the simulated disk decides how long a sync takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kraftd.fetch.purgatory import Purgatory
from kraftd.ground.destination import Destination
from kraftd.ground.effect import Effect
from kraftd.ground.event import Event
from kraftd.host.disk_job import DiskJob
from kraftd.host.executors.core_executor import EffectExecutor
from kraftd.host.ports import Ports
from kraftd.host.snapshots.checkpointing import MADE, make_checkpoint
from kraftd.host.upkeep.high_watermark_keeper import HighWatermarkKeeper
from kraftd.host.upkeep.snapshot_keeper import POLL_MS, SnapshotKeeper
from kraftd.host.upkeep.snapshot_request import request_snapshot
from kraftd.log.errors import StorageError
from kraftd.log.memory_disk import SimulatedCrash
from kraftd.messages.api_versions_request import ApiVersionsRequest
from kraftd.messages.api_versions_response import ApiVersionsResponse, SupportedFeatureKey
from kraftd.raft import effects as raft
from kraftd.raft.config import DurableState, RaftConfig, Randomness
from kraftd.raft.core import RaftCore
from kraftd.raft.events import (
    LogStartMoved,
    RequestAbandoned,
    RequestReceived,
    ResponseReceived,
    SnapshotFinished,
    SnapshotTaken,
    Started,
)
from kraftd.raft.replica import CommittedIsLost
from kraftd.simulation.options import keeper_settings
from kraftd.simulation.processes.core_executor import CoreExecutor, is_write
from kraftd.simulation.processes.files import Files
from kraftd.simulation.processes.network import Link, Request
from kraftd.simulation.processes.operator import Operator
from kraftd.simulation.processes.ports import (
    VirtualDiskThread,
    VirtualProcesses,
    VirtualThreads,
    VirtualTimer,
)
from kraftd.simulation.processes.state import Metadata, Registers
from kraftd.simulation.processes.versions import NEWEST, OLD
from kraftd.simulation.protocols import Host, World
from kraftd.types import OffsetAndEpoch
from kraftd.wire.error_code import ErrorCode

MARK_MS = 1_000  # between two writes of the high watermark: often, so that crashes meet them
CODES: dict[type, int] = {}  # of event types, in the trace


class EffectCrash(BaseException):
    """The process ends right here, between two effects."""


class Process:
    """See the module. `ended` is true once the process is gone; later events for it are dropped."""

    def __init__(self, world: World, host: Host, config: RaftConfig, files: Files) -> None:
        self.world = world
        self.host = host
        self.id = host.id
        self.config = config
        self._has_started = False
        self.files: Files = files
        self.speaks = OLD if host.is_old else NEWEST
        self.ended = False
        self.links: dict[Destination, Link] = {}
        self.incoming: list[Link] = []
        self.requests: dict[Any, None] = {}  # received, not answered
        self.state: Registers | Metadata = self._make_state()
        self.crash_after_effects: int | None = None
        self.now_ms = 0
        self.wall_ms = 0  # of the host, when this step began
        self.led_before = -1  # the epoch that it led when the step began
        self.disk_full = False  # a sync waits for disk space: nothing new is appended
        self.clients: Any = None  # its client side, after its first reader
        self.broker: Any = None  # its broker side, if it is a combined node
        self.log_thread = VirtualDiskThread(self)
        self.download_thread = VirtualDiskThread(self)
        self.threads = VirtualThreads(self)
        self.ports = Ports(
            VirtualTimer(self),
            self.log_thread,
            self.download_thread,
            self.threads,
            Operator(self),
            self.failed,
        )
        self._guards = 0
        durable = files.storage.durable_state(host.static_voters)
        rng = world.rng("core", host.id, host.starts)
        self.core = self._make_core(durable, rng)
        self.executor = self._make_executor()
        self.executor.before_effect = self._before_effect
        self.executor.after_step = self._after_step
        self._stepped_ms = -1  # when the core took its last step
        self.keeper = SnapshotKeeper(
            self.executor,
            self.core,
            lambda: self.replayed_to,
            VirtualProcesses(self),
            keeper_settings(world.options),
            self.deliver,
        )
        self.high_watermark_keeper = HighWatermarkKeeper(self.executor, self.core, MARK_MS)

    def __repr__(self) -> str:
        return f"<Process {self.host.starts} of {self.core!r}>"

    def _make_state(self) -> Registers | Metadata:
        return Registers(self.files)

    def _make_core(self, durable: DurableState, rng: Randomness) -> RaftCore:
        return RaftCore(self.config, durable, rng, Purgatory(), Purgatory())

    def _make_executor(self) -> EffectExecutor:
        return CoreExecutor(self)

    # --- being driven ---

    def start(self) -> None:
        if self.asleep(self.start):
            return
        self._has_started = True
        self.deliver(Started())
        if not self.ended:
            self.keeper.start(self.host.rng.between(1, POLL_MS))
            self.high_watermark_keeper.start(self.host.rng.between(1, MARK_MS))
        if self.broker is not None and not self.ended:
            self.guarded(self.broker.start)

    def deliver(self, event: Event) -> None:
        """Deliver an event, now or after a pause; not at all if the process is gone."""
        if not self.asleep(self.deliver, event):
            self.guarded(self._take, event)

    def _take(self, event: Event) -> None:
        kind = type(event)
        if kind is ResponseReceived:
            self.executor.received(event)  # type: ignore[arg-type]
            if self.executor.downloads.keeps_waiting:
                self.world.trace.kinds["leader kept waiting by a slow disk"] += 1
            return
        self.note_snapshots(event)
        self.executor.step(event)

    def note_snapshots(self, event: Event) -> None:
        """Note that the disk has changed, before the core is notified."""
        kind = type(event)
        if kind is SnapshotTaken or kind is SnapshotFinished:
            if kind is SnapshotFinished:
                self.world.trace.kinds["download finished"] += 1
            self.world.checks.snapshot_named(self, event.snapshot_id)  # type: ignore[attr-defined]
        elif kind is LogStartMoved:
            self.host.mirror.start_at(self.files.log.log_start)
            self.world.checks.log_start_moved(self)

    def link_closed(self, link: Link) -> None:
        """Handle that a connection to this process is gone, with its waiting calls."""
        for request in [one for one in self.requests if one.link is link]:
            self.deliver(RequestAbandoned(request))

    def guarded(self, action: Callable[..., object], *arguments: Any) -> None:
        """Run an action of the process; it may crash in it."""
        if self._guards:
            action(*arguments)
            return
        self._guards += 1
        try:
            action(*arguments)
            for side in (self.clients, self.broker):
                if side is not None and not self.ended:
                    side.poll()
        except (SimulatedCrash, EffectCrash) as crash:
            if not self.ended:
                self._cut_short()
                self.world.cluster.crashed(self.host, type(crash).__name__)
        finally:
            if vars(self):  # the world still exists
                self._guards -= 1

    def failed(self, error: BaseException) -> None:
        """Handle an error that ends the daemon."""
        if isinstance(error, CommittedIsLost) and self.world.cluster.is_ahead(self.host):
            self.world.cluster.ended_ahead(self.host)
            return
        if not isinstance(error, StorageError):
            raise error
        self.world.cluster.failed(self.host, error)

    def asleep(self, action: Callable[..., None], *arguments: Any) -> bool:
        """Return whether the process is gone or paused; when a pause ends, do the action.

        If a process was to start during the pause, its start comes before anything that arrives when the
        pause ends.
        """
        if self.ended:
            return True
        now_us, resumes_us = self.world.schedule.now_us, self.host.paused_until_us
        is_early = not self._has_started and action != self.start
        if resumes_us > now_us or is_early:
            self.world.schedule.at(max(resumes_us, now_us), action, *arguments)
            return True
        return False

    # --- a step ---

    def step_core(self, event: Event, now_ms: int) -> Iterable[Effect]:
        """Step the core with an event, watched by the checkers."""
        world, core = self.world, self.core
        now_us = world.schedule.now_us
        self.now_ms = now_ms
        kind = type(event)
        if kind is RequestReceived:
            if type(event.message) is ApiVersionsRequest:  # type: ignore[attr-defined]
                self._answer_api_versions(event.request_id)  # type: ignore[attr-defined]
                return ()
            self.requests[event.request_id] = None  # type: ignore[attr-defined]
        elif kind is RequestAbandoned:
            self.requests.pop(event.request_id, None)  # type: ignore[attr-defined]
        elif self.disk_full and is_write(event):
            self.refuse_write(event)
            return ()
        checks = world.checks
        self.led_before = core.epoch if core.is_leader else -1
        if world.trace.echo is not None:
            world.trace.write(now_us, f"{self.id}: {event!r}")
        checks.before_step(self, event)
        self._stepped_ms = now_ms
        effects = core.step(event, now_ms)
        world.trace.step(
            now_us, self.id, code_of(kind), core.epoch, core.log_end_offset, core.high_watermark, len(effects)
        )
        return effects

    def _before_effect(self, effect: Effect) -> None:
        """Check each effect once, before its first attempt."""
        if self.crash_after_effects is not None:
            if self.crash_after_effects == 0:
                raise EffectCrash
            self.crash_after_effects -= 1
        world = self.world
        if world.trace.echo is not None:
            world.trace.write(world.schedule.now_us, f"{self.id}:     {effect!r}")
        kind = type(effect)
        for check in world.checks.on_effect.get(kind, ()):
            check(self, effect)
        if kind in self.reads_pieces and self.host.read_trap is not None:
            trap, self.host.read_trap = self.host.read_trap, None
            world.schedule.after(1, trap, self)
            self.threads.next_is_late = True

    reads_pieces: frozenset[type] = frozenset({raft.RespondSnapshot})

    def _cut_short(self) -> None:
        """Handle a step that ends before all of its effects are done."""

    def _after_step(self) -> None:
        """Check after all effects of a step. A repeated write, which a full disk had refused, is no step of
        the core.
        """
        if self._stepped_ms == self.now_ms:
            self.world.checks.after_step(self)
        self._end_if_shut_down()

    def _end_if_shut_down(self) -> None:
        if self.executor.shutdown_completed:
            self.world.cluster.stopped(self.host)

    @property
    def is_held(self) -> bool:
        """Return whether effects wait for space on the disk."""
        return self.executor.is_held

    @property
    def waits_for_room(self) -> bool:
        """Return whether the disk is full, as far as this process knows."""
        return self.disk_full or self.executor.waits_for_room

    @property
    def next_offset(self) -> int:
        """The offset after the log and after all decisions to append to it."""
        return self.core.log_end_offset

    @property
    def replayed_to(self) -> int:
        """How far the state machine of the snapshots has replayed the log."""
        return self.core.high_watermark

    # --- files ---

    def note_what_is_synced(self) -> None:
        """Note what a thread's sync has made durable; the core is notified a little later."""
        self.host.mirror.sync(self.files.log.synced_end)

    def note_election(self, effect: raft.PersistElection) -> None:
        """Note that the election state is durable."""
        self.host.persisted = effect.state.leader_epoch, effect.state.voted_id

    def begin_job(self, job: DiskJob[Any]) -> None:
        """Note that a thread is about to use the disk."""
        if type(job.effect) is raft.FinishSnapshot and not job.is_waiting:
            self.host.spring_snapshot_trap()

    def end_job(self, job: DiskJob[Any]) -> None:
        """A thread has done it."""
        effect, host, kinds = job.effect, self.host, self.world.trace.kinds
        if isinstance(effect, raft.BeginSnapshot):
            if effect.position:
                again = host.downloaded == (effect.snapshot_id, host.starts)
                kinds["download goes on" if again else "download goes on after a restart"] += 1
            else:
                kinds["download begun"] += 1
            host.downloaded = effect.snapshot_id, host.starts
        elif isinstance(effect, raft.WriteSnapshot):
            if host.download_trap is not None:
                self.world.schedule.after(0, host.download_trap, self)
        elif isinstance(effect, raft.AbandonSnapshot):
            kinds["download given up"] += 1

    def close(self) -> None:
        """The end of the daemon. Raises StorageError, SimulatedCrash."""
        if self.broker is not None:
            self.broker.close_files()
        self.keeper.stop()
        self.high_watermark_keeper.stop()
        self.executor.stop()
        for thread in (self.log_thread, self.download_thread):
            thread.finish()
        self.high_watermark_keeper.write()
        self.files.log.close()
        self.note_what_is_synced()

    # --- snapshots ---

    def request_snapshot(self) -> bool:
        """Request a snapshot as `kraftd snapshot` does; returns False if there is no space for
        the request.
        """
        try:
            name = f"{self.id}-{self.world.schedule.now_us}"
            self.guarded(request_snapshot, self.files.disk, self.files.log.directory, name)
        except StorageError:
            return False
        return True

    def replace_snapshot(self, snapshot_id: OffsetAndEpoch) -> bool:
        """Get a newer snapshot than that one, made now if necessary, and delete all before it."""
        if self.ended or self.is_held or self.keeper.is_making:
            return False
        before = self.files.log.log_start
        self.guarded(self._replace, snapshot_id)
        return not self.ended and self.files.log.log_start > before

    def _replace(self, snapshot_id: OffsetAndEpoch) -> None:
        log, keeper = self.files.log, self.keeper
        try:
            latest = log.latest_snapshot
            if latest is None or latest.offset <= snapshot_id.offset:
                if self.core.high_watermark <= (0 if latest is None else latest.offset):
                    return
                order = keeper.order()
                if order is None:
                    return
                now_ms = self.ports.timer.now_ms()
                made = make_checkpoint(self.files.disk, order, now_ms)
                if made.outcome != MADE:
                    return
                keeper.register(order, made, now_ms)
                latest = log.latest_snapshot
            assert latest is not None
            if not self.ended:
                keeper.start_log_at(latest)
        except StorageError:
            pass  # the daemon logs it

    def check_files(self) -> None:
        """Scrub now: read every file; all damage at rest must be found."""
        if not self.asleep(self.check_files):
            self.guarded(self.keeper.scrub)

    # --- messages ---

    def refuse_write(self, event: Any) -> None:
        self.world.trace.kinds["refused by a full disk"] += 1
        self.notify_workload(raft.AppendRefused(event.append_id, ErrorCode.NOT_CONTROLLER))

    def hang_up(self, request: Any) -> None:
        """Close the connection of a request whose data cannot be read, at least not now."""
        self.requests.pop(request, None)
        if isinstance(request, Request):
            self.world.network.reset(request.link)
        else:
            self.world.workload.lost(self, request)

    def answer(self, request: Any, message: Any) -> None:
        self.requests.pop(request, None)
        if isinstance(request, Request):
            self.world.network.answer(self, request, message)
        else:
            self.world.workload.answered(self, request, message)

    def _answer_api_versions(self, request: Request) -> None:
        low, high = self.config.min_kraft_version, self.config.max_kraft_version
        features = [SupportedFeatureKey("kraft.version", low, high)]
        self.world.network.answer(self, request, ApiVersionsResponse(supported_features=features))

    def notify_workload(self, effect: Any) -> None:
        self.world.workload.append_settled(self, effect)


def code_of(kind: type) -> int:
    """The number of an event type in the trace."""
    code = CODES.get(kind)
    if code is None:
        code = CODES[kind] = sum(kind.__name__.encode())
    return code
