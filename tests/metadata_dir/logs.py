"""Batches and logs for the tests of this package."""

from __future__ import annotations

from kraftd.log.memory_disk import MemoryDisk
from kraftd.log.opening import RecoveryReport
from kraftd.metadata_dir.metadata_log import LogSettings, MetadataLog
from kraftd.metadata_dir.recovery import open_log
from kraftd.wire.batch import build_batch, iter_batches

DIRECTORY = "/data/__cluster_metadata-0"
SMALL_SEGMENTS = LogSettings(
    segment_bytes=1000, segment_ms=1_000_000, index_interval_bytes=200, tail_bytes=600
)


def batch(
    base_offset: int, count: int = 1, epoch: int = 1, timestamp_ms: int = 1_000, size: int = 20
) -> bytes:
    """A batch of that many records, each with its offset as value."""
    values = [f"{base_offset + at}.{epoch}.".encode().ljust(size, b"x") for at in range(count)]
    return build_batch(values, base_offset, epoch, timestamp_ms)


def opened(
    disk: MemoryDisk | None = None, settings: LogSettings = SMALL_SEGMENTS
) -> tuple[MemoryDisk, MetadataLog, RecoveryReport]:
    disk = disk or MemoryDisk()
    log, report, *_ = open_log(disk, DIRECTORY, settings)
    return disk, log, report


def content(log: MetadataLog) -> list[bytes]:
    """Every batch of a log from its start, read like a follower."""
    found: list[bytes] = []
    offset = log.log_start
    while offset < log.log_end:
        data = log.read(offset, 500)
        assert data, (log, offset)
        for each in iter_batches(data):
            found.append(bytes(each.view))
            offset = each.header.next_offset
    return found
