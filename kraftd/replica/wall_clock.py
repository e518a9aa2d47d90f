"""Follows the wall clock, by which records are stamped and tokens expire, and reports its steps."""

from __future__ import annotations

from kraftd.controller.context import Context
from kraftd.raft.events import WallClockStepped
from kraftd.requests.effects import AuditLine
from kraftd.requests.outbox import Outbox

REPORTED_MS = 1_000  # smaller steps are followed too; their sum is logged once it is as large
STEPPED = "wall clock stepped"


class WallClock:
    """Counts the steps of REPORTED_MS and more. A forward step may be of a machine that was suspended."""

    __slots__ = ("_context", "_outbox", "_reported_ms", "steps")

    def __init__(self, context: Context, outbox: Outbox) -> None:
        self.steps = 0
        self._context = context
        self._outbox = outbox
        self._reported_ms = context.wall_ahead_ms

    def stepped(self, event: WallClockStepped) -> None:
        """Use the new time for what is wall time."""
        self._context.wall_ahead_ms = event.ahead_ms
        by_ms = event.ahead_ms - self._reported_ms
        if abs(by_ms) < REPORTED_MS:
            return
        self.steps += 1
        self._reported_ms = event.ahead_ms
        fields = {"by_ms": by_ms, "since_start_ms": event.ahead_ms}
        self._outbox.log(
            "warning",
            "the wall clock stepped: record timestamps and token expiry follow it, timeouts do not",
            **fields,
        )
        self._outbox.emit(AuditLine(STEPPED, -1, fields))

    def __repr__(self) -> str:
        return f"<WallClock {self._context.wall_ahead_ms} ms ahead, {self.steps} steps>"
