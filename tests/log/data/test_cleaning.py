"""Cleanings of a compacted log: what stays, and what a kill between any two changes of the disk leaves."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kraftd.log.data.cleanable import cleanable
from kraftd.log.data.cleaning import Cleaning
from kraftd.log.data.data_log import DataLog
from kraftd.log.data.opening import Found
from kraftd.log.data.segment import DataSegment
from kraftd.log.errors import CorruptStorage
from kraftd.log.memory_disk import MemoryDisk, SimulatedCrash
from kraftd.wire.compaction import KeyOffsets
from kraftd.wire.records import build_records_batch, decode_records, scan_batches
from tests.log.data.logs import DIRECTORY, NOW_MS, SMALL, append, names, new_log, reopened

COMPACTED = SMALL._replace(compacts=True, segment_bytes=400)
SECRET = bytes(16)


def put(log: DataLog, key: bytes, value: bytes | None) -> None:
    data = build_records_batch([(1_000, key, value, ())], base_offset=log.log_end, leader_epoch=1)
    append(log, bytes(data))


def filled(count: int = 40) -> tuple[MemoryDisk, DataLog]:
    disk, log = new_log(settings=COMPACTED)
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
