"""The effects of a node performed for real: bytes sent, records written and synced, timers kept.

The only place where connections, log and node meet. One event in, its effects out, in their order; then every
connection that got answers is flushed once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from time import monotonic_ns, thread_time_ns
from typing import Any

from kraftd.histogram import Histogram
from kraftd.net.connection import Connection
from kraftd.net.limits import Limits
from kraftd.net.listener import Connections
from kraftd.net.outbound import Times
from kraftd.raft import effects as raft_effects
from kraftd.raft import events as raft_events
from kraftd.runtime.clock import Clock
from kraftd.runtime.downloader import Downloader
from kraftd.runtime.holds import LoopHolds
from kraftd.runtime.idle import IdleRatio
from kraftd.runtime.peers import ControllerPeer, LoopWiring, QuorumPeers
from kraftd.runtime.snapshot_reads import SnapshotReads
from kraftd.runtime.syncer import RETRY_S, Syncer
from kraftd.server import effects, events
from kraftd.server.call import Call
from kraftd.server.node import Node
from kraftd.server.registration import AskController
from kraftd.server.snapshot_download import OpenSnapshot, SnapshotDownload
from kraftd.server.storage import Storage
from kraftd.storage.errors import CorruptStorage, DiskFull

SWEEP_S = 5.0


class Runner:
    """Drives one node on the running loop. `failed` is called once, with whatever must end the process."""

    def __init__(
        self,
        node: Node,
        storage: Storage,
        limits: Limits,
        clock: Clock,
        log: Any,
        loop: asyncio.AbstractEventLoop,
        failed: Callable[[BaseException], None],
        request_timeout_ms: int = 2000,
    ) -> None:
        self.node = node
        self.storage = storage
        self.clock = clock
        self.log = log
        self.loop = loop
        self.connections = Connections(self, limits, loop.call_soon)
        self._wiring = LoopWiring(loop, clock)
        times = Times(request_timeout_ms)
        self.download = Downloader(
            SnapshotDownload(storage.disk, storage.log), loop.call_soon_threadsafe, self.step, self.fail, log
        )
        self.snapshot_reads = SnapshotReads(
            storage, loop, clock.now_ms, self._snapshot_read, self._snapshot_unreadable
        )
        self.quorum = QuorumPeers(
            node.identity.node_id, self._wiring, times, self.step, self.download.received, log
        )
        self.controller = ControllerPeer(node.identity.node_id, self._wiring, times, self.step)
        self.syncer = Syncer(
            storage.log, loop.call_soon_threadsafe, self._synced, self.fail, self._disk_filled, self._has_room
        )
        self.on_idle: Callable[[], None] | None = None  # called after steps while the daemon stops
        self.on_loaded: Callable[[], None] | None = None
        self.shutdown_completed = False
        self.holds = LoopHolds(log)
        self._failed = failed
        self._held: list[Any] | None = None  # effects that wait for room on the disk
        self._waits_for_room = False
        self._waiting_events: list[Any] = []  # behind them
        self._dead = False
        self._by_id: dict[int, Connection] = {}
        self._dirty: list[Connection] = []
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = 0
        self._timer_due_ms = 0
        self._answered: list[Call] = []  # in the step that runs
        self.delays = Histogram()  # how late timers ran: so long everything else waits for the loop, too
        self._perform: dict[type, Callable[[Any], None]] = {
            effects.AnswerRecords: self._answer_records,
            effects.AnswerSnapshot: self.snapshot_reads.begin,
            effects.CloseConnection: self._close_connection,
            effects.ReadCommitted: self._read_committed,
            effects.TakeTurn: self._take_turn,
            effects.EndTurn: self._end_turn,
            effects.ControllerActivated: self._controller_loaded,
            effects.ControllerLoaded: self._controller_loaded,
            raft_effects.AppendRecords: self._append,
            raft_effects.SyncLog: self._sync,
            raft_effects.PersistElection: self._persist_election,
            raft_effects.TruncateLog: self._truncate,
            raft_effects.Send: self.quorum.send,
            AskController: self.controller.send,
            raft_effects.BeginSnapshot: self.download.begin,
            raft_effects.WriteSnapshot: self.download.write,
            raft_effects.FinishSnapshot: self.download.finish,
            raft_effects.AbandonSnapshot: self.download.abandon,
            raft_effects.ResetLog: self._reset_log,
            OpenSnapshot: self._open_snapshot,
            raft_effects.ShutdownCompleted: self._shutdown_completed,
        }
        self.idle = IdleRatio(monotonic_ns, thread_time_ns)
        self._sweeper = loop.call_later(SWEEP_S, self._sweep)

    # -- one step

    def step(self, event: Any, began_ns: int = 0) -> None:
        """Hand an event to the node and perform what follows; `began_ns` is now, for who knows it already."""
        if self._dead:
            return
        if self._held is not None:
            self._put_off(event)
            return
        began_ns = began_ns or monotonic_ns()
        try:
            self._carry_out(self.node.step(event, self.clock.now_ms()))
        except Exception as error:
            self.fail(error)
        now_ns = monotonic_ns()
        if self._answered:
            self.node.requests.answered(self._answered, began_ns, now_ns)
            self._answered.clear()
        self.holds.note(event, now_ns - began_ns)

    def _carry_out(self, made: Iterable[Any]) -> None:
        """Effects in their order. On a full disk the first that cannot be done waits, and all behind it.

        Nobody waits for his answer while a line of the log is written.
        """
        node = self.node
        perform = self._perform
        by_id = self._by_id
        dirty = self._dirty
        said: list[effects.Say] = []
        answered = self._answered
        left = iter(made)
        effect = None
        try:
            for effect in left:
                kind = type(effect)
                if kind is effects.Answer:
                    connection = by_id.get(effect.connection_id)
                    if connection is not None:
                        connection.answer(effect.slot, effect.parts)
                        if connection not in dirty:
                            dirty.append(connection)
                    if effect.call is not None:
                        answered.append(effect.call)
                elif kind is effects.Say:
                    said.append(effect)
                else:
                    perform[kind](effect)
        except DiskFull as error:
            self._hold([effect, *left], error)
        except BaseException:
            self._say(said)
            raise
        if dirty:
            self._dirty = []
            for connection in dirty:
                connection.flush()
        if said:
            self._say(said)
        deadline_ms = node.deadline_ms()
        if deadline_ms is not None and (self._timer is None or deadline_ms < self._timer_ms):
            self._arm(deadline_ms)
        if self.on_idle is not None:
            self.on_idle()

    # -- a full disk

    def _disk_filled(self, error: DiskFull) -> None:
        self.step(events.DiskFilled(str(error)))

    def _has_room(self) -> None:
        self.step(events.DiskHasRoom())

    def _hold(self, left: list[Any], error: DiskFull) -> None:
        """What has to be on disk before anything else may happen cannot be written: nothing else happens."""
        if not self._waits_for_room:
            self.log.error("the disk is full: this node waits for room", error=str(error))
        self._waits_for_room = True
        self._held = left
        self.loop.call_later(RETRY_S, self._go_on)

    def _go_on(self) -> None:
        """Try again what was held, then take in what came meanwhile."""
        held, self._held = self._held, None
        if held is None or self._dead:
            return
        try:
            self._carry_out(held)
        except Exception as error:
            self.fail(error)
        if self._held is None:
            self._waits_for_room = False
            self.log.info("the disk has room again: this node goes on")
            put_off, self._waiting_events = self._waiting_events, []
            for event in put_off:
                self.step(event)
            self.step(raft_events.DeadlineReached())

    def _put_off(self, event: Any) -> None:
        """Keep what may not be forgotten until there is room. Whoever asks something is sent away."""
        if type(event) is events.FramesReceived:
            connection = self._by_id.get(event.connection_id)
            if connection is not None:
                connection.close("the disk is full")
        elif type(event) is not raft_events.DeadlineReached:
            self._waiting_events.append(event)

    @property
    def disk_full(self) -> bool:
        """Whether something that was appended, or has to be durable, waits for room on the disk."""
        return self.node.disk_full or self._waits_for_room

    def fail(self, error: BaseException) -> None:
        """Something that this process must not survive."""
        if not self._dead:
            self._dead = True
            self._failed(error)

    def stop(self) -> None:
        """No more timers or syncs. The log is the caller's to close."""
        self._dead = True
        self._sweeper.cancel()
        if self._timer is not None:
            self._timer.cancel()
        self._wiring.stop()
        self.quorum.outbound.close()
        self.controller.outbound.close()
        self.syncer.stop()
        self.download.stop()

    def _arm(self, deadline_ms: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_ms = deadline_ms
        now_ms = self.clock.now_ms()
        delay_ms = max(0, deadline_ms - now_ms)
        self._timer_due_ms = now_ms + delay_ms
        self._timer = self.loop.call_later(delay_ms / 1000, self._deadline)

    def _deadline(self) -> None:
        self._timer = None
        self.delays.note(max(0, self.clock.now_ms() - self._timer_due_ms) * 1_000_000)
        self.step(raft_events.DeadlineReached())

    def _sweep(self) -> None:
        self._sweeper = self.loop.call_later(SWEEP_S, self._sweep)
        self.connections.sweep(self.clock.now_ms())
        self.idle.sample()

    # -- connections

    def frames_received(self, connection: Connection, first_slot: int, frames: list[memoryview]) -> None:
        self._by_id[connection.id] = connection
        now_ns = monotonic_ns()
        self.step(
            events.FramesReceived(
                connection.id, first_slot, frames, connection.listener, connection.peer[0], now_ns
            ),
            now_ns,
        )

    def connection_lost(self, connection: Connection, reason: str | None) -> None:
        if reason is not None and reason != "stopping":
            peer = f"{connection.peer[0]}:{connection.peer[1]}"
            self.log.warning("connection closed", peer=peer, listener=connection.listener, reason=reason)
        if self._by_id.pop(connection.id, None) is not None:
            self.step(events.ConnectionClosed(connection.id))

    def _close_connection(self, effect: effects.CloseConnection) -> None:
        connection = self._by_id.get(effect.connection_id)
        if connection is not None:
            connection.close(effect.reason)

    def _respond(self, call: Call, parts: list[Any]) -> None:
        self._answered.append(call)
        connection = self._by_id.get(call.connection_id)
        if connection is not None:
            connection.answer(call.slot, parts)
            if connection not in self._dirty:
                self._dirty.append(connection)

    # -- log and snapshots

    def _answer_records(self, effect: effects.AnswerRecords) -> None:
        try:
            data = self.storage.log.read(effect.offset, effect.max_bytes, effect.end_offset)
        except CorruptStorage as error:
            self.log.error("the log could not be read", error=str(error))
            connection = self._by_id.get(effect.call.connection_id)
            if connection is not None:
                connection.close("the log could not be read")
            return
        self._respond(effect.call, effect.fill(data))

    def _snapshot_read(self, effect: effects.AnswerSnapshot, data: bytes) -> None:
        self.node.requests.answered([effect.call], 0, monotonic_ns())
        connection = self._by_id.get(effect.call.connection_id)
        if connection is not None:
            connection.answer(effect.call.slot, effect.fill(data))
            connection.flush()

    def _snapshot_unreadable(self, effect: effects.AnswerSnapshot, error: Exception) -> None:
        self.log.error("a snapshot could not be read", error=str(error))
        connection = self._by_id.get(effect.call.connection_id)
        if connection is not None:
            connection.close("the snapshot could not be read")

    def _append(self, effect: raft_effects.AppendRecords) -> None:
        self.storage.log.append(effect.data)

    def _sync(self, _: raft_effects.SyncLog) -> None:
        self.syncer.ask()

    def tidy(self) -> None:
        """Have the files deleted that the log does not need any more, though nothing may be appended soon."""
        done = self.loop.run_in_executor(None, self.storage.log.sync)
        done.add_done_callback(self._tidied)

    def _tidied(self, done: asyncio.Future[int]) -> None:
        error = done.exception()
        if error is not None and not isinstance(error, DiskFull):  # the next sync meets that too
            self.fail(error)

    def _synced(self, end_offset: int) -> None:
        self.step(raft_events.RecordsSynced(end_offset))

    def _persist_election(self, effect: raft_effects.PersistElection) -> None:
        self.storage.persist_election(effect.state, effect.version)

    def _truncate(self, effect: raft_effects.TruncateLog) -> None:
        end_offset = self.storage.log.truncate_to(effect.end_offset)
        if end_offset != effect.end_offset:
            raise RuntimeError(f"the log was cut at {end_offset}, not {effect.end_offset}: a batch spans it")

    def _reset_log(self, effect: raft_effects.ResetLog) -> None:
        self.download.download.reset_log(effect)

    def _open_snapshot(self, effect: OpenSnapshot) -> None:
        self.loop.call_soon(lambda: self.step(self.download.download.open(effect)))

    def _read_committed(self, effect: effects.ReadCommitted) -> None:
        self.loop.call_soon(self._read, effect)

    def _read(self, effect: effects.ReadCommitted) -> None:
        if effect.offset < self.storage.log.log_start:
            return  # a snapshot has replaced the log since
        try:
            data = self.storage.log.read(effect.offset, effect.max_bytes, effect.end_offset)
        except Exception as error:
            self.fail(error)
        else:
            self.step(events.CommittedRead(effect.offset, data))

    def _take_turn(self, _: effects.TakeTurn) -> None:
        self.loop.call_soon(self.step, events.TurnCame())

    def _end_turn(self, _: effects.EndTurn) -> None:
        self.loop.call_soon(self.step, events.TurnEnded())

    # -- the rest

    def _say(self, said: Iterable[effects.Say]) -> None:
        for effect in said:
            getattr(self.log, effect.level)(effect.text, **effect.fields)

    def _controller_loaded(self, _: effects.ControllerActivated | effects.ControllerLoaded) -> None:
        if self.on_loaded is not None:
            self.on_loaded()

    def _shutdown_completed(self, _: raft_effects.ShutdownCompleted) -> None:
        self.shutdown_completed = True

    def __repr__(self) -> str:
        return f"<Runner of {self.node!r}, {self.connections!r}>"
