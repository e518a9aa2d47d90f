"""Appending, reading, rolling and truncating the metadata log."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kraftd.log.disk import write_atomically
from kraftd.log.epochs import EpochCache, decode_epochs, encode_epochs
from kraftd.log.errors import CorruptStorage, DiskFull, StorageFailure
from kraftd.log.memory_disk import MemoryDisk
from kraftd.metadata_dir.files.checkpoint import CheckpointWriter
from kraftd.metadata_dir.metadata_log import LogSettings, OffsetOutOfRange
from kraftd.types import OffsetAndEpoch
from kraftd.wire.batch import CorruptBatch, iter_batches
from tests.metadata_dir.logs import DIRECTORY, SMALL_SEGMENTS, batch, content, opened


def write_snapshot(disk: MemoryDisk, offset: int, epoch: int) -> OffsetAndEpoch:
    snapshot_id = OffsetAndEpoch(offset, epoch)
    writer = CheckpointWriter(disk, DIRECTORY, snapshot_id, last_contained_log_timestamp_ms=5, now_ms=6)
    writer.freeze()
    return snapshot_id


def test_a_new_directory_has_an_empty_log_and_names_its_topic() -> None:
    disk, log, report = opened()
    assert (log.log_start, log.log_end, log.last_epoch) == (0, 0, 0)
    assert report.notes == []
    assert (
        disk.read_bytes(f"{DIRECTORY}/partition.metadata") == b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"
    )
    assert disk.list_names(DIRECTORY) == [
        "00000000000000000000.index",
        "00000000000000000000.log",
        "00000000000000000000.timeindex",
        "partition.metadata",
    ]


def test_unsynced_records_can_be_read_but_only_a_sync_makes_them_count() -> None:
    _, log, _ = opened()
    log.append(batch(0, 3))
    assert bytes(log.read(0, 1000)) == batch(0, 3)
    assert (log.log_end, log.synced_end) == (3, 0)
    assert log.sync() == 3
    assert log.synced_end == 3


def test_pending_appends_are_written_together_with_one_fsync() -> None:
    disk, log, _ = opened(settings=LogSettings())
    log.append(batch(0))
    log.sync()
    before = disk.operations
    for offset in range(1, 50):
        log.append(batch(offset))
    log.sync()
    assert disk.operations - before == 2  # one write, one sync


def test_a_read_returns_whole_batches_and_at_least_one() -> None:
    _, log, _ = opened()
    log.append(batch(0, 5) + batch(5, 5))
    whole = len(batch(0, 5))
    assert bytes(log.read(0, 0)) == batch(0, 5)
    assert bytes(log.read(3, whole)) == batch(0, 5)
    assert bytes(log.read(0, 2 * whole)) == batch(0, 5) + batch(5, 5)
    assert bytes(log.read(10, 100)) == b""
    assert bytes(log.read(0, 10_000, end_offset=9)) == batch(0, 5)
    assert bytes(log.read(0, 10_000, end_offset=4)) == b""
    with pytest.raises(OffsetOutOfRange, match="offset 11 is not in 0 to 10"):
        log.read(11, 100)


def test_a_read_returns_at_most_one_segment() -> None:
    _, log, _ = opened()
    for offset in range(60):
        log.append(batch(offset))
    assert 500 < len(log.read(0, 1 << 20)) <= log.settings.segment_bytes, "of the tail in memory"
    log.sync()
    for offset in range(60):
        assert len(log.read(offset, 1 << 20)) <= log.settings.segment_bytes
    log.append(large := batch(60, size=2 * log.settings.segment_bytes))
    assert bytes(log.read(60, 1 << 20)) == large


def test_batches_that_do_not_continue_the_log_are_refused_as_a_whole() -> None:
    _, log, _ = opened()
    log.append(batch(0, 2, epoch=3))
    with pytest.raises(ValueError, match="offset 5 cannot follow a log end of 2"):
        log.append(batch(5))
    with pytest.raises(ValueError, match="epoch 2 cannot follow epoch 3"):
        log.append(batch(2, epoch=3) + batch(3, epoch=2))
    damaged = bytearray(batch(2, epoch=3))
    damaged[-2] ^= 1
    with pytest.raises(CorruptBatch, match="checksum"):
        log.append(bytes(damaged))
    assert log.log_end == 2


def test_the_log_rolls_by_size_and_by_the_time_in_its_batches() -> None:
    disk, log, _ = opened(settings=LogSettings(segment_bytes=1000, segment_ms=10_000))
    log.append(batch(0, 5))
    log.append(batch(5, 5, timestamp_ms=11_000))
    assert log.segment_count == 1
    log.append(batch(10, 1, timestamp_ms=11_001))
    assert log.segment_count == 2
    log.append(batch(11, 40, timestamp_ms=11_001))
    assert log.segment_count == 3
    log.append(batch(51, 1, timestamp_ms=11_001))
    assert log.segment_count == 4
    log.sync()
    names = [name for name in disk.list_names(DIRECTORY) if name.endswith(".log")]
    assert [int(name[:20]) for name in names] == [0, 10, 11, 51]


def test_truncation_drops_whole_batches_and_their_epochs() -> None:
    _, log, _ = opened()
    log.append(batch(0, 2, epoch=1))
    log.append(batch(2, 4, epoch=2))
    log.sync()
    assert log.truncate_to(4) == 2  # the batch that holds offset 4 begins with 2
    assert (log.log_end, log.synced_end, log.last_epoch) == (2, 2, 1)
    log.append(batch(2, 1, epoch=3))
    assert log.sync() == 3
    assert content(log) == [batch(0, 2, epoch=1), batch(2, 1, epoch=3)]
    with pytest.raises(ValueError, match="cannot truncate to 4 a log of 0 to 3"):
        log.truncate_to(4)


def test_a_truncation_while_a_sync_runs_is_not_counted_as_synced() -> None:
    disk, log, _ = opened()
    log.append(batch(0, 2))
    log.append(batch(2, 2))

    def truncate_meanwhile(operation: str, path: str) -> None:
        if operation == "sync" and path.endswith(".log") and log.log_end == 4:
            log.truncate_to(2)
            log.append(batch(2, 5, epoch=2))

    disk.fault = truncate_meanwhile
    assert log.sync() == 2
    assert log.sync() == 7
    assert content(opened(disk)[1]) == [batch(0, 2), batch(2, 5, epoch=2)]


def test_a_truncation_is_synced_before_anything_is_written_behind_it() -> None:
    disk, log, _ = opened()
    for offset in range(5):
        log.append(batch(offset))
    log.sync()
    done: list[str] = []
    segment = f"{DIRECTORY}/{0:020d}.log"
    disk.fault = lambda operation, path: done.append(operation) if path == segment else None
    log.truncate_to(3)
    log.append(batch(3, epoch=2))
    log.sync()
    assert done == ["truncate", "sync", "write", "sync", "sync"]  # one sync before the new epoch is written


def test_a_full_truncation_to_a_snapshot_survives_a_restart() -> None:
    disk, log, _ = opened()
    for offset in range(60):
        log.append(batch(offset))
    log.sync()
    old = write_snapshot(disk, 10, 1)
    log.add_snapshot(old)
    snapshot_id = write_snapshot(disk, 100, 4)
    log.add_snapshot(snapshot_id)
    log.reset_to_snapshot(snapshot_id)
    assert (log.log_start, log.log_end, log.last_epoch, log.snapshots) == (100, 100, 4, [snapshot_id])
    log.append(batch(100, 2, epoch=5))
    log.sync()
    _, again, _ = opened(disk)
    assert (again.log_start, again.log_end, again.snapshots) == (100, 102, [snapshot_id])
    assert content(again) == [batch(100, 2, epoch=5)]


def test_a_snapshot_that_is_ahead_of_the_log_replaces_it_on_opening() -> None:
    disk, log, _ = opened()
    log.append(batch(0, 3))
    log.close()
    write_snapshot(disk, 50, 7)
    _, log, report = opened(disk)
    assert (log.log_start, log.log_end, log.last_epoch) == (50, 50, 7)
    assert any("newest snapshot 50@7" in note for note in report.notes)


def test_deleting_before_a_snapshot_moves_the_log_start() -> None:
    disk, log, _ = opened()
    for offset in range(100):
        log.append(batch(offset, epoch=1 + offset // 40))
    log.sync()
    segments = log.segment_count
    first, second = write_snapshot(disk, 30, 1), write_snapshot(disk, 50, 2)
    log.add_snapshot(first)
    log.add_snapshot(second)
    assert log.delete_before_snapshot(second)
    assert not log.delete_before_snapshot(second)
    log.sync()
    assert log.segment_count < segments
    assert (log.log_start, log.snapshots, log.epochs.entries) == (50, [second], [(2, 50), (3, 80)])
    with pytest.raises(OffsetOutOfRange):
        log.read(49, 100)
    assert content(log)[0] == batch(50, epoch=2)
    log.close()
    _, again, _ = opened(disk)
    assert again.log_start == 50
    assert content(again) == content(log)


def test_the_end_offset_of_an_epoch_is_the_same_as_in_kafka() -> None:
    _, log, _ = opened()
    log.append(batch(0, 5, epoch=1))
    log.append(batch(5, 5, epoch=3))
    log.append(batch(10, 5, epoch=6))
    answers = {epoch: log.epochs.end_offset_for(epoch, log.log_end) for epoch in (0, 1, 2, 3, 5, 6, 7)}
    assert answers == {
        0: (0, 0),  # below all: the same epoch, at the start of the lowest
        1: (5, 1),
        2: (5, 1),
        3: (10, 3),
        5: (10, 3),
        6: (15, 6),
        7: None,  # above all: the log's end
    }


def test_after_a_failed_sync_the_log_refuses_every_operation() -> None:
    disk, log, _ = opened()
    log.append(batch(0))

    def fail(operation: str, path: str) -> None:
        if operation == "sync":
            raise StorageFailure(f"cannot sync {path}: Input/output error")

    disk.fault = fail
    with pytest.raises(StorageFailure, match="Input/output error"):
        log.sync()
    disk.fault = None
    for change in (log.sync, lambda: log.append(batch(1)), lambda: log.truncate_to(0), log.roll):
        with pytest.raises(StorageFailure, match="failed before"):
            change()
    assert bytes(log.read(0, 100)) == batch(0)
    assert log.synced_end == 0


def test_a_sync_that_failed_on_a_full_disk_succeeds_once_there_is_space() -> None:
    disk, log, _ = opened(settings=LogSettings())
    log.append(batch(0))
    log.sync()
    disk.capacity_bytes = 400
    for offset in range(1, 9):
        log.append(batch(offset))
    with pytest.raises(DiskFull, match="Make room"):
        log.sync()
    assert log.synced_end == 1
    log.append(batch(9))
    disk.capacity_bytes = None
    assert log.sync() == 10
    assert content(opened(disk)[1]) == [batch(offset) for offset in range(10)]


def test_the_tail_in_memory_stays_small_and_older_batches_are_read_from_disk() -> None:
    _, log, _ = opened()
    for offset in range(200):
        log.append(batch(offset))
        log.sync()
    assert log._tail.first_offset > 190
    assert content(log) == [batch(offset) for offset in range(200)]


def test_an_index_rebuilt_from_the_log_equals_the_written_one() -> None:
    disk, log, _ = opened()
    for offset in range(0, 400, 4):
        log.append(batch(offset, 4, timestamp_ms=1000 + offset))
    log.close()
    names = [name for name in disk.list_names(DIRECTORY) if name.endswith("index")]
    before = {name: disk.read_bytes(f"{DIRECTORY}/{name}") for name in names}
    assert any(before.values())
    for name in names:
        disk.remove(f"{DIRECTORY}/{name}")
    opened(disk)[1].close()
    assert {name: disk.read_bytes(f"{DIRECTORY}/{name}") for name in names} == before


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.booleans())
def test_reads_equal_those_of_a_list_of_batches(seed: int, reopen: bool) -> None:
    rng = random.Random(seed)
    disk, log, _ = opened()
    model: list[bytes] = []
    epoch = 1
    for _ in range(80):
        choice = rng.random()
        if choice < 0.75:
            new = []
            for _ in range(rng.randint(1, 3)):
                base = log.log_end if not new else next(iter_batches(new[-1])).header.next_offset
                new.append(batch(base, rng.randint(1, 12), epoch, size=rng.choice([1, 20, 200])))
            log.append(b"".join(new))
            model += new
        elif choice < 0.85:
            log.sync()
        elif choice < 0.92 and model:
            keep = rng.randint(0, len(model))
            headers = [next(iter_batches(each)).header for each in model]
            if keep < len(model):
                inside = rng.randint(headers[keep].base_offset, headers[keep].last_offset)
                assert log.truncate_to(inside) == headers[keep].base_offset
                del model[keep:]
            epoch += 1
        elif reopen:
            log.close()
            disk, log, report = opened(disk)
            assert report.truncated_bytes == 0
        if model:
            at = rng.randrange(len(model))
            header = next(iter_batches(model[at])).header
            limit = rng.choice([0, 100, 1000, 5000])
            end = rng.randint(header.next_offset, log.log_end)
            data = bytes(log.read(rng.randint(header.base_offset, header.last_offset), limit, end))
            assert b"".join(model[at:]).startswith(data)
            assert len(data) >= len(model[at])
            assert len(data) <= max(limit, len(model[at]))
            assert list(iter_batches(data))[-1].header.next_offset <= end
    assert content(log) == model


def test_epochs_are_checkpointed_in_kafkas_format() -> None:
    cache = EpochCache([(1, 0), (2, 205260), (9, 205276)])
    assert encode_epochs(cache.entries) == b"0\n3\n1 0\n2 205260\n9 205276\n"
    assert decode_epochs(b"0\n3\n1 0\n2 205260\n9 205276\n") == cache.entries
    for damaged in (b"", b"1\n0\n", b"0\n2\n1 0\n", b"0\n1\n1\n", b"0\n2\n3 5\n1 9\n", b"\0\0\0"):
        assert decode_epochs(damaged) is None


def test_an_epoch_replaces_later_epochs_that_contradict_it() -> None:
    cache = EpochCache([(1, 0), (3, 10), (5, 20)])
    assert not cache.assign(5, 25)
    assert cache.assign(4, 15)
    assert cache.entries == [(1, 0), (3, 10), (4, 15)]
    assert [cache.epoch_of(offset) for offset in (0, 9, 10, 15, 99)] == [1, 1, 3, 4, 4]
    assert cache.truncate_from_start(12)
    assert cache.entries == [(3, 12), (4, 15)]
    assert cache.epoch_of(5) is None


def test_a_file_is_replaced_whole_or_not_at_all_at_every_crash() -> None:
    for crash_at in range(1, 8):
        for choice in range(4):
            disk = MemoryDisk()
            write_atomically(disk, "/data/file", b"old")
            disk.crash_at = disk.operations + crash_at
            try:
                write_atomically(disk, "/data/file", b"new content")
            except BaseException:
                pass
            rng = random.Random(choice)
            after = disk.after_crash(rng.randrange)
            assert after.read_bytes("/data/file") in (b"old", b"new content")


def test_settings_default_to_kafkas() -> None:
    assert LogSettings() == LogSettings(1 << 30, 604_800_000, 4096, 2 << 20)
    assert SMALL_SEGMENTS.segment_bytes < LogSettings().segment_bytes


def test_on_a_full_disk_deletion_by_retention_lets_pending_appends_through() -> None:
    disk, log, _ = opened()
    for offset in range(60):
        log.append(batch(offset))
    log.sync()
    snapshot_id = OffsetAndEpoch(50, 1)
    CheckpointWriter(disk, DIRECTORY, snapshot_id, last_contained_log_timestamp_ms=0, now_ms=0).freeze()
    log.add_snapshot(snapshot_id)
    disk.capacity_bytes = sum(
        len(disk.read_bytes(f"{DIRECTORY}/{name}")) for name in disk.list_names(DIRECTORY)
    )
    log.append(batch(60))
    assert log.delete_before_snapshot(snapshot_id)
    with pytest.raises(DiskFull):
        log.sync()
    assert log.sync() == 61
    assert [OffsetAndEpoch(50, 1)] == log.snapshots
    assert not disk.exists(f"{DIRECTORY}/00000000000000000000.log")
    _, again, _ = opened(disk)
    assert (again.log_start, again.log_end) == (50, 61)


def test_the_next_read_detects_a_flipped_bit_in_a_closed_segment() -> None:
    disk, log, _ = opened()
    for offset in range(60):
        log.append(batch(offset))
    log.sync()
    whole = content(log)
    first = f"{DIRECTORY}/00000000000000000000.log"
    write_snapshot(disk, 60, 1)  # then no record of the log needs a replay
    size_bytes = len(whole[3])
    for at in (5, 9, 16, 18, 25, 57, 70, size_bytes - 1):  # offset, length, format, checksum, header, records
        disk.flip_bit(first, 3 * size_bytes + at, 2)
        log.close()
        _, log, report = opened(disk)
        assert report.notes == [], (
            "the index is trusted, as the segment was synced before the next had a name"
        )
        with pytest.raises(CorruptStorage, match=r"00000000000000000000\.log") as raised:
            content(log)
        assert raised.value.position == 3 * size_bytes
        disk.flip_bit(first, 3 * size_bytes + at, 2)
    assert content(log) == whole


def test_a_flipped_bit_in_an_offset_refuses_a_truncation() -> None:
    disk, log, _ = opened(settings=LogSettings())
    for offset in range(9):
        log.append(batch(offset))
    log.sync()
    whole = content(log)
    size_bytes = len(whole[3])
    log.close()
    _, log, _ = opened(disk, settings=LogSettings(replay_bytes=0, tail_bytes=0))
    log_file = f"{DIRECTORY}/00000000000000000000.log"
    disk.flip_bit(log_file, 3 * size_bytes + 2, 2)  # in the base offset, which no checksum covers
    with pytest.raises(CorruptStorage, match=r"00000000000000000000\.log") as raised:
        log.truncate_to(3)
    assert raised.value.position == 3 * size_bytes
    disk.flip_bit(log_file, 3 * size_bytes + 2, 2)
    assert content(log) == whole
    assert log.truncate_to(3) == 3
