"""Java's hash of a string, and what Kafka derives from it.

FindCoordinator and the coordinator itself must agree on a group's partition with every client and broker.
The order of a small HashMap decides between protocols with equal votes, and which member leads next.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable
from functools import lru_cache
from typing import TypeVar

from kraftd.ground.pace import Sliced, Slices, at_once

MOST_BUCKETS = 1 << 30
LEAST_BUCKETS = 16
_FIBONACCI = -7046029254386353131
_MIXED_AT_ONCE = 16_384  # partitions
_HASHED_AT_ONCE = 1000

K = TypeVar("K")
V = TypeVar("V")


@lru_cache(maxsize=16_384)
def string_hash(text: str) -> int:
    """``String.hashCode``: over UTF-16 code units, as a signed number of 32 bits."""
    value = 0
    if text.isascii():
        for byte in text.encode():
            value = (value * 31 + byte) & 0xFFFFFFFF
    else:
        units = text.encode("utf-16-be", "surrogatepass")
        for high, low in zip(units[::2], units[1::2], strict=True):
            value = (value * 31 + (high << 8 | low)) & 0xFFFFFFFF
    return value - (1 << 32) if value & 0x80000000 else value


def partition_for(key: str, partition_count: int) -> int:
    """The partition of an internal topic for a group id or a transactional id.

    Kafka's ``Utils.abs`` takes the smallest integer, which has no absolute value, as 0.
    """
    value = string_hash(key)
    return (0 if value == -(1 << 31) else abs(value)) % partition_count


def uuid_hash(uuid: bytes) -> int:
    """``Uuid.hashCode``, without a sign."""
    both = int.from_bytes(uuid[:8], "big") ^ int.from_bytes(uuid[8:], "big")
    return both >> 32 ^ both & 0xFFFFFFFF


def int_hash(number: int) -> int:
    """``Integer.hashCode`` of a number that is not negative."""
    return number


class HashTable(dict[K, V]):
    """A dictionary whose `in_order` is the order of a ``java.util.HashMap`` that was filled as this one.

    buckets: how many Kafka makes it with, a power of two. It only ever grows.
    """

    __slots__ = ("_buckets", "_computed", "_hash_of")

    def __init__(self, hash_of: Callable[[K], int], buckets: int = LEAST_BUCKETS) -> None:
        self._hash_of = hash_of
        self._buckets = buckets
        self._computed: dict[K, None] = {}

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        if len(self) > self._buckets * 3 // 4:
            self._buckets *= 2

    def __delitem__(self, key: K) -> None:
        super().__delitem__(key)
        self._computed.pop(key, None)

    def compute_absent(self, key: K, value: V) -> V:
        """Add a key before others of its bucket, as ``computeIfAbsent`` does; ``put`` adds it behind them."""
        self._computed[key] = None
        self[key] = value
        return value

    def in_order(self) -> list[K]:
        return at_once(self.begin_order())

    def begin_order(self) -> Slices[list[K]]:
        """As `in_order`, slice by slice. The keys must not change meanwhile."""
        keys = [*reversed(self._computed), *(key for key in self if key not in self._computed)]
        return (yield from _in_buckets(keys, self._hash_of, self._buckets))


def new_map_buckets(expected: int) -> int:
    """The buckets of a map that Kafka's ``newHashMap`` makes for so many keys."""
    return buckets_for(int((expected + 1) / 0.75 + 1))


def buckets_for(capacity: int) -> int:
    """The buckets of a map with an initial capacity."""
    return 1 << (max(capacity, 1) - 1).bit_length()


@Sliced
def hash_map_order(keys: Iterable[str]) -> Slices[list[str]]:
    """Different keys in the order of a ``java.util.HashMap`` into which they were put in the given order."""
    listed = list(keys)
    return (yield from _in_buckets(listed, string_hash, _grown_buckets(len(listed))))


def grown_order(keys: Collection[K], hash_of: Callable[[K], int]) -> list[K]:
    """As `hash_map_order`, of keys of any kind."""
    buckets = _grown_buckets(len(keys))
    return sorted(keys, key=lambda key: _bucket(hash_of(key), buckets))


def _grown_buckets(count: int) -> int:
    buckets = LEAST_BUCKETS
    while buckets * 3 // 4 < count and buckets < MOST_BUCKETS:
        buckets *= 2
    return buckets


def _in_buckets(keys: list[K], hash_of: Callable[[K], int], buckets: int) -> Slices[list[K]]:
    """The keys by their buckets, slice by slice."""
    found: list[int] = []
    for start in range(0, len(keys), _HASHED_AT_ONCE):
        found += [_bucket(hash_of(key), buckets) for key in keys[start : start + _HASHED_AT_ONCE]]
        if len(keys) > _HASHED_AT_ONCE:
            yield
    return [keys[at] for at in sorted(range(len(keys)), key=found.__getitem__)]


@Sliced
def copied_order(keys: Collection[K], hash_of: Callable[[K], int]) -> Slices[list[K]]:
    """Different keys in the order of a ``java.util.HashSet`` made of a collection with the given order."""
    return (yield from _in_buckets(list(keys), hash_of, _copied_buckets(len(keys))))


@Sliced
def copied_index_order(indexes: Collection[int]) -> Slices[list[int]]:
    """Partitions in the order of a ``java.util.HashSet`` made of them in ascending order."""
    ascending = sorted(indexes)
    if not ascending or ascending[-1] >= _copied_buckets(len(ascending)):
        return (yield from copied_order.begin(ascending, int_hash))
    ordered: list[int] = []  # each is alone in its bucket, whose low bits are mixed with the high ones
    for high in range((ascending[-1] >> 16) + 1):
        # The mix reorders parts of a power of two, each within itself.
        step = max(_MIXED_AT_ONCE, 1 << high.bit_length())
        for part in range(high << 16, high + 1 << 16, step):
            first, end = (bisect_left(ascending, at) for at in (part, part + step))
            some = ascending[first:end]
            ordered += sorted(some, key=high.__xor__) if high else some
            if high and len(some) > _MIXED_AT_ONCE // 2:
                yield
    return ordered


def timeline_order(keys: Iterable[str], most: int) -> list[str]:
    """Strings in the order of Kafka's TimelineHashMap, into which they came in the given order.

    most: for how many it has made room. It only ever grows, and gives those of a slot the other way round.
    """
    slots = 2
    while most * 0.75 > slots:
        slots *= 2
    shift = 65 - slots.bit_length()
    latest = list(keys)[::-1]
    return sorted(latest, key=lambda key: (string_hash(key) * _FIBONACCI & 0xFFFFFFFFFFFFFFFF) >> shift)


def _copied_buckets(count: int) -> int:
    needed = int(count / 0.75) + 1
    return min(max(LEAST_BUCKETS, buckets_for(needed)), MOST_BUCKETS)


def _bucket(value: int, buckets: int) -> int:
    value &= 0xFFFFFFFF
    return (value ^ value >> 16) & (buckets - 1)
