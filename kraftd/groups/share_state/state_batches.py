"""Runs of offsets of a share partition that were delivered alike, and how newer ones are laid over them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from kraftd.named_tuple import NamedTuple

NO_OFFSET = -1
MAX_OFFSET = 2**63


class StateBatch(NamedTuple):
    """The offsets from first to last have one delivery state and one delivery count."""

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

    `former` is a result of this function. At each offset the highest rank holds, and neighbours of one rank
    are one batch. There may be thousands of batches, so only those are looked at that meet a newer one.
    """
    rows = list(former)
    for batch in _runs(newer):
        low = bisect_left(rows, (batch.first_offset - 1,))
        if low and rows[low - 1].last_offset >= batch.first_offset - 1:
            low -= 1
        high = bisect_right(rows, (batch.last_offset + 1, MAX_OFFSET))
        rows[low:high] = _laid_over(rows[low:high], batch)
    if start_offset != NO_OFFSET:
        _cut(rows, start_offset)
    return tuple(rows)


def _runs(batches: Iterable[StateBatch]) -> list[StateBatch]:
    """Batches that follow each other with one rank as one: members acknowledge record by record."""
    runs: list[StateBatch] = []
    for batch in batches:
        last = runs[-1] if runs else None
        if last is not None and last[1] + 1 == batch[0] and last[2:] == batch[2:]:
            runs[-1] = StateBatch(last[0], *batch[1:])
        else:
            runs.append(batch)
    return runs


def _cut(rows: list[StateBatch], start_offset: int) -> None:
    """Remove what is before an offset."""
    gone = bisect_left(rows, (start_offset,))
    if gone and rows[gone - 1].last_offset >= start_offset:
        gone -= 1
        rows[gone] = rows[gone]._replace(first_offset=start_offset)
    del rows[:gone]


def _laid_over(rows: list[StateBatch], batch: StateBatch) -> list[StateBatch]:
    """Neighbours in order, with a batch that each of them overlaps or touches."""
    result: list[StateBatch] = []
    first, last, rank = batch.first_offset, batch.last_offset, batch.rank
    at = first  # what is before has its rank
    for row in rows:
        if row.first_offset < first:
            _add(result, row.first_offset, min(row.last_offset, first - 1), row.rank)
        _add(result, at, min(row.first_offset - 1, last), rank)
        _add(result, max(row.first_offset, first), min(row.last_offset, last), max(row.rank, rank))
        at = max(at, min(row.last_offset, last) + 1)
        if row.last_offset > last:
            _add(result, max(row.first_offset, last + 1), row.last_offset, row.rank)
    _add(result, at, last, rank)
    return result


def _add(result: list[StateBatch], first: int, last: int, rank: tuple[int, int]) -> None:
    """Append offsets, if there are any; to the last batch if that has their rank and ends before them."""
    if first > last:
        return
    if result and result[-1].last_offset + 1 == first and result[-1].rank == rank:
        first = result.pop().first_offset
    result.append(StateBatch(first, last, *rank))
