"""Randomness for the pure rooms."""

from __future__ import annotations

import os
import random


class SystemDice:
    """Numbers from a generator seeded by the operating system; uuids straight from it."""

    def __init__(self) -> None:
        self._random = random.Random(os.urandom(16))

    def below(self, n: int) -> int:
        """A number from 0 to n - 1."""
        return self._random.randrange(n)

    def uuid(self) -> bytes:
        """A random version 4 uuid, 16 bytes."""
        raw = bytearray(os.urandom(16))
        raw[6] = raw[6] & 0x0F | 0x40
        raw[8] = raw[8] & 0x3F | 0x80
        return bytes(raw)
