"""Performs the effects of a consensus core, over ports: one event in, its effects out, in order.

The order of effects is the order of durability. On a full disk the first effect that needs space waits for
it, with all later ones. Events that must not be lost wait behind them. `node_executor` adds the effects of a
whole controller.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kraftd.ground.event import DeadlineReached
from kraftd.histogram import Histogram
from kraftd.host.disk_job import RETRY_MS, DiskJob
from kraftd.host.executors.truncations import Truncations
from kraftd.host.ports import Effects, Handle, PeerWire, Ports
from kraftd.host.snapshots.downloads import MAX_WAITING_BYTES, Downloads
from kraftd.host.snapshots.snapshot_download import SnapshotDownload
from kraftd.host.snapshots.snapshot_reads import PieceRead, SnapshotReads
from kraftd.host.storage import Storage
from kraftd.log.errors import DiskFull, StorageError
from kraftd.raft import effects as raft
from kraftd.raft.events import BatchLocated, RecordsSynced, ResponseReceived, WallClockStepped
from kraftd.raft.replica import CommittedIsLost

REPEAT_MS = 60_000  # between lines about a disk that stays full
FOLLOWED_MS = 10  # a smaller step of the wall clock waits until it is as large


class EffectExecutor:
    """Drives a machine: `step` passes it an event and performs the effects, until a failure.

    machine_step(event, now_ms) returns effects, machine_deadline_ms() says when DeadlineReached is due.
    before_effect is called once for each effect, before its first attempt; after_step when all effects of a
    step are done.
    """

    def __init__(
        self,
        machine_step: Callable[[Any, int], Effects],
        machine_deadline_ms: Callable[[], int | None],
        storage: Storage,
        download: SnapshotDownload,
        wire: PeerWire,
        ports: Ports,
        max_waiting_bytes: int = MAX_WAITING_BYTES,
    ) -> None:
        self.storage = storage
        self.ports = ports
        self.log = ports.log
        self.before_effect: Callable[[Any], None] | None = None
        self.after_step: Callable[[], None] | None = None
        self.shutdown_completed = False
        self.truncations = Truncations(storage.log, ports.log, self.wall_ms)
        self.delays = Histogram()  # how late timers ran, and thus how long any callback waits
        self.downloads = Downloads(
            download, ports.download_thread, self.snapshot_event, ports.log, max_waiting_bytes
        )
        self.snapshot_reads = SnapshotReads(
            storage, ports.work_threads, ports.timer.now_ms, self.piece_read, self.piece_unreadable
        )
        self._machine_step = machine_step
        self._machine_deadline_ms = machine_deadline_ms
        self._peers = wire
        self._timer = ports.timer
        self._dead = False
        self._wall_ahead_ms = 0
        self._held: list[Any] | None = None  # effects that wait for space on the disk
        self._waits_for_room = False
        self._next_report_ms = 0  # of a full disk
        self._waiting_events: list[Any] = []  # events that wait behind them
        self._alarm: Handle | None = None
        self._alarm_ms = 0
        self._due_ms = 0
        self._perform: dict[type, Callable[[Any], object]] = {
            raft.PersistElection: self.persist_election,
            raft.AppendRecords: self._append,
            raft.SyncLog: self._sync,
            raft.LocateBatch: self._locate_batch,
            raft.TruncateLog: self._truncate,
            raft.ResetLog: self._reset_log,
            raft.Send: wire.send,
            raft.BeginSnapshot: self.downloads.begin,
            raft.WriteSnapshot: self.downloads.write,
            raft.FinishSnapshot: self.downloads.finish,
            raft.AbandonSnapshot: self.downloads.abandon,
            raft.ShutdownCompleted: self._shutdown_completed,
        }

    # -- one step

    def step(self, event: Any) -> None:
        """Step the machine with an event and perform the effects."""
        if self._dead:
            return
        self.follow_wall_clock()
        if self._held is not None:
            self._put_off(event)
            return
        try:
            self._carry_out(self._machine_step(event, self._timer.now_ms()))
        except Exception as error:
            self.fail(error)

    def follow_wall_clock(self) -> None:
        """Step the machine if the wall clock has been set since the last call."""
        ahead_ms = self._timer.wall_ahead_ms()
        if abs(ahead_ms - self._wall_ahead_ms) < FOLLOWED_MS or self._dead or self._held is not None:
            return
        self._wall_ahead_ms = ahead_ms
        try:
            self._carry_out(self._machine_step(WallClockStepped(ahead_ms), self._timer.now_ms()))
        except Exception as error:
            self.fail(error)

    def perform(self, made: Effects) -> None:
        """Perform effects that have no event."""
        try:
            self._carry_out(made)
        except Exception as error:
            self.fail(error)

    def received(self, event: ResponseReceived) -> None:
        """Handle an answer of another replica; pieces of a snapshot wait while earlier ones are being
        written.
        """
        self.downloads.received(event)

    def snapshot_event(self, event: Any) -> None:
        """Handle an event of downloads."""
        self.step(event)

    def _carry_out(self, made: Effects, seen_count: int = 0) -> None:
        """Perform effects in order. On a full disk the first that needs space waits, with all later ones."""
        perform, before = self._perform, self.before_effect
        left = iter(made)
        effect = None
        try:
            for effect in left:
                if before is not None:
                    if seen_count:
                        seen_count -= 1
                    else:
                        before(effect)
                perform[type(effect)](effect)
        except DiskFull as error:
            self._hold([effect, *left], error)
        finally:
            self.flush()
        deadline_ms = self._machine_deadline_ms()
        if deadline_ms is not None and (self._alarm is None or deadline_ms < self._alarm_ms):
            self._set_alarm(deadline_ms)
        if self._held is None and self.after_step is not None:
            self.after_step()

    def flush(self) -> None:
        """Send the answers of this step."""
        self._peers.flush()

    def fail(self, error: BaseException) -> None:
        """Report an error that must end this process. A refusal to lose committed records is durable first,
        so that the next process refuses as well.
        """
        if not self._dead:
            self._dead = True
            if isinstance(error, CommittedIsLost):
                try:
                    self.storage.keep_refusal(error)
                except StorageError as failure:
                    self.log.error("the high watermark could not be written", error=str(failure))
            self.ports.failed(error)

    def stop(self) -> None:
        """Stop steps and alarms."""
        self._dead = True
        if self._alarm is not None:
            self._alarm.cancel()

    # -- time

    def wall_ms(self) -> int:
        """The wall clock."""
        return self._timer.now_ms() + self._timer.wall_ahead_ms()

    def _set_alarm(self, deadline_ms: int) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_ms = deadline_ms
        self._due_ms = max(deadline_ms, self._timer.now_ms())
        self._alarm = self._timer.call_at(deadline_ms, self._rung)

    def _rung(self) -> None:
        self._alarm = None
        if self._dead:
            return
        now_ms = self._timer.now_ms()
        self.delays.note(max(0, now_ms - self._due_ms) * 1_000_000)
        deadline_ms = self._machine_deadline_ms()
        if deadline_ms is not None and deadline_ms > now_ms:
            self._set_alarm(deadline_ms)  # it was postponed
        else:
            self.step(DeadlineReached())

    # -- a full disk

    @property
    def is_held(self) -> bool:
        """Return whether an effect, with all later ones, waits for space on the disk."""
        return self._held is not None

    def _hold(self, left: list[Any], error: DiskFull) -> None:
        """Hold all effects, because one that must be durable before the others cannot be written."""
        now_ms = self._timer.now_ms()
        if not self._waits_for_room or now_ms >= self._next_report_ms:
            self.log.error("the disk is full: this node waits for room", error=str(error))
            self._next_report_ms = now_ms + REPEAT_MS
        self._waits_for_room = True
        self._held = left
        self._timer.call_at(now_ms + RETRY_MS, self._go_on)

    def _go_on(self) -> None:
        """Retry the held effects, then handle the events that have arrived since."""
        held, self._held = self._held, None
        if held is None or self._dead:
            return
        try:
            self._carry_out(held, seen_count=1)
        except Exception as error:
            self.fail(error)
            return
        if self._held is None:
            self._waits_for_room = False
            self.log.info("the disk has room again: this node continues")
            put_off, self._waiting_events = self._waiting_events, []
            for event in put_off:
                self.step(event)
            self.step(DeadlineReached())

    def _put_off(self, event: Any) -> None:
        """Keep an event that must not be lost until there is space; refuse a request."""
        if type(event) is not DeadlineReached and not self._peers.refuse_request(event):
            self._waiting_events.append(event)

    @property
    def waits_for_room(self) -> bool:
        """Return whether something that must become durable waits for space on the disk."""
        return self._waits_for_room

    # -- the log

    def persist_election(self, effect: raft.PersistElection) -> None:
        """Durable on return. Raises DiskFull, StorageFailure."""
        self.storage.persist_election(effect.state, effect.version, is_new=effect.is_new)

    def _append(self, effect: raft.AppendRecords) -> None:
        self.storage.log.append(effect.data)

    def _locate_batch(self, effect: raft.LocateBatch) -> None:
        located = BatchLocated(effect.offset, self.storage.log.batch_start(effect.offset))
        self._timer.call_soon(self.step, located)

    def _truncate(self, effect: raft.TruncateLog) -> None:
        self.storage.log.truncate_to(effect.end_offset)
        self.truncations.truncated(effect)

    def _reset_log(self, effect: raft.ResetLog) -> None:
        before = self.storage.log.log_end
        self.storage.log.reset_to_snapshot(effect.snapshot_id, effect.keep_from)
        self.truncations.replaced(effect, before)

    def _sync(self, effect: raft.SyncLog) -> None:
        self.ports.log_thread.run(
            DiskJob(
                self.storage.log.sync,
                lambda end_offset: self.step(RecordsSynced(end_offset)),
                filled=self.disk_filled,
                has_room=self.disk_has_room,
                effect=effect,
                syncs=True,
            )
        )

    def tidy(self) -> None:
        """Delete the files that the log no longer needs, even if no append follows soon."""
        self.ports.work_threads.run(self._sync_if_there_is_room, lambda _: None, self.fail)

    def _sync_if_there_is_room(self) -> None:
        try:
            self.storage.log.sync()
        except DiskFull:
            pass  # the next sync will fail likewise

    def _shutdown_completed(self, _: raft.ShutdownCompleted) -> None:
        self.shutdown_completed = True

    # -- for subclasses

    def disk_filled(self, error: DiskFull) -> None:
        """Handle a sync that found the disk full. It is retried until it succeeds."""
        raise NotImplementedError

    def disk_has_room(self) -> None:
        """Handle the success of the sync that had found the disk full."""
        raise NotImplementedError

    def piece_read(self, effect: Any, data: bytes) -> None:
        """Handle a piece of a snapshot that an effect requested."""
        raise NotImplementedError

    def piece_unreadable(self, effect: PieceRead, error: Exception) -> None:
        """Handle a piece that could not be read."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{type(self).__name__}{', held by a full disk' if self.is_held else ''}>"
