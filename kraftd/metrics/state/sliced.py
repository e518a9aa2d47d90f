"""What is found by going through everything, in slices between which the event loop does other work."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from time import monotonic_ns
from typing import Generic, TypeVar

WRITE_BUDGET_NS = 2_000_000  # of work, before other callbacks run
PAUSE_S = 10.0  # between two rounds, at least
PAUSE_SHARE = 20  # a pause of this many times a round's duration: at most 5 % of the loop's time

Found = TypeVar("Found")


class Sliced(Generic[Found]):
    """`found` is what the newest round found, None before the first. `held` gets the nanoseconds for which
    each part held the loop.
    """

    def __init__(self, held: Callable[[int], None]) -> None:
        self.found: Found | None = None
        self._held = held
        self._due_ns = 0
        self._runs = False
        self._slices: Generator[None, None, Found] | None = None  # of the round under way
        self._slices_ns = 0

    def __repr__(self) -> str:
        return f"<Sliced {'under way' if self._slices is not None else self.found!r}>"

    @property
    def is_due(self) -> bool:
        """Return whether the newest round is so old that another one may begin."""
        return monotonic_ns() >= self._due_ns

    async def go_on(
        self, begin: Callable[[], Generator[None, None, Found]], wanted: bool, most_ns: int | None = None
    ) -> None:
        """Go on with the round under way, or begin one if it is wanted. It ends after `most_ns`, and the next
        call goes on there.
        """
        if self._runs or (self._slices is None and not wanted):
            return
        if self._slices is None:
            self._slices, self._slices_ns = begin(), 0
        self._runs = True
        try:
            spent_ns, began_ns = 0, monotonic_ns()
            while most_ns is None or spent_ns < most_ns:
                try:
                    next(self._slices)
                except StopIteration as done:
                    self.found, self._slices = done.value, None
                    self._slices_ns += monotonic_ns() - began_ns
                    pause_ns = max(int(PAUSE_S * 1e9), PAUSE_SHARE * self._slices_ns)
                    self._due_ns = monotonic_ns() + pause_ns
                    return
                took_ns = monotonic_ns() - began_ns
                if took_ns >= WRITE_BUDGET_NS:
                    self._held(took_ns)
                    self._slices_ns += took_ns
                    spent_ns += took_ns
                    await asyncio.sleep(0)
                    began_ns = monotonic_ns()
        finally:
            self._runs = False
