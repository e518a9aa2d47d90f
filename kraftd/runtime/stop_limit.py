"""How long a stop may take, and what the log says meanwhile.

A controlled shutdown of very many partitions gets more time while it goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from kraftd.controller_node.node import Node

MOST_MS = 300_000  # as long as Apache Kafka waits for a controlled shutdown
LINE_MS = 10_000  # between two lines about a stop that goes on


class StopLimit:
    """`period_ms` at first, and as long again if leaderships have left the process meanwhile."""

    def __init__(self, period_ms: int, led_count: int) -> None:
        self.period_ms = period_ms
        self._led_count = led_count
        self._waited_ms = 0

    def __repr__(self) -> str:
        return f"<StopLimit {self._waited_ms} ms waited, {self._led_count} partitions led>"

    def is_reached(self, led_count: int) -> bool:
        """Return whether to wait no longer, at the end of a period; `led_count` partitions are still led."""
        self._waited_ms += self.period_ms
        before, self._led_count = self._led_count, led_count
        return led_count >= before or self._waited_ms >= MOST_MS


class Stopping(Protocol):
    """The runner of a process that stops: its controller, and how many partitions its broker leads."""

    @property
    def node(self) -> Node: ...

    @property
    def led_count(self) -> int: ...


class StopWatch:
    """Calls `finish` when a stop has taken too long, and logs every LINE_MS what the stop still waits for.

    `call_later` is that of an event loop.
    """

    def __init__(
        self,
        runner: Stopping,
        limit_ms: int,
        call_later: Callable[..., object],
        log: Any,
        finish: Callable[[], None],
    ) -> None:
        self._runner = runner
        self._limit = StopLimit(limit_ms, runner.led_count)
        self._call_later = call_later
        self._log = log
        self._finish = finish
        self._is_over = False

    def __repr__(self) -> str:
        return f"<StopWatch {self._limit!r}>"

    def start(self) -> None:
        self._call_later(self._limit.period_ms / 1000, self._look)
        self._call_later(LINE_MS / 1000, self._tell)

    def _look(self) -> None:
        if not self._limit.is_reached(self._runner.led_count):
            self._call_later(self._limit.period_ms / 1000, self._look)
            return
        self._is_over = True
        self._log.warning("stopping took too long", **self._waits_for())
        self._finish()

    def _tell(self) -> None:
        if not self._is_over:
            self._log.info("still stopping", **self._waits_for())
            self._call_later(LINE_MS / 1000, self._tell)

    def _waits_for(self) -> dict[str, int]:
        runner = self._runner
        return {"led_partitions": runner.led_count, "in_flight": len(runner.node.decisions.parked)}
