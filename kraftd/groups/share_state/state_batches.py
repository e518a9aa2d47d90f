"""Runs of offsets of a share partition that were delivered alike, and how newer ones are laid over them."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from typing import NamedTuple

NO_OFFSET = -1


class StateBatch(NamedTuple):
    """The offsets from first to last have one delivery state and one delivery count.

    The order of batches is that of the fields, as in Kafka's PersisterStateBatch.
    """

    first_offset: int
    last_offset: int
    delivery_count: int
    delivery_state: int

    @property
    def rank(self) -> tuple[int, int]:
        """Of two batches, the one with the higher rank holds where both have an offset."""
        return self[2:]


def combined(
    former: Iterable[StateBatch], newer: Iterable[StateBatch], start_offset: int
) -> tuple[StateBatch, ...]:
    """The batches without overlaps, from a start offset on (-1 for any), in order.

    Neighbours with one rank become one batch, unless the first was set aside before the second came to be:
    as Kafka's PersisterStateBatchCombiner has it, whose records these are.
    """
    heap = [pruned for batch in (*former, *newer) if (pruned := _from_start(batch, start_offset)) is not None]
    heapify(heap)
    result: list[StateBatch] = []
    while heap:
        batch = heappop(heap)
        if not heap or not _meets(batch, heap[0]):
            result.append(batch)
            continue
        for part in _resolved(batch, heappop(heap)):
            heappush(heap, part)
    return tuple(result)


def _from_start(batch: StateBatch, start_offset: int) -> StateBatch | None:
    if start_offset == NO_OFFSET or batch.first_offset >= start_offset:
        return batch
    return None if batch.last_offset < start_offset else batch._replace(first_offset=start_offset)


def _meets(batch: StateBatch, next: StateBatch) -> bool:
    """Return whether the next batch in order overlaps this one, or continues it."""
    is_continued = batch.last_offset + 1 == next.first_offset and batch.rank == next.rank
    return next.first_offset <= batch.last_offset or is_continued


def _resolved(batch: StateBatch, next: StateBatch) -> list[StateBatch]:
    """Two batches that meet, the first being first in order, as up to three that do not overlap."""
    if batch.rank == next.rank:
        return [batch._replace(last_offset=max(batch.last_offset, next.last_offset))]
    parts = []
    if next.rank > batch.rank:
        if batch.first_offset < next.first_offset:
            parts.append(batch._replace(last_offset=next.first_offset - 1))
        parts.append(next)
        if next.last_offset < batch.last_offset:
            parts.append(batch._replace(first_offset=next.last_offset + 1))
    else:
        parts.append(batch)
        if batch.last_offset < next.last_offset:
            parts.append(next._replace(first_offset=batch.last_offset + 1))
    return parts
