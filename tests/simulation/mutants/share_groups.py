"""Defects of share groups (KIP-932): of the holder of a record, and of its end."""

from __future__ import annotations

from typing import Any

from kraftd.partition.share.delivery import Delivery
from kraftd.partition.share.share_partition import SharePartition
from kraftd.partition.share.states import ARCHIVED, AVAILABLE, RELEASE, STATE_AFTER
from kraftd.simulation.schedule import MS, SECOND
from tests.simulation.mutants.planted import Planted


def give_what_another_member_holds(patch: Any) -> None:
    """G4: locks end as soon as anything looks at them."""
    deadline = SharePartition.deadline_ms

    def at_once(self: SharePartition) -> int | None:
        return None if deadline(self) is None else 0

    def take_all(self: SharePartition, now_ms: int) -> Any:
        return take_expired(self, 1 << 60)

    take_expired = SharePartition.take_expired
    patch.setattr(SharePartition, "deadline_ms", at_once)
    patch.setattr(SharePartition, "take_expired", take_all)


def take_every_end_for_a_release(patch: Any) -> None:
    """G5: what is accepted or rejected is available again."""
    begin = Delivery.begin
    patch.setattr(Delivery, "begin", lambda self, state, most: begin(self, AVAILABLE, most))


def take_a_release_for_an_end(patch: Any) -> None:
    """G6: what a member releases is delivered no more."""
    patch.setitem(STATE_AFTER, RELEASE, ARCHIVED)


WORLD: dict[str, Any] = {
    "controllers": True,
    "broker_count": 2,
    "voter_count": 3,
    "safety_us": 15 * SECOND,
    "produce_gap_us": 100 * MS,
    "metadata_version": 30,
    "loads": ("share groups",),
}

ALL: dict[Any, Planted] = {
    give_what_another_member_holds: Planted("G4", faults=(), **WORLD),
    take_every_end_for_a_release: Planted("G5", faults=(), **WORLD),
    take_a_release_for_an_end: Planted("G6", faults=(), **WORLD),
}
