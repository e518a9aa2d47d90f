"""The undo journal: what each applied record replaced, so that records can be taken back.

Needed twice: a leader applies records before they are committed and may lose them, and a metadata
transaction (KIP-868) may be aborted.  An entry names the table and the key and keeps the value before.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Final

# Kinds of entries: (offset, kind, place, key, value before).
TABLE: Final = 0  # place is a dict of the image
PARTITION: Final = 1  # place is a TopicState, key a partition
TOPIC: Final = 2  # place is None, key a topic id
FIELD: Final = 3  # place is None, key a name of a plain field of the image
# As PARTITION, of a partition that was not there before, by a record that follows the one before it directly.
ADDED: Final = 4

Entry = tuple[int, int, Any, Any, Any]
Entries = deque[Entry]


class Absent:
    """The value before, where there was none."""

    def __repr__(self) -> str:
        return "<absent>"


ABSENT: Final = Absent()


class Journal:
    """Entries in the order of application, oldest first."""

    __slots__ = ("entries",)

    def __init__(self) -> None:
        self.entries: Entries = deque()

    def forget_to(self, offset: int) -> None:
        """Drop the entries of records at or before an offset: those are settled."""
        entries = self.entries
        while entries and entries[0][0] <= offset:
            entries.popleft()

    def __repr__(self) -> str:
        if not self.entries:
            return "<Journal empty>"
        return f"<Journal {len(self.entries)} changes of offsets {self.entries[0][0]}-{self.entries[-1][0]}>"
