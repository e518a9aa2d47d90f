"""The producers of a log that is recovered as a broker starts. Kafka reads them from a snapshot then."""

from __future__ import annotations

import pytest

from kraftd.host.broker_logs.replayed_producers import ReplayedProducers
from kraftd.log.data.opening import Found
from kraftd.log.memory_disk import MemoryDisk
from kraftd.partition.config import PartitionConfig
from kraftd.wire.records import build_records_batch
from tests.log.data.logs import NOW_MS, append, new_log, reopened

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
