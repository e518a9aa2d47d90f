"""What peers cause again and again is counted: each line has what came since the one before."""

from __future__ import annotations

from kraftd.requests.repeats import REPEAT_NS, Repeats


def test_each_line_counts_what_came_since_the_one_before() -> None:
    repeats = Repeats()
    assert [repeats.due("peer", at) for at in (0, 1, 2)] == [1, 0, 0]
    assert repeats.due("peer", REPEAT_NS) == 3
    assert repeats.due("peer", 2 * REPEAT_NS) == 1
    assert repeats.due("another", 2 * REPEAT_NS) == 1
