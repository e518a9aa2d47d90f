"""Python's collections of garbage, between the callbacks of the event loop instead of within them.

Collections can be rare: nearly all long-lived objects are frozen, or are structs without cycles.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from time import monotonic_ns

YOUNG = 15_000  # new objects that are visited together, in one or two milliseconds
# Python's own collections are left for a callback that makes very many objects, and for a loop that is held.
THRESHOLDS = (200_000, 1, 1_200)


class GarbageCollection:
    """What held the loop, as the times of its steps name it."""


class GarbageCollections:
    """Collects what is new in a callback of its own, once there is enough of it.

    `call_soon` is the loop's. `note` gets a `GarbageCollection` and its time, in nanoseconds.
    """

    def __init__(self, call_soon: Callable[..., object], note: Callable[[object, int], object]) -> None:
        self._call_soon = call_soon
        self._note = note
        self._planned = False

    def begin(self) -> None:
        """Freeze all live objects; from now on collect others. A collection before would take too long, and
        hardly any object is garbage.
        """
        gc.freeze()
        gc.set_threshold(*THRESHOLDS)
        gc.enable()

    def look(self) -> None:
        """After each step: plan a collection if there are enough new objects."""
        if gc.get_count()[0] > YOUNG and not self._planned:
            self._planned = True
            self._call_soon(self._collect)

    def _collect(self) -> None:
        self._planned = False
        began_ns = monotonic_ns()
        gc.collect(2 if gc.get_count()[2] > THRESHOLDS[2] else 1)
        self._note(GarbageCollection(), monotonic_ns() - began_ns)

    def __repr__(self) -> str:
        return f"<GarbageCollections, {'planned' if self._planned else 'none planned'}>"
