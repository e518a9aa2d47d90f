"""Defects of transactions: of the last stable offset, of what readers see, and of fences."""

from __future__ import annotations

from typing import Any

from kraftd.groups.transactions.shard import TransactionalId
from kraftd.partition.partition import Partition
from kraftd.simulation.schedule import MS, SECOND
from tests.simulation.mutants.planted import Planted


def let_the_stable_offset_fall(patch: Any) -> None:
    """P8: while a transaction is open, nothing of its partition is stable."""
    stable = Partition.last_stable_offset.fget

    def fallen(self: Partition) -> int:
        offset: int = stable(self)  # type: ignore[misc]
        return offset if offset == self.high_watermark else self.log_start_offset

    patch.setattr(Partition, "last_stable_offset", property(fallen))


def show_what_is_undecided(patch: Any) -> None:
    """P9: readers of committed records see all that is replicated."""
    patch.setattr(Partition, "last_stable_offset", property(lambda self: self.high_watermark))


def let_zombies_in(patch: Any) -> None:
    """P10: the coordinator takes partitions into a transaction for a producer of any epoch."""
    patch.setattr(TransactionalId, "check_producer", lambda self, *_: None)


WORLD: dict[str, Any] = {
    "controllers": True,
    "broker_count": 2,
    "voter_count": 3,
    "safety_us": 20 * SECOND,
    "produce_gap_us": 20 * MS,
}

ALL: dict[Any, Planted] = {
    let_the_stable_offset_fall: Planted("P8", faults=(), **WORLD),
    show_what_is_undecided: Planted("P9", faults=(), **WORLD),
    let_zombies_in: Planted("P10", faults=(), **WORLD),
}
