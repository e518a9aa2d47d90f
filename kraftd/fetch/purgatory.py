"""The purgatory: operations parked until a value reaches their threshold, or until their deadline.

Fetches wait for a log end or a high watermark, appends for the high watermark; an operation may wait under
several keys (a fetch of many partitions) and is completed by the first that satisfies it.  Every operation
leaves exactly once: woken, expired or abandoned.  Waking costs O(woken), however many stay parked.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

T = TypeVar("T")

Key = Hashable
Condition = tuple[Key, int]  # wakes when the value of the key is at least this


class _Parked(Generic[T]):
    """One operation and its queues: one for each condition, and one for its deadline."""

    __slots__ = ("gone", "id", "operation", "queues")

    def __init__(self, parked_id: Hashable, operation: T) -> None:
        self.id = parked_id
        self.operation: T = operation
        self.queues: list[_Queue[T]] = []
        self.gone = False


class _Queue(Generic[T]):
    """Parked operations by threshold, then arrival.

    An operation that left otherwise stays in the heap until it is on top, or until half of the heap is gone.
    Then all of those are swept at once, which costs a constant share for each.
    """

    __slots__ = ("gone_count", "heap", "key")

    def __init__(self, key: Key) -> None:
        self.key = key
        self.heap: list[tuple[int, int, _Parked[T]]] = []
        self.gone_count = 0

    def push(self, threshold: int, sequence: int, parked: _Parked[T]) -> None:
        heappush(self.heap, (threshold, sequence, parked))
        parked.queues.append(self)

    def take(self, limit: int | None) -> _Parked[T] | None:
        """Remove the first operation still parked that waits for `limit` or less (None: for anything)."""
        heap = self.heap
        while heap and (limit is None or heap[0][0] <= limit):
            parked = heappop(heap)[2]
            if not parked.gone:
                return parked
            self.gone_count -= 1
        return None

    def note_gone(self) -> None:
        self.gone_count += 1
        if self.gone_count * 2 > len(self.heap):
            self.heap = [entry for entry in self.heap if not entry[2].gone]
            heapify(self.heap)
            self.gone_count = 0

    def first(self) -> int | None:
        """The lowest threshold that a parked fetch waits for."""
        while self.heap and self.heap[0][2].gone:
            heappop(self.heap)
            self.gone_count -= 1
        return self.heap[0][0] if self.heap else None


class Purgatory(Generic[T]):
    """Operations parked by the caller's ids."""

    __slots__ = ("_deadlines", "_parked", "_queues", "_sequence")

    def __init__(self) -> None:
        self._parked: dict[Hashable, _Parked[T]] = {}
        self._queues: dict[Key, _Queue[T]] = {}
        self._deadlines: _Queue[T] = _Queue(None)
        self._sequence = 0

    def __len__(self) -> int:
        return len(self._parked)

    def __contains__(self, parked_id: object) -> bool:
        return parked_id in self._parked

    def __repr__(self) -> str:
        return (
            f"<Purgatory of {len(self._parked)} under {len(self._queues)} keys, due at {self.deadline_ms()}>"
        )

    def park(
        self,
        parked_id: Hashable,
        operation: T,
        conditions: Iterable[Condition],
        deadline_ms: int | None = None,
    ) -> None:
        """Park an operation until a key reaches its threshold, or until `deadline_ms` (None: no limit).

        Raises ValueError if the id is parked already.
        """
        if parked_id in self._parked:
            raise ValueError(f"{parked_id!r} is parked already")
        self._sequence += 1
        parked = self._parked[parked_id] = _Parked(parked_id, operation)
        for key, threshold in conditions:
            queue = self._queues.get(key)
            if queue is None:
                queue = self._queues[key] = _Queue(key)
            queue.push(threshold, self._sequence, parked)
        if deadline_ms is not None:
            self._deadlines.push(deadline_ms, self._sequence, parked)

    def reach(self, key: Key, value: int) -> list[T]:
        """Complete the operations that wait under `key` for `value` or less: by threshold, then
        by arrival.
        """
        queue = self._queues.get(key)
        return [] if queue is None else self._complete(queue, value)

    def lowest(self, key: Key) -> int | None:
        """The lowest threshold under `key`; None if nothing waits under it."""
        queue = self._queues.get(key)
        return None if queue is None else queue.first()

    def complete_all(self, key: Key) -> list[T]:
        """Complete all operations that wait under `key`, at any threshold."""
        queue = self._queues.get(key)
        return [] if queue is None else self._complete(queue, None)

    def expire(self, now_ms: int, most: int | None = None) -> list[T]:
        """Complete the operations past their deadline, the earliest first, at most `most` (None: all)."""
        return self._complete(self._deadlines, now_ms, most)

    def abandon(self, parked_id: Hashable) -> T | None:
        """Remove an operation without completing it (its connection is gone); None if it is not parked."""
        parked = self._parked.get(parked_id)
        if parked is None:
            return None
        self._leave(parked)
        return parked.operation

    def deadline_ms(self) -> int | None:
        """When `expire` has work next; None when never."""
        deadlines = self._deadlines
        return deadlines.first() if deadlines.heap else None

    def _complete(self, queue: _Queue[T], limit: int | None, most: int | None = None) -> list[T]:
        done: list[T] = []
        while (most is None or len(done) < most) and (parked := queue.take(limit)) is not None:
            parked.queues.remove(queue)
            self._leave(parked)
            done.append(parked.operation)
        self._drop_if_empty(queue)
        return done

    def _leave(self, parked: _Parked[T]) -> None:
        parked.gone = True
        del self._parked[parked.id]
        for queue in parked.queues:
            queue.note_gone()
            self._drop_if_empty(queue)
        parked.queues.clear()

    def _drop_if_empty(self, queue: _Queue[T]) -> None:
        if not queue.heap and queue is not self._deadlines:
            self._queues.pop(queue.key, None)
