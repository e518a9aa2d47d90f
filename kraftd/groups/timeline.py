"""What dictionaries held before records that are not committed yet.

A record changes the state as soon as it is made. Readers of committed state must see what was there before,
until the high watermark has passed the record. An append that fails takes the change back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any, TypeVar

K = TypeVar("K")
V = TypeVar("V")

_ABSENT: Any = object()


class Timeline:
    """The changes past the high watermark, in the order of their records.

    `offset` is that of the record that is being applied. Changes below `committed` are final.
    """

    __slots__ = ("_before", "_changes", "committed", "offset")

    def __init__(self) -> None:
        self.offset = 0
        self.committed = 0
        self._changes: deque[tuple[int, dict[Any, Any], Any, Any]] = deque()
        # (id of a dictionary, key) -> the values before each change that is not committed, oldest first.
        self._before: dict[tuple[int, Any], deque[Any]] = {}

    def __repr__(self) -> str:
        return f"<Timeline at {self.offset}, committed {self.committed}, {len(self._changes)} changes>"

    def __len__(self) -> int:
        return len(self._changes)

    def put(self, mapping: dict[K, V], key: K, value: V) -> V | None:
        """Set a key; return what it was."""
        before = mapping.get(key, _ABSENT)
        mapping[key] = value
        if self.offset >= self.committed:
            self._note(mapping, key, before)
        return None if before is _ABSENT else before

    def remove(self, mapping: dict[K, V], key: K) -> V | None:
        """Delete a key if it is there; return what it was."""
        before = mapping.pop(key, _ABSENT)
        if before is _ABSENT:
            return None
        if self.offset >= self.committed:
            self._note(mapping, key, before)
        return before  # type: ignore[no-any-return]

    def _note(self, mapping: dict[Any, Any], key: Any, before: Any) -> None:
        self._changes.append((self.offset, mapping, key, before))
        place = id(mapping), key
        earlier = self._before.get(place)
        if earlier is None:
            self._before[place] = deque((before,))
        else:
            earlier.append(before)

    def committed_value(self, mapping: dict[K, V], key: K) -> V | None:
        """What a key was at the high watermark; None if it was not there."""
        if self._before:
            before = self._before.get((id(mapping), key))
            if before is not None:
                return None if before[0] is _ABSENT else before[0]
        return mapping.get(key)

    def committed_items(self, mapping: dict[K, V]) -> Iterable[tuple[K, V]]:
        """The items of a dictionary as they were at the high watermark."""
        if not self._before:
            return mapping.items()
        items = dict(mapping)
        for (identity, key), before in self._before.items():
            if identity == id(mapping):
                if before[0] is _ABSENT:
                    items.pop(key, None)
                else:
                    items[key] = before[0]
        return items.items()

    def commit(self, offset: int) -> None:
        """Make the changes of all records below an offset final."""
        self.committed = max(self.committed, offset)
        changes = self._changes
        while changes and changes[0][0] < offset:
            _, mapping, key, _ = changes.popleft()
            place = id(mapping), key
            before = self._before[place]
            if len(before) > 1:
                before.popleft()
            else:
                del self._before[place]

    def revert(self, offset: int) -> None:
        """Take back the changes of the records at an offset and after it, the latest first."""
        changes = self._changes
        while changes and changes[-1][0] >= offset:
            _, mapping, key, value = changes.pop()
            before = self._before[id(mapping), key]
            before.pop()
            if not before:
                del self._before[id(mapping), key]
            if value is _ABSENT:
                mapping.pop(key, None)
            else:
                mapping[key] = value
        self.offset = offset
