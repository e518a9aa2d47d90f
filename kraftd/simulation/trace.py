"""The trace of events: always a digest, the text on request.

One seed makes one trace; two runs of the same seed are compared by their digests.
"""

from __future__ import annotations

import hashlib
import struct
from collections import Counter
from collections.abc import Callable
from typing import Any

from kraftd.simulation.schedule import SECOND

_STEP = struct.Struct(">qiiqqqi")
_FLUSH_BYTES = 1 << 16


class Trace:
    """The digest, the number of events, and the number of occurrences of each kind.

    An event is a step of a replica (an event that it receives) or a performed effect of a replica.
    """

    def __init__(self, echo: Callable[[str], None] | None = None) -> None:
        self.echo = echo
        self.steps = 0
        self.effects = 0
        self.kinds: Counter[str] = Counter()
        self._hash = hashlib.blake2b(digest_size=16)
        self._buffer = bytearray()

    @property
    def events(self) -> int:
        return self.steps + self.effects

    def step(
        self, now_us: int, node_id: int, code: int, epoch: int, end: int, high_watermark: int, effects: int
    ) -> None:
        self.steps += 1
        self.effects += effects
        buffer = self._buffer
        buffer += _STEP.pack(now_us, node_id, code, epoch, end, high_watermark, effects)
        if len(buffer) >= _FLUSH_BYTES:
            self._hash.update(buffer)
            buffer.clear()

    def note(self, now_us: int, kind: str, *what: Any) -> None:
        """A fault or an act of the world, not of a replica."""
        self.kinds[kind] += 1
        self._buffer += f"{now_us} {kind} {what}".encode()
        if self.echo is not None:
            self.write(now_us, f"{kind} {' '.join(map(str, what))}".rstrip())

    def write(self, now_us: int, text: str) -> None:
        assert self.echo is not None
        self.echo(f"{now_us / SECOND:12.6f} {text}")

    def digest(self) -> str:
        self._hash.update(self._buffer)
        self._buffer.clear()
        return self._hash.hexdigest()

    def __repr__(self) -> str:
        return f"<Trace {self.steps} steps, {self.effects} effects, {sum(self.kinds.values())} acts>"
