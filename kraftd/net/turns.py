"""Turns of connections at the event loop: requests of one callback after the other, for a few milliseconds.

Many connections with pipelined requests would otherwise be served one after the other in a single turn of
the loop. A peer whose request comes behind them would wait for all. Within a turn of the loop, requests are
handled at once for MAX_TURN_NS. What comes later waits in one queue: a few requests of each connection.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from time import monotonic_ns

MAX_TURN_NS = 5_000_000


class Turns:
    """The connections whose requests wait, in order; `schedule` runs a function in the loop's next turn."""

    def __init__(
        self, schedule: Callable[[Callable[[], None]], object], now_ns: Callable[[], int] = monotonic_ns
    ) -> None:
        self._schedule = schedule
        self._now_ns = now_ns
        self._ends_ns = -MAX_TURN_NS  # until when requests are handled at once
        self._scheduled = False
        self._waiting: deque[Callable[[], None]] = deque()

    def over(self) -> bool:
        """Return whether requests have taken their time; then the caller waits for the next turn.

        The loop does not say when a turn begins. A request after some quiet time is taken to begin one. So a
        request of a quiet connection sometimes waits for the next turn, which comes at once.
        """
        now_ns = self._now_ns()
        if now_ns < self._ends_ns:
            return False
        if self._waiting or now_ns < self._ends_ns + MAX_TURN_NS:
            return True
        self._ends_ns = now_ns + MAX_TURN_NS
        return False

    def wait(self, go_on: Callable[[], None]) -> None:
        """Call a function in a later turn, behind those that wait already."""
        self._waiting.append(go_on)
        self._schedule_turn()

    def _begin(self) -> None:
        """A new turn of the loop: let connections go on, until its time is over."""
        self._scheduled = False
        self._ends_ns = self._now_ns() + MAX_TURN_NS
        waiting = self._waiting
        while waiting and not self.over():
            waiting.popleft()()
        if waiting:
            self._schedule_turn()

    def _schedule_turn(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._schedule(self._begin)

    def __repr__(self) -> str:
        return f"<Turns, {len(self._waiting)} connections wait>"
