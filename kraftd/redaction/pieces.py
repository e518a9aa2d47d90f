"""Batches that arrive in pieces of any length, such as a snapshot's: secrets are blanked as they come."""

from __future__ import annotations

from kraftd.ground.pace import at_once
from kraftd.redaction.batches import redacted_batches
from kraftd.wire.batch import CorruptBatch, iter_batches
from kraftd.wire.primitives import Buffer


class RedactedPieces:
    """Takes pieces in order; returns what is whole by then, without secrets."""

    def __init__(self) -> None:
        self._held = bytearray()

    def __repr__(self) -> str:
        return f"<RedactedPieces {self.held_bytes} bytes held>"

    @property
    def held_bytes(self) -> int:
        """How many bytes of an unfinished batch wait for the rest of it."""
        return len(self._held)

    def append(self, piece: Buffer) -> bytes:
        """The batches that this piece completes. Raises CorruptBatch: no checksum of damage is made anew."""
        self._held += piece
        held = bytes(self._held)
        whole = held[: _whole_bytes(held)]
        del self._held[: len(whole)]
        return bytes(at_once(redacted_batches(whole)))


def _whole_bytes(data: bytes) -> int:
    """The length of the whole batches that data begins with."""
    end = 0
    try:
        for batch in iter_batches(data):
            end = batch.position + batch.header.size_bytes
    except CorruptBatch as error:
        if not error.truncated:
            raise
    return end
