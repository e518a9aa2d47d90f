"""The only source of randomness: streams of numbers that follow from the seed and a name.

Each part of the world draws from a stream of its own. So removing one fault from a history (shrinking) leaves
the numbers of all others unchanged.
"""

from __future__ import annotations

import random
from collections.abc import MutableSequence, Sequence
from typing import TypeVar

T = TypeVar("T")


class SeededRandomness:
    """One stream. It serves the consensus core and the controller's decisions, too."""

    __slots__ = ("_random", "_unit")

    def __init__(self, seed: int, *name: object) -> None:
        self._random = random.Random("/".join(map(str, (seed, *name))))
        self._unit = self._random.random

    def below(self, n: int) -> int:
        """A number from 0 to n - 1."""
        return int(self._unit() * n)

    def between(self, low: int, high: int) -> int:
        """A number from low to high, both included."""
        return low + int(self._unit() * (high - low + 1))

    def chance(self, probability: float) -> bool:
        return self._unit() < probability

    def choice(self, options: Sequence[T]) -> T:
        return options[int(self._unit() * len(options))]

    def sample(self, options: Sequence[T], count: int) -> list[T]:
        return self._random.sample(options, count)

    def shuffle(self, items: MutableSequence[T]) -> None:
        self._random.shuffle(items)

    def uuid(self) -> bytes:
        """A version 4 uuid, 16 bytes."""
        raw = bytearray(self._random.randbytes(16))
        raw[6] = raw[6] & 0x0F | 0x40
        raw[8] = raw[8] & 0x3F | 0x80
        return bytes(raw)
