"""The producers of a log that is recovered as a broker starts. Kafka reads them from a snapshot then."""

from __future__ import annotations

import pytest

from kraftd.host.broker_logs.producer_reload import ProducerReload
from kraftd.host.broker_logs.replayed_producers import ReplayedProducers
from kraftd.log.data.opening import Found
from kraftd.log.data.reading import run_cold
from kraftd.log.memory_disk import MemoryDisk
from kraftd.partition.config import PartitionConfig
from kraftd.wire.producer_snapshot import SnapshotEntry
from kraftd.wire.records import build_records_batch
from tests.kafkas_tests.logs import AtOnce
from tests.log.data.logs import NOW_MS, append, batch, new_log, reopened

LIMIT_MS = 1_000
OLD_MS, RECENT_MS = NOW_MS - LIMIT_MS, NOW_MS - LIMIT_MS + 1
TRANSACTIONAL = 1 << 4
IDLE, RECENT, OPEN = 7, 8, 9  # producers; the last has an open transaction


def written(disk: MemoryDisk, batches_each: int = 1) -> list[str]:
    """Batches of the three producers; returns the paths of the indexes."""
    _, log = new_log(disk)
    for sequence in range(batches_each):
        for id, time_ms in ((IDLE, OLD_MS), (RECENT, RECENT_MS), (OPEN, OLD_MS)):
            data = build_records_batch(
                [(time_ms, None, b"v", ())],
                base_offset=log.log_end,
                leader_epoch=1,
                producer_id=id,
                producer_epoch=0,
                base_sequence=sequence,
                attributes=TRANSACTIONAL if id == OPEN else 0,
            )
            append(log, bytes(data))
    log.flush(NOW_MS)
    return [segment.path(log.directory, ".index") for segment in log.segments]


def producers(limit_ms: int = LIMIT_MS) -> ReplayedProducers:
    return ReplayedProducers(PartitionConfig(producer_id_expiration_ms=limit_ms), NOW_MS)


def test_a_recovery_forgets_producers_whose_batches_are_too_old() -> None:
    disk, found = MemoryDisk(), producers()
    written(disk)
    reopened(disk, producers=found)
    assert set(found.states.entries) == {RECENT, OPEN}


@pytest.mark.parametrize("removed", [0, 1, -1])
def test_all_producers_are_known_if_an_index_is_gone_after_a_clean_stop(removed: int) -> None:
    disk, found = MemoryDisk(), producers(LIMIT_MS + 1)
    paths = written(disk, 20)
    assert len(paths) > 3
    disk.remove(paths[removed])
    log = reopened(disk, Found(recovery_point=60, clean=True), producers=found).log
    assert {id: entry.last_sequence for id, entry in found.states.entries.items()} == dict.fromkeys(
        (IDLE, RECENT, OPEN), 19
    )
    assert log.log_end == 60


@pytest.mark.parametrize("offset", [3, 4], ids=["damaged", "behind the log end"])
def test_a_clean_stop_with_a_lost_snapshot_reads_all_batches_again(offset: int) -> None:
    disk, found = MemoryDisk(), producers()
    directory = written(disk)[0].rpartition("/")[0]
    disk.open(f"{directory}/{offset:020}.snapshot", create=True).write(0, b"damaged")
    log = reopened(disk, Found(recovery_point=3, clean=True), producers=found).log
    assert set(found.states.entries) == {RECENT, OPEN}, "as if it had not been clean"
    assert log.snapshot_offsets() == [3]


@pytest.mark.parametrize("clean", [False, True])
def test_producers_whose_records_were_all_deleted_are_forgotten(clean: bool) -> None:
    disk, found = MemoryDisk(), producers()
    entry = SnapshotEntry(RECENT, 0, 4, 19, 0, RECENT_MS, -1, -1)
    _, log = new_log(disk)
    append(log, batch(0, 20))
    log.roll(NOW_MS, lambda: [entry])
    log.increment_log_start(20)
    log.remove_oldest(1, NOW_MS)
    log.flush(NOW_MS, whole=True)
    assert log.snapshot_offsets() == [20]
    log = reopened(disk, Found(log_start=20, recovery_point=20, clean=clean), producers=found).log
    assert (log.log_start, log.log_end) == (20, 20)
    assert not found.states.entries


@pytest.mark.parametrize("clean", [False, True])
def test_older_snapshots_of_before_the_log_start_are_removed_too(clean: bool) -> None:
    disk, found = MemoryDisk(), producers()
    _, log = new_log(disk)
    for base_offset in (0, 20):
        append(log, batch(base_offset, 20))
        log.roll(NOW_MS, lambda: [SnapshotEntry(RECENT, 0, 4, 19, 0, RECENT_MS, -1, -1)])
    log.increment_log_start(25)
    log.remove_oldest(1, NOW_MS)
    log.flush(NOW_MS, whole=True)
    assert log.snapshot_offsets() == [20, 40]
    log = reopened(disk, Found(log_start=25, recovery_point=40, clean=clean), producers=found).log
    assert (log.snapshot_offsets(), set(found.states.entries)) == ([40], {RECENT})


def test_producers_before_the_log_start_are_not_loaded_after_a_truncation() -> None:
    disk, found = MemoryDisk(), producers()
    _, log = new_log(disk)
    append(log, batch(0, 20))
    log.roll(NOW_MS, lambda: [SnapshotEntry(RECENT, 0, 4, 19, 0, RECENT_MS, -1, -1)])
    append(log, batch(20, 2), batch(22, 2))
    log.increment_log_start(20)
    log.truncate_to(22, NOW_MS)
    loaded: list[ReplayedProducers] = []
    failures: list[Exception] = []
    ProducerReload(log, found, disk, run_cold, AtOnce(), loaded.append, failures.append).start()
    assert loaded == [found] and not found.states.entries
