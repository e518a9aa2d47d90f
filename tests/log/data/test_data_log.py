"""Appending, reading, rolling, flushing and truncating the log of an ordinary partition."""

from __future__ import annotations

from random import Random

import pytest

from kraftd.log.data.data_log import DataLog
from kraftd.log.data.opening import Found
from kraftd.log.data.reading import AT_ONCE_BYTES
from kraftd.log.data.retention import remove_expired
from kraftd.log.data.settings import DataLogSettings
from kraftd.log.data.time_search import FoundRecord, max_timestamp, offset_for_timestamp
from kraftd.log.data.transaction_index import AbortedTransaction
from kraftd.log.errors import CorruptStorage, DirectoryProblem, DiskFull, StorageFailure
from kraftd.log.memory_disk import MemoryDisk
from kraftd.log.partition_log import OffsetOutOfRange
from kraftd.log.segment import MAX_RELATIVE_OFFSET
from kraftd.wire.batch import iter_batches, parse_header
from kraftd.wire.compaction import without_records
from kraftd.wire.producer_snapshot import SnapshotEntry, decode_producers
from tests.log.data.logs import (
    DIRECTORY,
    NOW_MS,
    SMALL,
    append,
    batch,
    content,
    names,
    new_log,
    offsets,
    reopened,
)


def files_of(disk: MemoryDisk, suffix: str) -> list[int]:
    return [int(name[:20]) for name in names(disk) if name.endswith(suffix)]


def test_a_new_log_has_the_files_of_kafkas() -> None:
    disk, log = new_log()
    assert (log.log_start, log.log_end, log.recovery_point) == (0, 0, 0)
    assert names(disk) == [
        "00000000000000000000.index",
        "00000000000000000000.log",
        "00000000000000000000.timeindex",
        "partition.metadata",
    ]
    expected = b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"
    assert disk.read_bytes(f"{DIRECTORY}/partition.metadata") == expected


def test_an_append_is_one_write_and_can_be_read_at_once() -> None:
    disk, log = new_log()
    append(log, batch(0, 3))
    before = disk.operations
    append(log, batch(3, 2), batch(5, 1))
    assert disk.operations - before == 1
    assert content(log) == [batch(0, 3), batch(3, 2), batch(5, 1)]
    assert (log.log_end, log.recovery_point) == (6, 0)


def test_gaps_between_offsets_are_legal_and_a_read_goes_on_behind_them() -> None:
    _, log = new_log()
    append(log, batch(0, 2))
    append(log, batch(10, 2), batch(20, 1))
    assert bytes(log.read(0, 1) or b"") == batch(0, 2)
    assert bytes(log.read(2, 1) or b"") == batch(10, 2), "in the gap"
    assert bytes(log.read(11, 1) or b"") == batch(10, 2)
    assert bytes(log.read(12, 1000) or b"") == batch(20, 1)
    assert bytes(log.read(2, 1000, end_offset=12) or b"") == batch(10, 2)
    assert log.read(2, 1000, end_offset=11) == b""
    assert log.read(2, 1000, end_offset=5) == b""


def test_reads_from_memory_are_those_from_the_disk() -> None:
    _, log = new_log(max_tail_bytes=1 << 20)
    _, other = new_log()
    assert log.read(0, 1) == b""
    for each in (batch(0, 2), batch(10, 2), batch(12, 1), batch(30, 3)):
        append(log, each)
        append(other, each)
    for offset in range(33):
        for end in range(offset, 34):
            for max_bytes in (1, 150, 1000):
                args = (offset, max_bytes, end)
                assert log.read_tail(*args) is not None
                assert bytes(log.read(*args) or b"") == bytes(other.read(*args) or b""), args


def test_what_comes_before_the_log_end_is_refused_as_a_whole() -> None:
    _, log = new_log()
    append(log, batch(0, 2))
    for refused in ([batch(1)], [batch(2), batch(2)], [batch(5), batch(4)]):
        with pytest.raises(ValueError, match="cannot follow a log end"):
            append(log, *refused)
    with pytest.raises(ValueError, match="exceed a segment of 1000"):
        append(log, batch(2, size=1000))
    assert content(log) == [batch(0, 2)]
    with pytest.raises(OffsetOutOfRange, match="offset 3 is not in 0 to 2"):
        log.read(3, 100)


def test_the_log_rolls_by_size_by_time_and_when_an_index_is_full() -> None:
    disk, log = new_log(settings=SMALL._replace(segment_ms=10_000))
    append(log, batch(0, 5))
    assert not append(log, batch(5, 5, timestamp_ms=11_000))
    assert append(log, batch(10, 1, timestamp_ms=11_001))
    assert append(log, batch(11, 33, timestamp_ms=11_001))
    assert files_of(disk, ".log") == [0, 10, 11]
    disk, log = new_log(settings=DataLogSettings(index_interval_bytes=0, segment_index_bytes=4 * 12))
    for offset in range(10):
        append(log, batch(offset, timestamp_ms=offset))
    # A time index of four entries is full with three: the last is for the end of the segment.
    assert files_of(disk, ".log") == [0, 4, 8]
    assert len(disk.read_bytes(f"{DIRECTORY}/00000000000000000004.timeindex")) == 3 * 12


def test_a_segment_begins_with_the_batch_that_does_not_fit_its_offsets() -> None:
    disk, log = new_log()
    append(log, batch(0))
    far = (1 << 31) + 5
    assert append(log, batch(far))
    assert files_of(disk, ".log") == [0, far]
    assert content(log) == [batch(0), batch(far)]


def test_rolling_by_time_counts_from_the_first_batch_less_a_jitter() -> None:
    _, log = new_log(settings=SMALL._replace(segment_ms=1000, segment_jitter_ms=300))
    log._resources.draw = lambda below: below - 1
    append(log, batch(0, timestamp_ms=0))
    assert append(log, batch(1, timestamp_ms=1_001), now_ms=0), "the first segment has no jitter yet"
    assert not append(log, batch(2, timestamp_ms=1_001 + 701), now_ms=0)
    assert append(log, batch(3, timestamp_ms=1_001 + 702), now_ms=0)


def test_batches_without_timestamps_roll_by_the_age_of_the_segment() -> None:
    _, log = new_log(settings=SMALL._replace(segment_ms=1000))
    append(log, batch(0, timestamp_ms=-1), now_ms=NOW_MS)
    assert not append(log, batch(1, timestamp_ms=-1), now_ms=NOW_MS + 1000)
    assert append(log, batch(2, timestamp_ms=-1), now_ms=NOW_MS + 1001)


def test_a_flush_moves_the_recovery_point_to_where_it_began() -> None:
    disk, log = new_log()
    for offset in range(40):
        append(log, batch(offset))
    job = log.begin_flush()
    assert job is not None and log.begin_flush() is None, "one runs at a time"
    append(log, batch(40))
    job.run()
    log.end_flush(job, NOW_MS)
    assert (log.recovery_point, log.log_end) == (40, 41)
    paths = [f"{DIRECTORY}/{name}" for name in names(disk) if name.endswith(".log")]
    assert len(paths) > 1 and all(disk.durable_bytes(path) for path in paths)


def test_a_truncation_during_a_flush_keeps_the_recovery_point_below_it() -> None:
    _, log = new_log()
    append(log, batch(0, 4), batch(4, 4))
    job = log.begin_flush()
    assert job is not None
    log.truncate_to(4, NOW_MS)
    append(log, batch(4, 10, epoch=2))
    job.run()
    log.end_flush(job, NOW_MS)
    assert log.recovery_point == 4


def test_flushes_are_due_by_messages_by_time_and_after_a_roll() -> None:
    _, log = new_log(settings=SMALL._replace(flush_messages=3, flush_ms=100))
    log.flush(NOW_MS)
    assert log not in log._resources.unflushed
    append(log, batch(0, 2))
    assert log not in log._resources.unflushed
    append(log, batch(2))
    assert log in log._resources.unflushed
    assert not log.is_flush_due(NOW_MS + 99)
    assert log.is_flush_due(NOW_MS + 100)
    log.flush(NOW_MS)
    assert log not in log._resources.unflushed and not log.is_flush_due(NOW_MS + 100)
    assert append(log, batch(3, 30))
    assert log in log._resources.unflushed


def test_a_truncation_drops_whole_batches_their_epochs_and_index_entries() -> None:
    disk, log = new_log()
    for offset in range(30):
        append(log, batch(offset, epoch=1 + offset // 10))
    assert log.truncate_to(15, NOW_MS)
    assert (log.log_end, log.epochs.entries) == (15, [(1, 0), (2, 10)])
    assert not log.truncate_to(15, NOW_MS)
    for offset in range(15, 25):
        append(log, batch(offset, epoch=4))
    assert offsets(content(log)) == list(range(25))
    assert log.epochs.entries == [(1, 0), (2, 10), (4, 15)]
    log.close(NOW_MS)
    log, notes = reopened(disk, Found(recovery_point=25, clean=True))
    assert all("left over" in note for note in notes)
    assert offsets(content(log)) == list(range(25))
    assert log.epochs.entries == [(1, 0), (2, 10), (4, 15)]


def test_a_full_truncation_starts_anew_at_any_offset() -> None:
    disk, log = new_log()
    for offset in range(30):
        append(log, batch(offset))
    log.truncate_fully_and_start_at(100, NOW_MS)
    assert (log.log_start, log.log_end, log.recovery_point, log.epochs.entries) == (100, 100, 0, [])
    append(log, batch(100, epoch=7))
    log.truncate_to(50, NOW_MS)
    assert (log.log_start, log.log_end) == (50, 50), "below all segments it is a full one"
    append(log, batch(50, epoch=8))
    assert content(log) == [batch(50, epoch=8)]
    assert files_of(disk, ".log") == [50]


def test_what_is_removed_keeps_a_name_until_its_delay_is_over() -> None:
    disk, log = new_log(settings=SMALL._replace(retention_bytes=500, file_delete_delay_ms=7))
    for offset in range(40):
        append(log, batch(offset))
    before = len(log.segments)
    assert remove_expired(log, NOW_MS, high_watermark=40) > 0
    assert log.log_start == log.segments[0].base_offset > 0
    (deletion,) = log._resources.deletions
    assert deletion.due_ms == NOW_MS + 7
    gone = [path for path in deletion.paths if path.endswith(".log.deleted")]
    assert len(gone) == before - len(log.segments)
    assert all(disk.exists(path) for path in deletion.paths)


def test_retention_removes_by_size_time_and_log_start_below_the_high_watermark() -> None:
    _, log = new_log(settings=SMALL._replace(retention_ms=100))
    for offset in range(40):
        append(log, batch(offset, timestamp_ms=offset))
    assert remove_expired(log, 100, high_watermark=40) == 0
    first_end = log.segments[1].base_offset
    assert remove_expired(log, 100 + first_end, high_watermark=first_end - 1) == 0
    assert remove_expired(log, 100 + first_end, high_watermark=40) == 1
    assert log.log_start == first_end
    assert remove_expired(log, 1000, high_watermark=40) > 0
    assert (log.log_start, log.log_end, log.size_bytes) == (40, 40, 0), "all records may go"
    append(log, batch(40))
    _, log = new_log()
    for offset in range(40):
        append(log, batch(offset, timestamp_ms=NOW_MS))
    log.increment_log_start(log.segments[2].base_offset + 1)
    assert remove_expired(log, NOW_MS, high_watermark=40) == 2
    assert log.log_start == log.segments[0].base_offset + 1


def test_a_compacted_topic_keeps_what_is_past_the_log_start() -> None:
    _, log = new_log(settings=SMALL._replace(retention_ms=1, retention_bytes=1, deletes=False))
    for offset in range(40):
        append(log, batch(offset))
    assert remove_expired(log, 1 << 40, high_watermark=40) == 0


def test_segments_without_timestamps_age_by_their_files() -> None:
    disk, log = new_log(settings=SMALL._replace(retention_ms=100, segment_ms=1 << 40))
    for offset in range(40):
        append(log, batch(offset, timestamp_ms=-1))
    disk.modified[f"{DIRECTORY}/00000000000000000000.log"] = 10
    disk.modified.update((each.path(DIRECTORY), 1000) for each in log.segments[1:])
    assert remove_expired(log, 110, high_watermark=40) == 0
    assert remove_expired(log, 111, high_watermark=40) == 1


def test_a_full_disk_refuses_an_append_and_heals() -> None:
    disk, log = new_log()
    append(log, batch(0, 3))
    used = sum(disk.size_bytes(path) for path in disk.paths())
    disk.capacity_bytes = used + 20
    with pytest.raises(DiskFull):
        append(log, batch(3, 10))
    assert (log.log_end, content(log)) == (3, [batch(0, 3)])
    assert disk.size_bytes(f"{DIRECTORY}/00000000000000000000.log") == len(batch(0, 3)), "no torn end stays"
    disk.capacity_bytes = None
    append(log, batch(3))
    assert content(log) == [batch(0, 3), batch(3)]


@pytest.mark.parametrize("room_bytes", [0, 20, 40, 60])
def test_a_full_disk_takes_neither_a_marker_nor_its_aborted_transaction(room_bytes: int) -> None:
    """34 bytes are the transaction's entry; the marker's batch has more than the others' room."""
    disk, log = new_log()
    first, second = AbortedTransaction(7, 0, 3, 4), AbortedTransaction(8, 2, 4, 5)
    append(log, batch(0, 3))
    append(log, batch(3), aborted=[first])
    disk.capacity_bytes = sum(disk.size_bytes(path) for path in disk.paths()) + room_bytes
    with pytest.raises(DiskFull):
        append(log, batch(4), aborted=[second])
    assert (log.log_end, content(log)) == (4, [batch(0, 3), batch(3)])
    assert log.aborted_transactions(0, 9) == [first]
    disk.capacity_bytes = None
    append(log, batch(4), aborted=[second])
    assert content(log) == [batch(0, 3), batch(3), batch(4)]
    assert log.aborted_transactions(0, 9) == [first, second]


def test_after_a_failed_write_every_change_is_refused_and_reads_go_on() -> None:
    disk, log = new_log()
    append(log, batch(0, 3))

    def fail(operation: str, path: str) -> None:
        if operation == "write":
            raise StorageFailure("cannot write: Input/output error")

    disk.fault = fail
    with pytest.raises(StorageFailure):
        append(log, batch(3))
    disk.fault = None
    with pytest.raises(StorageFailure, match="failed before"):
        append(log, batch(3))
    assert content(log) == [batch(0, 3)]


def test_a_flipped_bit_is_named_and_never_served() -> None:
    disk, log = new_log()
    append(log, batch(0, 3))
    append(log, batch(3, 3))
    append(log, batch(6, 3))
    log.flush(NOW_MS)
    path, size = f"{DIRECTORY}/00000000000000000000.log", len(batch(0, 3))
    for position in [*range(size, size + 16), size + 18, size + 30, 2 * size - 1]:
        disk.flip_bit(path, position, 3)
        assert bytes(log.read(0, 1000) or b"") == batch(0, 3), "what is before it is served"
        try:
            found = log.read(3, 1000)
        except CorruptStorage as error:
            assert error.path == path and size <= error.position <= 2 * size and error.offset == 3
        else:
            pytest.fail(f"the flipped bit at byte {position} was served: {offsets([bytes(found or b'')])}")
        disk.flip_bit(path, position, 3)
    assert content(log) == [batch(0, 3), batch(3, 3), batch(6, 3)]


def test_a_segment_with_a_damaged_head_takes_no_further_records() -> None:
    disk, log = new_log()
    append(log, batch(0, 3))
    log.flush(NOW_MS)
    log, _ = reopened(disk, Found(recovery_point=3, clean=True))
    disk.flip_bit(f"{DIRECTORY}/00000000000000000000.log", 16, 1)  # its magic
    assert append(log, batch(3)), "it begins a new segment"
    assert not append(log, batch(4))
    assert bytes(log.read(3, 1000) or b"") == batch(3) + batch(4)
    with pytest.raises(CorruptStorage):
        log.read(0, 1000)


def test_an_offset_is_looked_up_once_in_an_index_until_that_has_more_entries() -> None:
    disk, log = new_log(settings=DataLogSettings(segment_bytes=1 << 20, index_interval_bytes=200))

    def spill(first: int) -> None:
        for offset in range(first, first + 12):
            append(log, batch(offset))
        log.flush(NOW_MS)
        log.close_files()

    spill(0)
    path = f"{DIRECTORY}/00000000000000000000.index"
    before = [(log.bytes_between(at, 12), bytes(log.read(at, 1, 12) or b"")) for at in (2, 7, 7)]
    assert disk.size_bytes(path) > 8
    for position in range(disk.size_bytes(path)):
        disk.flip_bit(path, position, 2)
    assert log.bytes_between(7, 12) == before[1][0], "it is known"
    for position in range(disk.size_bytes(path)):
        disk.flip_bit(path, position, 2)
    spill(12)
    assert [bytes(log.read(at, 1, 24) or b"") for at in (2, 7)] == [before[0][1], before[1][1]]
    assert log.bytes_between(20, 24) < log.bytes_between(7, 24)


def test_a_read_goes_on_where_the_last_one_ended() -> None:
    """Without a search: what is left is known to the byte, and a changed batch there is still found."""
    disk, log = new_log(settings=DataLogSettings(segment_bytes=1 << 20, index_interval_bytes=200))
    for offset in range(12):
        append(log, batch(offset, timestamp_ms=-1))
    log.flush(NOW_MS)
    size = len(batch(0))

    def read(offset: int) -> list[int]:
        return offsets([bytes(log.read(offset, 2 * size, cached_only=True) or b"")])

    assert read(0) == [0, 1]
    assert log.bytes_between(2, 12) == 10 * size
    path = f"{DIRECTORY}/00000000000000000000.log"
    disk.flip_bit(path, 2 * size + 7, 1)
    with pytest.raises(CorruptStorage, match="offsets 0 to 0"):
        read(2)
    disk.flip_bit(path, 2 * size + 7, 1)
    assert [read(2), read(9)] == [[2, 3], [9, 10]]
    log.truncate_to(10, NOW_MS)
    append(log, batch(10, size=60), batch(11, size=60))
    assert read(11) == [11], "no place of before a truncation is left"


def test_a_wrong_index_costs_time_and_no_record() -> None:
    disk, log = new_log()
    for offset in range(12):
        append(log, batch(offset))
    log.roll(NOW_MS)
    log.flush(NOW_MS)
    path = f"{DIRECTORY}/00000000000000000000.index"
    assert disk.size_bytes(path) > 8
    for position in range(disk.size_bytes(path)):
        disk.flip_bit(path, position, 2)
        assert offsets(content(log)) == list(range(12)), position
        disk.flip_bit(path, position, 2)


@pytest.mark.parametrize("removed", [(0,), (1, 3), (-1,), (0, -1)], ids=str)
def test_an_index_that_is_gone_after_a_clean_stop_is_made_anew(removed: tuple[int, ...]) -> None:
    disk, log = new_log()
    for offset in range(80):
        append(log, batch(offset, epoch=1 + offset // 30))
    log.flush(NOW_MS)
    for at in removed:
        disk.remove(log.segments[at].path(log.directory, ".index"))
    again, notes = reopened(disk, Found(recovery_point=80, clean=True))
    assert len(notes) == len(removed) and all("is made anew" in note for note in notes)
    assert (again.log_end, again.epochs.entries) == (80, [(1, 0), (2, 30), (3, 60)])
    append(again, batch(80, epoch=3))
    assert offsets(content(again)) == list(range(81))


def test_a_segment_cut_short_after_a_clean_stop_is_named_without_a_count() -> None:
    disk, log = new_log()
    for offset in range(3):
        append(log, batch(offset))
    log.flush(NOW_MS)
    path = log.segments[0].path(log.directory)
    disk.open(path).truncate(disk.size_bytes(path) - 5)
    again, notes = reopened(disk, Found(recovery_point=3, clean=True))
    assert again.log_end == 2
    assert notes[-1].endswith(". Records that were flushed before the clean stop are gone")


def test_a_read_that_would_wait_for_the_disk_is_left_to_a_thread() -> None:
    disk, log = new_log()
    append(log, batch(0, 3))
    append(log, batch(3, 3))
    disk.is_cached = False
    assert log.read(0, 1000, cached_only=True) is None
    cold = log.cold_read(3, 1000, 6)
    assert bytes(cold.run(disk.open)) == batch(3, 3)
    assert cold.cut_count == log.cut_count


def test_a_large_read_from_the_page_cache_is_left_to_a_thread() -> None:
    disk, log = new_log(settings=DataLogSettings())
    for offset in range(4):
        append(log, batch(offset, size=AT_ONCE_BYTES // 2))
    assert len(log.read(0, AT_ONCE_BYTES * 3 // 4, cached_only=True) or b"") > AT_ONCE_BYTES // 2
    assert log.read(0, 2 * AT_ONCE_BYTES, cached_only=True) is None
    assert len(log.cold_read(0, 2 * AT_ONCE_BYTES, 4).run(disk.open)) > AT_ONCE_BYTES
    assert log.read(3, 2 * AT_ONCE_BYTES, cached_only=True), "near the end there is little to read"


def test_batches_are_kept_in_memory_once_the_log_is_read() -> None:
    _, log = new_log(max_tail_bytes=1 << 20)
    append(log, batch(0))
    assert log.tail_bytes == 0, "a follower's copy costs nothing"
    assert bytes(log.read(0, 1000) or b"") == batch(0), "from the disk"
    append(log, batch(1), batch(2))
    assert log.tail_bytes > len(batch(1)) + len(batch(2))
    assert [bytes(log.read(at, 1) or b"") for at in range(3)] == [batch(at) for at in range(3)]


def test_the_budget_of_memory_is_shared_and_the_oldest_batch_goes_first() -> None:
    _, log = new_log(max_tail_bytes=5000)
    _, other = new_log(MemoryDisk())
    other._resources = log._resources
    assert log.read(0, 1) == other.read(0, 1) == b""
    append(log, batch(0))
    append(other, batch(0))
    for offset in range(1, 14):
        append(other, batch(offset))
    tails = log._resources.tails
    assert log.tail_bytes + other.tail_bytes == tails.kept_bytes <= 5000
    for offset in range(14, 30):
        append(other, batch(offset))
    assert log.tail_bytes == 0 < other.tail_bytes <= 5000
    assert content(log) == [batch(0)], "from the disk"
    other.truncate_to(29, NOW_MS)
    assert tails.kept_bytes == 0


def test_open_files_are_bounded() -> None:
    _, log = new_log()
    log._resources.files._max_files = 3
    for offset in range(60):
        append(log, batch(offset))
    assert offsets(content(log)) == list(range(60))
    assert len(log._resources.files) <= 3


def test_aborted_transactions_are_found_by_the_offsets_that_are_read() -> None:
    _, log = new_log()
    one = AbortedTransaction(7, 0, 3, 4)
    two = AbortedTransaction(8, 2, 6, 7)
    append(log, batch(0, 4), aborted=[one])
    append(log, batch(4, 4), aborted=[two])
    assert log.aborted_transactions(0, 8) == [one, two]
    assert log.aborted_transactions(4, 8) == [two]
    assert log.aborted_transactions(0, 2) == [one]
    log.roll(NOW_MS)
    three = AbortedTransaction(7, 4, 11, 12)
    append(log, batch(8, 4), aborted=[three])
    assert log.aborted_transactions(5, 9) == [two, three]
    log.truncate_to(6, NOW_MS)
    assert log.aborted_transactions(0, 9) == [one]


def test_segments_without_aborted_transactions_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    disk, log = new_log()
    for offset in range(4):
        append(log, batch(offset))
        log.roll(NOW_MS)
    append(log, batch(4))
    looks: list[str] = []
    exists = disk.exists
    monkeypatch.setattr(disk, "exists", lambda path: looks.append(path) or exists(path))
    for start in (0, 2, 0):
        assert log.segments_with_aborted(start) == log.aborted_transactions(start, 5) == []
    assert len(looks) == len(log.segments)
    late = AbortedTransaction(7, 1, 5, 6)
    append(log, batch(5), aborted=[late])
    assert log.aborted_transactions(1, 2) == [late], "its marker is in another segment"
    log.truncate_to(4, NOW_MS)
    append(log, batch(4), aborted=[AbortedTransaction(7, 1, 4, 5)])
    assert log.aborted_transactions(1, 2) == [AbortedTransaction(7, 1, 4, 5)]


def test_a_new_segment_gets_a_snapshot_of_the_producers_before_it() -> None:
    disk, log = new_log()
    entry = SnapshotEntry(1, 0, 4, 5, 4, 1000, -1, -1)
    append(log, batch(0, 25))
    data = batch(25, 25)
    log.append([data], [parse_header(data)], NOW_MS, lambda: [entry])
    assert log.snapshot_offsets() == [25]
    path = log.files.snapshot_path(25)
    assert decode_producers(disk.read_bytes(path)) == [entry]


def test_offsets_are_found_by_time_in_segments_and_gaps() -> None:
    _, log = new_log()
    for at in range(40):
        append(log, batch(3 * at, 2, timestamp_ms=100 * at))
    for wanted in range(0, 3900, 50):
        at = -(-wanted // 100)
        assert offset_for_timestamp(log, wanted) == FoundRecord(100 * at, 3 * at, 1), wanted
    assert offset_for_timestamp(log, 3901) is None
    assert max_timestamp(log) == FoundRecord(3900, 117, 1)
    log.increment_log_start(31)
    assert offset_for_timestamp(log, 0) == FoundRecord(1000, 31, 1)
    append(log, batch(120, 2, timestamp_ms=50))
    log.increment_log_start(121)
    assert max_timestamp(log) == FoundRecord(3900, 117, 1), "below the log start, as in Kafka"
    _, log = new_log()
    append(log, batch(0, 2, timestamp_ms=-1))
    append(log, batch(2, 2, timestamp_ms=-1))
    assert max_timestamp(log) == FoundRecord(-1, 0, 1), "of records without timestamps"
    _, log = new_log()
    assert max_timestamp(log) is None and offset_for_timestamp(log, 0) is None
    append(log, batch(0, 2, timestamp_ms=100))
    append(log, without_records(parse_header(batch(2, 2, timestamp_ms=200))))
    assert max_timestamp(log) is None, "a cleaning has kept the batch without its records"


def test_another_topic_id_is_refused() -> None:
    _, log = new_log()
    log.assign_topic_id(bytes(range(16)))
    with pytest.raises(ValueError, match="another topic"):
        log.assign_topic_id(bytes(16))


@pytest.mark.parametrize(
    ("damaged", "recovery_point", "is_torn"),
    [
        (b"", 0, True),
        (b"version: 0\ntopic_id: AAEC" + bytes(18), 0, True),
        (b"", 1, False),
        (b"x", 0, False),
        (b"version: 1x\ntopic_id: AAECAwQFBgcICQoLDA0ODw", 0, False),
    ],
)
def test_a_damaged_topic_id_is_forgotten_only_if_a_loss_of_power_tore_it(
    damaged: bytes, recovery_point: int, is_torn: bool
) -> None:
    """A log without an id is set aside, and its records with it."""
    disk, log = new_log()
    append(log, batch(0, 3))
    path = f"{DIRECTORY}/partition.metadata"
    disk.remove(path)
    disk.open(path, create=True).write(0, damaged)
    found = Found(recovery_point=recovery_point, clean=False)
    if is_torn:
        assert reopened(disk, found).log.topic_id is None
    else:
        with pytest.raises(DirectoryProblem, match=r"partition\.metadata.*Write `version: 0`"):
            reopened(disk, found)
        assert disk.read_bytes(path) == damaged


def test_an_empty_file_of_epochs_is_no_damage() -> None:
    disk, log = new_log()
    path = f"{log.directory}/leader-epoch-checkpoint"
    disk.open(path, create=True).close()
    assert reopened(disk).notes == []
    disk.open(path).write(0, b"?")
    assert "cannot be read" in reopened(disk).notes[0]


def operations_of_a_close(disk: MemoryDisk, log: DataLog) -> int:
    before = disk.operations
    log.close(NOW_MS)
    return disk.operations - before


def test_an_epoch_begins_with_its_first_record_though_it_was_noted_behind_it() -> None:
    """So does Apache Kafka's cache of epochs."""
    _, log = new_log()
    log.assign_epoch(72, 50)
    append(log, batch(0, epoch=72))
    assert log.epochs.entries == [(72, 0)]


def test_a_stop_writes_nothing_of_a_log_without_records() -> None:
    """A broker may have a hundred thousand such, each with the epoch of its leader."""
    disk, log = new_log()
    log.assign_epoch(3, 0)
    assert operations_of_a_close(disk, log) == 0
    again = reopened(disk, Found(clean=True)).log
    assert again.epochs.entries == []


def test_a_stop_writes_the_epochs_of_records_once() -> None:
    """Each start makes a leader epoch for a log, which begins at its end until records follow."""
    disk, log = new_log()
    append(log, batch(0, 3, epoch=1))
    log.close(NOW_MS)
    for epoch in (3, 5):
        log = reopened(disk, Found(recovery_point=3, clean=True)).log
        log.assign_epoch(epoch, 3)
        assert operations_of_a_close(disk, log) == 0
    log = reopened(disk, Found(recovery_point=3, clean=True)).log
    log.assign_epoch(7, 3)
    append(log, batch(3, 1, epoch=7))
    assert operations_of_a_close(disk, log) > 0
    log = reopened(disk, Found(recovery_point=4, clean=True)).log
    assert log.epochs.entries == [(1, 0), (7, 3)]


def test_a_stop_writes_epochs_that_a_truncation_has_changed() -> None:
    disk, log = new_log()
    append(log, batch(0, 3, epoch=1), batch(3, 1, epoch=2))
    log.close(NOW_MS)
    log = reopened(disk, Found(recovery_point=4, clean=True)).log
    log.truncate_to(3, NOW_MS)
    append(log, batch(3, 1, epoch=4))
    log.close(NOW_MS)
    log = reopened(disk, Found(recovery_point=4, clean=True)).log
    assert log.epochs.entries == [(1, 0), (4, 3)]


def test_segments_that_a_recovery_removed_do_not_come_back() -> None:
    recovered = 0
    for seed in range(400):
        random = Random(seed)
        disk, log = new_log()
        for offset in range(12):
            append(log, batch(offset, size=random.randrange(20, 300)))
        disk = disk.after_crash(random.randrange)
        opened = reopened(disk)
        log = opened.log
        if not any("was cut" in note for note in opened.notes) or not is_dense(log):
            continue  # a later segment may outlive the end of an earlier one, as at Apache Kafka
        recovered += 1
        append(log, batch(log.log_end, epoch=2))
        again = reopened(disk.after_crash(random.randrange)).log
        assert is_dense(again), f"seed {seed}"
    assert recovered > 100


def is_dense(log: DataLog) -> bool:
    offsets = [one.header.base_offset for data in content(log) for one in iter_batches(data)]
    return offsets == list(range(log.log_end))


def test_a_recovery_keeps_records_too_far_from_the_base_of_their_segment() -> None:
    disk, log = new_log()
    append(log, batch(0, 3))
    log.flush(NOW_MS, whole=True)
    path = log.segments[0].path(log.directory)
    file = disk.open(path)
    file.write(file.size_bytes(), batch(MAX_RELATIVE_OFFSET + 1))
    before = disk.read_bytes(path)
    with pytest.raises(CorruptStorage, match="too far") as raised:
        reopened(disk)
    assert (raised.value.offset, disk.read_bytes(path)) == (MAX_RELATIVE_OFFSET + 1, before)


ABORTED = [
    AbortedTransaction(0, 0, 10, 11),
    AbortedTransaction(1, 5, 15, 13),
    AbortedTransaction(2, 18, 35, 25),
    AbortedTransaction(3, 32, 50, 40),
]


def with_aborted() -> DataLog:
    _, log = new_log(settings=SMALL._replace(segment_bytes=1 << 20))
    for offset in range(51):
        append(log, batch(offset), aborted=[each for each in ABORTED if each.last_offset == offset])
    return log


@pytest.mark.parametrize(
    ("start", "end", "found"),
    [(0, 100, ABORTED), (0, 32, ABORTED[:3]), (0, 35, ABORTED), (10, 35, ABORTED), (11, 35, ABORTED[1:]),
     (20, 41, ABORTED[2:])],
)  # fmt: skip
def test_aborted_transactions_are_those_with_records_in_a_range(
    start: int, end: int, found: list[AbortedTransaction]
) -> None:
    assert with_aborted().aborted_transactions(start, end) == found


def test_a_truncation_drops_the_aborted_transactions_that_end_behind_it() -> None:
    log = with_aborted()
    for offset, count in ((51, 4), (50, 3), (49, 3), (10, 0)):
        log.truncate_to(offset, NOW_MS)
        assert log.aborted_transactions(0, 100) == ABORTED[:count]
