"""Loads the producers of a log anew after it was truncated: a snapshot, then the batches behind it.

A thread reads, a piece at a time; each piece is replayed in an event loop callback. The log must not be
written meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from kraftd.host.broker_logs.replayed_producers import ReplayedProducers
from kraftd.host.ports import WorkThreads
from kraftd.log.data.data_log import DataLog
from kraftd.log.data.reading import ColdRead
from kraftd.log.disk import Disk
from kraftd.wire.producer_snapshot import CorruptSnapshot, SnapshotEntry, decode_producers
from kraftd.wire.records import scan_batches

PIECE_BYTES = 256 << 10

Snapshot = tuple[list[SnapshotEntry], int]


class ProducerReload:
    """`done` gets the producers, `failed` what prevents it."""

    def __init__(
        self,
        log: DataLog,
        producers: ReplayedProducers,
        disk: Disk,
        run_cold: Callable[[Disk, ColdRead], bytes | memoryview],
        threads: WorkThreads,
        done: Callable[[ReplayedProducers], None],
        failed: Callable[[Exception], None],
    ) -> None:
        self._log = log
        self._producers = producers
        self._disk = disk
        self._run_cold = run_cold
        self._threads = threads
        self._done = done
        self._failed = failed

    def __repr__(self) -> str:
        return f"<ProducerReload of {self._log!r}>"

    def start(self) -> None:
        """Begin to read."""
        self._threads.run(self._read_snapshot, self._snapshot_read, self._failed)

    def _read_snapshot(self) -> Snapshot:
        """In a thread: the newest snapshot that can be read. Before the log start there are no records."""
        for offset in reversed(self._log.snapshot_offsets()):
            if offset <= self._log.log_start:
                break
            try:
                return decode_producers(self._disk.read_bytes(self._log.files.snapshot_path(offset))), offset
            except CorruptSnapshot:
                continue
        return [], self._log.log_start

    def _snapshot_read(self, snapshot: Snapshot) -> None:
        entries, offset = snapshot
        self._producers.load(entries, offset)
        self._go_on(offset)

    def _go_on(self, offset: int) -> None:
        log = self._log
        offset = max(offset, log.log_start)
        if offset >= log.log_end:
            self._done(self._producers)
            return
        read = log.cold_read(offset, PIECE_BYTES, log.log_end)
        work = partial(self._run_cold, self._disk, read)

        def failed(error: Exception) -> None:
            if log.cut_count != read.cut_count:  # a cleaning has replaced the files
                self._go_on(offset)
            else:
                self._failed(error)

        self._threads.run(work, partial(self._piece_read, offset), failed)

    def _piece_read(self, offset: int, data: bytes | memoryview) -> None:
        batches, _, _ = scan_batches(data)
        if not batches:
            self._done(self._producers)
            return
        for batch in batches:
            if batch.header.last_offset >= offset:
                self._producers.replay(batch)
        self._go_on(batches[-1].header.next_offset)
