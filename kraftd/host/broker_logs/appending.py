"""Appends of the partition room, done to logs: of one step, those of one log together.

A producer has five batches in flight, which often come at once. Each would pay for the way to its segment,
and for a call of the system.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from kraftd.broker_node.effects import AppendToLog
from kraftd.broker_node.events import AppendsEnded, WriteEnded
from kraftd.host.ports import Ports
from kraftd.log.data.data_log import DataLog
from kraftd.log.data.transaction_index import AbortedTransaction
from kraftd.log.errors import StorageError
from kraftd.log.offset_checkpoint import TopicPartition
from kraftd.partition.effects import AppendBatches
from kraftd.wire.batch import BatchHeader
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.producer_snapshot import SnapshotEntry


class Appends:
    """The appends of one step, in its order. `snapshot_of` gives a partition's producers before an offset,
    `wrote` is called with the directory of each write, and `failed` with a log that cannot be written.
    """

    def __init__(
        self,
        logs: Mapping[TopicPartition, DataLog],
        ports: Ports,
        snapshot_of: Callable[[TopicPartition, int], Iterable[SnapshotEntry]],
        wrote: Callable[[str], None],
        failed: Callable[[TopicPartition, DataLog, StorageError], None],
    ) -> None:
        self._logs = logs
        self._ports = ports
        self._snapshot_of = snapshot_of
        self._wrote = wrote
        self._failed = failed
        self._key: TopicPartition = "", -1
        self._waiting: list[AppendBatches] = []  # of that partition
        self._ended: list[WriteEnded] = []
        self._writing_ms = 0  # of them
        self._refusing: set[TopicPartition] = set()  # an append of this step failed: those after it fail, too

    def __repr__(self) -> str:
        return f"<Appends, {len(self._waiting)} wait, {len(self._ended)} ended>"

    def add(self, effect: AppendToLog) -> None:
        """Append to a log, at the latest when all effects of the step are performed."""
        key = effect.topic, effect.partition
        if self._waiting and key != self._key:
            self.write()
        self._key = key
        self._waiting += effect.appends

    def write(self) -> None:
        """Write what waits."""
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        timer = self._ports.timer
        began_ms = timer.now_ms()
        log, now_ms = self._logs.get(self._key), began_ms + timer.wall_ahead_ms()
        together = None
        if len(waiting) > 1 and log is not None:
            together = _joined(log, waiting, now_ms)
        if together is not None:
            self._ended.append(WriteEnded(*self._key, waiting, self._write(log, together, now_ms)))
        else:
            for one in waiting:
                self._ended.append(WriteEnded(*self._key, (one,), self._write(log, one, now_ms)))
        self._writing_ms += timer.now_ms() - began_ms

    def take(self) -> AppendsEnded | None:
        """What became of the appends of the step, if there are any."""
        if self._waiting:
            self.write()
        if not self._ended:
            return None
        ended, self._ended = self._ended, []
        took_ms, self._writing_ms = self._writing_ms, 0
        self._refusing.clear()
        return AppendsEnded(ended, took_ms)

    def _write(self, log: DataLog | None, append: AppendBatches, now_ms: int) -> ErrorCode | None:
        key = self._key
        if key in self._refusing:
            return ErrorCode.KAFKA_STORAGE_ERROR
        error = self.write_at_once(key, log, append, now_ms)
        if error is not None:
            self._refusing.add(key)
        return error

    def write_at_once(
        self, key: TopicPartition, log: DataLog | None, append: AppendBatches, now_ms: int
    ) -> ErrorCode | None:
        """Append to a log now, at that wall time; returns the error, if any."""
        if log is None:
            return ErrorCode.KAFKA_STORAGE_ERROR
        try:
            append_batches(log, append, now_ms, partial(self._snapshot_of, key, append.base_offset))
        except StorageError as error:
            self._failed(key, log, error)
            return ErrorCode.KAFKA_STORAGE_ERROR
        self._wrote(log.parent)
        return None


def _joined(log: DataLog, appends: Sequence[AppendBatches], now_ms: int) -> AppendBatches | None:
    """All of them as one, if one write does what one after another would: no segment begins between them."""
    headers: list[BatchHeader] = []
    views: list[memoryview] = []
    for one in appends:
        if one.aborted:
            return None
        headers += one.headers
        views += one.views
    end_offset = appends[-1].end_offset
    latest_ms = max([header.max_timestamp_ms for header in headers])
    if log.has_room(sum(map(len, views)), len(headers), end_offset - 1, latest_ms, now_ms):
        return AppendBatches(appends[0].base_offset, end_offset, headers, views)
    return None


def append_batches(
    log: DataLog, append: AppendBatches, now_ms: int, producers: Callable[[], Iterable[SnapshotEntry]]
) -> None:
    """Write the batches, and the aborted transactions that they complete. Raises as `DataLog.append` does.

    producers gives the state before them.
    """
    aborted: Sequence[AbortedTransaction] = ()
    if append.aborted:
        aborted = [
            AbortedTransaction(one.producer_id, one.first_offset, one.last_offset, one.last_stable_offset)
            for one in append.aborted
        ]
    log.append(append.views, append.headers, now_ms, producers, aborted)
