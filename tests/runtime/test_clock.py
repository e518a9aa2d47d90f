"""The daemon's clock: monotonic for timeouts, and the wall clock beside it, however it is set."""

from __future__ import annotations

from kraftd.runtime.clock import Clock

HOUR_NS = 3_600_000_000_000
HOUR_MS = 3_600_000
START_MS = 1_700_000_000_000


class Times:
    def __init__(self) -> None:
        self.wall_ns = START_MS * 1_000_000
        self.monotonic_ns = 5_000_000_000
        self.late_ns: list[int] = []  # for each reading of the wall clock, the time until the next reading

    def wall(self) -> int:
        found = self.wall_ns
        if self.late_ns:
            self.pass_ns(self.late_ns.pop(0))
        return found

    def monotonic(self) -> int:
        return self.monotonic_ns

    def pass_ns(self, ns: int) -> None:
        self.wall_ns += ns
        self.monotonic_ns += ns


def test_a_step_of_the_wall_clock_leaves_the_time_of_timeouts_as_it_is() -> None:
    times = Times()
    clock = Clock(times.wall, times.monotonic)
    assert (clock.now_ms(), clock.wall_ms(), clock.wall_ahead_ms()) == (START_MS, START_MS, 0)
    for step_ns in (HOUR_NS, -3 * HOUR_NS):
        times.pass_ns(2_000_000)
        before_ms, ahead_ms = clock.now_ms(), clock.wall_ahead_ms()
        times.wall_ns += step_ns
        assert clock.now_ms() == before_ms
        assert clock.wall_ahead_ms() - ahead_ms == step_ns // 1_000_000
        assert clock.wall_ms() == clock.now_ms() + clock.wall_ahead_ms()


def test_a_suspended_machine_is_behind_the_wall_clock_afterwards() -> None:
    times = Times()
    clock = Clock(times.wall, times.monotonic)
    times.wall_ns += HOUR_NS  # the monotonic clock stands still meanwhile
    assert clock.wall_ahead_ms() == HOUR_MS


def test_a_thread_that_is_interrupted_between_two_readings_sees_no_step() -> None:
    times = Times()
    clock = Clock(times.wall, times.monotonic)
    times.late_ns = [500_000_000, 80_000_000]
    assert clock.wall_ahead_ms() == 0
    times.late_ns = [90_000_000] * 9  # all the time: the best reading counts
    assert clock.wall_ahead_ms() == 0
