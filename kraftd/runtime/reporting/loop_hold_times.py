"""How long single steps hold the event loop: plain numbers for metrics and logs.

While a step runs, no other request is served, so none should take over 10 ms (`TOO_LONG_MS`).
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

from kraftd.requests.events import FramesReceived
from kraftd.wire.api import ApiKey, is_known

BOUNDS_MS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
TOO_LONG_MS = 10
_NS = 1_000_000  # in a millisecond


class LoopHoldTimes:
    """A histogram: `counts[i]` steps took at most `BOUNDS_MS[i]`, and more than the bound before; the last
    count is of those above all bounds. `total_ns` is the time of all `steps` together.
    """

    __slots__ = ("_log", "counts", "longest", "longest_ns", "steps", "total_ns")

    def __init__(self, log: Any) -> None:
        self.counts = [0] * (len(BOUNDS_MS) + 1)
        self.steps = 0
        self.total_ns = 0
        self.longest_ns = 0
        self.longest = ""  # its event
        self._log = log

    def note(self, event: Any, took_ns: int) -> None:
        """Note the time of a step. One that took too long gets a debug line."""
        self.steps += 1
        self.total_ns += took_ns
        if took_ns <= _NS:
            self.counts[0] += 1
            return
        self.counts[bisect_left(BOUNDS_MS, took_ns / _NS)] += 1
        if took_ns > self.longest_ns:
            self.longest_ns, self.longest = took_ns, cause(event)
        if took_ns > TOO_LONG_MS * _NS:
            self._log.debug("the event loop was held", took_ms=round(took_ns / _NS, 1), by=cause(event))

    @property
    def too_long(self) -> int:
        """How many steps took longer than `TOO_LONG_MS`."""
        return sum(self.counts[BOUNDS_MS.index(TOO_LONG_MS) + 1 :])

    def summary(self) -> dict[str, Any]:
        """The log line at the end of the daemon."""
        return {
            "steps": self.steps,
            "too_long": self.too_long,
            "longest_ms": round(self.longest_ns / _NS, 1),
            "longest": self.longest or "nothing",
        }

    def __repr__(self) -> str:
        longest = f", the longest {self.longest_ns / _NS:.1f} ms by {self.longest}" if self.longest else ""
        return f"<LoopHoldTimes {self.steps} steps, {self.too_long} over {TOO_LONG_MS} ms{longest}>"


def cause(event: Any) -> str:
    """The name of an event: the APIs of requests, the kind of any other."""
    if not isinstance(event, FramesReceived):
        return type(event).__name__
    keys = (int.from_bytes(frame[:2], "big") for frame in event.frames)
    return ", ".join(sorted({ApiKey(key).name if is_known(key) else f"API {key}" for key in keys}))
