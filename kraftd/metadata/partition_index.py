"""Sets of partitions, compact at a million: a topic id and a bit mask of partition indexes an entry."""

from __future__ import annotations

from collections.abc import Iterator

TopicPartition = tuple[bytes, int]

# The masks of small topics exist once: an index of a million replicas is made of few distinct ints.
_SHARED_MASKS = tuple(range(1 << 12))
_SHARED_LIMIT = len(_SHARED_MASKS)


class PartitionSet:
    """A set of (topic id, partition index)."""

    __slots__ = ("masks",)

    def __init__(self) -> None:
        self.masks: dict[bytes, int] = {}

    def add(self, topic_id: bytes, index: int) -> None:
        mask = self.masks.get(topic_id, 0) | 1 << index
        self.masks[topic_id] = _SHARED_MASKS[mask] if mask < _SHARED_LIMIT else mask

    def discard(self, topic_id: bytes, index: int) -> None:
        old = self.masks.get(topic_id, 0)
        mask = old & ~(1 << index)
        if mask:
            self.masks[topic_id] = _SHARED_MASKS[mask] if mask < _SHARED_LIMIT else mask
        elif old:
            del self.masks[topic_id]

    def __iter__(self) -> Iterator[TopicPartition]:
        for topic_id, mask in self.masks.items():
            while mask:
                lowest = mask & -mask
                yield topic_id, lowest.bit_length() - 1
                mask ^= lowest

    def __len__(self) -> int:
        return sum(mask.bit_count() for mask in self.masks.values())

    def __repr__(self) -> str:
        return f"<PartitionSet of {len(self)} in {len(self.masks)} topics>"


class CountedPartitionSet(PartitionSet):
    """One that knows its size at any time: `count`. Adding costs a little more."""

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

    def __len__(self) -> int:
        return self.count
