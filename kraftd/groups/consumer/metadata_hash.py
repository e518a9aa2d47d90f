"""A number that stands for what the topics of a group are like: a change of it is a change of the group.

Apache Kafka writes the same number, so a group does not rebalance when its coordinator moves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from struct import pack

from kraftd.groups.consumer.xxh3 import Xxh3, xxh3_64
from kraftd.wire.records import ENGINE

MAGIC = 0  # the version of the hash
ReplicaIds = tuple[tuple[int, ...], ...]  # the ids of brokers, by partition


def topic_hash(topic_id: bytes, name: str, replicas: ReplicaIds, racks: Mapping[int, str]) -> int:
    """The hash of a topic; racks: of brokers by id, where they are known."""
    hashing = TopicHashing(topic_id, name, len(replicas), racks)
    hashing.add(replicas)
    return hashing.value()


class TopicHashing:
    """The hash of a topic whose partitions are added some at a time, in order."""

    def __init__(self, topic_id: bytes, name: str, count: int, racks: Mapping[int, str]) -> None:
        head = pack("<BQQ", MAGIC, int.from_bytes(topic_id[:8], "big"), int.from_bytes(topic_id[8:], "big"))
        in_order = sorted(set(racks.values()), key=_units)
        ranks = {rack: rank for rank, rack in enumerate(in_order)}
        self._rank_of = {broker_id: ranks[rack] for broker_id, rack in racks.items()}
        self._texts = tuple(map(_rack, in_order))
        self._added = 0
        self._hashed = Xxh3()
        self._hashed.add(head + _text(name) + pack("<i", count))

    def add(self, replicas: ReplicaIds) -> None:
        """Add the next partitions."""
        self._hashed.add((_IN_C or partition_bytes)(self._added, replicas, self._rank_of, self._texts))
        self._added += len(replicas)

    def value(self) -> int:
        """The hash, once all partitions are added."""
        return self._hashed.value()


def partition_bytes(
    first: int, replicas: ReplicaIds, rank_of: dict[int, int], texts: tuple[bytes, ...]
) -> bytes:
    """The partitions as hashed: each index, from the first on, and the racks of its replicas in order.

    rank_of: of a broker's rack among all racks, whose bytes are `texts`. `_records.c` does the same.
    """
    parts: list[bytes] = []
    for index, ids in enumerate(replicas, first):
        parts.append(pack("<i", index))
        parts += [texts[rank] for rank in sorted(rank_of[id] for id in ids if id in rank_of)]
    return b"".join(parts)


_IN_C: Callable[[int, ReplicaIds, dict[int, int], tuple[bytes, ...]], bytes] | None = getattr(
    ENGINE, "partition_bytes", None
)


def group_hash(hashes: Mapping[str, int]) -> int:
    """The hash of topics by name, by their hashes; 0 without topics."""
    if not hashes:
        return 0
    return xxh3_64(b"".join(pack("<q", hashes[name]) for name in sorted(hashes, key=_units)))


def _rack(name: str) -> bytes:
    return pack("<i", len(_units(name)) // 2) + _text(name)


def _units(text: str) -> bytes:
    return text.encode("utf-16-be", "surrogatepass")


def _text(text: str) -> bytes:
    """A string as it is hashed: its UTF-16 units, then how many there are."""
    units = text.encode("utf-16-le", "surrogatepass")
    return units + pack("<i", len(units) // 2)
