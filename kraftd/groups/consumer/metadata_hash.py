"""A number that stands for what the topics of a group are like: a change of it is a change of the group.

Apache Kafka writes the same number, so a group does not rebalance when its coordinator moves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from struct import Struct, pack

from kraftd.groups.consumer.xxh3 import xxh3_64

MAGIC = 0  # the version of the hash
_INT = Struct("<i").pack


def topic_hash(topic_id: bytes, name: str, racks: Sequence[Sequence[str]]) -> int:
    """The hash of a topic; racks: of each partition's replicas, where they are known."""
    parts = [
        pack("<BQQ", MAGIC, int.from_bytes(topic_id[:8], "big"), int.from_bytes(topic_id[8:], "big")),
        _text(name),
        pack("<i", len(racks)),
    ]
    indexes = [_INT(index) for index in range(len(racks))]
    if not any(racks):
        return xxh3_64(b"".join(parts + indexes))
    # Many partitions have replicas in the same racks.
    of_racks = {names: b"".join(map(_rack, sorted(names, key=_units))) for names in set(map(tuple, racks))}
    of_partitions = (of_racks[names] for names in map(tuple, racks))
    parts += chain.from_iterable(zip(indexes, of_partitions, strict=True))
    return xxh3_64(b"".join(parts))


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
