"""Closes logs as at a clean stop, many at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from kraftd.log.data.data_log import DataLog
from kraftd.log.errors import StorageError
from kraftd.log_dirs.jobs import RunAll
from kraftd.wire.producer_snapshot import SnapshotEntry

Producers = Callable[[], Iterable[SnapshotEntry]]


def close_logs(
    closing: Sequence[tuple[DataLog, Producers | None]],
    now_ms: int,
    run_all: RunAll,
    failed: Callable[[str, StorageError], object],
) -> None:
    """Flush logs and close their files; each comes with its producers, if they are to be kept. Blocks.
    `failed` is called with the path of a directory that fails, and why.
    """
    begun = []
    for log, producers in closing:
        try:
            job = log.begin_close(now_ms, producers)
        except StorageError as error:
            failed(log.parent, error)
            continue
        if job is not None:
            begun.append((log, job))
    failures = run_all([job.run for _, job in begun])
    for (log, job), failure in zip(begun, failures, strict=True):
        log.end_flush(job, now_ms, failure)
        if failure is not None:
            failed(log.parent, failure)
    for log, _ in closing:
        log.close_files()
