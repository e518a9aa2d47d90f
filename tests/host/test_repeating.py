"""Work that is repeated by time: rarely while nothing waits."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from kraftd.host.executors.repeating import Repeating


def test_work_that_is_not_needed_is_done_less_often() -> None:
    planned: list[tuple[int, Callable[[], None]]] = []
    clock = SimpleNamespace(now_ms=1_000)

    def call_at(at_ms: int, action: Callable[[], None]) -> SimpleNamespace:
        planned.append((at_ms, action))
        return SimpleNamespace(cancel=lambda: None)

    timer: Any = SimpleNamespace(now_ms=lambda: clock.now_ms, call_at=call_at)
    needed = [True, True, False, False, True]
    repeating = Repeating(timer, lambda _, act: act(), 100, lambda: None, 5_000, lambda: needed[len(planned)])
    repeating.plan()
    for _ in range(3):
        clock.now_ms, act = planned[-1]
        act()
    assert repeating.rests
    repeating.wake()
    assert [at_ms for at_ms, _ in planned] == [1_100, 1_200, 5_000, 10_000, 5_100]
    assert not repeating.rests
