"""The producers of a partition as its log is opened at a start: a snapshot, then the batches behind it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kraftd.log.data.transaction_index import AbortedTransaction
from kraftd.partition.config import PartitionConfig
from kraftd.partition.producers import ProducerStates
from kraftd.wire.batch import Batch
from kraftd.wire.producer_snapshot import SnapshotEntry


class ReplayedProducers:
    """The producers of a partition while its log is opened (`kraftd.log.data.recovery.ProducerReplay`)."""

    def __init__(self, config: PartitionConfig, now_ms: int) -> None:
        self.states = ProducerStates()
        self._config = config
        self._now_ms = now_ms

    @property
    def is_empty(self) -> bool:
        """Return whether there is nothing to remember."""
        return self.states.is_empty

    def load(self, entries: Sequence[SnapshotEntry], offset: int) -> None:
        """Begin with a snapshot as of an offset."""
        self.states.load(entries, offset, self._config, self._now_ms)

    def replay(self, batch: Batch) -> AbortedTransaction | None:
        """Account for a batch; returns the transaction that its marker aborts."""
        completed = self.states.replay(batch)
        if completed is None or not completed.is_aborted:
            return None
        return AbortedTransaction(
            completed.producer_id,
            completed.first_offset,
            completed.last_offset,
            completed.last_stable_offset,
        )

    def expire(self) -> None:
        """Forget producers whose last batches are older than producer.id.expiration.ms."""
        self.states.expire(self._config, self._now_ms)

    def entries(self) -> Iterable[SnapshotEntry]:
        """The state as entries of a snapshot."""
        return self.states.snapshot()

    def __repr__(self) -> str:
        return f"<ReplayedProducers of {len(self.states)}>"
