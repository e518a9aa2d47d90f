"""Discarding committed records that the quorum has lost, with kills at every operation."""

from __future__ import annotations

import pytest

from kraftd.log.errors import DirectoryProblem
from kraftd.log.memory_disk import MemoryDisk, SimulatedCrash
from kraftd.messages.remove_topic_record import RemoveTopicRecord
from kraftd.messages.topic_record import TopicRecord
from kraftd.metadata_dir.files.high_watermark import HighWatermarkFile, Mark, Refusal, read_mark
from kraftd.metadata_dir.recovery import open_log
from kraftd.metadata_dir.rescue.discard import discard, plan
from kraftd.types import OffsetAndEpoch
from kraftd.wire.batch import build_batch
from kraftd.wire.record_frame import VersionedRecord, encode_record
from tests.metadata_dir.logs import DIRECTORY, content, opened
from tests.metadata_dir.test_recovery import survivors, write_snapshot

DATA = "/data"
IDS = [bytes(15) + bytes([at]) for at in range(30)]
TOPICS = [
    build_batch([encode_record(VersionedRecord(TopicRecord(f"t{at}", IDS[at]), 0))], at, 2, 1_000)
    for at in range(10)
]
DELETIONS = [
    build_batch([encode_record(VersionedRecord(RemoveTopicRecord(IDS[at - 10]), 0))], at, 3, 1_000)
    for at in range(10, 12)
]
BATCHES = [*TOPICS, *DELETIONS]  # topics t0 to t9 in epoch 2; t0 and t1 are deleted in epoch 3


def refused(
    refusal: Refusal, *snapshots: OffsetAndEpoch, log_start: OffsetAndEpoch | None = None
) -> MemoryDisk:
    """A directory whose replica has refused to drop committed records."""
    disk, log, _ = opened()
    for offset, one in enumerate(BATCHES):
        if log_start is not None and offset == log_start.offset:
            log.roll()
        log.append(one)
    for snapshot_id in snapshots:
        write_snapshot(disk, snapshot_id)
        log.add_snapshot(snapshot_id)
    if log_start is not None:
        log.delete_before_snapshot(log_start)
    log.close()
    HighWatermarkFile(disk, DIRECTORY, Mark()).write(Mark(11, 3, refusal))
    return disk


def test_a_directory_that_has_refused_nothing_needs_no_discard() -> None:
    disk, log, _ = opened()
    log.append(BATCHES[0])
    log.close()
    with pytest.raises(DirectoryProblem, match="no leader has asked this node to drop records"):
        plan(disk, DATA)


def test_a_plan_names_what_would_be_discarded_and_changes_nothing() -> None:
    disk = refused(Refusal(2, 9, 7, 12))
    operations = disk.operations
    found = plan(disk, DATA)
    assert disk.operations == operations
    assert (found.start, found.end, found.committed, found.epochs) == (7, 12, 11, (2, 3))
    assert found.types == {"TopicRecord": 3, "RemoveTopicRecord": 2}
    assert (found.created, found.deleted_count) == (("t7", "t8", "t9"), 2)


def test_discarded_records_are_kept_exactly_and_the_mark_is_lowered() -> None:
    disk = refused(Refusal(2, 9, 7, 12))
    [path] = discard(disk, DATA, plan(disk, DATA))
    assert disk.read_bytes(path) == b"".join(BATCHES[7:])
    again = open_log(disk, DIRECTORY)
    assert content(again.log) == BATCHES[:7]
    assert again.mark == Mark(7, 2)
    assert again.log.kept.names() == []


def test_each_start_reports_a_demand_that_is_not_settled() -> None:
    disk = refused(Refusal(2, 9, 7, 12))
    (note,) = open_log(disk, DIRECTORY).report.notes
    assert note.startswith("leader 2 of epoch 9 asked this node to drop records from offset 7 on")
    discard(disk, DATA, plan(disk, DATA))
    assert open_log(disk, DIRECTORY).report.notes == []


def test_checkpoints_that_hold_discarded_records_are_kept_as_well() -> None:
    newer, older = OffsetAndEpoch(9, 2), OffsetAndEpoch(3, 2)
    disk = refused(Refusal(2, 9, 7, 12), older, newer)
    found = plan(disk, DATA)
    assert found.snapshots == (newer,)
    checkpoint = disk.read_bytes(f"{DIRECTORY}/{9:020d}-{2:010d}.checkpoint")
    log, kept = discard(disk, DATA, found)
    assert disk.read_bytes(log) == b"".join(BATCHES[7:])
    assert disk.read_bytes(kept) == checkpoint
    again = open_log(disk, DIRECTORY)
    assert (content(again.log), again.log.snapshots) == (BATCHES[:7], [older])


@pytest.mark.parametrize("refusal", [Refusal(2, 9, 4, 12), Refusal(2, 9, 9, 12, snapshot_offset=5)])
def test_a_log_that_begins_behind_the_divergence_is_emptied(refusal: Refusal) -> None:
    start = OffsetAndEpoch(9, 2)
    disk = refused(refusal, start, log_start=start)
    found = plan(disk, DATA)
    assert (found.start, found.log_start, found.snapshots) == (0, 0, (start,))
    log, _ = discard(disk, DATA, found)
    assert disk.read_bytes(log).endswith(b"".join(BATCHES[9:]))
    again = open_log(disk, DIRECTORY)
    assert (again.log.log_start, again.log.log_end, again.log.snapshots) == (0, 0, [])
    assert again.mark == Mark()


@pytest.mark.parametrize("emptied", [False, True])
def test_a_kill_at_any_operation_lets_the_discard_run_again(emptied: bool) -> None:
    newest = OffsetAndEpoch(9, 2)
    for crash_at in range(1, 60):
        for choose in survivors(range(2)):
            disk = refused(Refusal(2, 9, 4, 12), newest, log_start=newest if emptied else None)
            whole = b"".join(content(open_log(disk, DIRECTORY).log))
            disk.crash_at = disk.operations + crash_at
            done = False
            try:
                discard(disk, DATA, plan(disk, DATA))
                done = True
            except SimulatedCrash:
                pass
            disk = disk.after_crash(choose)
            if read_mark(disk, DIRECTORY).refused is not None:
                assert not done
                discard(disk, DATA, plan(disk, DATA))
            found = open_log(disk, DIRECTORY)
            kept = content(found.log)
            assert kept == ([] if emptied else BATCHES[:4])
            assert found.mark.refused is None
            copies = [disk.read_bytes(path) for path in disk.paths() if "/discarded/" in path]
            assert len(copies) == len(set(copies)), "what an interrupted discard has kept is used again"
            assert any(
                whole.endswith(copy) and len(copy) + len(b"".join(kept)) >= len(whole) for copy in copies
            )
        if done:
            return
    pytest.fail("the discard never ended")
