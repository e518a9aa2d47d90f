"""G1, G3: partitions of a consumer group (KIP-848) have one owner, and each has one in the end.

A member owns what an answer has assigned to it, until it reports that it has given it up. If another member
is assigned the partition before, the coordinator must have fenced the first one: none of its heartbeats or
commits that it sends from then on is taken.
"""

from __future__ import annotations

from typing import Any

from kraftd.simulation.checkers.brokers.partitions import PartitionKey
from kraftd.simulation.checkers.checker import Checker


class OwnerChecker(Checker):
    """See the module. A loss of power may take a group's records that were not flushed: all is forgotten."""

    def __init__(self, world: Any) -> None:
        super().__init__(world)
        self._owners: dict[tuple[str, PartitionKey], str] = {}
        self._epochs: dict[tuple[str, str], int] = {}  # of members
        self._taken: dict[tuple[str, str], str] = {}  # members that must be fenced, and why

    def took(self, group: str, member: str, epoch: int, partitions: set[PartitionKey]) -> None:
        """Note that a member learns its epoch, and that it owns partitions now.

        Answers may overtake each other: of two owners the one of the earlier epoch must be fenced.
        """
        self._epochs[group, member] = epoch
        for key in sorted(partitions):
            before = self._owners.get((group, key))
            if before is not None and before != member:
                self.world.trace.kinds["partition taken from a fenced member"] += 1
                why = f"{member} was assigned {key[1]}, which {before} owns"
                if epoch < self._epochs.get((group, before), -1):
                    self._taken[group, member] = why
                    continue
                self._taken[group, before] = why
            self._owners[group, key] = member
        self.world.trace.kinds["partitions of a consumer group assigned"] += bool(partitions)

    def reports(self, group: str, member: str, partitions: set[PartitionKey]) -> None:
        """Note that a member tells the coordinator what it owns, and nothing else."""
        for one, owner in list(self._owners.items()):
            if one[0] == group and owner == member and one[1] not in partitions:
                del self._owners[one]

    def gone(self, group: str, member: str) -> None:
        """Note that a member owns nothing any more."""
        self.reports(group, member, set())

    def is_taken(self, group: str, member: str) -> bool:
        """Return whether another member was assigned what a member owned."""
        return (group, member) in self._taken

    def outlived(self, group: str, member: str) -> None:
        """A coordinator takes a heartbeat of a member whose partition it has assigned to another one."""
        why = self._taken.get((group, member))
        if why is not None:  # no loss meanwhile
            self.fail("G1", f"in {group}, {why}; a later heartbeat of {member} is taken")

    def committed(self, group: str, member: str, was_taken: bool) -> None:
        """Check the member of an acknowledged commit; `was_taken` when it was sent."""
        why = self._taken.get((group, member))
        if was_taken and why is not None:
            self.fail("G1", f"in {group}, {why}; a later commit of {member} is taken")

    def have_settled(self, members: list[Any], count: int) -> bool:
        """G3: return whether each of the partitions has one owner, and all members are of one epoch."""
        owned = [index for one in members for index in one.owned()]
        return sorted(owned) == list(range(count)) and len({one.epoch for one in members}) == 1

    def lost_power(self, group: str) -> None:
        """Forget a group whose coordinator has lost its power."""
        self._owners = {one: member for one, member in self._owners.items() if one[0] != group}
        self._epochs = {one: epoch for one, epoch in self._epochs.items() if one[0] != group}
        self._taken = {one: why for one, why in self._taken.items() if one[0] != group}
