"""What is due when, by key: a later deadline for a key replaces the earlier one."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from heapq import heapify, heappop, heappush
from typing import Any

Action = Callable[[], Any]


class Alarm:
    """A time before which nothing of several owners is due: perhaps too early, never too late.

    The owners lower it. When it comes, all of them are to be looked at.
    """

    __slots__ = ("due_ms",)

    def __init__(self) -> None:
        self.due_ms: int | None = None  # None: nothing is due at all

    def __repr__(self) -> str:
        return f"<Alarm at {self.due_ms}>"

    def lower(self, due_ms: int | None) -> None:
        """Something is due at this time."""
        if due_ms is not None and (self.due_ms is None or due_ms < self.due_ms):
            self.due_ms = due_ms


class _Entry:
    __slots__ = ("action", "due_ms", "queued_ms")

    def __init__(self, due_ms: int, action: Action) -> None:
        self.due_ms = self.queued_ms = due_ms
        self.action = action


class Deadlines:
    """Deadlines with their actions; `alarm` rings no later than the first of them.

    A heartbeat moves a deadline back and touches no heap: an entry that comes up too early is queued again.
    """

    __slots__ = ("_entries", "_heap", "_sequence", "alarm")

    def __init__(self) -> None:
        self._entries: dict[Hashable, _Entry] = {}
        self._heap: list[tuple[int, int, Hashable, _Entry]] = []
        self._sequence = 0
        self.alarm = Alarm()

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def __repr__(self) -> str:
        return f"<Deadlines of {len(self._entries)} keys, due at {self.next_ms()}>"

    def schedule(self, key: Hashable, due_ms: int, action: Action) -> None:
        """Perform an action at a time, unless the key is scheduled anew or cancelled before."""
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = _Entry(due_ms, action)
            self._push(key, entry)
            return
        entry.action = action
        entry.due_ms = due_ms
        if due_ms < entry.queued_ms:
            entry.queued_ms = due_ms
            self._push(key, entry)

    def cancel(self, key: Hashable) -> None:
        if self._entries.pop(key, None) is None:
            return
        if len(self._heap) > 2 * len(self._entries) + 64:
            self._heap = [row for row in self._heap if self._is_current(row)]
            heapify(self._heap)

    def move(self, moved_ms: int) -> None:
        """Move all deadlines, as the clock has moved."""
        for entry in self._entries.values():
            entry.due_ms += moved_ms
            entry.queued_ms += moved_ms
        self._heap = [(at_ms + moved_ms, number, key, entry) for at_ms, number, key, entry in self._heap]

    def clear(self) -> None:
        self._entries.clear()
        self._heap.clear()

    def next_ms(self) -> int | None:
        """No action is due before this time; None if there is none at all."""
        while self._heap and not self._is_current(self._heap[0]):
            heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def take(self, now_ms: int) -> Action | None:
        """Remove the first key that is due and return its action; None if none is due."""
        while self._heap and self._heap[0][0] <= now_ms:
            row = heappop(self._heap)
            if not self._is_current(row):
                continue
            key, entry = row[2], row[3]
            if entry.due_ms > now_ms:
                entry.queued_ms = entry.due_ms
                self._push(key, entry)
                continue
            del self._entries[key]
            return entry.action
        return None

    def _push(self, key: Hashable, entry: _Entry) -> None:
        self._sequence += 1
        self.alarm.lower(entry.queued_ms)
        heappush(self._heap, (entry.queued_ms, self._sequence, key, entry))

    def _is_current(self, row: tuple[int, int, Hashable, _Entry]) -> bool:
        """Return whether a row of the heap is the one at which its entry is to be looked at."""
        return self._entries.get(row[2]) is row[3] and row[0] == row[3].queued_ms
