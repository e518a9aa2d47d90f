"""The copies that are kept of truncated records."""

from __future__ import annotations

import pytest

from kraftd.log.errors import DiskFull
from kraftd.log.kept_records import MAX_COPIES
from kraftd.log.memory_disk import MemoryDisk, SimulatedCrash
from kraftd.metadata_dir.metadata_log import MetadataLog
from kraftd.types import OffsetAndEpoch
from tests.metadata_dir.logs import DIRECTORY, batch, content, opened
from tests.metadata_dir.test_recovery import survivors, write_snapshot


def kept(disk: MemoryDisk, log: MetadataLog) -> dict[str, bytes]:
    """The copies of truncated records, oldest first."""
    return {name: disk.read_bytes(f"{log.kept.directory}/{name}") for name in log.kept.names()}


def test_truncated_records_are_kept_aside_across_segments_and_unwritten() -> None:
    disk, log, _ = opened()
    for offset in range(4):
        log.append(batch(offset))
    log.roll()
    log.append(batch(4, 2, epoch=2))
    log.sync()
    log.append(batch(6, epoch=3))  # not written when it is truncated
    log.truncate_to(3)
    assert log.last_truncation is not None
    assert log.last_truncation[:4] == (3, 7, 1, 3)
    assert (log.last_truncation.records, log.last_truncation.epochs) == (4, "1 to 3")
    log.sync()
    name = f"{3:020d}.7-3.1.log"
    assert kept(disk, log) == {name: batch(3) + batch(4, 2, epoch=2) + batch(6, epoch=3)}
    assert log.last_truncation.path == f"{log.kept.directory}/{name}"
    assert content(log) == [batch(0), batch(1), batch(2)]


def test_copies_of_truncated_records_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    disk, log, _ = opened()
    for at in range(MAX_COPIES + 3):
        log.append(batch(0, epoch=at))
        log.truncate_to(0)
        log.sync()
    names = log.kept.names()
    assert len(names) == MAX_COPIES
    assert names[-1] == f"{0:020d}.1-{MAX_COPIES + 2}.{MAX_COPIES + 3}.log"
    monkeypatch.setattr("kraftd.log.kept_records.MAX_COPIES_BYTES", 1)
    log = opened(disk)[1]
    log.append(batch(0, epoch=99))
    log.truncate_to(0)
    log.sync()
    assert log.kept.names() == [f"{0:020d}.1-99.{MAX_COPIES + 4}.log"]  # the newest stays whatever its size


def test_a_full_disk_delays_a_truncation_until_its_records_are_kept() -> None:
    disk, log, _ = opened()
    log.append(batch(0) + batch(1, 30))
    log.sync()
    disk.capacity_bytes = sum(len(disk.read_bytes(path)) for path in disk.paths()) + 10
    log.truncate_to(1)
    with pytest.raises(DiskFull):
        log.sync()
    assert disk.read_bytes(f"{DIRECTORY}/{0:020d}.log") == batch(0) + batch(1, 30)
    disk.capacity_bytes = None
    log.sync()
    assert list(kept(disk, log).values()) == [batch(1, 30)]
    assert disk.read_bytes(f"{DIRECTORY}/{0:020d}.log") == batch(0)


def test_a_kill_during_a_truncation_leaves_its_records_in_the_log_or_aside() -> None:
    """The tail that the crash leaves may be torn: only what is whole counts, and nothing is lost twice."""
    before = batch(0, 2) + batch(2, 40, epoch=2)
    for crash_at in range(1, 30):
        for choose in survivors():
            disk, log, _ = opened()
            log.append(before)
            log.sync()
            log.truncate_to(2)
            disk.crash_at = disk.operations + crash_at
            try:
                log.sync()
                log.append(batch(2, 3, epoch=3))
                log.sync()
                done = True
            except SimulatedCrash:
                done = False
            disk = disk.after_crash(choose)
            again = opened(disk)[1]
            found, copies = content(again), list(kept(disk, again).values())
            assert copies in ([], [batch(2, 40, epoch=2)])
            if copies:
                assert b"".join(found) in (before, batch(0, 2), batch(0, 2) + batch(2, 3, epoch=3))
            else:
                assert b"".join(found) == before
            assert not done or copies
            assert not [path for path in disk.paths() if path.endswith(".log.tmp")]


def test_what_a_snapshot_may_lack_is_kept_aside_when_it_replaces_the_log() -> None:
    disk, log, _ = opened()
    log.append(batch(0, 4))
    log.append(batch(4, 2))
    log.append(batch(6, 3, epoch=2))
    snapshot_id = OffsetAndEpoch(8, 4)
    write_snapshot(disk, snapshot_id)
    log.add_snapshot(snapshot_id)
    log.reset_to_snapshot(snapshot_id, keep_from=5)
    assert log.last_truncation is not None
    assert log.last_truncation[:4] == (4, 9, 1, 2)  # whole batches
    log.sync()
    assert list(kept(disk, log).values()) == [batch(4, 2) + batch(6, 3, epoch=2)]
    newer = OffsetAndEpoch(20, 5)
    write_snapshot(disk, newer)
    log.add_snapshot(newer)
    log.reset_to_snapshot(newer, keep_from=8)
    log.sync()
    assert len(log.kept.names()) == 1
