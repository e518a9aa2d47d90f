"""Checkpoints made beside a controller: equal to its image, whole after a crash, used if undamaged."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from kraftd.host.snapshots.checkpointing import (
    BATCH_BYTES,
    DAMAGED,
    MADE,
    TRANSACTION,
    UNCHANGED,
    CheckpointFailed,
    CheckpointMade,
    CheckpointOrder,
    carry_out,
    make_checkpoint,
    runs_of,
)
from kraftd.log.errors import CorruptStorage, DiskFull, StorageError, StorageFailure
from kraftd.log.memory_disk import (
    Choose,
    MemoryDisk,
    SimulatedCrash,
    everything_survives,
    names_survive_without_data,
    nothing_unsynced_survives,
)
from kraftd.messages.begin_transaction_record import BeginTransactionRecord
from kraftd.messages.config_record import ConfigRecord
from kraftd.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kraftd.messages.feature_level_record import FeatureLevelRecord
from kraftd.messages.register_controller_record import RegisterControllerRecord
from kraftd.metadata.image import Image
from kraftd.metadata_dir.files.checkpoint import (
    CheckpointReader,
    checkpoint_path,
    list_checkpoints,
    verify_checkpoint,
)
from kraftd.replica.replay import Replay
from kraftd.types import OffsetAndEpoch
from kraftd.wire.api import ApiKey
from kraftd.wire.batch import build_batch
from kraftd.wire.record_frame import VersionedRecord, encode_record
from tests.controller_node.harness import Harness

NOW_MS = 1_900_000_000_000


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    harness = Harness(tmp_path).start()
    harness.unfenced(1)
    harness.create(*(f"topic-{at}" for at in range(20)), partitions=3)
    return harness


def delete(harness: Harness, *names: str) -> None:
    request = DeleteTopicsRequest([DeleteTopicState(name) for name in names], timeout_ms=30_000)
    assert not any(one.error_code for one in harness.ask(ApiKey.DELETE_TOPICS, 6, request).responses)


def order(harness: Harness, base: OffsetAndEpoch | None = None, **fields: float) -> CheckpointOrder:
    """An order for a checkpoint of all committed records."""
    log = harness.storage.log
    end_offset = harness.node.core.high_watermark
    epoch = log.epochs.epoch_of(end_offset - 1)
    assert epoch is not None
    position = log.position_near(0 if base is None else base.offset)
    return CheckpointOrder(
        directory=log.directory, end_offset=end_offset, epoch=epoch, base=base, position=position, **fields
    )


def image_of(disk: MemoryDisk, directory: str, snapshot_id: OffsetAndEpoch) -> Image:
    reader = CheckpointReader(disk, checkpoint_path(directory, snapshot_id))
    replay = Replay(Image(), (snapshot_id, reader.runs()))
    while replay.run_slice(0) is not None:
        pass
    return replay.image


def content_of(image: Image) -> list[bytes]:
    """The records of an image without its controllers, as each start registers itself again."""
    records = [record for record in image.records() if type(record.message) is not RegisterControllerRecord]
    return [encode_record(record) for record in records]


def restarted(tmp_path: Path, disk: MemoryDisk) -> Harness:
    """The same directory, opened by another process."""
    again = tmp_path / "again"
    again.mkdir(exist_ok=True)
    disk.locked.clear()
    return Harness(again, disk).start()


def test_a_checkpoint_replays_to_the_image_that_it_was_made_of(harness: Harness) -> None:
    first = order(harness)
    made = make_checkpoint(harness.disk, first, NOW_MS)
    assert made.outcome == MADE
    assert made.record_count == len(list(harness.node.image.records()))
    assert image_of(harness.disk, first.directory, first.snapshot_id) == harness.node.image


def test_its_header_has_voters_kraft_version_and_the_last_records_time(harness: Harness) -> None:
    first = order(harness)
    make_checkpoint(harness.disk, first, NOW_MS)
    reader = CheckpointReader(harness.disk, checkpoint_path(first.directory, first.snapshot_id))
    assert reader.header.kraft_version == 1
    assert reader.header.voters == harness.node.core.voters.to_record()
    assert reader.header.last_contained_log_timestamp_ms == harness.clock.ms


def test_the_next_checkpoint_is_made_from_the_last_one_and_the_log(harness: Harness) -> None:
    first = order(harness)
    make_checkpoint(harness.disk, first, NOW_MS)
    harness.create("later")
    second = order(harness, first.snapshot_id)
    made = make_checkpoint(harness.disk, second, NOW_MS)
    assert made.outcome == MADE
    assert image_of(harness.disk, second.directory, second.snapshot_id) == harness.node.image
    without_base = make_checkpoint(harness.disk, order(harness), NOW_MS)
    assert without_base.size_bytes == made.size_bytes


def test_its_batches_are_small(tmp_path: Path) -> None:
    harness = Harness(tmp_path).start()
    harness.unfenced(1)
    for at in range(4):
        harness.create(f"large-{at}", partitions=2000)
    first = order(harness)
    make_checkpoint(harness.disk, first, NOW_MS)
    reader = CheckpointReader(harness.disk, checkpoint_path(first.directory, first.snapshot_id))
    sizes = [len(batch.view) for batch in reader.batches()]
    assert len(sizes) > 2
    assert max(sizes) <= BATCH_BYTES + (BATCH_BYTES >> 3)


def test_large_values_make_batches_of_fewer_records() -> None:
    image = Image()
    image.apply(FeatureLevelRecord("metadata.version", 30), 0, 1)
    values = [f"{number:05d}" * 1000 for number in range(200)]
    for number, value in enumerate(values):
        image.apply(ConfigRecord(32, f"group-{number}", "key", value), number + 1, 1)
    runs = list(runs_of(image))
    assert len(runs) > 3
    assert max(sum(map(len, run)) for run in runs) <= BATCH_BYTES
    assert [value for run in runs for value in run] == [encode_record(record) for record in image.records()]


def test_too_few_changes_make_no_checkpoint_if_a_ratio_is_required(harness: Harness) -> None:
    first = order(harness)
    make_checkpoint(harness.disk, first, NOW_MS)

    def outcome() -> CheckpointMade:
        second = order(harness, first.snapshot_id, min_changed_ratio=0.5)
        return make_checkpoint(harness.disk, second, NOW_MS)

    for at in range(40):
        harness.create(f"more-{at}", partitions=3)
    made = outcome()
    assert (made.outcome, made.changed_ratio) == (UNCHANGED, 0), "what is new is no change of the snapshot"
    delete(harness, "topic-0")  # four records of some ninety
    made = outcome()
    assert made.outcome == UNCHANGED
    assert 0 < made.changed_ratio < 0.1
    delete(harness, *(f"topic-{at}" for at in range(1, 18)))
    assert outcome().outcome == MADE


def test_no_checkpoint_is_made_within_a_metadata_transaction__kip868(harness: Harness) -> None:
    log = harness.storage.log
    record = encode_record(VersionedRecord(BeginTransactionRecord("test"), 0))
    log.append(build_batch([record], log.log_end, 1, NOW_MS))
    log.sync()
    in_transaction = CheckpointOrder(directory=log.directory, end_offset=log.log_end, epoch=1)
    assert make_checkpoint(harness.disk, in_transaction, NOW_MS).outcome == TRANSACTION
    assert list_checkpoints(harness.disk, log.directory)[0] == [OffsetAndEpoch(0, 0)]


def test_an_end_that_is_no_batch_boundary_is_refused(harness: Harness) -> None:
    inside = order(harness)
    inside = CheckpointOrder(directory=inside.directory, end_offset=inside.end_offset - 1, epoch=1)
    with pytest.raises(CorruptStorage, match="no batch ends at offset"):
        make_checkpoint(harness.disk, inside, NOW_MS)


def test_damage_is_an_outcome_of_the_child_process_and_other_faults_are_texts(harness: Harness) -> None:
    whole = order(harness)
    inside = CheckpointOrder(directory=whole.directory, end_offset=whole.end_offset - 1, epoch=1)
    damaged = carry_out(harness.disk, inside, NOW_MS)
    assert damaged.outcome == DAMAGED and damaged.path.endswith(".log")
    assert "no batch ends at offset" in damaged.text
    with pytest.raises(CheckpointFailed, match="0000000999"):
        carry_out(harness.disk, msgspec.structs.replace(whole, base=OffsetAndEpoch(999, 1)), NOW_MS)
    assert carry_out(harness.disk, whole, NOW_MS).outcome == MADE


@pytest.mark.parametrize(
    "chooser",
    [
        lambda at: nothing_unsynced_survives,
        lambda at: everything_survives,
        lambda at: names_survive_without_data(),
        lambda at: random.Random(at).randrange,
    ],
    ids=["nothing", "everything", "names", "some"],
)
def test_a_crash_at_any_moment_leaves_the_whole_checkpoint_or_none(
    harness: Harness, tmp_path: Path, chooser: Callable[[int], Choose]
) -> None:
    base = order(harness)
    make_checkpoint(harness.disk, base, NOW_MS)
    harness.create("later", partitions=2)
    expected = content_of(harness.node.image)
    before = harness.disk.operations
    second = order(harness, base.snapshot_id)
    make_checkpoint(harness.disk, second, NOW_MS)
    needed = harness.disk.operations - before
    path = checkpoint_path(second.directory, second.snapshot_id)
    named = 0
    for at in range(1, needed + 4):
        harness.disk.remove(path)
        harness.disk.sync_directory(second.directory)
        harness.disk.crash_at = harness.disk.operations + at
        try:
            make_checkpoint(harness.disk, second, NOW_MS)
        except SimulatedCrash:
            pass
        harness.disk.crash_at = None
        disk = harness.disk.after_crash(chooser(at))
        again = restarted(tmp_path, disk)
        ids, leftovers = list_checkpoints(disk, second.directory)
        assert not leftovers
        assert not [each for each in disk.paths() if each.endswith(".damaged")], "named before it was whole"
        assert content_of(again.node.image) == expected
        if second.snapshot_id in ids:
            named += 1
            verify_checkpoint(disk, path)
    assert named  # the last rounds crash after the checkpoint has its name


def test_a_full_disk_fails_it_and_leaves_nothing_behind(harness: Harness) -> None:
    first = order(harness)
    used = sum(
        len(harness.disk.read_bytes(f"{first.directory}/{name}"))
        for name in harness.disk.list_names(first.directory)
    )
    harness.disk.capacity_bytes = used + 1000
    with pytest.raises(DiskFull):
        make_checkpoint(harness.disk, first, NOW_MS)
    assert list_checkpoints(harness.disk, first.directory)[1] == []


@pytest.mark.parametrize("failure", [DiskFull, StorageFailure])
def test_a_failed_operation_leaves_the_whole_checkpoint_or_none(
    harness: Harness, failure: type[StorageError]
) -> None:
    first = order(harness)
    path = checkpoint_path(first.directory, first.snapshot_id)
    before = harness.disk.operations
    make_checkpoint(harness.disk, first, NOW_MS)
    needed = harness.disk.operations - before
    whole = harness.disk.read_bytes(path)
    for at in range(1, needed + 1):
        harness.disk.remove(path)
        last = harness.disk.operations + at

        def fail(operation: str, path: str, last: int = last) -> None:
            if harness.disk.operations == last:
                raise failure(f"cannot {operation} {path}")

        harness.disk.fault = fail
        with pytest.raises(failure):
            make_checkpoint(harness.disk, first, NOW_MS)
        harness.disk.fault = None
        ids, leftovers = list_checkpoints(harness.disk, first.directory)
        assert not leftovers
        if first.snapshot_id in ids:
            assert harness.disk.read_bytes(path) == whole


def test_a_controller_restarts_from_checkpoint_and_log(harness: Harness, tmp_path: Path) -> None:
    first = order(harness)
    make_checkpoint(harness.disk, first, NOW_MS)
    harness.storage.log.add_snapshot(first.snapshot_id)
    harness.storage.log.roll()
    harness.create("later")
    harness.storage.log.delete_before_snapshot(first.snapshot_id)
    harness.storage.log.sync()
    again = restarted(tmp_path, harness.disk)
    assert content_of(again.node.image) == content_of(harness.node.image)
    assert again.storage.log.log_start == first.end_offset
    assert again.node.core.voters == harness.node.core.voters


def test_a_damaged_newest_checkpoint_is_set_aside_if_the_log_reaches_back(
    harness: Harness, tmp_path: Path
) -> None:
    first = order(harness)
    make_checkpoint(harness.disk, first, NOW_MS)
    harness.create("later")
    second = order(harness, first.snapshot_id)
    make_checkpoint(harness.disk, second, NOW_MS)
    path = checkpoint_path(second.directory, second.snapshot_id)
    harness.disk.open(path).write(200, b"rot")
    again = restarted(tmp_path, harness.disk)
    assert content_of(again.node.image) == content_of(harness.node.image)
    assert again.storage.log.latest_snapshot == first.snapshot_id
    assert f"{path.rpartition('/')[2]}.damaged" in harness.disk.list_names(second.directory)
    assert any("set aside" in note for note in again.storage.notes)


def log_behind_a_checkpoint(harness: Harness) -> CheckpointOrder:
    """Let the log begin at a checkpoint; return the order that made the checkpoint."""
    made = order(harness)
    make_checkpoint(harness.disk, made, NOW_MS)
    log = harness.storage.log
    log.add_snapshot(made.snapshot_id)
    log.roll()
    harness.create("later")
    assert log.delete_before_snapshot(made.snapshot_id)
    log.sync()
    return made


def test_a_damaged_checkpoint_without_a_substitute_is_refused_with_a_remedy(
    harness: Harness, tmp_path: Path
) -> None:
    first = log_behind_a_checkpoint(harness)
    path = checkpoint_path(first.directory, first.snapshot_id)
    harness.disk.open(path).write(200, b"rot")
    names = harness.disk.list_names(first.directory)
    with pytest.raises(
        CorruptStorage, match=rf"byte \d+ \(offset {first.end_offset}\).*from the leader"
    ) as error:
        restarted(tmp_path, harness.disk)
    assert error.value.path == path
    assert harness.disk.list_names(first.directory) == names


def test_nothing_changes_if_a_damaged_checkpoint_is_indispensable(harness: Harness, tmp_path: Path) -> None:
    first = log_behind_a_checkpoint(harness)
    second = order(harness, first.snapshot_id)
    make_checkpoint(harness.disk, second, NOW_MS)
    for each in (first, second):
        harness.disk.open(checkpoint_path(first.directory, each.snapshot_id)).write(200, b"rot")
    paths = harness.disk.paths()
    with pytest.raises(CorruptStorage, match=rf"\(offset {first.end_offset}\).*from the leader"):
        restarted(tmp_path, harness.disk)
    assert harness.disk.paths() == paths


def test_a_damaged_older_checkpoint_is_set_aside_if_the_newest_is_intact(
    harness: Harness, tmp_path: Path
) -> None:
    first = order(harness)
    make_checkpoint(harness.disk, first, NOW_MS)
    harness.create("later")
    second = order(harness, first.snapshot_id)
    make_checkpoint(harness.disk, second, NOW_MS)
    paths = [checkpoint_path(first.directory, each) for each in (OffsetAndEpoch(0, 0), first.snapshot_id)]
    for path in paths:
        harness.disk.open(path).write(70, b"rot")
    again = restarted(tmp_path, harness.disk)
    assert content_of(again.node.image) == content_of(harness.node.image)
    assert again.node.core.voters == harness.node.core.voters
    assert again.storage.log.snapshots == [second.snapshot_id]
    assert {f"{path}.damaged" for path in paths} <= set(harness.disk.paths())
    assert sum("set aside" in note for note in again.storage.notes) == 2


def test_a_damaged_first_checkpoint_is_refused_unless_the_log_has_the_voters(
    harness: Harness, tmp_path: Path
) -> None:
    path = checkpoint_path(harness.storage.log.directory, OffsetAndEpoch(0, 0))
    harness.disk.open(path).write(70, b"rot")
    with pytest.raises(CorruptStorage, match=r"byte 0 \(offset 0\).*served before, move the file aside"):
        restarted(tmp_path, harness.disk)
    harness.disk.remove(path)
    again = restarted(tmp_path, harness.disk)
    assert content_of(again.node.image) == content_of(harness.node.image)
    assert again.node.core.voters == harness.node.core.voters
