"""Decides when to log repeated faults of peers: at once, then once a minute with a count."""

from __future__ import annotations

from collections.abc import Hashable

from msgspec import Struct

REPEAT_NS = 60_000_000_000
MAX_PEERS = 1_000  # to remember; above it, the one whose line is the oldest is forgotten


class _Seen(Struct):
    logged_ns: int
    count: int
    last_ns: int = 0
    text: str = ""


class Repeats:
    """Counts the occurrences of each key."""

    def __init__(self) -> None:
        self._seen: dict[Hashable, _Seen] = {}

    def due(self, key: Hashable, now_ns: int) -> int:
        """Count the key once more; returns the count since its last line, 0 while no line is due."""
        seen = self._seen.pop(key, None)
        if seen is None:
            seen = _Seen(now_ns - REPEAT_NS, 0)
            if len(self._seen) >= MAX_PEERS:
                del self._seen[next(iter(self._seen))]
        self._seen[key] = seen
        seen.count += 1
        seen.last_ns = now_ns
        if now_ns - seen.logged_ns < REPEAT_NS:
            return 0
        count, seen.logged_ns, seen.count = seen.count, now_ns, 0
        return count

    def describe(self, key: Hashable, text: str) -> None:
        """Store the text of a counted key for `lately`."""
        self._seen[key].text = text

    def lately(self, now_ns: int) -> list[str]:
        """The texts of the keys counted within the last minute."""
        return [seen.text for seen in self._seen.values() if seen.text and now_ns - seen.last_ns < REPEAT_NS]

    def __repr__(self) -> str:
        return f"<Repeats of {len(self._seen)} peers>"
