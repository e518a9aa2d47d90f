"""Sets of partitions, compact at a million: each entry is a topic id and a bit mask of partition indexes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

TopicPartition = tuple[bytes, int]

# Equal small numbers are one object: the masks of a million replicas in small topics have few distinct ints,
# and so have the partitions of all topics.
SHARED_INTS = tuple(range(1 << 12))
SHARED_LIMIT = len(SHARED_INTS)
_NOTES_PLACED_PER_CHANGE = 2  # more than one, so that the notes of a load are used up eventually


class PartitionSet:
    """A set of (topic id, partition index)."""

    __slots__ = ("masks",)

    def __init__(self) -> None:
        self.masks: dict[bytes, int] = {}

    def add(self, topic_id: bytes, index: int) -> None:
        mask = self.masks.get(topic_id, 0) | 1 << index
        self.masks[topic_id] = SHARED_INTS[mask] if mask < SHARED_LIMIT else mask

    def discard(self, topic_id: bytes, index: int) -> None:
        old = self.masks.get(topic_id, 0)
        mask = old & ~(1 << index)
        if mask:
            self.masks[topic_id] = SHARED_INTS[mask] if mask < SHARED_LIMIT else mask
        elif old:
            del self.masks[topic_id]

    def discard_topic(self, topic_id: bytes) -> None:
        """Remove every partition of a topic."""
        self.masks.pop(topic_id, None)

    def __iter__(self) -> Iterator[TopicPartition]:
        for topic_id, mask in self.masks.items():
            while mask:
                lowest = mask & -mask
                index = lowest.bit_length() - 1
                yield topic_id, SHARED_INTS[index] if index < SHARED_LIMIT else index
                mask ^= lowest

    def __len__(self) -> int:
        return sum(mask.bit_count() for mask in self.masks.values())

    def __repr__(self) -> str:
        return f"<PartitionSet of {len(self)} in {len(self.masks)} topics>"


class HostedPartitions:
    """The partitions that have a replica on a broker.

    A load names a broker in tens of thousands of topics, and most of these entries are never read. So a
    change is only noted. The first reader puts all notes into the set, and each change puts a few.
    """

    __slots__ = ("_notes", "_placed", "_set")

    def __init__(self) -> None:
        self._set = PartitionSet()
        self._notes: list[Any] = []  # topic id and mask alternately; a negative mask removes partitions
        self._placed = 0  # how many of the notes are in the set already

    def add_mask(self, topic_id: bytes, mask: int) -> None:
        """Add partitions of a topic: bit i is partition i."""
        notes = self._notes
        notes.append(topic_id)
        notes.append(SHARED_INTS[mask] if mask < SHARED_LIMIT else mask)

    def add(self, topic_id: bytes, index: int) -> None:
        self.add_mask(topic_id, 1 << index)
        self._place(_NOTES_PLACED_PER_CHANGE)

    def discard(self, topic_id: bytes, index: int) -> None:
        self.discard_mask(topic_id, 1 << index)

    def discard_mask(self, topic_id: bytes, mask: int) -> None:
        """Remove partitions of a topic: bit i is partition i."""
        self._notes += (topic_id, -mask)
        self._place(_NOTES_PLACED_PER_CHANGE)

    def _place(self, most: int) -> None:
        """Put that many notes into the set, the oldest first."""
        notes, begin = self._notes, self._placed
        end = min(begin + 2 * most, len(notes))
        masks = self._set.masks
        for at in range(begin, end, 2):
            topic_id, mask = notes[at], notes[at + 1]
            old = masks.get(topic_id, 0)
            mask = old | mask if mask > 0 else old & ~-mask
            if mask:
                masks[topic_id] = SHARED_INTS[mask] if mask < SHARED_LIMIT else mask
            elif old:
                del masks[topic_id]
        if end == len(notes):
            notes.clear()
            end = 0
        self._placed = end

    def settle(self, most: int) -> bool:
        """Put some notes into the set; returns whether none is left, so that reading is fast."""
        self._place(most)
        return not self._notes

    def masks(self) -> list[tuple[bytes, int]]:
        """Topic ids, each with its mask."""
        self._place(len(self._notes))
        return list(self._set.masks.items())

    def __iter__(self) -> Iterator[TopicPartition]:
        self._place(len(self._notes))
        return iter(self._set)

    def __len__(self) -> int:
        self._place(len(self._notes))
        return len(self._set)

    def __repr__(self) -> str:
        return f"<HostedPartitions, {len(self)} in {len(self._set.masks)} topics>"


class CountedPartitionSet(PartitionSet):
    """A set that keeps its size in `count`. Adding costs a little more."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def add(self, topic_id: bytes, index: int) -> None:
        if not self.masks.get(topic_id, 0) >> index & 1:
            self.count += 1
            super().add(topic_id, index)

    def discard(self, topic_id: bytes, index: int) -> None:
        if self.masks.get(topic_id, 0) >> index & 1:
            self.count -= 1
            super().discard(topic_id, index)

    def discard_topic(self, topic_id: bytes) -> None:
        self.count -= self.masks.pop(topic_id, 0).bit_count()

    def __len__(self) -> int:
        return self.count


class PartitionWalk:
    """A walk through the partitions of a set in parts, between which the set may change.

    It may still return partitions that have left the set, and may miss new ones: the caller checks each
    again.
    """

    __slots__ = ("_next", "_set", "_topic_ids")

    def __init__(self, partitions: PartitionSet) -> None:
        self._set = partitions
        self._topic_ids = list(partitions.masks)
        self._topic_ids.reverse()  # the last one comes next
        self._next: list[TopicPartition] = []

    def next(self, limit: int) -> list[TopicPartition]:
        """The next partitions, up to that many; it returns them again until they are ``passed``."""
        ready, masks = self._next, self._set.masks
        while len(ready) < limit and self._topic_ids:
            topic_id = self._topic_ids.pop()
            mask = masks.get(topic_id, 0)
            ready += [(topic_id, index) for index in range(mask.bit_length()) if mask >> index & 1]
        return ready[:limit]

    def passed(self, count: int) -> None:
        """Move past that many partitions."""
        del self._next[:count]

    def is_last(self, count: int) -> bool:
        """Return whether nothing follows after that many more."""
        return not self._topic_ids and len(self._next) <= count

    def __repr__(self) -> str:
        return f"<PartitionWalk, {len(self._topic_ids)} topics to go>"
