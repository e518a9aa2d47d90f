"""What a cleaning may read and must leave: bounds, ages, producers, full tables, and files left behind."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kraftd.log.data.cleanable import Cleanable, cleanable, groups
from kraftd.log.data.cleaning import Cleaning
from kraftd.log.data.data_log import DataLog
from kraftd.log.data.opening import create_data_log
from kraftd.log.data.resources import LogResources
from kraftd.log.disk import RealDisk
from kraftd.log.errors import CorruptStorage
from kraftd.log.segment import CLEANED_SUFFIX, LOG_SUFFIX, TRANSACTION_INDEX_SUFFIX
from kraftd.wire.batch import BatchHeader
from kraftd.wire.compaction import KeyOffsets
from kraftd.wire.producer_snapshot import SnapshotEntry
from kraftd.wire.records import build_records_batch, scan_batches
from tests.log.data.logs import DIRECTORY, NOW_MS, append, names, new_log
from tests.log.data.test_cleaning import (
    COMPACTED,
    SECRET,
    begun,
    clean,
    count_of_records,
    end,
    fill_up,
    filled,
    put,
    put_in_transaction,
    state,
)

NONE = -1


def producer(producer_id: int, epoch: int, last_offset: int) -> SnapshotEntry:
    return SnapshotEntry(producer_id, epoch, 0 if last_offset >= 0 else NONE, last_offset, 0, 1_000, 0, NONE)


def headers(log: DataLog) -> list[BatchHeader]:
    data = b"".join(log.files.resources.disk.read_bytes(segment.path(DIRECTORY)) for segment in log.segments)
    return [one.header for one in scan_batches(data)[0]]


def clean_with(log: DataLog, producers: list[SnapshotEntry], now_ms: int, most_keys: int = 1000) -> int:
    found = cleanable(log, None, log.log_end, now_ms)
    keys = KeyOffsets(most_keys, 1000, SECRET)
    cleaning = Cleaning(log, found, keys, producers, now_ms, lambda _: None)
    cleaning.note_keys()
    cleaning.begin()
    while (group := cleaning.next_group()) is not None:
        assert log.replace_segments(group, cleaning.clean(group), now_ms)
    return cleaning.end_offset


@pytest.mark.parametrize("is_active", [True, False])
def test_the_last_batch_of_an_active_producer_stays_without_records(is_active: bool) -> None:
    """Its sequence is needed, so that the next batch of the producer is accepted."""
    _, log = new_log(settings=COMPACTED)
    put_in_transaction(log, b"k", b"old", 0)
    end(log, 0)
    put(log, b"k", b"new")
    fill_up(log)
    clean_with(log, [producer(0, 0, 0)] if is_active else [], NOW_MS)
    kept = [(one.producer_id, one.record_count) for one in headers(log) if not one.base_offset]
    assert kept == ([(0, 0)] if is_active else [])
    assert not [one for one in headers(log) if one.producer_id < 0 and not one.record_count]


@pytest.mark.parametrize(("epoch", "stays"), [(0, True), (1, False)])
def test_the_last_marker_of_a_producer_without_batches_stays_for_its_epoch(epoch: int, stays: bool) -> None:
    _, log = new_log(settings=COMPACTED)
    end(log, 0)
    fill_up(log)
    later_ms = NOW_MS + COMPACTED.delete_retention_ms
    for now_ms in (NOW_MS, later_ms):
        clean_with(log, [producer(0, epoch, NONE)], now_ms)
    kept = [one.record_count for one in headers(log) if one.is_control]
    assert kept == ([0] if stays else [])
    assert [one for one in headers(log) if one.producer_id < 0 and not one.record_count] == []


def test_a_table_that_is_full_ends_the_dirty_part_there() -> None:
    _, log = new_log(settings=COMPACTED)
    for key in (b"a", b"b", b"c", b"a"):
        put(log, key, key)
    fill_up(log)
    assert clean_with(log, [], NOW_MS, most_keys=2) == 2
    assert [one.base_offset for one in headers(log)][:4] == [0, 1, 2, 3]


def test_files_of_a_cleaning_that_could_not_be_removed_do_no_harm() -> None:
    disk, log = filled()
    before = state(log)
    for suffix in (LOG_SUFFIX, TRANSACTION_INDEX_SUFFIX):
        file = disk.open(log.segments[0].path(DIRECTORY, suffix) + CLEANED_SUFFIX, create=True)
        file.write(0, b"\1" * 3_000)
        file.close()
    clean(log)
    assert state(log) == before
    assert count_of_records(log) == 5 + log.log_end - log.segments[-1].base_offset
    assert log.aborted_transactions(0, log.log_end) == []


def test_a_cleaning_writes_as_soon_as_it_has_so_much_at_once() -> None:
    _, log = new_log(settings=COMPACTED._replace(segment_bytes=2_000))
    for number in range(20):
        put(log, b"k%02d" % number, b"kept")
    size = headers(log)[0].size_bytes
    fill_up(log)
    paused: list[int] = []
    found = cleanable(log, None, log.log_end, NOW_MS)
    keys = KeyOffsets(1000, 1000, SECRET)
    cleaning = Cleaning(log, found, keys, [], NOW_MS, paused.append, io_bytes=4 * size)
    cleaning.note_keys()
    cleaning.begin()
    group = cleaning.next_group()
    assert group is not None
    paused.clear()
    cleaning.clean(group)
    assert [one for one in paused if one > size][:5] == [4 * size] * 5
    assert cleaning.key_count == 21


def test_only_what_lies_in_the_log_was_cleaned() -> None:
    """Another checkpoint does not fit the log, and all of it is dirty."""
    _, log = filled()
    log.increment_log_start(3)
    active = log.segments[-1].base_offset
    for cleaned_to, first_dirty, is_reset in [
        (2, 3, True), (3, 3, False), (log.log_end, log.log_end, False), (log.log_end + 1, 3, True),
        (None, 3, False),
    ]:  # fmt: skip
        found = cleanable(log, cleaned_to, log.log_end, NOW_MS)
        assert (found.first_dirty, found.is_reset, found.first_uncleanable) == (first_dirty, is_reset, active)


@pytest.mark.parametrize(
    ("dirty_bytes", "overdue_ms", "is_due"), [(50, 0, False), (51, 0, True), (0, 1, False), (1, 1, True)]
)
def test_a_log_is_due_past_its_limits(dirty_bytes: int, overdue_ms: int, is_due: bool) -> None:
    assert Cleanable(0, 9, False, 50, dirty_bytes, overdue_ms).is_due(0.5) is is_due


def test_an_empty_log_has_no_dirt() -> None:
    assert Cleanable(0, 0, False, 0, 0, 9).is_due(0.0) is False


def aged(*times_ms: int) -> DataLog:
    """A log of segments with a record each, from these times; the last segment is active."""
    _, log = new_log(settings=COMPACTED._replace(segment_bytes=80))
    for time_ms in times_ms:
        append(log, bytes(build_records_batch([(time_ms, b"k", b"v", ())], base_offset=log.log_end)))
    assert len(log.segments) == len(times_ms)
    return log


def test_records_are_young_for_a_while() -> None:
    log = aged(1_000, 2_000, 3_000, 4_000)
    for lag_ms, now_ms, first_uncleanable in [
        (0, 1_000, 3), (1, 3_000, 2), (1, 3_001, 3), (1_000, 3_000, 2), (1_000, 2_999, 1), (9_000, 9_000, 0)
    ]:  # fmt: skip
        log.settings = log.settings._replace(min_compaction_lag_ms=lag_ms)
        found = cleanable(log, None, log.log_end, now_ms)
        assert found.first_uncleanable == first_uncleanable, (lag_ms, now_ms)


def test_a_log_is_overdue_by_its_oldest_dirty_record() -> None:
    log = aged(1, 2_000, 3_000, 9_000)
    for lag_ms, cleaned_to, now_ms, overdue_ms in [
        (500, 0, 1_501, 1_000), (500, 1, 2_501, 1), (500, 1, 2_500, 0), (500, 2, 2_600, 0),
        (500, 3, 99_000, 0),
        (0, 2, 3_007, 7), (-1, 2, 3_007, 7),
    ]:  # fmt: skip
        log.settings = log.settings._replace(max_compaction_lag_ms=lag_ms)
        assert cleanable(log, cleaned_to, log.log_end, now_ms).overdue_ms == overdue_ms, (
            lag_ms,
            cleaned_to,
            now_ms,
        )
    log = aged(0, 5_000, 9_000)
    log.settings = log.settings._replace(max_compaction_lag_ms=0)
    assert cleanable(log, 0, log.log_end, 6_000).overdue_ms == 1_000, "a record without a time is not old"


def test_damage_that_a_look_finds_is_reported_with_its_place() -> None:
    disk, log = filled()
    log.flush(NOW_MS)
    segment = log.segments[1]
    segment._first_timestamp_ms = None  # as after a start
    disk.flip_bit(segment.path(DIRECTORY), 16, 1)
    with pytest.raises(CorruptStorage) as raised:
        cleanable(log, None, log.log_end, NOW_MS)
    assert raised.value.path == segment.path(DIRECTORY)


def test_segments_become_one_up_to_the_size_of_a_segment() -> None:
    log = aged(1, 2, 3, 4)
    size = log.segments[0].end_position
    for segment_bytes, shape in [
        (size, [1, 1, 1]),
        (2 * size - 1, [1, 1, 1]),
        (2 * size, [2, 1]),
        (3 * size, [3]),
    ]:
        log.settings = log.settings._replace(segment_bytes=segment_bytes)
        assert [len(group) for group in groups(log, 3, 3)] == shape


def test_what_is_cleaned_is_durable_before_it_takes_effect() -> None:
    disk, log = new_log(settings=COMPACTED)
    put_in_transaction(log, b"k", b"v", 7)
    end(log, 7, aborted_from=0)
    put(log, b"other", b"v")
    fill_up(log)
    cleaning = begun(log)
    group = cleaning.next_group()
    assert group is not None
    cleaning.clean(group)
    cleaned = [name for name in names(disk) if name.endswith(CLEANED_SUFFIX)]
    assert len(cleaned) >= 3
    for name in cleaned:
        path = f"{DIRECTORY}/{name}"
        assert disk.durable_bytes(path) == disk.read_bytes(path), name


def test_a_cleaning_leaves_no_file_open(tmp_path: Path) -> None:
    log = create_data_log(
        LogResources(RealDisk()), str(tmp_path), "t", 0, COMPACTED, now_ms=NOW_MS, topic_id=None
    )
    for number in range(20):
        put(log, b"k%d" % number, b"v")
    log.close_files()
    before = len(os.listdir("/proc/self/fd"))
    clean(log)
    log.close_files()
    assert len(os.listdir("/proc/self/fd")) == before
