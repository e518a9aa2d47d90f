"""The undo journal: what each applied record replaced, so that records can be undone.

It has two uses: a leader applies records before their commit and may lose them, and a metadata transaction
(KIP-868) may be aborted. An entry names table and key, and holds the previous value.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Final

# Kinds of entries: (offset, kind, place, key, previous value).
TABLE: Final = 0  # place is a dict of the image
PARTITION: Final = 1  # place is a TopicState, key a partition
TOPIC: Final = 2  # place is None, key a topic id
FIELD: Final = 3  # place is None, key a name of a plain field of the image
# As PARTITION, for a partition whose record directly follows that of the previous entry.
FOLLOWING: Final = 4

Entry = tuple[int, int, Any, Any, Any]
Entries = deque[Entry]


class Absent:
    """The previous value of a key that did not exist."""

    def __repr__(self) -> str:
        return "<absent>"


ABSENT: Final = Absent()


class Journal:
    """Entries in the order of application, oldest first."""

    __slots__ = ("_settled_offset", "entries")

    def __init__(self) -> None:
        self.entries: Entries = deque()
        self._settled_offset = -1

    def settle(self, offset: int) -> None:
        """Allow the entries of records at or before an offset to be forgotten."""
        self._settled_offset = offset

    def forget(self, most: int) -> bool:
        """Drop up to that many settled entries; returns whether there are more."""
        entries, offset = self.entries, self._settled_offset
        for _ in range(min(most, len(entries))):
            if entries[0][0] > offset:
                return False
            entries.popleft()
        return bool(entries) and entries[0][0] <= offset

    def __repr__(self) -> str:
        if not self.entries:
            return "<Journal empty>"
        return f"<Journal {len(self.entries)} changes of offsets {self.entries[0][0]}-{self.entries[-1][0]}>"
