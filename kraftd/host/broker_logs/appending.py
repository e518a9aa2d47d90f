"""An append of the partition room, done to a log."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kraftd.log.data.data_log import DataLog
from kraftd.log.data.transaction_index import AbortedTransaction
from kraftd.partition.effects import AppendBatches
from kraftd.wire.producer_snapshot import SnapshotEntry


def append_batches(
    log: DataLog, append: AppendBatches, now_ms: int, producers: Callable[[], Iterable[SnapshotEntry]]
) -> None:
    """Write the batches, and the aborted transactions that they complete. Raises as `DataLog.append` does.

    producers gives the state before them.
    """
    aborted: list[AbortedTransaction] = []
    if append.aborted:
        aborted += (
            AbortedTransaction(one.producer_id, one.first_offset, one.last_offset, one.last_stable_offset)
            for one in append.aborted
        )
    log.append(append.views, append.headers, now_ms, producers, aborted)
