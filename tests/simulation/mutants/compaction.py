"""Defects of the log cleaner: of what it keeps."""

from __future__ import annotations

from typing import Any

from kraftd.simulation.schedule import MS, SECOND
from kraftd.wire.compaction import KeyOffsets
from tests.simulation.mutants.planted import Planted


def keep_the_first_of_each_key(patch: Any) -> None:
    """P11: the cleaner notes the keys of the first batches only, and drops what comes after them."""
    note = KeyOffsets.note

    def note_the_first(self: KeyOffsets, batch: Any, start_offset: int) -> bool:
        if self.count < 2:
            return note(self, batch, start_offset)
        self.latest_offset = batch.header.last_offset
        return True

    patch.setattr(KeyOffsets, "note", note_the_first)


WORLD: dict[str, Any] = {
    "controllers": True,
    "broker_count": 2,
    "voter_count": 3,
    "safety_us": 4 * SECOND,
    "produce_gap_us": 100 * MS,
    "loads": ("compaction",),
}

ALL: dict[Any, Planted] = {
    keep_the_first_of_each_key: Planted("P11", faults=(), **WORLD),
}
