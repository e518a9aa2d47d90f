"""Work that a broker's executor repeats by time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from kraftd.ground.ticks import next_tick_ms

if TYPE_CHECKING:
    from kraftd.host.executors.answering_executor import Around
    from kraftd.host.ports import Handle, Timer

_DONE = object()


class Repeating:
    """Work that is done again and again; if it is a generator, a slice in each event loop callback.

    While `is_needed` returns False, it is done every `rest_ms` only.
    """

    def __init__(
        self,
        timer: Timer,
        around: Around,
        every_ms: int,
        work: Callable[[], Iterator[None] | None],
        rest_ms: int = 0,
        is_needed: Callable[[], bool] | None = None,
    ) -> None:
        self._timer = timer
        self._around = around
        self.every_ms = every_ms
        self._work = work
        self._rest_ms = rest_ms
        self._is_needed = is_needed
        self._handle: Handle | None = None
        self._is_stopped = False
        self.rests = False

    def plan(self, after_ms: int | None = None) -> None:
        """Do it after its time, or for once after another one."""
        self.rests = self._is_needed is not None and not self._is_needed()
        wait_ms = self._rest_ms if self.rests else self.every_ms
        at_ms = next_tick_ms(self._timer.now_ms(), wait_ms, after_ms)
        self._handle = self._timer.call_at(at_ms, self._due)

    def wake(self) -> None:
        """Plan it anew, because it is needed from now on."""
        if self._handle is not None and not self._is_stopped:
            self._handle.cancel()
            self.plan()

    def hurry(self) -> None:
        """Do it now, if it is planned and not under way."""
        if self._handle is not None and not self._is_stopped:
            self._handle.cancel()
            self._handle = self._timer.call_at(self._timer.now_ms(), self._due)

    def stop(self) -> None:
        """Do it no more."""
        self._is_stopped = True
        if self._handle is not None:
            self._handle.cancel()

    def _due(self) -> None:
        self._handle = None
        self._around(self, self._begin)

    def _begin(self) -> None:
        self._go_on(self._work())

    def _go_on(self, slices: Iterator[None] | None) -> None:
        if self._is_stopped:
            return
        if slices is None or next(slices, _DONE) is _DONE:
            self.plan()
        else:
            self._timer.call_soon(self._around, self, partial(self._go_on, slices))

    def __repr__(self) -> str:
        return f"<Repeating {self._work.__name__} every {self.every_ms} ms>"
