"""Backups on disk: complete or absent, and verified when they are read."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kraftd.log.errors import CorruptStorage, DirectoryProblem
from kraftd.log.memory_disk import (
    MemoryDisk,
    SimulatedCrash,
    everything_survives,
    names_survive_without_data,
    nothing_unsynced_survives,
)
from kraftd.metadata_dir.directory import PARTITION_DIRECTORY
from kraftd.metadata_dir.files.checkpoint import CheckpointWriter, checkpoint_path
from kraftd.metadata_dir.recovery import open_log
from kraftd.metadata_dir.rescue.backup import BackupWriter, is_occupied, read_manifest, verify_backup
from kraftd.types import OffsetAndEpoch
from kraftd.wire.batch import CorruptBatch, iter_batches
from tests.metadata_dir.logs import batch, content

WHERE = "/backup"
SNAPSHOT = OffsetAndEpoch(10, 1)
BEHIND = [batch(10, 3), batch(13, 2, epoch=2)]


def snapshot_bytes() -> bytes:
    disk = MemoryDisk()
    CheckpointWriter(disk, "/made", SNAPSHOT, last_contained_log_timestamp_ms=5, now_ms=6).freeze()
    return disk.read_bytes(checkpoint_path("/made", SNAPSHOT))


def take(disk: MemoryDisk, snapshot: bytes = b"") -> None:
    writer = BackupWriter(disk, WHERE)
    snapshot = snapshot or snapshot_bytes()
    writer.begin_snapshot(SNAPSHOT)
    writer.append_snapshot(snapshot[:20])
    writer.append_snapshot(snapshot[20:])
    writer.end_snapshot()
    for data in [batch(8, 2), *BEHIND]:  # the first is in the snapshot already
        for one in iter_batches(data):
            writer.append(one)
    writer.finish("cluster", 77)


def test_a_backup_contains_a_snapshot_the_log_behind_it_and_a_manifest() -> None:
    disk = MemoryDisk()
    take(disk)
    manifest = read_manifest(disk, WHERE)
    assert manifest is not None
    verify_backup(disk, WHERE, manifest)
    assert (manifest.cluster_id, manifest.end_offset, manifest.epoch) == ("cluster", 15, 2)
    assert (manifest.time_ms, manifest.taken_ms, manifest.log_start) == (1_000, 77, 10)
    log = open_log(disk, f"{WHERE}/{PARTITION_DIRECTORY}").log
    assert content(log) == BEHIND
    assert log.latest_snapshot == SNAPSHOT


def test_a_crash_at_every_operation_leaves_a_whole_backup_or_none() -> None:
    disk = MemoryDisk()
    take(disk)
    complete = []
    for crash_at in range(1, disk.operations + 2):
        for choose in (nothing_unsynced_survives, everything_survives, names_survive_without_data()):
            crashing = MemoryDisk()
            crashing.crash_at = crash_at
            try:
                take(crashing)
            except SimulatedCrash:
                pass
            found = crashing.after_crash(choose)
            manifest = read_manifest(found, WHERE)
            complete.append(manifest is not None)
            if manifest is not None:
                verify_backup(found, WHERE, manifest)
                assert content(open_log(found, f"{WHERE}/{PARTITION_DIRECTORY}").log) == BEHIND
    assert True in complete
    assert False in complete


def test_a_changed_or_missing_file_of_a_backup_is_named() -> None:
    disk = MemoryDisk()
    take(disk)
    manifest = read_manifest(disk, WHERE)
    assert manifest is not None
    path = f"{WHERE}/{PARTITION_DIRECTORY}/00000000000000000010.log"
    disk.flip_bit(path, 90, 3)
    with pytest.raises(CorruptStorage) as caught:
        verify_backup(disk, WHERE, manifest)
    assert caught.value.path == path
    disk.remove(path)
    with pytest.raises(DirectoryProblem, match=r"00000000000000000010\.log is missing"):
        verify_backup(disk, WHERE, manifest)


def test_a_directory_that_is_not_empty_is_not_written_to() -> None:
    disk = MemoryDisk()
    take(disk)
    with pytest.raises(DirectoryProblem, match="is not empty"):
        BackupWriter(disk, WHERE)


def test_a_damaged_snapshot_makes_no_backup() -> None:
    disk = MemoryDisk()
    snapshot = bytearray(snapshot_bytes())
    snapshot[-3] ^= 1
    with pytest.raises(CorruptStorage):
        take(disk, bytes(snapshot))
    assert read_manifest(disk, WHERE) is None


@pytest.mark.parametrize("text", [b"", b"{}", b"[]", b"\xff", b'{"format": 1}'])
def test_an_invalid_manifest_is_refused_with_its_path(text: bytes) -> None:
    disk = MemoryDisk()
    disk.open(f"{WHERE}/backup.json", create=True).write(0, text)
    with pytest.raises(DirectoryProblem, match=r"/backup/backup\.json"):
        read_manifest(disk, WHERE)


def test_a_manifest_of_a_newer_format_or_of_files_elsewhere_is_refused() -> None:
    disk = MemoryDisk()
    take(disk)
    path = f"{WHERE}/backup.json"
    text = disk.read_bytes(path)
    manifest = read_manifest(disk, WHERE)
    assert manifest is not None and text.count(b'"format": 1') == 1
    disk.open(path).write(0, text.replace(b'"format": 1', b'"format": 2'))
    with pytest.raises(DirectoryProblem, match="is of format 2, 1 is known here"):
        read_manifest(disk, WHERE)
    outside = manifest.files[0]._replace(path="../node/meta.properties")
    with pytest.raises(DirectoryProblem, match=r"names \.\./node/meta\.properties"):
        verify_backup(disk, WHERE, replace(manifest, files=[outside]))


def test_a_directory_with_only_a_lock_is_not_occupied() -> None:
    disk = MemoryDisk()
    disk.open(f"{WHERE}/.lock", create=True)
    assert not is_occupied(disk, WHERE)
    disk.open(f"{WHERE}/meta.properties", create=True)
    assert is_occupied(disk, WHERE)


def test_a_redacted_snapshot_is_whole_or_refused() -> None:
    snapshot = snapshot_bytes()
    single_bytes = [snapshot[at : at + 1] for at in range(len(snapshot))]
    for pieces in ([snapshot], [snapshot[:70], snapshot[70:]], single_bytes):
        writer = BackupWriter(disk := MemoryDisk(), WHERE, redacted=True)
        writer.begin_snapshot(SNAPSHOT)
        for piece in pieces:
            writer.append_snapshot(piece)
        writer.end_snapshot()
        manifest = writer.finish("cluster", 77)
        assert manifest.redacted and read_manifest(disk, WHERE) == manifest
        assert disk.read_bytes(checkpoint_path(f"{WHERE}/{PARTITION_DIRECTORY}", SNAPSHOT)) == snapshot
    writer = BackupWriter(MemoryDisk(), WHERE, redacted=True)
    writer.begin_snapshot(SNAPSHOT)
    writer.append_snapshot(snapshot + snapshot[:30])
    with pytest.raises(CorruptStorage, match="30 bytes at its end are no whole batch"):
        writer.end_snapshot()
    writer = BackupWriter(MemoryDisk(), WHERE, redacted=True)
    writer.begin_snapshot(SNAPSHOT)
    with pytest.raises(CorruptBatch):  # its secrets are not given a new checksum
        writer.append_snapshot(snapshot[:-3] + bytes((snapshot[-3] ^ 1,)) + snapshot[-2:])
