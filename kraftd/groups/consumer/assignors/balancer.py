"""Which member gets or gives the next partition of a topic, while loads are levelled.

Two ranges of the members, sorted by load, grow towards each other: that of the least loaded ones, which get a
partition each in turn, and that of the most loaded ones, which give one each.
"""

from __future__ import annotations

from collections.abc import Sequence


class Balancer:
    """`loads` holds the number of partitions of each member, by its index; the caller changes it."""

    __slots__ = (
        "_least_end",
        "_least_load",
        "_most_end",
        "_most_load",
        "_most_start",
        "_next_least",
        "_next_most",
        "loads",
        "members",
    )

    def __init__(self, loads: list[int], subscribers: Sequence[int]) -> None:
        self.loads = loads
        self.members = sorted(subscribers, key=lambda member: (loads[member], member))
        count = len(self.members)
        self._least_end = self._next_least = 0
        self._least_load = loads[self.members[0]] - 1
        self._most_start = self._most_end = count
        self._most_load = loads[self.members[-1]] + 1
        self._next_most = count - 1

    def __repr__(self) -> str:
        return f"<Balancer of {len(self.members)} members, loads {self._least_load} to {self._most_load}>"

    def is_balanced(self) -> bool:
        return self._most_load - self._least_load <= 1

    def least_loaded(self) -> int:
        """The member that gets the next partition."""
        members = self.members
        if self._next_least >= self._least_end:
            self._least_load += 1
            while self._least_end < len(members) and self.loads[members[self._least_end]] == self._least_load:
                self._least_end += 1
            self._next_least = 0
        self._next_least += 1
        return members[self._next_least - 1]

    def most_loaded(self) -> int | None:
        """The member that gives the next partition; None if none is left that could."""
        members = self.members
        if self._next_most < self._most_start:
            if self._most_end <= self._most_start and self._most_start > 0:
                # All of the range had nothing to give: it begins again with the next lower load.
                self._most_load = self.loads[members[self._most_start - 1]]
            else:
                self._most_load -= 1
            while self._most_start > 0 and self.loads[members[self._most_start - 1]] == self._most_load:
                self._most_start -= 1
            self._next_most = self._most_end - 1
        if self._next_most < 0:
            return None
        self._next_most -= 1
        return members[self._next_most + 1]

    def exclude(self) -> None:
        """The member that `most_loaded` has returned last has nothing to give."""
        members, at, end = self.members, self._next_most + 1, self._most_end - 1
        members[at], members[end] = members[end], members[at]
        self._most_end -= 1
