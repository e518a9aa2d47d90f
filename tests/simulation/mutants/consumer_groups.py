"""Defects of consumer groups (KIP-848): of what members get, and when."""

from __future__ import annotations

from typing import Any

from kraftd.groups.consumer.reconciling import Reconciling
from kraftd.simulation.schedule import MS, SECOND
from tests.simulation.mutants.planted import Planted


def give_what_is_not_released(patch: Any) -> None:
    """G1: a member gets its target at once, whatever others still own of it."""
    patch.setattr(Reconciling, "released", lambda self, topic_id, indexes: indexes)


def keep_one_partition_back(patch: Any) -> None:
    """G3: a member gets all but the last of what it is to have more."""
    released = Reconciling.released

    def all_but_one(self: Reconciling, topic_id: bytes, indexes: list[int]) -> list[int]:
        return released(self, topic_id, indexes)[:-1]

    patch.setattr(Reconciling, "released", all_but_one)


WORLD: dict[str, Any] = {
    "controllers": True,
    "broker_count": 2,
    "voter_count": 3,
    "safety_us": 15 * SECOND,
    "produce_gap_us": 500 * MS,
    "metadata_version": 30,
    "loads": ("consumer groups",),
}

ALL: dict[Any, Planted] = {
    give_what_is_not_released: Planted("G1", faults=(), **WORLD),
    keep_one_partition_back: Planted("G3", faults=(), **WORLD),
}
