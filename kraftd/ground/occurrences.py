"""How often a request names each of its elements, counted in slices, for requests of any size."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from typing import Generic, TypeVar

from kraftd.ground.pace import Pace, Slices

MAX_KEYS_AT_ONCE = 2_500  # counted in less than a millisecond; of costly keys fewer
KEYS_FREED_PER_US = 4

E = TypeVar("E")
K = TypeVar("K", bound=Hashable)


class Occurrences(Generic[K]):
    """The count of each key, in many small dicts: one very large dict takes tens of milliseconds to grow."""

    __slots__ = ("_parts",)

    def __init__(self, parts: list[dict[K, int]]) -> None:
        self._parts = parts  # a power of two of them

    @staticmethod
    def for_about(count: int) -> Occurrences[K]:
        """No keys yet, with places for about `count` of them."""
        return Occurrences([{} for _ in range(1 << (count // MAX_KEYS_AT_ONCE).bit_length())])

    def add(self, key: K) -> None:
        """Count a key once more."""
        parts = self._parts
        part = parts[hash(key) & (len(parts) - 1)]
        part[key] = part.get(key, 0) + 1

    def __contains__(self, key: K) -> bool:
        parts = self._parts
        return key in parts[hash(key) & (len(parts) - 1)]

    def count(self, key: K) -> int:
        """Return how often a key occurred."""
        parts = self._parts
        return parts[hash(key) & (len(parts) - 1)].get(key, 0)

    def take(self, key: K) -> int:
        """Remove a key; return how often it occurred, and 0 if it was removed before."""
        parts = self._parts
        return parts[hash(key) & (len(parts) - 1)].pop(key, 0)

    def free(self, pace: Pace) -> Slices[None]:
        """Free the keys that were not taken, in slices."""
        parts = self._parts
        while parts:
            if pace.spent(len(parts.pop()) // KEYS_FREED_PER_US):
                yield

    def __repr__(self) -> str:
        return f"<Occurrences of {sum(map(len, self._parts))} keys>"


def count_in_slices(
    elements: Collection[E], key: Callable[[E], K], pace: Pace, key_us: int = 1
) -> Slices[Occurrences[K]]:
    """Count the keys of the elements, as a generator; `key_us` is what a key costs, in microseconds."""
    length = len(elements)
    if length * key_us <= MAX_KEYS_AT_ONCE:
        counts: dict[K, int] = {}  # made faster than a Counter
        for found in map(key, elements):
            counts[found] = counts.get(found, 0) + 1
        return Occurrences([counts])
    counted: Occurrences[K] = Occurrences.for_about(length)
    for element in elements:
        if pace.spent(key_us):
            yield
        counted.add(key(element))
    return counted
