"""Reads for clients are spread over callbacks of the loop, round-robin among connections."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

from kraftd.host.executors.paced_reads import CALLBACK_BYTES, MAX_UNFINISHED, PacedReads


class Loop:
    """Runs callbacks on request. `read` are connection and number of each read, by callback."""

    def __init__(self, read_bytes: int) -> None:
        self.read: list[list[tuple[int, int]]] = [[]]
        self.due: list[Callable[[], None]] = []
        self.read_bytes = read_bytes
        self.reads = PacedReads(self._read, lambda reads: reads(), self.due.append)

    def _read(self, effect: Any) -> int:
        self.read[-1].append((effect.call.connection_id, effect.number))
        return self.read_bytes

    def begin(self, connection_id: int, number: int) -> None:
        call = SimpleNamespace(connection_id=connection_id)
        self.reads.begin(SimpleNamespace(call=call, number=number))  # type: ignore[arg-type]

    def next_callback(self) -> None:
        due, self.due[:] = list(self.due), []
        self.read.append([])
        for callback in due:
            callback()


def test_callback_reads_within_its_budget_round_robin_by_connection() -> None:
    loop = Loop(CALLBACK_BYTES // 2)
    for number in range(4):
        loop.begin(1, number)
    loop.begin(2, 0)
    assert loop.read == [[(1, 0), (1, 1)]]
    while loop.due:
        loop.next_callback()
    assert loop.read == [[(1, 0), (1, 1)], [(1, 2), (2, 0)], [(1, 3)], []]
    loop.begin(3, 0)
    assert loop.read[-1] == [(3, 0)]  # nothing else waits: it is read at once


def test_small_reads_are_made_at_once() -> None:
    loop = Loop(1000)
    for number in range(100):
        loop.begin(1, number)
    assert len(loop.read[0]) == 100 and not len(loop.reads)
    assert not loop.due  # a callback of the loop costs more than what it would reset
    for number in range(CALLBACK_BYTES // 1000):
        loop.begin(1, number)
    assert len(loop.due) == 1


def test_nothing_is_read_for_a_connection_that_is_gone() -> None:
    loop = Loop(CALLBACK_BYTES)
    for connection_id in (1, 2, 3):
        loop.begin(connection_id, 0)
    loop.reads.forget(2)
    while loop.due:
        loop.next_callback()
    assert loop.read == [[(1, 0)], [(3, 0)], []]


class SlowLoop(Loop):
    """Every read has that many slices left. `done` are connection and slice, by callback."""

    def __init__(self, slices: int) -> None:
        super().__init__(0)
        self.slices = slices
        self.done: list[list[tuple[int, int]]] = [[]]

    def _read(self, effect: Any) -> Any:
        super()._read(effect)
        return self._rest(effect.call.connection_id)

    def _rest(self, connection_id: int) -> Iterator[None]:
        for number in range(self.slices):
            self.done[-1].append((connection_id, number))
            yield

    def next_callback(self) -> None:
        self.done.append([])
        super().next_callback()


def test_an_unfinished_read_goes_on_a_slice_per_callback_round_robin() -> None:
    loop = SlowLoop(2)
    loop.begin(1, 0)
    loop.begin(2, 0)
    assert loop.read == [[(1, 0), (2, 0)]]
    while loop.due:
        loop.next_callback()
    slices = [[(1, 0)], [(2, 0)], [(1, 1)], [(2, 1)]]
    assert [some for some in loop.done if some] == slices
    assert not len(loop.reads)


def test_no_read_begins_while_many_are_unfinished() -> None:
    loop = SlowLoop(3)
    for connection_id in range(MAX_UNFINISHED + 2):
        loop.begin(connection_id, 0)
        loop.next_callback()
    begun = sum(map(len, loop.read))
    assert begun == MAX_UNFINISHED
    loop.reads.forget(0)
    loop.next_callback()
    assert sum(map(len, loop.read)) == begun + 1  # in place of the one that is gone
    while loop.due:
        loop.next_callback()
    assert sum(map(len, loop.read)) == MAX_UNFINISHED + 2 and not len(loop.reads)
