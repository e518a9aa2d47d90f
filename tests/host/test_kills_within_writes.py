"""A process is killed within any write of a log directory, at any byte: what was appended before is there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kraftd.host.broker_logs.replayed_producers import ReplayedProducers
from kraftd.log.data.data_log import DataLog
from kraftd.log.data.resources import LogResources
from kraftd.log.data.settings import DataLogSettings
from kraftd.log.data.transaction_index import AbortedTransaction
from kraftd.log.memory_disk import MemoryDisk, MemoryFile, everything_survives
from kraftd.log_dirs.directories import LogDirectories, LogDirectory
from kraftd.log_dirs.log_loader import LogLoader
from kraftd.log_dirs.log_opening import LogOpening
from kraftd.partition.config import PartitionConfig
from kraftd.wire.batch import iter_batches
from kraftd.wire.end_marker import build_end_marker
from kraftd.wire.producer_snapshot import SnapshotEntry
from kraftd.wire.records import build_records_batch
from tests.log.data.logs import NOW_MS, TOPIC_ID, append, content

PATH = "/a"
SETTINGS = DataLogSettings(segment_bytes=300, index_interval_bytes=100, segment_index_bytes=1 << 10)
TRANSACTIONAL = 0x10


class Torn(NamedTuple):
    """A disk before a write, the write, and what was acknowledged until then."""

    before: MemoryDisk
    path: str
    position: int
    data: bytes
    acknowledged: tuple[bytes, ...]


class WatchedFile(MemoryFile):
    def write(self, position: int, data: bytes | memoryview) -> None:
        disk = self._disk
        assert isinstance(disk, WatchedDisk)
        torn = Torn(
            disk.after_crash(everything_survives), self.path, position, bytes(data), (*disk.acknowledged,)
        )
        disk.writes.append(torn)
        super().write(position, data)


class WatchedDisk(MemoryDisk):
    """Notes the disk as it is before each write."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[Torn] = []
        self.acknowledged: list[bytes] = []

    def open(self, path: str, *, create: bool = False) -> MemoryFile:
        return WatchedFile(self, path, super().open(path, create=create)._inode)


def producers() -> ReplayedProducers:
    return ReplayedProducers(PartitionConfig(), NOW_MS)


def directories_of(disk: MemoryDisk) -> LogDirectories:
    disk.make_directory(PATH)
    return LogDirectories(LogResources(disk), [LogDirectory(PATH, b"a" * 16)], lambda topic: SETTINGS)


def batches() -> Iterator[bytearray]:
    """Of an idempotent producer, and of a transactional one that aborts, in three leader epochs."""
    offset = 0
    for number in range(9):
        epoch = 1 + number // 3
        if number % 3 == 2:
            marker = build_end_marker(
                8, number // 3, is_commit=False, coordinator_epoch=1, timestamp_ms=NOW_MS
            )
            marker[:8], marker[12:16] = offset.to_bytes(8), epoch.to_bytes(4)
            yield marker
            offset += 1
            continue
        producer = {"producer_id": 7, "producer_epoch": 0, "base_sequence": offset}
        if number % 3 == 1:
            producer = {"producer_id": 8, "producer_epoch": number // 3, "base_sequence": 0}
            producer["attributes"] = TRANSACTIONAL
        values = [(NOW_MS + offset, None, b"%d" % offset, ()) for _ in range(2)]
        yield build_records_batch(values, base_offset=offset, leader_epoch=epoch, **producer)
        offset += 2


def write(directories: LogDirectories, disk: WatchedDisk) -> None:
    """Append with rolls, flushes, checkpoints and snapshots of producers; a clean stop ends it."""
    log, states = directories.create("t", 0, TOPIC_ID, NOW_MS), producers()
    states.load([], 0)
    for number, data in enumerate(batches()):
        view = bytes(data)
        headers = [one.header for one in iter_batches(view)]
        before = list(states.entries())
        aborted = [one for batch in iter_batches(view) if (one := states.replay(batch)) is not None]
        log.append([view], headers, NOW_MS, before.copy, aborted)
        disk.acknowledged.append(view)
        if number % 4 == 3:
            log.flush(NOW_MS)
            for job in directories.checkpoints_of(PATH):
                job.run()
    for _ in directories.close(NOW_MS, 7, lambda key: lambda: list(states.entries())):
        pass


def loaded(disk: MemoryDisk) -> tuple[DataLog | None, list[SnapshotEntry], LogDirectories]:
    directories = directories_of(disk)
    loader = LogLoader(directories, NOW_MS, lambda topic, partition: producers())
    openings: list[LogOpening] = []
    for opening in loader.openings():
        opening.run()
        loader.add(opening)
        openings.append(opening)
    assert directories.damaged == {} and directories.offline == {}
    if not openings:
        return None, [], directories
    log, states = directories.logs["t", 0], openings[0].producers
    # Of a log without producers there are none.
    return log, [] if states is None else list(states.entries()), directories


def state_after(
    found: list[bytes],
) -> tuple[list[SnapshotEntry], list[AbortedTransaction], list[tuple[int, int]]]:
    """Producers, aborted transactions and leader epochs of a log with these batches."""
    states, aborted, epochs = producers(), [], {}
    states.load([], 0)
    for data in found:
        for batch in iter_batches(data):
            if (one := states.replay(batch)) is not None:
                aborted.append(one)
            epochs.setdefault(batch.header.leader_epoch, batch.header.base_offset)
    return list(states.entries()), aborted, list(epochs.items())


def check(torn: Torn, kept: int) -> None:
    disk = torn.before.after_crash(everything_survives)
    if kept:
        disk.open(torn.path).write(torn.position, torn.data[:kept])
    where = f"{torn.path}: {kept} of {len(torn.data)} bytes"
    log, entries, _ = loaded(disk)
    found = [] if log is None else content(log)
    count = len(torn.acknowledged)
    assert tuple(found[:count]) == torn.acknowledged, where
    assert len(found) <= count + 1, where  # the append that was killed may be there, whole
    if log is None:
        return
    wanted, aborted, epochs = state_after(found)
    assert entries == wanted, where
    assert log.aborted_transactions(0, log.log_end) == aborted, where
    assert log.epochs.entries == epochs, where
    append(
        log, bytes(build_records_batch([(NOW_MS, None, b"n", ())], base_offset=log.log_end, leader_epoch=9))
    )


def test_a_kill_within_any_write_loses_nothing_that_was_appended() -> None:
    disk = WatchedDisk()
    write(directories_of(disk), disk)
    suffixes = {torn.path.rpartition("/")[2].rpartition(".")[2].rpartition("-")[2] for torn in disk.writes}
    assert suffixes >= {"log", "index", "timeindex", "txnindex", "snapshot", "tmp"}, suffixes
    for torn in disk.writes:
        for kept in range(len(torn.data)):
            check(torn, kept)
