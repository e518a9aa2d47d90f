"""When an accepted connection goes on: at once, or later by the rates of new connections.

A connection that must wait is not read. It waits behind those before it on its listener, as in Kafka, where
the acceptor waits. Nodes of the quorum have a queue of their own.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial

from kraftd.named_tuple import NamedTuple
from kraftd.net.connection_rates import ConnectionRates

MAX_HELD = 1_000  # that wait on one listener; more are closed
MAX_CLOSING = 1_000  # addresses' connections over their quota that are closed late; more are closed at once
BATCH = 32


class Accepted(NamedTuple):
    """A connection that may go on, or is to be closed."""

    host: str
    go_on: Callable[[], None]
    close: Callable[[], None]


class _Lane:
    __slots__ = ("counted", "held", "timer")

    def __init__(self) -> None:
        self.held: deque[Accepted] = deque()
        self.counted = False  # the first one: its wait has begun
        self.timer: asyncio.TimerHandle | asyncio.Handle | None = None


class Admission:
    """The connections that wait, by listener. `clock` returns milliseconds."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        clock: Callable[[], int],
        rates: ConnectionRates,
        is_known: Callable[[str], bool] = lambda host: False,
    ) -> None:
        self.rates = rates
        self._loop = loop
        self._now_ms = clock
        self._is_known = is_known
        self._lanes: dict[tuple[str, bool], _Lane] = {}
        self._closing: dict[Accepted, asyncio.TimerHandle] = {}

    def accept(self, listener: str, accepted: Accepted) -> None:
        """Let a connection go on when the rates allow it."""
        key = listener, self._is_known(accepted.host)
        lane = self._lanes.setdefault(key, _Lane())
        if len(lane.held) >= MAX_HELD:
            accepted.close()
            return
        lane.held.append(accepted)
        if lane.timer is None:
            self._pass_on(key)

    def _pass_on(self, key: tuple[str, bool]) -> None:
        listener, known = key
        lane = self._lanes[key]
        lane.timer = None
        for _ in range(BATCH):
            if not lane.held:
                return
            now_ms = self._now_ms()
            wait_ms = 0 if lane.counted else self.rates.accept(listener, now_ms, known=known)
            lane.counted = wait_ms > 0
            if wait_ms:
                lane.timer = self._loop.call_later(wait_ms / 1000, self._pass_on, key)
                return
            accepted = lane.held.popleft()
            close_ms = self.rates.accept_from(accepted.host, listener, now_ms, known=known)
            if not close_ms:
                accepted.go_on()
            elif len(self._closing) >= MAX_CLOSING:
                accepted.close()
            else:
                timer = self._loop.call_later(close_ms / 1000, self._close, accepted)
                self._closing[accepted] = timer
        lane.timer = self._loop.call_soon(partial(self._pass_on, key))

    def _close(self, accepted: Accepted) -> None:
        del self._closing[accepted]
        accepted.close()

    def stop(self) -> None:
        """Close all that wait."""
        for lane in self._lanes.values():
            if lane.timer is not None:
                lane.timer.cancel()
            for accepted in lane.held:
                accepted.close()
            lane.held.clear()
        for accepted, timer in list(self._closing.items()):
            timer.cancel()
            self._close(accepted)

    def __repr__(self) -> str:
        waiting = sum(len(lane.held) for lane in self._lanes.values())
        return f"<Admission {waiting} wait, {len(self._closing)} are to be closed>"
