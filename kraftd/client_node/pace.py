"""How much of a long answer one event loop callback makes."""

from __future__ import annotations

PARTITIONS_PER_CALLBACK = 2_000  # described in about 3 ms
AUTHORIZATION_COST = 10  # of one decision among very many ACLs, in partitions


class Pace:
    """Counts the work of the present callback. What does the work yields each time that it `is_spent`."""

    __slots__ = ("_left", "_per_callback")

    def __init__(self, per_callback: int = PARTITIONS_PER_CALLBACK) -> None:
        self._left = self._per_callback = per_callback

    def spend(self, cost: int) -> None:
        """Count some work."""
        self._left -= cost

    def is_spent(self, cost: int) -> bool:
        """Count some work; return whether the callback has done its share, and a new one begins."""
        self._left -= cost
        if self._left > 0:
            return False
        self._left = self._per_callback
        return True

    def __repr__(self) -> str:
        return f"<Pace, {self._left} of {self._per_callback} left>"
