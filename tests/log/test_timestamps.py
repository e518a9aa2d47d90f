"""Offsets by time, compared with a scan of every record."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from kraftd.log.memory_disk import MemoryDisk
from kraftd.log.opening import FirstPass, OpenedSegments, RecoveryReport
from kraftd.log.partition_log import PartitionLog
from kraftd.log.segment import Segment
from kraftd.log.settings import LogSettings
from kraftd.log.timestamps import TimestampAndOffset, max_timestamp, offset_for_timestamp
from kraftd.wire.batch import build_batch, iter_batches, records

DIRECTORY = "/data/topic-0"
SETTINGS = LogSettings(segment_bytes=600, index_interval_bytes=150, tail_bytes=300)


def new_log(disk: MemoryDisk) -> PartitionLog:
    disk.make_directory(DIRECTORY)
    opened = OpenedSegments(disk, DIRECTORY, SETTINGS, RecoveryReport())
    opened.load(FirstPass(SETTINGS))
    if not opened.segments:
        opened.segments.append(Segment(DIRECTORY, 0, SETTINGS.index_interval_bytes))
        opened.segments[0].create(disk)
    start = opened.segments[0].base_offset
    return PartitionLog(disk, DIRECTORY, SETTINGS, opened.segments, opened.epochs, start, opened.log_end)


def append(log: PartitionLog, timestamp_ms: int, count: int = 1) -> None:
    log.append(build_batch([b"x" * 20] * count, log.log_end, 1, timestamp_ms))


def batch_ends(log: PartitionLog) -> list[int]:
    found = [log.log_start]
    while found[-1] < log.log_end:
        data = log.read(found[-1], 1 << 20)
        found += [batch.header.next_offset for batch in iter_batches(data)]
    return found


def walked(log: PartitionLog, end_offset: int) -> list[TimestampAndOffset]:
    """Every visible record."""
    found, offset = [], log.log_start
    while offset < log.log_end:
        for batch in iter_batches(log.read(offset, 1 << 20)):
            found += [TimestampAndOffset(each.timestamp_ms, each.offset) for each in records(batch)]
            offset = batch.header.next_offset
    return [each for each in found if log.log_start <= each.offset < end_offset]


def test_an_empty_log_has_no_offset_for_any_time() -> None:
    log = new_log(MemoryDisk())
    assert offset_for_timestamp(log, 0, 0) is None
    assert max_timestamp(log, 0) is None


def test_the_first_record_at_or_after_a_time_is_found_also_out_of_order() -> None:
    log = new_log(MemoryDisk())
    for timestamp_ms in (10, 50, 20, 50, 60):
        append(log, timestamp_ms)
    assert offset_for_timestamp(log, 15, 5) == (50, 1)
    assert offset_for_timestamp(log, 60, 5) == (60, 4)
    assert offset_for_timestamp(log, 60, 4) is None, "uncommitted records are not found"
    assert offset_for_timestamp(log, 61, 5) is None
    assert max_timestamp(log, 5) == (60, 4)
    assert max_timestamp(log, 4) == (50, 1), "the first of equal timestamps"


def test_a_truncation_recomputes_the_largest_timestamp() -> None:
    log = new_log(MemoryDisk())
    for timestamp_ms in (10, 30, 20, 40):
        append(log, timestamp_ms)
    assert log.truncate_to(3) == 3
    assert max_timestamp(log, 3) == (30, 1)
    assert offset_for_timestamp(log, 25, 3) == (30, 1)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 1 << 32))
def test_offsets_by_time_equal_those_of_a_full_scan(seed: int) -> None:
    random = Random(seed)
    disk = MemoryDisk()
    log = new_log(disk)
    now_ms = 1_000
    for _ in range(60):
        act = random.random()
        if act < 0.8:
            now_ms += random.randrange(-20, 40)
            append(log, max(now_ms, 0), random.randrange(1, 4))
        elif act < 0.88:
            log.truncate_to(random.randrange(log.log_start, log.log_end + 1))
        elif act < 0.92 and log.log_end > log.log_start:
            log.delete_before(next(iter_batches(log.read(log.log_start, 1))).header.next_offset)
        elif act < 0.96:
            log.sync()
        else:
            start = log.log_start
            log.close()
            log = new_log(disk)
            log.log_start = max(start, log.log_start)
    end_offset = random.choice([log.log_start, *batch_ends(log)])  # a high watermark is at a batch's end
    seen = walked(log, end_offset)
    largest_ms = max((each.timestamp_ms for each in seen), default=None)
    for timestamp_ms in range(900, 2_200, 13):
        expected = next((each for each in seen if each.timestamp_ms >= timestamp_ms), None)
        assert offset_for_timestamp(log, timestamp_ms, end_offset) == expected
    first = next((each for each in seen if each.timestamp_ms == largest_ms), None)
    assert max_timestamp(log, end_offset) == first
