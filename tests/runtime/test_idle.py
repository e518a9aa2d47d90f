"""The idle share of the loop over the last minute."""

from __future__ import annotations

import pytest

from kraftd.runtime.reporting.idle import IdleRatio

S = 10**9


class Clocks:
    def __init__(self) -> None:
        self.now_ns = self.used_ns = 0
        self.idle = IdleRatio(lambda: self.now_ns, lambda: self.used_ns)

    def live(self, seconds: int, busy: float) -> None:
        """Let seconds pass of which a part is busy, with a sample every five."""
        for _ in range(0, seconds, 5):
            self.now_ns += 5 * S
            self.used_ns += int(5 * S * busy)
            self.idle.sample()


def test_time_that_the_thread_does_not_use_is_idle() -> None:
    clocks = Clocks()
    assert clocks.idle.measure() == 1
    clocks.live(20, busy=0.25)
    assert clocks.idle.measure() == pytest.approx(0.75)


def test_only_the_last_minute_counts() -> None:
    clocks = Clocks()
    clocks.live(600, busy=1.0)
    assert clocks.idle.measure() == 0
    clocks.live(30, busy=0)
    assert 0.4 < clocks.idle.measure() < 0.6
    clocks.live(60, busy=0)
    assert clocks.idle.measure() == 1
