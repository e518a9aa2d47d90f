"""Repeated events of peers are counted: each line has the number since the last one."""

from __future__ import annotations

import pytest

from kraftd.requests import repeats as repeats_module
from kraftd.requests.repeats import REPEAT_NS, Repeats


def test_each_line_counts_the_events_since_the_last_line() -> None:
    repeats = Repeats()
    assert [repeats.due("peer", at) for at in (0, 1, 2)] == [1, 0, 0]
    assert repeats.due("peer", REPEAT_NS) == 3
    assert repeats.due("peer", 2 * REPEAT_NS) == 1
    assert repeats.due("another", 2 * REPEAT_NS) == 1


def test_keys_with_a_text_are_listed_for_a_minute_after_their_last_event() -> None:
    repeats = Repeats()
    for key, at in (("a", 10), ("b", 20), ("silent", 30)):
        repeats.due(key, at)
    repeats.describe("a", "A")
    repeats.describe("b", "B")
    repeats.due("a", 40)
    assert repeats.lately(40) == ["B", "A"]
    assert repeats.lately(REPEAT_NS + 19) == ["B", "A"]
    assert repeats.lately(REPEAT_NS + 20) == repeats.lately(REPEAT_NS + 39) == ["A"]
    assert repeats.lately(REPEAT_NS + 40) == []


def test_beyond_the_limit_the_oldest_key_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(repeats_module, "MAX_PEERS", 2)
    repeats = Repeats()
    assert [repeats.due(key, 0) for key in ("a", "b", "a", "c")] == [1, 1, 0, 1]
    assert [repeats.due(key, 1) for key in ("a", "c", "b")] == [0, 0, 1]


def test_a_line_is_due_once_a_minute() -> None:
    repeats, second_ns = Repeats(), 1_000_000_000
    due_s = [at_s for at_s in range(150) if repeats.due("peer", at_s * second_ns)]
    assert due_s == [0, 60, 120]
