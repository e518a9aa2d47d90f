"""Performs the effects of a controller: those of its consensus core, answers, and slices of its work."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from kraftd.controller_node import effects, events
from kraftd.controller_node.node import Node
from kraftd.host.executors.answer_reads import UNREADABLE, read_records, respond_filled
from kraftd.host.executors.core_executor import EffectExecutor
from kraftd.host.executors.frame_reads import read_frame
from kraftd.host.executors.muting import mute_connection
from kraftd.host.ports import NodeWire, Ports
from kraftd.host.snapshots.downloads import MAX_WAITING_BYTES
from kraftd.host.snapshots.snapshot_download import SnapshotDownload
from kraftd.host.storage import Storage
from kraftd.log.errors import DiskFull
from kraftd.replica.effects import MetadataLoaded, OpenSnapshot, ReadCommitted, SendToController
from kraftd.replica.events import CommittedRead
from kraftd.requests.call import Call
from kraftd.requests.effects import (
    Answer,
    AnswerRecords,
    AuditLine,
    CloseConnection,
    LogLine,
    MuteConnection,
    ReadFrame,
    ScheduleSlice,
)
from kraftd.requests.events import AnswerNotWritten, SliceDue

TRUNCATED = "log truncated"  # in the audit stream


class NodeExecutor(EffectExecutor):
    """Drives one node. `on_loaded` is called when its image has caught up, and when it becomes active."""

    def __init__(
        self,
        node: Node,
        storage: Storage,
        download: SnapshotDownload,
        wire: NodeWire,
        ports: Ports,
        max_waiting_bytes: int = MAX_WAITING_BYTES,
        machine_step: Callable[[Any, int], list[Any]] | None = None,
    ) -> None:
        step = node.step if machine_step is None else machine_step
        super().__init__(step, node.deadline_ms, storage, download, wire, ports, max_waiting_bytes)
        self.node = node
        self.on_loaded: Callable[[], None] | None = None
        self.truncations.on_truncated = lambda fields: self.audited(AuditLine(TRUNCATED, -1, fields))
        self._wire = wire
        self.lines: list[LogLine] = []
        self._perform |= {
            Answer: wire.answer,
            AnswerRecords: self._answer_records,
            effects.AnswerSnapshot: self.snapshot_reads.begin,
            MuteConnection: partial(mute_connection, ports.timer, wire.mute),
            CloseConnection: lambda effect: wire.close(effect.connection_id, effect.reason),
            ReadCommitted: lambda effect: ports.timer.call_soon(self._read_committed, effect),
            OpenSnapshot: lambda effect: ports.timer.call_soon(self._open_snapshot, effect),
            ScheduleSlice: lambda _: ports.timer.call_soon(self.step, SliceDue()),
            ReadFrame: partial(read_frame, ports.work_threads, self.step, self.fail),
            effects.ScheduleFlush: lambda _: ports.timer.call_soon(self.step, events.FlushDue()),
            LogLine: self.lines.append,
            AuditLine: self.audited,
            effects.ControllerActivated: self._loaded,
            MetadataLoaded: self._loaded,
            SendToController: wire.send_to_controller,
        }

    @property
    def disk_full(self) -> bool:
        """Return whether something that was appended, or must become durable, waits for space on the disk."""
        return self.node.decision_rights.disk_full or self.waits_for_room

    def flush(self) -> None:
        """Send the answers, then write the log lines, so that no answer waits for a line."""
        self._wire.flush()
        if self.lines:
            lines = list(self.lines)
            self.lines.clear()
            for effect in lines:
                getattr(self.log, effect.level)(effect.text, **effect.fields)

    def audited(self, effect: AuditLine) -> None:
        """Handle an event of the audit stream; without a subclass it is dropped."""

    def disk_filled(self, error: DiskFull) -> None:
        self.step(events.DiskFilled(str(error)))

    def disk_has_room(self) -> None:
        self.step(events.DiskHasRoom())

    # -- answers that need the disk

    def _answer_records(self, effect: AnswerRecords) -> None:
        found = [read_records(self.storage.log, read, self.log) for read in effect.reads]
        records = [data for data in found if data is not None]
        if len(records) < len(found):
            self._wire.close(effect.call.connection_id, UNREADABLE)
        else:
            respond_filled(effect.call, lambda: effect.fill(records), self._wire.respond, self.answer_failed)

    def piece_read(self, effect: effects.AnswerSnapshot, data: bytes) -> None:
        respond_filled(effect.call, lambda: effect.fill(data), self._wire.respond, self.answer_failed)
        self.flush()

    def answer_failed(self, call: Call, error: Exception) -> None:
        """Have the node refuse a call whose answer could not be written."""
        self.ports.timer.call_soon(self.step, AnswerNotWritten(call, error))

    def piece_unreadable(self, effect: Any, error: Exception) -> None:
        self.log.error("a snapshot could not be read", error=str(error))
        self._wire.close(effect.call.connection_id, "the snapshot could not be read")

    # -- reads for the image

    def _read_committed(self, effect: ReadCommitted) -> None:
        if effect.offset < self.storage.log.log_start:
            return  # a snapshot has replaced the log since
        try:
            data = self.storage.log.read(effect.offset, effect.max_bytes, effect.end_offset)
        except Exception as error:
            self.fail(error)
        else:
            self.step(CommittedRead(effect.offset, data))

    def _open_snapshot(self, effect: OpenSnapshot) -> None:
        try:
            opened = self.downloads.download.open(effect)
        except Exception as error:
            self.fail(error)
        else:
            self.step(opened)

    def _loaded(self, _: effects.ControllerActivated | MetadataLoaded) -> None:
        self.storage.log.end_replay()
        if self.on_loaded is not None:
            self.on_loaded()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.node!r}>"
