"""The committed log in slices: the next read, the count of work, and the completion of the image."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from kraftd.messages.no_op_record import NoOpRecord
from kraftd.messages.partition_record import PartitionRecord
from kraftd.messages.remove_topic_record import RemoveTopicRecord
from kraftd.messages.topic_record import TopicRecord
from kraftd.metadata.image import Image
from kraftd.replica import replay as replay_module
from kraftd.replica.effects import ReadCommitted
from kraftd.replica.load_progress import LoadProgress
from kraftd.replica.replay import READ_BYTES, Replay
from kraftd.requests.effects import ScheduleSlice
from kraftd.types import OffsetAndEpoch
from kraftd.wire.batch import build_batch
from kraftd.wire.message import Message
from kraftd.wire.record_frame import VersionedRecord, encode_record

NEXT_SLICE = ScheduleSlice()


def topic(number: int) -> TopicRecord:
    return TopicRecord(f"t{number}", number.to_bytes(16, "big"))


def batch(base_offset: int, messages: Iterable[Message], epoch: int = 3, at_ms: int = 70) -> bytes:
    values = [encode_record(VersionedRecord(message, 0)) for message in messages]
    return build_batch(values, base_offset, epoch, at_ms)


def topics(first: int, end: int) -> list[Message]:
    return [topic(number) for number in range(first, end)]


@pytest.fixture
def three_per_callback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay_module, "MAX_RECORDS_PER_CALLBACK", 3)


def names(image: Image) -> set[str]:
    return {one.name for one in image.topics.values()}


def test_the_log_is_read_from_the_images_end_with_one_read_at_a_time() -> None:
    replay = Replay(Image())
    assert replay.start() is None and not replay.complete
    assert replay.more(5) == ReadCommitted(0, 5, READ_BYTES)
    assert replay.more(9) is None  # the first read is under way
    replay.begin(0, batch(0, topics(0, 5)))
    assert replay.busy
    assert replay.more(9) is None  # the batches already read come first
    assert replay.run_slice(9) == ReadCommitted(5, 9, READ_BYTES)
    assert (replay.next_offset, replay.complete, replay.busy) == (5, False, False)
    replay.begin(5, batch(5, topics(5, 9)))
    assert replay.run_slice(9) is None
    assert (replay.next_offset, replay.complete) == (9, True)
    assert replay.more(9) is None and replay.complete
    assert replay.more(10) == ReadCommitted(9, 10, READ_BYTES) and not replay.complete
    assert (replay.image.offset, replay.image.epoch) == (8, 3)
    assert len(names(replay.image)) == 9


@pytest.mark.parametrize(("offset", "size", "requested"), [(1, 5, True), (0, 0, True), (0, 5, False)])
def test_batches_that_were_not_requested_are_dropped(offset: int, size: int, requested: bool) -> None:
    replay = Replay(Image())
    if requested:
        replay.more(5)
    replay.begin(offset, batch(offset, topics(0, size)) if size else b"")
    assert not replay.busy
    assert replay.next_offset == 0


@pytest.mark.usefixtures("three_per_callback")
def test_a_slice_ends_with_the_run_that_fills_it_and_is_counted() -> None:
    replay = Replay(Image())
    replay.more(8)
    data = batch(0, topics(0, 2)) + batch(2, topics(2, 4), at_ms=80) + batch(4, topics(4, 8), 5, at_ms=90)
    replay.begin(0, data)
    loading = replay.load_progress
    found = [
        (replay.run_slice(8), replay.next_offset, loading.records, loading.timestamp_ms) for _ in range(3)
    ]
    assert found == [(NEXT_SLICE, 4, 4, 80), (NEXT_SLICE, 8, 8, 90), (None, 8, 8, 90)]
    assert (replay.image.offset, replay.image.epoch) == (7, 5)


@pytest.mark.usefixtures("three_per_callback")
def test_removed_partitions_count_as_work_of_their_slice() -> None:
    replay = Replay(Image())
    partitions = [PartitionRecord(index, topic(1).topic_id, (1,), (1,), leader=1) for index in range(2)]
    replay.more(3)
    replay.begin(0, batch(0, [topic(1), *partitions]))
    assert replay.run_slice(3) == NEXT_SLICE
    assert replay.run_slice(3) is None
    replay.more(5)
    replay.begin(3, batch(3, [RemoveTopicRecord(topic(1).topic_id)]) + batch(4, topics(4, 5)))
    assert (replay.run_slice(5), replay.next_offset) == (NEXT_SLICE, 4)
    assert (replay.run_slice(5), replay.next_offset) == (None, 5)


def test_a_batch_that_overlaps_the_image_is_applied_in_part() -> None:
    replay = Replay(Image())
    replay.more(2)
    replay.begin(0, batch(0, topics(0, 2)))
    replay.run_slice(2)
    replay.more(6)
    replay.begin(2, batch(0, [*topics(10, 12), *topics(2, 4)]) + batch(4, topics(4, 6)))
    assert replay.run_slice(6) is None
    assert (replay.next_offset, replay.image.offset, replay.load_progress.records) == (6, 5, 6)
    assert names(replay.image) == {f"t{number}" for number in range(6)}


def snapshot(offset: int, *sizes: int) -> tuple[OffsetAndEpoch, Iterable[list[Message]]]:
    """A snapshot with runs of these numbers of topics."""
    first = 0
    runs = []
    for size in sizes:
        runs.append(topics(first, first + size))
        first += size
    return OffsetAndEpoch(offset, 2), iter(runs)


@pytest.mark.usefixtures("three_per_callback")
def test_a_snapshot_comes_before_the_log_in_slices() -> None:
    replay = Replay(Image(), snapshot(7, 2, 1, 2, 2))  # type: ignore[arg-type]
    assert (replay.snapshot_end, replay.loads_snapshot, replay.busy) == (7, True, True)
    assert replay.start() == NEXT_SLICE
    assert replay.more(9) is None
    assert [(replay.run_slice(9), replay.load_progress.records) for _ in range(2)] == [
        (NEXT_SLICE, 3),
        (NEXT_SLICE, 7),
    ]
    assert replay.loads_snapshot and replay.next_offset == 0
    assert replay.run_slice(9) == ReadCommitted(7, 9, READ_BYTES)
    assert (replay.next_offset, replay.loads_snapshot) == (7, False)
    assert (replay.image.offset, replay.image.epoch) == (6, 2)


def test_the_log_is_not_read_until_the_expected_snapshot_is_loaded() -> None:
    loading = LoadProgress()
    replay = Replay(Image(), load_progress=loading)
    replay.await_snapshot()
    assert replay.loads_snapshot and not replay.busy
    assert replay.more(9) is None and not replay.complete
    replay.load(*snapshot(7, 4))  # type: ignore[arg-type]
    assert (replay.snapshot_end, replay.loads_snapshot, replay.busy) == (7, True, True)
    assert replay.run_slice(9) == ReadCommitted(7, 9, READ_BYTES)
    assert not replay.loads_snapshot
    assert replay.load_progress is loading and loading.records == 4
    replay.begin(7, batch(7, topics(7, 9)))
    assert replay.run_slice(9) is None and replay.complete


def test_a_snapshots_records_and_load_time_are_counted() -> None:
    loading = LoadProgress()
    assert (loading.timestamp_ms, loading.snapshots, loading.records) == (-1, 0, 0)
    loading.records = 10
    loading.begin_snapshot(1_000)
    assert loading.snapshot_records_so_far == 0
    loading.records = 25
    assert (loading.snapshot_records_so_far, loading.snapshot_records) == (15, 0)
    loading.end_snapshot(1_020)
    assert (loading.snapshots, loading.snapshot_records) == (1, 15)
    assert (loading.snapshot_times.count, loading.snapshot_times.total) == (1, 20_000_000)
    loading.begin_snapshot(2_000)
    loading.records = 26
    loading.end_snapshot(2_001)
    assert (loading.snapshots, loading.snapshot_records) == (2, 1)
    assert (loading.snapshot_times.count, loading.snapshot_times.total) == (2, 21_000_000)


def test_a_run_behind_another_of_its_batch_is_applied_where_that_one_ends() -> None:
    replay = Replay(Image())
    replay.more(9)
    mixed = [*topics(0, 2), NoOpRecord(), *topics(3, 5)]
    replay.begin(4, b"")
    replay.begin(0, batch(0, mixed) + batch(5, topics(5, 9)))
    while replay.run_slice(9) is not None:
        pass
    assert (replay.next_offset, replay.image.offset, replay.load_progress.records) == (9, 8, 9)
    assert names(replay.image) == {f"t{number}" for number in (0, 1, 3, 4, 5, 6, 7, 8)}


def test_a_replay_of_an_empty_log_neither_is_complete_nor_loads_a_snapshot() -> None:
    replay = Replay(Image())
    assert replay.complete is False and replay.loads_snapshot is False
    assert (replay.snapshot_end, replay.next_offset) == (0, 0)
