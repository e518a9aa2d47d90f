"""Randomness for the pure packages."""

from __future__ import annotations

import os
import random

UUIDS_PER_DRAW = 64  # drawn from the operating system together: each call costs as much as ten uuids
LAST_SESSION_ID = 2_147_483_640  # the last id of the eight shards of Kafka's cache


class SystemRandomness:
    """Numbers from a generator seeded by the operating system; uuids straight from it."""

    def __init__(self) -> None:
        self._random = random.Random(os.urandom(16))
        self._unused = b""  # random bytes for the next uuids

    def below(self, n: int) -> int:
        """A number from 0 to n - 1."""
        return int(self._random.random() * n)

    def session_id(self) -> int:
        """An unguessable id of a fetch session, in the range of Kafka's."""
        while not 0 < (number := int.from_bytes(os.urandom(4)) >> 1) < LAST_SESSION_ID:
            pass
        return number

    def uuid(self) -> bytes:
        """A random version 4 uuid, 16 bytes."""
        if not self._unused:
            self._unused = os.urandom(16 * UUIDS_PER_DRAW)
        raw = bytearray(self._unused[:16])
        self._unused = self._unused[16:]
        raw[6] = raw[6] & 0x0F | 0x40
        raw[8] = raw[8] & 0x3F | 0x80
        return bytes(raw)
