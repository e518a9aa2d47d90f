"""A directory without its log files is refused if its other files prove that records were lost."""

from __future__ import annotations

import pytest

from kraftd.log.errors import DirectoryProblem
from kraftd.log.memory_disk import MemoryDisk
from kraftd.messages.quorum_state_data import QuorumStateData
from kraftd.metadata_dir.files.checkpoint import CheckpointWriter
from kraftd.metadata_dir.files.quorum_state import QuorumStateFile
from kraftd.types import OffsetAndEpoch
from tests.metadata_dir.logs import DIRECTORY, batch, content, opened


def written(end: int = 60, epoch: int = 2, *, close: bool = True) -> MemoryDisk:
    """A log of records 0 to end - 1: the first half of epoch 1, the second half of that epoch."""
    disk, log, _ = opened()
    for offset in range(end):
        log.append(batch(offset, epoch=1 if offset < end // 2 else epoch, timestamp_ms=1000 + offset))
    log.sync()
    if close:
        log.close()
    QuorumStateFile(disk, DIRECTORY).write(QuorumStateData(leader_id=1, leader_epoch=epoch), 1)
    return disk


def checkpoint(disk: MemoryDisk, offset: int, epoch: int) -> OffsetAndEpoch:
    snapshot_id = OffsetAndEpoch(offset, epoch)
    CheckpointWriter(disk, DIRECTORY, snapshot_id, last_contained_log_timestamp_ms=5, now_ms=6).freeze()
    return snapshot_id


def delete(disk: MemoryDisk, *suffixes: str) -> None:
    for name in disk.list_names(DIRECTORY):
        if name.endswith(suffixes):
            disk.remove(f"{DIRECTORY}/{name}")


@pytest.mark.parametrize(
    ("deleted", "witness"),
    [
        ((".log",), "leader-epoch-checkpoint knows of epoch 2 from offset 30 on"),
        ((".log", "leader-epoch-checkpoint"), r"0+\d+.index knows of offset \d+"),
        ((".log", "leader-epoch-checkpoint", "index"), "quorum-state knows of epoch 2"),
    ],
)
def test_a_deleted_log_is_refused(deleted: tuple[str, ...], witness: str) -> None:
    disk = written()
    delete(disk, *deleted)
    names = disk.list_names(DIRECTORY)
    with pytest.raises(DirectoryProblem, match=f"has no log, but had one: {witness}.*format it anew"):
        opened(disk)
    assert disk.list_names(DIRECTORY) == names, "nothing is changed"


@pytest.mark.parametrize("at", [OffsetAndEpoch(20, 1), OffsetAndEpoch(40, 2)])
def test_records_lost_behind_the_newest_checkpoint_are_detected(at: OffsetAndEpoch) -> None:
    """The proof is an epoch later than the checkpoint's, or an index that a clean shutdown has left."""
    disk = written()
    checkpoint(disk, *at)
    delete(disk, ".log")
    with pytest.raises(DirectoryProblem, match=rf"had one beyond 0+{at.offset}-0+{at.epoch}.checkpoint"):
        opened(disk)


def test_a_checkpoint_that_holds_all_records_is_used_with_a_note() -> None:
    """This is the state after a crash between the old log and the one that follows a leader's snapshot."""
    disk = written()
    snapshot_id = checkpoint(disk, 500, 3)
    delete(disk, ".log")
    _, log, report = opened(disk)
    assert (log.log_start, log.log_end, log.last_epoch) == (500, 500, 3)
    assert log.snapshots == [snapshot_id]
    assert any("begins anew at 00000000000000000500-0000000003.checkpoint" in note for note in report.notes)
    log.append(batch(500, epoch=3))
    log.close()
    _, log, report = opened(disk)
    assert content(log) == [batch(500, epoch=3)] and report.notes == []


def test_a_missing_log_that_was_always_empty_is_accepted() -> None:
    disk = MemoryDisk()
    checkpoint(disk, 0, 0)
    _, log, report = opened(disk)
    assert (log.log_end, report.notes) == (0, [])
    QuorumStateFile(disk, DIRECTORY).write(QuorumStateData(), 1)
    delete(disk, ".log")
    _, log, _ = opened(disk)
    assert log.log_end == 0
