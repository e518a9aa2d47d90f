"""Download of a leader's snapshot: whole or absent after a crash at any moment, and resumable."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from kraftd.host.snapshots import snapshot_download
from kraftd.host.snapshots.snapshot_download import SnapshotDownload
from kraftd.log.errors import CorruptStorage
from kraftd.log.memory_disk import (
    MemoryDisk,
    SimulatedCrash,
    everything_survives,
    nothing_unsynced_survives,
)
from kraftd.messages.topic_record import TopicRecord
from kraftd.metadata_dir.files.checkpoint import (
    CheckpointWriter,
    checkpoint_path,
    find_download,
    list_checkpoints,
    verify_checkpoint,
)
from kraftd.metadata_dir.metadata_log import LogSettings, MetadataLog
from kraftd.metadata_dir.recovery import open_log
from kraftd.raft import effects
from kraftd.types import OffsetAndEpoch
from kraftd.wire.batch import build_batch
from kraftd.wire.record_frame import VersionedRecord, encode_record

DIRECTORY = "/data/__cluster_metadata-0"
ID = OffsetAndEpoch(500, 3)
PIECE_BYTES = 200
RECORDS = [encode_record(VersionedRecord(TopicRecord(f"t{at}", bytes([at] * 16)), 0)) for at in range(30)]


def leaders_snapshot() -> bytes:
    disk = MemoryDisk()
    writer = CheckpointWriter(disk, DIRECTORY, ID, last_contained_log_timestamp_ms=7, now_ms=8)
    writer.append(RECORDS)
    writer.freeze()
    return disk.read_bytes(checkpoint_path(DIRECTORY, ID))


WHOLE = leaders_snapshot()


def opened(disk: MemoryDisk) -> MetadataLog:
    return open_log(disk, DIRECTORY, LogSettings(segment_bytes=600)).log


def follower() -> tuple[MemoryDisk, MetadataLog]:
    """A replica with twenty records of epoch 1, in several segments."""
    disk = MemoryDisk()
    log = opened(disk)
    for offset in range(20):
        log.append(build_batch([RECORDS[offset]], offset, 1, 5))
        log.sync()
    return disk, log


def write(download: SnapshotDownload, data: bytes, position: int = 0) -> None:
    for at in range(position, len(data), PIECE_BYTES):
        download.write(effects.WriteSnapshot(ID, at, data[at : at + PIECE_BYTES]))


def bring(disk: MemoryDisk, log: MetadataLog) -> None:
    """Perform the core's effects in order."""
    download = SnapshotDownload(disk, log)
    download.begin(effects.BeginSnapshot(ID))
    write(download, WHOLE)
    finished = download.finish(effects.FinishSnapshot(ID))
    assert finished.size_bytes == len(WHOLE)
    download.named(finished)
    log.reset_to_snapshot(ID, log.log_start)
    log.append(build_batch([b"next"], ID.offset, ID.epoch, 9))
    log.sync()


@pytest.mark.parametrize("choose", [nothing_unsynced_survives, everything_survives, None])
def test_a_crash_at_any_moment_leaves_the_old_log_or_the_snapshot(
    choose: Callable[[int], int] | None,
) -> None:
    disk, log = follower()
    before = disk.operations
    bring(disk, log)
    needed = disk.operations - before
    kinds = set()
    for at in range(1, needed + 2):
        disk, log = follower()
        disk.crash_at = disk.operations + at
        try:
            bring(disk, log)
        except SimulatedCrash:
            pass
        disk.crash_at = None
        survivor = disk.after_crash(choose or random.Random(at).randrange)
        if not any(name.endswith(".log") for name in survivor.list_names(DIRECTORY)):
            kinds.add("between the two logs")
        found = opened(survivor)
        snapshots, _ = list_checkpoints(survivor, DIRECTORY)
        if not snapshots:
            kinds.add("old")
            assert (found.log_start, found.log_end) == (0, 20)
        else:
            kinds.add("new")
            assert snapshots == [ID] and found.log_start == 500 and found.log_end in (500, 501)
            verify_checkpoint(survivor, checkpoint_path(DIRECTORY, ID))
    assert kinds >= {"old", "new"}
    assert "between the two logs" in kinds or choose is not everything_survives


def test_a_download_continues_where_the_last_process_ended() -> None:
    disk, log = follower()
    first = SnapshotDownload(disk, log)
    first.begin(effects.BeginSnapshot(ID))
    write(first, WHOLE[: 2 * PIECE_BYTES])
    survivor = disk.after_crash(everything_survives)
    log = opened(survivor)
    assert find_download(survivor, DIRECTORY) == (ID, 2 * PIECE_BYTES)
    second = SnapshotDownload(survivor, log)
    second.begin(effects.BeginSnapshot(ID, 2 * PIECE_BYTES))
    write(second, WHOLE, 2 * PIECE_BYTES)
    second.named(second.finish(effects.FinishSnapshot(ID)))
    assert survivor.read_bytes(checkpoint_path(DIRECTORY, ID)) == WHOLE


def test_a_large_download_is_synced_in_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """During the sync of the whole download the voter would be silent, and not count as fetching."""
    monkeypatch.setattr(snapshot_download, "SYNC_BYTES", 2 * PIECE_BYTES)
    disk, log = follower()
    synced: list[str] = []
    disk.fault = lambda operation, path: synced.append(path) if operation == "sync" else None
    download = SnapshotDownload(disk, log)
    download.begin(effects.BeginSnapshot(ID))
    write(download, WHOLE)
    assert len(synced) == len(WHOLE) // (2 * PIECE_BYTES)


def test_an_abandoned_download_of_an_earlier_run_is_deleted() -> None:
    disk, log = follower()
    SnapshotDownload(disk, log).begin(effects.BeginSnapshot(ID))
    SnapshotDownload(disk, log).abandon(effects.AbandonSnapshot(ID))
    assert list_checkpoints(disk, DIRECTORY) == ([], [])


@pytest.mark.parametrize("damaged", [WHOLE[:-1], WHOLE[:100] + b"x" + WHOLE[101:], WHOLE[70:]])
def test_a_damaged_download_is_refused_and_never_renamed_to_a_checkpoint(damaged: bytes) -> None:
    disk, log = follower()
    download = SnapshotDownload(disk, log)
    download.begin(effects.BeginSnapshot(ID))
    write(download, damaged)
    with pytest.raises(CorruptStorage):
        download.finish(effects.FinishSnapshot(ID))
    assert download.refuse() == ID
    assert list_checkpoints(disk, DIRECTORY) == ([], [])
