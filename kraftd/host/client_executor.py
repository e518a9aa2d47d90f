"""Drives a client node over ports: its steps, deadline and callbacks, and what it reads from the log.

A subclass carries out the effects; the daemon's also sends requests to other nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from kraftd.ground.event import DeadlineReached, Event
from kraftd.host.answer_reads import UNREADABLE, read_records, respond_filled
from kraftd.host.cluster_view import NodeView
from kraftd.host.frame_reads import read_frame
from kraftd.host.paced_reads import PacedReads, Rest
from kraftd.host.ports import ClientWire, Effects, Handle, Ports
from kraftd.log.errors import StorageFailure
from kraftd.log.partition_log import OffsetOutOfRange, PartitionLog
from kraftd.log.timestamps import max_timestamp, offset_for_timestamp
from kraftd.metadata_topic_node.effects import (
    AnswerFetch,
    ImageReached,
    LookUpTimes,
    MetadataMoved,
    ReadClientFrame,
    ScheduleClientSlice,
    TimesLookedUp,
)
from kraftd.metadata_topic_node.node import ClientNode
from kraftd.redaction.batches import redacted_batches
from kraftd.requests.call import Call
from kraftd.requests.events import AnswerNotWritten, SliceDue
from kraftd.wire.batch import CorruptBatch
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.primitives import Buffer

_DONE = object()


class ClientExecutor:
    """One client node beside a replica."""

    def __init__(
        self, node: ClientNode, view: NodeView, log: PartitionLog, ports: Ports, wire: ClientWire
    ) -> None:
        self.node = node
        self.view = view
        self.reads = PacedReads(self._read, self.read_late, ports.timer.call_soon)
        self._log = log
        self._lines = ports.log
        self._timer = ports.timer
        self._threads, self._failed = ports.work_threads, ports.failed
        self._wire = wire
        self._marks = view.marks()
        self._alarm: Handle | None = None
        self._alarm_ms = 0

    def performers(self) -> dict[type, Callable[[Any], object]]:
        """The performers of effects that the host performs itself, by type."""
        return {
            AnswerFetch: self.reads.begin,
            LookUpTimes: self._look_up_times,
            ReadClientFrame: partial(read_frame, self._threads, self.step, self._failed),
            ScheduleClientSlice: lambda _: self._timer.call_soon(self.step, SliceDue()),
        }

    def step(self, event: Event) -> None:
        """Step the node with an event and perform the effects."""
        self.carry_out(self.node.step(event, self._timer.now_ms()))
        deadline_ms = self.node.deadline_ms()
        if deadline_ms is not None and (self._alarm is None or deadline_ms < self._alarm_ms):
            self.stop()
            self._alarm_ms = deadline_ms
            self._alarm = self._timer.call_at(deadline_ms, self._rung)

    def carry_out(self, made: Effects) -> None:
        """Perform the effects of a step."""
        raise NotImplementedError

    def read_late(self, reads: Callable[[], None]) -> None:
        """Perform reads that had to wait, in a callback of their own."""
        reads()

    def poll(self) -> None:
        """After each step of the replica, notify the client node if anything in its view has changed."""
        marks = self.view.marks()
        if marks != self._marks:
            self._marks = marks
            self.step(MetadataMoved())
        if self.node.held.waits_for(self.view.applied_end_offset):
            self.step(ImageReached())

    def answer_failed(self, call: Call, error: Exception) -> None:
        """Have the node refuse a call whose answer could not be read or written."""
        self._timer.call_soon(self.step, AnswerNotWritten(call, error))

    def stop(self) -> None:
        """Stop the alarm."""
        if self._alarm is not None:
            self._alarm.cancel()

    def _rung(self) -> None:
        self._alarm = None
        self.step(DeadlineReached())

    def _read(self, effect: AnswerFetch) -> int | Rest:
        """Read and answer; return the bytes read, or the rest of the work. The answer is OFFSET_OUT_OF_RANGE
        if a snapshot has replaced the records meanwhile.
        """
        connection_id = effect.call.connection_id
        if not self._wire.is_open(connection_id):
            return 0
        try:
            data = read_records(self._log, effect, self._lines)
        except OffsetOutOfRange:
            effect.partition.error_code = ErrorCode.OFFSET_OUT_OF_RANGE
            data = b""
        if data is None:
            self._wire.close(connection_id, UNREADABLE)
            return 0
        rest = self._respond_redacted(effect, data)
        return len(data) if next(rest, _DONE) is _DONE else rest

    def _respond_redacted(self, effect: AnswerFetch, data: Buffer) -> Rest:
        """Answer with the records, without their secrets; yields between slices."""
        connection_id = effect.call.connection_id
        try:
            data = yield from redacted_batches(data)
        except CorruptBatch as error:
            self._lines.error(UNREADABLE, error=str(error))
            self._wire.close(connection_id, UNREADABLE)
            return
        except Exception as error:
            self.answer_failed(effect.call, error)
            return
        if self._wire.is_open(connection_id):
            respond_filled(effect, data, self._wire.respond, self.answer_failed)

    def _look_up_times(self, effect: LookUpTimes) -> None:
        found: list[tuple[int, int] | None] = []
        try:
            for time_ms in effect.times_ms:
                if time_ms is None:
                    found.append(max_timestamp(self._log, effect.end_offset))
                else:
                    found.append(offset_for_timestamp(self._log, time_ms, effect.end_offset))
        except StorageFailure:
            raise
        except Exception as error:
            self.answer_failed(effect.call, error)
        else:
            self._timer.call_soon(self.step, TimesLookedUp(effect.call, found))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.node!r}>"
