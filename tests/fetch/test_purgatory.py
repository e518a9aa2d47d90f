"""The purgatory compared with a plain list of parked operations, and the cost of waking."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kraftd.fetch.purgatory import Purgatory

KEYS = st.sampled_from(["a", "b", "c"])
VALUES = st.integers(0, 12)


@dataclass
class Model:
    """Parked ids with their conditions and deadlines, searched in full each time."""

    parked: dict[int, tuple[list[tuple[str, int]], int | None]] = field(default_factory=dict)
    completed: list[int] = field(default_factory=list)

    def take(self, ids: list[int]) -> set[int]:
        for parked_id in ids:
            del self.parked[parked_id]
            self.completed.append(parked_id)
        return set(ids)


class EveryOperationCompletesOnce(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.purgatory: Purgatory[int] = Purgatory()
        self.model = Model()
        self.next_id = 0
        self.now_ms = 0

    @rule(conditions=st.lists(st.tuples(KEYS, VALUES), max_size=3), wait_ms=st.none() | st.integers(0, 20))
    def park(self, conditions: list[tuple[str, int]], wait_ms: int | None) -> None:
        deadline_ms = None if wait_ms is None else self.now_ms + wait_ms
        self.purgatory.park(self.next_id, self.next_id, conditions, deadline_ms)
        self.model.parked[self.next_id] = conditions, deadline_ms
        self.next_id += 1

    @rule(key=KEYS, value=VALUES)
    def reach(self, key: str, value: int) -> None:
        due = [
            one
            for one, (conditions, _) in self.model.parked.items()
            if any(k == key and v <= value for k, v in conditions)
        ]
        assert set(self.purgatory.reach(key, value)) == self.model.take(due)

    @rule(key=KEYS)
    def complete_all(self, key: str) -> None:
        due = [
            one for one, (conditions, _) in self.model.parked.items() if any(k == key for k, _ in conditions)
        ]
        assert set(self.purgatory.complete_all(key)) == self.model.take(due)

    @rule(passed_ms=st.integers(0, 10))
    def expire(self, passed_ms: int) -> None:
        self.now_ms += passed_ms
        due = [
            one
            for one, (_, deadline) in self.model.parked.items()
            if deadline is not None and deadline <= self.now_ms
        ]
        assert set(self.purgatory.expire(self.now_ms)) == self.model.take(due)

    @precondition(lambda self: self.next_id > 0)
    @rule(data=st.data())
    def abandon(self, data: st.DataObject) -> None:
        one = data.draw(st.integers(0, self.next_id - 1))
        expected = one if one in self.model.parked else None
        assert self.purgatory.abandon(one) == expected
        if expected is not None:
            del self.model.parked[one]

    @invariant()
    def no_operation_completes_twice(self) -> None:
        assert len(self.model.completed) == len(set(self.model.completed))

    @invariant()
    def parked_ids_are_known(self) -> None:
        assert len(self.purgatory) == len(self.model.parked)
        assert all(one in self.purgatory for one in self.model.parked)

    @invariant()
    def the_next_deadline_is_the_earliest(self) -> None:
        deadlines = [deadline for _, deadline in self.model.parked.values() if deadline is not None]
        assert self.purgatory.deadline_ms() == min(deadlines, default=None)

    @invariant()
    def completed_operations_are_not_kept(self) -> None:
        queues = [*self.purgatory._queues.values(), self.purgatory._deadlines]
        entries = sum(len(queue.heap) for queue in queues)
        assert entries <= 2 * sum(4 for _ in self.model.parked) + 4


EveryOperationCompletesOnce.TestCase.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None
)
TestEveryOperationCompletesOnce = EveryOperationCompletesOnce.TestCase


class Counted(int):
    """A threshold that counts how often it is compared."""

    comparisons = 0

    def __lt__(self, other: object) -> bool:
        Counted.comparisons += 1
        return int(self) < int(other)  # type: ignore[call-overload]

    def __gt__(self, other: object) -> bool:
        Counted.comparisons += 1
        return int(self) > int(other)  # type: ignore[call-overload]

    def __eq__(self, other: object) -> bool:
        Counted.comparisons += 1
        return int(self) == int(other)  # type: ignore[call-overload]

    __hash__ = int.__hash__


@pytest.mark.parametrize("parked", [100, 10_000])
def test_waking_costs_time_for_woken_operations_not_for_parked_ones(parked: int) -> None:
    purgatory: Purgatory[int] = Purgatory()
    for one in range(parked):
        purgatory.park(one, one, [("log", Counted(1000 + one))])
    Counted.comparisons = 0
    assert purgatory.reach("log", Counted(1002)) == [0, 1, 2]
    assert Counted.comparisons < 3 * 4 * 20
    Counted.comparisons = 0
    assert purgatory.reach("log", Counted(1002)) == []
    assert Counted.comparisons <= 2


def test_operations_with_one_condition_complete_in_their_order_of_arrival() -> None:
    purgatory: Purgatory[str] = Purgatory()
    for one in "abc":
        purgatory.park(one, one, [("hw", 5)])
    purgatory.park("first", "first", [("hw", 4)])
    assert purgatory.reach("hw", 5) == ["first", "a", "b", "c"]


def test_an_id_is_parked_once() -> None:
    purgatory: Purgatory[str] = Purgatory()
    purgatory.park(1, "a", [])
    with pytest.raises(ValueError, match="parked already"):
        purgatory.park(1, "b", [])


def test_memory_is_freed_when_operations_expire() -> None:
    purgatory: Purgatory[int] = Purgatory()
    for now_ms in range(10_000):
        purgatory.park(now_ms, now_ms, [("log", 1 << 40)], now_ms + 5)
        purgatory.expire(now_ms)
    assert len(purgatory) <= 6
    assert len(purgatory._queues["log"].heap) <= 16


def test_only_as_many_as_are_wanted_expire_the_earliest_first() -> None:
    purgatory: Purgatory[str] = Purgatory()
    for one, deadline_ms in (("late", 3), ("first", 1), ("second", 2), ("alive", 9)):
        purgatory.park(one, one, [], deadline_ms)
    assert purgatory.expire(5, 2) == ["first", "second"]
    assert purgatory.expire(5, 0) == []
    assert purgatory.expire(5) == ["late"]
    assert purgatory.deadline_ms() == 9


def test_a_key_that_no_operation_waits_for_is_forgotten() -> None:
    purgatory: Purgatory[str] = Purgatory()
    purgatory.park("a", "a", [("log", 5), ("hw", 5)], 10)
    purgatory.park("b", "b", [("hw", 6)])
    assert repr(purgatory) == "<Purgatory of 2 under 2 keys, due at 10>"
    assert purgatory.reach("log", 5) == ["a"]
    assert repr(purgatory) == "<Purgatory of 1 under 1 keys, due at None>"
    assert purgatory.abandon("b") == "b"
    assert repr(purgatory) == "<Purgatory of 0 under 0 keys, due at None>"


def test_what_has_left_a_queue_is_counted_until_it_is_swept() -> None:
    """A sweep looks at each entry of a queue, so it waits until more than half of them are gone."""
    purgatory: Purgatory[int] = Purgatory()
    for one in range(10):
        purgatory.park(one, one, [("log", one), (one, 0)], one)
    by_log, deadlines = purgatory._queues["log"], purgatory._deadlines
    for one in (0, 1, 5, 6, 7):
        purgatory.abandon(one)
    assert [(queue.gone_count, len(queue.heap)) for queue in (by_log, deadlines)] == [(5, 10), (5, 10)]
    assert purgatory.deadline_ms() == 2
    assert purgatory.reach("log", 1) == []
    assert [(queue.gone_count, len(queue.heap)) for queue in (by_log, deadlines)] == [(3, 8), (3, 8)]
    assert purgatory.reach("log", 2) == [2]
    assert [(queue.gone_count, len(queue.heap)) for queue in (by_log, deadlines)] == [(3, 7), (4, 8)]
    purgatory.abandon(8)
    assert [(queue.gone_count, len(queue.heap)) for queue in (by_log, deadlines)] == [(0, 3), (0, 3)]
    assert purgatory.complete_all("log") == [3, 4, 9]
