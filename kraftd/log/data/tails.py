"""One budget of memory for the newest batches of all logs: the batch appended first is forgotten first."""

from __future__ import annotations

from collections import deque
from typing import Protocol

DEFAULT_TAILS_BYTES = 16 << 20


class HasTail(Protocol):
    def evict_oldest(self) -> int:
        """Forget the oldest batch in memory; returns the bytes that it took, 0 if there is none."""


class TailBudget:
    """Counts what the logs keep, and asks the log with the oldest batch to forget it."""

    def __init__(self, max_bytes: int = DEFAULT_TAILS_BYTES) -> None:
        self.max_bytes = max_bytes
        self.kept_bytes = 0
        self._order: deque[HasTail] = deque()  # a log for each of its batches, as they were appended

    def __repr__(self) -> str:
        return f"<TailBudget {self.kept_bytes} of {self.max_bytes} bytes>"

    def keeps(self, size_bytes: int) -> bool:
        """Return whether batches of that size are kept: larger ones would leave no room for others."""
        return size_bytes <= self.max_bytes // 4

    def added(self, log: HasTail, size_bytes: int) -> None:
        """Account for a batch that log has kept."""
        self.kept_bytes += size_bytes
        self._order.append(log)
        while self.kept_bytes > self.max_bytes and self._order:
            self.kept_bytes -= self._order.popleft().evict_oldest()

    def released(self, size_bytes: int) -> None:
        """Account for batches that a log has forgotten by itself; their places in the order stay."""
        self.kept_bytes -= size_bytes
        if not self.kept_bytes:
            self._order.clear()
