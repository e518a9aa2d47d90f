"""Performs the effects of a process that is a consensus core alone, with the daemon's executor."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from kraftd.ground.effect import Effect
from kraftd.ground.event import Event
from kraftd.host.executors.answer_reads import read_records
from kraftd.host.executors.core_executor import EffectExecutor
from kraftd.host.ports import Ports
from kraftd.log.errors import DiskFull
from kraftd.raft import effects as raft
from kraftd.raft.answers import fill_piece
from kraftd.raft.core import RaftCore
from kraftd.raft.events import AppendRequested, KRaftVersionUpgradeRequested, RequestReceived, ResignRequested
from kraftd.simulation import protocols

APPENDS = (AppendRequested, KRaftVersionUpgradeRequested)


class Process(protocols.Process, Protocol):
    """One run of a replica, as its executors see it."""

    core: RaftCore
    ports: Ports
    disk_full: bool

    def step_core(self, event: Event, now_ms: int) -> Iterable[Effect]: ...

    def answer(self, request: Any, message: Any) -> None: ...

    def hang_up(self, request: Any) -> None: ...

    def refuse_write(self, event: Any) -> None: ...

    def notify_workload(self, effect: Any) -> None: ...

    def note_snapshots(self, event: Event) -> None: ...

    def note_election(self, effect: raft.PersistElection) -> None: ...


class PeerWire:
    """The connections of a process that is a consensus core alone."""

    def __init__(self, process: Process) -> None:
        self._process = process

    def send(self, effect: raft.Send) -> None:
        self._process.world.network.send(self._process, effect)

    def refuse_request(self, event: Any) -> bool:
        process = self._process
        if type(event) is RequestReceived:
            process.hang_up(event.request_id)
        elif type(event) in APPENDS:
            process.refuse_write(event)
        else:
            return False
        return True

    def flush(self) -> None: ...


class NotingExecutor(EffectExecutor):
    """Notifies the checkers of durable snapshots and votes."""

    process: Process

    def snapshot_event(self, event: Any) -> None:
        self.process.note_snapshots(event)
        super().snapshot_event(event)

    def persist_election(self, effect: raft.PersistElection) -> None:
        super().persist_election(effect)
        self.process.note_election(effect)


class CoreExecutor(NotingExecutor):
    """Performs the effects of a consensus core without a node: its answers are sent unchanged."""

    def __init__(self, process: Process) -> None:
        files = process.files
        core = process.core
        super().__init__(
            process.step_core,
            core.deadline_ms,
            files.storage,
            files.download,
            PeerWire(process),
            process.ports,
            max_waiting_bytes=0,
        )
        self.process = process
        self._perform |= {
            raft.Respond: lambda effect: process.answer(effect.request_id, effect.message),
            raft.RespondRecords: self._respond_records,
            raft.RespondSnapshot: self.snapshot_reads.begin,
            raft.AppendCommitted: process.notify_workload,
            raft.AppendAborted: process.notify_workload,
            raft.AppendRefused: process.notify_workload,
            raft.AppendAccepted: process.notify_workload,
            raft.HighWatermarkMoved: _nothing,
            raft.LeadershipChanged: _nothing,
            raft.VotersChanged: _nothing,
            raft.ReplicaWentBack: _nothing,
        }

    def disk_filled(self, error: DiskFull) -> None:
        """Resign in favour of a voter with space on its disk, if there is another."""
        process = self.process
        process.world.note("disk filled", process.id)
        process.disk_full = True
        if process.core.is_leader and len(process.core.voters) > 1:
            self.step(ResignRequested(process.core.epoch))

    def disk_has_room(self) -> None:
        self.process.world.note("disk has room", self.process.id)
        self.process.disk_full = False

    def _respond_records(self, effect: raft.RespondRecords) -> None:
        data = read_records(self.storage.log, effect, self.log)
        if data is None:
            self.process.hang_up(effect.request_id)
        else:
            message: Any = effect.message
            message.responses[0].partitions[0].records = data
            self.process.answer(effect.request_id, effect.message)

    def piece_read(self, effect: Any, data: bytes) -> None:
        fill_piece(effect.message, data)
        self.process.answer(effect.request_id, effect.message)

    def piece_unreadable(self, effect: Any, error: Exception) -> None:
        self.log.error("a snapshot could not be read", error=str(error))
        self.process.hang_up(effect.request_id)


def is_write(event: Event) -> bool:
    """Return whether an event appends records: an append without any is a read, which a full disk does not
    prevent.
    """
    if type(event) is AppendRequested:
        return bool(event.values)
    return type(event) is KRaftVersionUpgradeRequested


def _nothing(_: Any) -> None:
    """Do nothing: only the checkers use this effect."""
