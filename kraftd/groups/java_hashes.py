"""Java's hash of a string, and what Kafka derives from it.

FindCoordinator and the coordinator itself must agree on a group's partition with every client and broker.
The order of a small HashMap decides between protocols with equal votes, and which member leads next.
"""

from __future__ import annotations

from collections.abc import Iterable

MOST_BUCKETS = 1 << 30


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


def hash_map_order(keys: Iterable[str]) -> list[str]:
    """Different keys in the order of a ``java.util.HashMap`` into which they were put in the given order."""
    listed = list(keys)
    buckets = 16
    while buckets * 3 // 4 < len(listed) and buckets < MOST_BUCKETS:
        buckets *= 2
    return sorted(listed, key=lambda key: _bucket(key, buckets))


def _bucket(key: str, buckets: int) -> int:
    value = string_hash(key) & 0xFFFFFFFF
    return (value ^ value >> 16) & (buckets - 1)
