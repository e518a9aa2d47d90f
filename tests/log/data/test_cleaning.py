"""Cleanings of a compacted log: what stays, and what a kill between any two changes of the disk leaves."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kraftd.log.data.cleanable import Cleanable, cleanable, groups
from kraftd.log.data.cleaning import Cleaning
from kraftd.log.data.data_log import DataLog
from kraftd.log.data.opening import Found
from kraftd.log.data.segment import DataSegment
from kraftd.log.data.settings import DataLogSettings
from kraftd.log.data.transaction_index import AbortedTransaction
from kraftd.log.errors import CorruptStorage, DiskFull
from kraftd.log.memory_disk import MemoryDisk, SimulatedCrash
from kraftd.log.segment import MAX_RELATIVE_OFFSET, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX
from kraftd.wire.compaction import KeyOffsets
from kraftd.wire.end_marker import build_end_marker
from kraftd.wire.records import build_records_batch, decode_records, scan_batches
from tests.log.data.logs import DIRECTORY, NOW_MS, SMALL, append, names, new_log, reopened

COMPACTED = SMALL._replace(compacts=True, segment_bytes=400)
SECRET = bytes(16)
TRANSACTIONAL = 16


def put(log: DataLog, key: bytes, value: bytes | None) -> None:
    data = build_records_batch([(1_000, key, value, ())], base_offset=log.log_end, leader_epoch=1)
    append(log, bytes(data))


def put_in_transaction(log: DataLog, key: bytes, value: bytes, producer_id: int) -> None:
    data = build_records_batch(
        [(1_000, key, value, ())],
        base_offset=log.log_end,
        leader_epoch=1,
        attributes=TRANSACTIONAL,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
    )
    append(log, bytes(data))


def end(log: DataLog, producer_id: int, aborted_from: int | None = None) -> None:
    """A marker: an abort of a transaction that began at an offset, or a commit."""
    offset = log.log_end
    is_commit = aborted_from is None
    marker = build_end_marker(producer_id, 0, is_commit=is_commit, coordinator_epoch=0, timestamp_ms=1_000)
    marker[:8], marker[12:16] = offset.to_bytes(8, "big"), (1).to_bytes(4, "big")
    index = []
    if aborted_from is not None:
        index.append(AbortedTransaction(producer_id, aborted_from, offset, offset + 1))
    append(log, bytes(marker), aborted=index)


def fill_up(log: DataLog) -> None:
    """Begin a new segment, so that all that is before it may be cleaned."""
    before = log.segments[-1].base_offset
    while log.segments[-1].base_offset == before:
        put(log, b"filler", b"." * 50)


def filled(count: int = 40, settings: DataLogSettings = COMPACTED) -> tuple[MemoryDisk, DataLog]:
    disk, log = new_log(settings=settings)
    for number in range(count):
        put(log, b"k%d" % (number % 5), b"%d" % number)
    return disk, log


def begun(log: DataLog, pause: Callable[[int], None] = lambda _: None, now_ms: int = NOW_MS) -> Cleaning:
    found = cleanable(log, None, log.log_end, now_ms)
    cleaning = Cleaning(log, found, KeyOffsets(1000, 1000, SECRET), [], now_ms, pause)
    cleaning.note_keys()
    cleaning.begin()
    return cleaning


def clean(log: DataLog, now_ms: int = NOW_MS) -> int:
    cleaning = begun(log, now_ms=now_ms)
    while (group := cleaning.next_group()) is not None:
        assert log.replace_segments(group, cleaning.clean(group), now_ms)
    return cleaning.end_offset


def state(log: DataLog) -> dict[bytes, bytes | None]:
    """The newest value of each key, as a consumer of the whole log sees it."""
    found: dict[bytes, bytes | None] = {}
    offset = log.log_start
    while offset < log.log_end and (data := log.read(offset, 300)):
        for batch in scan_batches(bytes(data))[0]:
            for record in decode_records(batch):
                found[record.key or b""] = record.value
            offset = batch.header.next_offset
    return found


def count_of_records(log: DataLog) -> int:
    return sum(
        batch.header.record_count
        for segment in log.segments
        for batch in scan_batches(log.files.resources.disk.read_bytes(segment.path(DIRECTORY)))[0]
    )


def test_the_newest_record_of_each_key_stays_at_its_offset() -> None:
    disk, log = filled()
    before, active = state(log), log.segments[-1].base_offset
    end = clean(log)
    assert end == active
    assert state(log) == before
    assert count_of_records(log) == 5 + log.log_end - active
    opened = reopened(disk, Found(clean=True), COMPACTED).log
    assert state(opened) == before
    assert opened.log_end == log.log_end


def test_a_tombstone_goes_after_its_retention_and_its_key_with_it() -> None:
    _, log = filled()
    put(log, b"k0", None)
    for _ in range(8):
        put(log, b"other", b"x")
    clean(log)
    assert state(log)[b"k0"] is None
    later_ms = NOW_MS + COMPACTED.delete_retention_ms
    clean(log, later_ms - 1)
    assert b"k0" in state(log)
    clean(log, later_ms)
    assert b"k0" not in state(log)


def markers(log: DataLog) -> list[int]:
    """The producers whose markers are in the log."""
    data = b"".join(log.files.resources.disk.read_bytes(segment.path(DIRECTORY)) for segment in log.segments)
    return [one.header.producer_id for one in scan_batches(data)[0] if one.header.is_control]


def test_what_was_aborted_goes_and_supersedes_nothing() -> None:
    _, log = new_log(settings=COMPACTED)
    put(log, b"k", b"committed")
    put_in_transaction(log, b"k", b"aborted", 7)
    put_in_transaction(log, b"other", b"new", 8)
    end(log, 7, aborted_from=1)
    end(log, 8)
    fill_up(log)
    clean(log)
    found = state(log)
    assert (found[b"k"], found[b"other"]) == (b"committed", b"new")
    assert markers(log) == [7, 8]


def test_a_marker_goes_some_time_after_the_records_of_its_transaction() -> None:
    _, log = new_log(settings=COMPACTED)
    put_in_transaction(log, b"k", b"aborted", 7)
    put_in_transaction(log, b"k", b"old", 8)
    end(log, 7, aborted_from=0)
    end(log, 8)
    put(log, b"k", b"new")
    fill_up(log)
    for now_ms in (NOW_MS, NOW_MS + 1):  # the second one finds no record of them, and sets a time
        assert log.aborted_transactions(0, log.log_end) == [AbortedTransaction(7, 0, 2, 3)]
        clean(log, now_ms)
        assert markers(log) == [7, 8]
    assert log.aborted_transactions(0, log.log_end) == []
    later_ms = NOW_MS + 1 + COMPACTED.delete_retention_ms
    clean(log, later_ms - 1)
    assert markers(log) == [7, 8]
    clean(log, later_ms)
    assert markers(log) == []


def test_a_cleaning_pauses_for_all_that_it_reads_and_writes() -> None:
    _, log = filled()
    paused: list[int] = []
    size = sum(one.end_position for one in log.segments[:-1])
    cleaning = begun(log, paused.append)
    assert sum(paused) == cleaning.read_bytes == size
    while (group := cleaning.next_group()) is not None:
        assert log.replace_segments(group, cleaning.clean(group), NOW_MS)
    assert cleaning.copied_bytes == size
    assert cleaning.written_bytes == sum(one.end_position for one in log.segments[:-1])
    assert sum(paused) == cleaning.read_bytes + cleaning.written_bytes


def test_what_was_cleaned_before_is_not_dirty() -> None:
    _, log = filled()
    sizes = [one.end_position for one in log.segments]
    assert len(sizes) > 4
    found = cleanable(log, log.segments[2].base_offset, log.log_end, NOW_MS)
    assert (found.clean_bytes, found.dirty_bytes) == (sum(sizes[:2]), sum(sizes[2:-1]))


@pytest.mark.parametrize(
    ("dirty_bytes", "overdue_ms", "is_due"), [(0, 5, False), (1, 0, False), (1, 5, True), (60, 0, True)]
)
def test_a_log_is_cleaned_by_its_dirt_or_by_its_age(dirty_bytes: int, overdue_ms: int, is_due: bool) -> None:
    assert Cleanable(0, 9, False, 50, dirty_bytes, overdue_ms).is_due(0.5) is is_due


def test_segments_become_one_while_their_indexes_fit() -> None:
    _, log = filled(settings=COMPACTED._replace(index_interval_bytes=50))
    log.flush(NOW_MS, whole=True)
    closed = log.segments[:-1]

    def sizes(suffix: str) -> int:
        return sum(log.opened(one.path(DIRECTORY, suffix)).size_bytes() for one in closed)

    size = sizes(OFFSET_INDEX_SUFFIX)
    assert size > sizes(TIME_INDEX_SUFFIX)
    whole = COMPACTED._replace(segment_bytes=1 << 20)
    for limit, count in ((size, 1), (size - 1, 2)):
        log.settings = whole._replace(segment_index_bytes=limit)
        found = groups(log, log.segments[-1].base_offset, log.segments[-1].base_offset)
        assert len(found) == count


@pytest.mark.parametrize(("past", "alone", "shape"), [(0, [2], [2, 1]), (1, [1, 1], [1, 2])])
def test_a_segment_holds_offsets_that_its_index_can(past: int, alone: list[int], shape: list[int]) -> None:
    _, log = new_log(settings=COMPACTED)
    fill_up(log)
    put(log, b"filler", b"." * 50)
    data = build_records_batch(
        [(1_000, b"k", b"." * 100, ())], base_offset=MAX_RELATIVE_OFFSET + 1 + past, leader_epoch=1
    )
    append(log, bytes(data))
    large = COMPACTED._replace(segment_bytes=1 << 20)

    def found() -> list[int]:
        active, log.settings = log.segments[-1].base_offset, large
        return [len(group) for group in groups(log, active, active)]

    assert found() == alone
    log.settings = COMPACTED
    fill_up(log)
    assert found() == shape


def test_segments_that_changed_meanwhile_are_not_replaced() -> None:
    _, log = filled()
    cleaning = begun(log)
    group = cleaning.next_group()
    assert group is not None
    cleaned = cleaning.clean(group)
    log.truncate_to(group[-1].base_offset + 1, NOW_MS)
    before = state(log)
    assert not log.replace_segments(group, cleaned, NOW_MS)
    cleaning.drop(cleaned)
    assert state(log) == before
    assert not [name for name in names(log.files.resources.disk) if "cleaned" in name]  # type: ignore[arg-type]


def test_a_damaged_batch_ends_a_cleaning_with_its_place() -> None:
    disk, log = filled()
    log.flush(NOW_MS)
    segment: DataSegment = log.segments[1]
    disk.flip_bit(segment.path(DIRECTORY), 70, 1)
    with pytest.raises(CorruptStorage, match=segment.path(DIRECTORY)):
        begun(log)


def test_a_cleaning_that_pauses_for_ever_can_be_given_up() -> None:
    _, log = filled()

    def pause(_: int) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        begun(log, pause)


@pytest.mark.parametrize("error", [DiskFull, InterruptedError])
def test_a_cleaning_that_fails_or_is_given_up_leaves_no_file(error: type[Exception]) -> None:
    """A full disk that has what was cleaned so far would stay full."""
    disk, log = new_log(settings=COMPACTED)
    for number in range(20):
        put(log, b"k%d" % number, b"kept")
    before, is_given_up = names(disk), False

    def pause(_: int) -> None:
        if is_given_up:
            raise InterruptedError

    cleaning = begun(log, pause)
    group = cleaning.next_group()
    assert group is not None
    is_given_up = error is InterruptedError
    if error is DiskFull:
        disk.capacity_bytes = 0
        disk.capacity_bytes = (disk.room_for(1) or 0) + 20
    with pytest.raises(error):
        cleaning.clean(group)
    assert names(disk) == before


@pytest.mark.parametrize("is_power_lost", [False, True])
def test_a_kill_at_any_change_of_the_disk_loses_no_newest_record(is_power_lost: bool) -> None:
    _, complete = filled()
    wanted, end = state(complete), complete.log_end
    crashes = 0
    for at in range(200):
        disk, log = filled()
        log.flush(NOW_MS, whole=True)
        disk.crash_at = disk.operations + at
        try:
            clean(log)
        except SimulatedCrash:
            crashes += 1
        else:
            break
        choose = (lambda outcomes: 0) if is_power_lost else (lambda outcomes: outcomes - 1)
        survivor = disk.after_crash(choose)
        opened = reopened(survivor, Found(recovery_point=end), COMPACTED).log
        assert (state(opened), opened.log_end) == (wanted, end), at
        assert not [name for name in names(survivor) if name.endswith((".cleaned", ".swap"))]
        assert clean(opened) and state(opened) == wanted
    assert 20 < crashes < 199
