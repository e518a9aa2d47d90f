"""Which batches and markers of transactions a cleaning meets may go, and which entries stay in the index."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush

from kraftd.log.data.transaction_index import AbortedTransaction
from kraftd.wire.batch import BatchHeader

_TRANSACTIONAL = 0x10


class CleanedTransactions:
    """Follows transactions through batches that come in the order of their offsets.

    kept: the aborted transactions of which a batch is still there, since the last `take_kept`.
    """

    def __init__(self) -> None:
        self._coming: list[tuple[int, int, AbortedTransaction]] = []  # a heap by first offset
        self._aborting: dict[int, tuple[AbortedTransaction, bool]] = {}  # and whether it has batches
        self._committing: set[int] = set()
        self._kept: list[AbortedTransaction] = []

    def __repr__(self) -> str:
        return f"<CleanedTransactions {len(self._aborting)} aborting, {len(self._committing)} committing>"

    def add(self, aborted: Iterable[AbortedTransaction]) -> None:
        """Add transactions of the batches to come. One may come twice, with each segment that it spans."""
        for one in aborted:
            heappush(self._coming, (one.first_offset, one.last_offset, one))

    def is_aborted(self, header: BatchHeader) -> bool:
        """Return whether a data batch belongs to an aborted transaction."""
        self._begin_to(header.last_offset)
        if not header.attributes & _TRANSACTIONAL:
            return False
        if header.producer_id in self._aborting:
            self._aborting[header.producer_id] = self._aborting[header.producer_id][0], True
            return True
        self._committing.add(header.producer_id)
        return False

    def is_empty_end(self, header: BatchHeader, is_commit: bool | None) -> bool:
        """Return whether a marker ends a transaction of which no batch was met. is_commit is None of a
        control batch without a record, which was cleaned before.
        """
        self._begin_to(header.last_offset)
        if is_commit is None:
            return True
        if is_commit:
            had_batches = header.producer_id in self._committing
            self._committing.discard(header.producer_id)
            return not had_batches
        transaction, had_batches = self._aborting.pop(header.producer_id, (None, False))
        if transaction is not None and had_batches:
            self._kept.append(transaction)
            return False
        return True

    def take_kept(self) -> list[AbortedTransaction]:
        """The aborted transactions whose markers were met since the last call, and that have batches."""
        kept, self._kept = self._kept, []
        return kept

    def _begin_to(self, offset: int) -> None:
        while self._coming and self._coming[0][0] <= offset:
            one = heappop(self._coming)[2]
            self._aborting.setdefault(one.producer_id, (one, False))
