"""Batches and logs of ordinary partitions, on a disk in memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kraftd.log.data.data_log import DataLog
from kraftd.log.data.opening import Found, Opened, create_data_log, finish, open_data_log
from kraftd.log.data.recovery import ProducerReplay
from kraftd.log.data.resources import LogResources
from kraftd.log.data.settings import DataLogSettings
from kraftd.log.data.transaction_index import AbortedTransaction
from kraftd.log.memory_disk import MemoryDisk
from kraftd.wire.batch import build_batch, iter_batches

PARENT = "/data"
TOPIC = "t"
DIRECTORY = f"{PARENT}/{TOPIC}-0"
TOPIC_ID = bytes(range(16))
SMALL = DataLogSettings(segment_bytes=1000, index_interval_bytes=200, segment_index_bytes=10 << 10)
NOW_MS = 5_000


def batch(
    base_offset: int, count: int = 1, epoch: int = 1, timestamp_ms: int = 1_000, size: int = 20
) -> bytes:
    """A batch of that many records, each with its offset as value."""
    values = [f"{base_offset + at}.{epoch}.".encode().ljust(size, b"x") for at in range(count)]
    return build_batch(values, base_offset, epoch, timestamp_ms)


def append(
    log: DataLog, *batches: bytes, now_ms: int = NOW_MS, aborted: Sequence[AbortedTransaction] = ()
) -> bool:
    """Append batches as a produce request or a fetch would."""
    headers = [each.header for data in batches for each in iter_batches(data)]
    return log.append(batches, headers, now_ms, aborted=aborted)


def new_log(
    disk: MemoryDisk | None = None, settings: DataLogSettings = SMALL, max_tail_bytes: int = 0
) -> tuple[MemoryDisk, DataLog]:
    """A new log. By default nothing of it stays in memory, so that reads are of the disk."""
    disk = disk or MemoryDisk()
    resources = resources_on(disk, max_tail_bytes)
    return disk, create_data_log(resources, PARENT, TOPIC, 0, settings, now_ms=NOW_MS, topic_id=TOPIC_ID)


def resources_on(disk: MemoryDisk, max_tail_bytes: int = 0) -> LogResources:
    resources = LogResources(disk)
    resources.tails.max_bytes = max_tail_bytes
    return resources


def reopened(
    disk: MemoryDisk,
    found: Found | None = None,
    settings: DataLogSettings = SMALL,
    producers: ProducerReplay | None = None,
) -> Opened:
    """The log as a start finds it; by default after an unclean stop, with no checkpoint."""
    found = Found() if found is None else found
    slices = open_data_log(
        resources_on(disk), PARENT, TOPIC, 0, settings, found, now_ms=NOW_MS, producers=producers
    )
    return finish(slices)


def content(log: DataLog, end_offset: int | None = None) -> list[bytes]:
    """Every batch of a log from its start, read as a consumer does."""
    found: list[bytes] = []
    offset = log.log_start
    end = log.log_end if end_offset is None else end_offset
    while offset < end:
        data = log.read(offset, 300, end_offset, cached_only=True)
        assert data is not None
        if not data:
            break
        for each in iter_batches(data):
            found.append(bytes(each.view))
            offset = each.header.next_offset
    return found


def names(disk: MemoryDisk) -> list[str]:
    return disk.list_names(DIRECTORY)


def offsets(batches: Iterable[bytes]) -> list[int]:
    return [each.header.base_offset for data in batches for each in iter_batches(data)]
