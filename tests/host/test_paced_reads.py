"""Reads for clients are spread over callbacks of the loop, round-robin among connections."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from kraftd.host.paced_reads import CALLBACK_BYTES, PacedReads


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


def test_nothing_is_read_for_a_connection_that_is_gone() -> None:
    loop = Loop(CALLBACK_BYTES)
    for connection_id in (1, 2, 3):
        loop.begin(connection_id, 0)
    loop.reads.forget(2)
    while loop.due:
        loop.next_callback()
    assert loop.read == [[(1, 0)], [(3, 0)], []]
