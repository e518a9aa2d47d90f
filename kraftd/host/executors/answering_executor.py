"""Drives a node that answers from an image, over ports: its steps, deadline, callbacks and requests.

Such a node stands beside a replica in one process; there may be any number of them. A subclass adds the
effects that its kind of node has besides.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from kraftd.answers.effects import (
    Answered,
    AnswersSent,
    HandToController,
    ImageReached,
    MetadataMoved,
    NodeStarted,
    SendToNode,
)
from kraftd.answers.node import AnsweringNode
from kraftd.ground.effect import Effect
from kraftd.ground.event import DeadlineReached, Event
from kraftd.host.cluster_view import NodeView
from kraftd.host.executors.frame_reads import read_frame
from kraftd.host.executors.muting import mute_connection
from kraftd.host.ports import AnswerWire, Handle, Ports
from kraftd.log_dirs.jobs import RunAll, in_turn
from kraftd.requests.call import Call
from kraftd.requests.effects import (
    Answer,
    AuditLine,
    CloseConnection,
    LogLine,
    MuteConnection,
    ReadFrame,
    ScheduleSlice,
)
from kraftd.requests.events import AnswerNotWritten, ConnectionClosed, FramesReceived, SliceDue
from kraftd.wire.message import Message
from kraftd.wire.primitives import Buffer

Around = Callable[[object, Callable[[], None]], None]
# Events that share a look at the deadline: one in so many milliseconds. What another node answers makes
# nothing due so soon.
SHARED_LOOK_MS: dict[type, int] = {FramesReceived: 1, SliceDue: 1, Answered: 10}


def at_once(_what: object, act: Callable[[], None]) -> None:
    """Act."""
    act()


class AnsweringExecutor:
    """One node beside a replica.

    `around(what, act)` runs each step, and work that had to wait: a daemon measures it and sends the answers.
    """

    def __init__(
        self,
        node: AnsweringNode,
        view: NodeView,
        ports: Ports,
        wire: AnswerWire,
        around: Around = at_once,
    ) -> None:
        self.node = node
        self.view = view
        self.lines = ports.log
        self.timer = ports.timer
        self.wire = wire
        self.around = around
        self._marks = view.marks()
        self._alarm: Handle | None = None
        self._alarm_ms = 0
        self._later_look: Handle | None = None
        self._later_look_ms = 0
        self._looked_ms = 0  # when the node was last asked for its deadline
        self.performers: dict[type, Callable[[Any], object]] = {
            Answer: wire.answer,
            MuteConnection: partial(mute_connection, ports.timer, wire.mute),
            CloseConnection: lambda effect: wire.close(effect.connection_id, effect.reason),
            LogLine: wire.line,
            AuditLine: wire.audited,
            SendToNode: wire.send_to_node,
            HandToController: lambda effect: wire.hand_over(effect.call),
            ReadFrame: partial(read_frame, ports.work_threads, self.step, ports.failed),
            ScheduleSlice: lambda _: self.timer.call_soon(self.step, SliceDue()),
        }

    def start(self) -> None:
        """Begin what the node does by itself."""
        self.step(NodeStarted())

    def close_files(self, run_all: RunAll = in_turn) -> None:
        """Close what the node has open, at the end of the process. Blocks. Flushes run in `run_all`."""

    def step(self, event: Event) -> None:
        """Step the node with an event and perform the effects."""
        self.around(event, lambda: self._step(event))
        shared_ms = SHARED_LOOK_MS.get(type(event))
        if shared_ms is None:
            self.look()
            return
        if type(event) is FramesReceived and self.node.made_nothing_due:
            return
        if type(event) is Answered and (deadline_ms := self.node.sole_deadline_ms(event)) is not None:
            self._ring_by(deadline_ms)
            return
        look_ms = max(self.node.now_ms, self._looked_ms + shared_ms)
        if self._later_look is None or look_ms < self._later_look_ms:
            if self._later_look is not None:
                self._later_look.cancel()
            self._later_look, self._later_look_ms = self.timer.call_at(look_ms, self._look_later), look_ms

    def follow(self, request_id: int, version: int, frame: memoryview) -> Message | bool:
        """Take another node's answer as it came, if that is simpler than a step; returns whether it is taken,
        or the request that follows at once, under the same id.
        """
        return False

    def look(self) -> None:
        """Set the alarm for the node's deadline, for which every part of the node is asked."""
        self._looked_ms = self.timer.now_ms()
        deadline_ms = self.node.deadline_ms()
        if self._later_look is not None:
            self._later_look.cancel()
            self._later_look = None
        if deadline_ms is not None:
            self._ring_by(deadline_ms)

    def _ring_by(self, deadline_ms: int) -> None:
        """Set the alarm, unless it rings earlier."""
        if self._alarm is None or deadline_ms < self._alarm_ms:
            if self._alarm is not None:
                self._alarm.cancel()
            self._alarm_ms = deadline_ms
            self._alarm = self.timer.call_at(deadline_ms, self._rung)

    def _step(self, event: Event) -> None:
        self._take(event)
        self._send_answers()

    def _send_answers(self) -> None:
        """Do what has waited until the answers of a step are sent."""
        while self.node.wants_answers_sent:
            self.wire.flush()
            self._take(AnswersSent())

    def _take(self, event: Event) -> None:
        """Have the node handle an event, and perform the effects."""
        self._perform(self.node.step(event, self.timer.now_ms()))

    def _perform(self, effects: list[Effect]) -> None:
        performers = self.performers
        for effect in effects:
            performers[type(effect)](effect)

    def poll(self) -> None:
        """After each step of the replica, notify the node if anything in its view has changed."""
        marks = self.view.marks()
        if marks != self._marks:
            before, self._marks = self._marks, marks
            if marks[1:] != before[1:] or not self.node.passes_over_commit():
                self.step(MetadataMoved())
        if self.node.held.waits_for(self.view.applied_end_offset):
            self.step(ImageReached())

    def connection_lost(self, connection_id: int) -> None:
        """Handle that a connection of the node's listeners is gone."""
        self.step(ConnectionClosed(connection_id))

    def respond(self, call: Call, parts: list[Buffer]) -> None:
        """Answer a call whose records were read."""
        self.wire.respond(call, parts)
        if call.mute_ms:
            self.performers[MuteConnection](MuteConnection(call.connection_id, call.mute_ms))

    def answer_failed(self, call: Call, error: Exception) -> None:
        """Have the node refuse a call whose answer could not be read or written."""
        self.timer.call_soon(self.step, AnswerNotWritten(call, error))

    def stop(self) -> None:
        """Stop the alarm."""
        if self._alarm is not None:
            self._alarm.cancel()
        if self._later_look is not None:
            self._later_look.cancel()
            self._later_look = None

    def _look_later(self) -> None:
        self._later_look = None
        self.look()

    def _rung(self) -> None:
        self._alarm = None
        self.step(DeadlineReached())

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.node!r}>"
