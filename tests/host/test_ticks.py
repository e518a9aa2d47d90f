"""Periodic work of a process comes together."""

from __future__ import annotations

import pytest

from kraftd.ground.ticks import next_tick_ms


@pytest.mark.parametrize(
    ("period_ms", "dues"),
    [
        (5_000, [15_000, 20_000, 25_000]),
        (15_000, [25_000, 40_000, 55_000]),  # at ticks of 5 s
        (1_000, [13_000, 14_000, 15_000]),
        (500, [12_500, 13_000, 13_500]),
        (700, [12_700, 13_400, 14_100]),  # no tick divides it
        (0, [12_000, 12_000, 12_000]),
    ],
)
def test_periodic_work_is_due_at_ticks_that_divide_its_period(period_ms: int, dues: list[int]) -> None:
    now_ms, found = 12_000, []
    for _ in dues:
        now_ms = next_tick_ms(now_ms, period_ms)
        found.append(now_ms)
    assert found == dues


def test_works_of_a_period_come_together_however_late_they_are() -> None:
    first, second = next_tick_ms(12_345, 5_000), next_tick_ms(14_999, 5_000)
    assert {next_tick_ms(first + 3, 5_000), next_tick_ms(second + 40, 5_000)} == {20_000, 25_000}
    assert next_tick_ms(20_003, 5_000) == next_tick_ms(20_040, 5_000) == 25_000
