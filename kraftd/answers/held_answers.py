"""Answers that are held until this node's image has reached an offset, or until their time is over."""

from __future__ import annotations

from collections.abc import Callable

from kraftd.fetch.purgatory import Purgatory
from kraftd.requests.call import Call

APPLIED = "applied"

Act = Callable[[], None]


class HeldAnswers:
    """Calls whose answers wait for the image, by the end offset that it must reach."""

    def __init__(self) -> None:
        self._parked: Purgatory[tuple[Call, Act]] = Purgatory()

    def hold(self, call: Call, act: Act, end_offset: int, until_ms: int) -> None:
        """Hold the answer that `act` sends."""
        self._parked.park(call, (call, act), [(APPLIED, end_offset)], until_ms)

    def waits_for(self, applied_end_offset: int) -> bool:
        """Return whether an answer waits for no more than that."""
        lowest = self._parked.lowest(APPLIED)
        return lowest is not None and lowest <= applied_end_offset

    def release(self, applied_end_offset: int, now_ms: int) -> list[tuple[Call, Act]]:
        """The calls to answer now: the image has their write, or their time is over."""
        return self._parked.reach(APPLIED, applied_end_offset) + self._parked.expire(now_ms)

    def deadline_ms(self) -> int | None:
        """When the next answer has been held long enough."""
        return self._parked.deadline_ms()

    def __repr__(self) -> str:
        return f"<HeldAnswers {len(self._parked)}>"
