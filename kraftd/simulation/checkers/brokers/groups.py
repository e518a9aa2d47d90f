"""G1, G2: partitions have one owner in a generation of a group, and committed offsets do not go back."""

from __future__ import annotations

from typing import Any

from kraftd.simulation.checkers.brokers.partitions import PartitionKey
from kraftd.simulation.checkers.checker import Checker


class GroupChecker(Checker):
    """What members of groups learn. A loss of power may take generations and commits that were not
    flushed, so all of it is forgotten with the coordinator's power.
    """

    def __init__(self, world: Any) -> None:
        super().__init__(world)
        self._owners: dict[tuple[str, int], dict[PartitionKey, str]] = {}  # by group and generation
        self._generations: dict[str, int] = {}  # the latest with an assignment
        self._committed: dict[tuple[str, PartitionKey], int] = {}

    def assigned(self, group: str, generation: int, member: str, partitions: list[PartitionKey]) -> None:
        """Note the partitions of a member in a generation."""
        owners = self._owners.setdefault((group, generation), {})
        for key in partitions:
            owner = owners.setdefault(key, member)
            if owner != member:
                text = f"in generation {generation} of {group}, {key[1]} belongs to {owner} and to {member}"
                self.fail("G1", text)
        self._generations[group] = max(self._generations.get(group, -1), generation)
        self.world.trace.kinds["partitions assigned"] += 1

    def generation(self, group: str) -> int:
        """The latest generation of a group in which a member was assigned partitions."""
        return self._generations.get(group, -1)

    def committed_offset(self, group: str, key: PartitionKey) -> int:
        """The largest acknowledged commit; -1 without one."""
        return self._committed.get((group, key), -1)

    def committed(
        self, group: str, generation: int, member: str, offsets: dict[PartitionKey, int], latest: int
    ) -> None:
        """Note an acknowledged commit; `latest` is the generation of the group when it was sent."""
        if generation < latest:
            self.fail("G1", f"{group} takes a commit of {member} of generation {generation}, after {latest}")
        self.has_committed(group, offsets)

    def has_committed(self, group: str, offsets: dict[PartitionKey, int]) -> None:
        """Note what an acknowledged commit of a group keeps."""
        for key, offset in offsets.items():
            before = self.committed_offset(group, key)
            self._committed[group, key] = max(before, offset)
        self.world.trace.kinds["offsets committed"] += 1

    def fetched(self, group: str, key: PartitionKey, offset: int, at_least: int) -> None:
        """Check a committed offset that a member is given; `at_least` was committed when it asked."""
        floor = min(at_least, self.committed_offset(group, key))  # less after a loss meanwhile
        if offset < floor:
            self.fail("G2", f"{group} had committed {floor} of {key[0].hex()[:8]}-{key[1]}, now {offset}")

    def lost_end(self, key: PartitionKey, end: int) -> None:
        """Note that a partition ends there now: a consumer may begin there again."""
        for group, one in self._committed:
            if one == key:
                self._committed[group, one] = min(self._committed[group, one], end)

    def lost_power(self, group: str) -> None:
        """Forget a group whose coordinator has lost its power."""
        self._generations.pop(group, None)
        self._owners = {one: owners for one, owners in self._owners.items() if one[0] != group}
        self._committed = {one: offset for one, offset in self._committed.items() if one[0] != group}
