"""The time for which steps held the loop: counted, and logged if too long."""

from __future__ import annotations

from typing import Any

from kraftd.ground.event import DeadlineReached
from kraftd.requests.events import FramesReceived
from kraftd.runtime.reporting.loop_hold_times import BOUNDS_MS, LoopHoldTimes

MS = 1_000_000


class Lines:
    def __init__(self) -> None:
        self.logged: list[tuple[str, dict[str, Any]]] = []

    def debug(self, text: str, **fields: Any) -> None:
        self.logged.append((text, fields))


def test_every_step_is_in_one_count_whose_bound_is_inclusive() -> None:
    holds = LoopHoldTimes(Lines())
    for bound_ms in BOUNDS_MS:
        holds.note(DeadlineReached(), bound_ms * MS)
    assert holds.counts == [1] * len(BOUNDS_MS) + [0]
    holds.note(DeadlineReached(), 1000 * MS + 1)
    assert holds.counts[-1] == 1
    assert (holds.steps, holds.total_ns) == (11, (sum(BOUNDS_MS) + 1000) * MS + 1)
    assert holds.too_long == 7  # 20, 50, 100, 200, 500, 1000 and above


def test_step_over_ten_milliseconds_is_logged_with_its_cause() -> None:
    lines = Lines()
    holds = LoopHoldTimes(lines)
    frames = [memoryview(b"\x00\x13rest"), memoryview(b"\x00\x01rest"), memoryview(b"\x00\x13")]
    holds.note(FramesReceived(1, 0, frames, "CONTROLLER", "127.0.0.1"), 10 * MS)
    assert lines.logged == []
    holds.note(FramesReceived(1, 0, frames, "CONTROLLER", "127.0.0.1"), 25 * MS)
    holds.note(DeadlineReached(), 12 * MS)
    assert [(fields["by"], fields["took_ms"]) for _, fields in lines.logged] == [
        ("CREATE_TOPICS, FETCH", 25.0),
        ("DeadlineReached", 12.0),
    ]
    assert repr(holds) == "<LoopHoldTimes 3 steps, 2 over 10 ms, the longest 25.0 ms by CREATE_TOPICS, FETCH>"
