"""Which batches of the log were written by transactions that were aborted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kraftd.named_tuple import NamedTuple

NO_PRODUCER = -1


class ReadBatch(NamedTuple):
    """A batch of the log. is_abort: it is the marker of an aborted transaction."""

    base_offset: int
    last_offset: int
    producer_id: int = NO_PRODUCER
    is_transactional: bool = False
    is_abort: bool = False


def aborted_batches(batches: Iterable[ReadBatch], aborted: Sequence[tuple[int, int]]) -> Iterator[ReadBatch]:
    """The batches of aborted transactions, which are given by producer id and first offset."""
    coming = sorted(aborted, key=lambda one: one[1], reverse=True)
    producers: set[int] = set()
    for batch in batches:
        if batch.producer_id == NO_PRODUCER:
            continue
        while coming and coming[-1][1] <= batch.last_offset:
            producers.add(coming.pop()[0])
        if batch.is_abort:
            producers.discard(batch.producer_id)
        elif batch.is_transactional and batch.producer_id in producers:
            yield batch


def without(span: tuple[int, int], batch: ReadBatch) -> list[tuple[int, int]]:
    """What is left of the offsets from first to last without a batch."""
    first, last = span
    if last < batch.base_offset or batch.last_offset < first:
        return [span]
    parts = [(first, batch.base_offset - 1), (batch.last_offset + 1, last)]
    return [(one, other) for one, other in parts if one <= other]
