"""Restored directories on disk: a start is refused until they are complete."""

from __future__ import annotations

import itertools

import pytest

from kraftd.log.errors import DirectoryProblem
from kraftd.log.memory_disk import (
    MemoryDisk,
    SimulatedCrash,
    everything_survives,
    names_survive_without_data,
    nothing_unsynced_survives,
)
from kraftd.messages.feature_level_record import FeatureLevelRecord
from kraftd.metadata_dir.directory import PARTITION_DIRECTORY, open_directory
from kraftd.metadata_dir.files.checkpoint import CheckpointReader, checkpoint_path
from kraftd.metadata_dir.files.quorum_state import QuorumStateFile
from kraftd.metadata_dir.recovery import open_log
from kraftd.metadata_dir.rescue.restore import RestorePlan, restore_directories
from kraftd.types import OffsetAndEpoch
from kraftd.wire.record_frame import VersionedRecord, encode_records

LEVEL = VersionedRecord(FeatureLevelRecord("metadata.version", 30), 0)
PLAN = RestorePlan(
    node_id=7,
    cluster_id="cluster",
    directories=("/data", "/more"),
    metadata_directory="/data",
    host="localhost",
    port=9093,
    controller_listener="CONTROLLER",
    is_static=False,
    snapshot_id=OffsetAndEpoch(10, 3),
    timestamp_ms=5,
    epoch=1_003,
    feature_records=(LEVEL,),
)
PARTITION = f"/data/{PARTITION_DIRECTORY}"


def restore(disk: MemoryDisk, plan: RestorePlan = PLAN) -> None:
    ids = itertools.count(1_000)
    restore_directories(
        disk, plan, [encode_records([LEVEL])], new_uuid=lambda: next(ids).to_bytes(16, "big"), now_ms=6
    )


def check_whole(disk: MemoryDisk) -> None:
    opened = open_log(disk, PARTITION)
    assert not opened.report.notes
    log = opened.log
    assert (log.log_start, log.log_end, log.last_epoch) == (10, 10, 3)
    header = CheckpointReader(disk, checkpoint_path(PARTITION, PLAN.snapshot_id)).header
    assert header.voters is not None
    assert [one.voter_id for one in header.voters.voters] == [7]
    state = QuorumStateFile(disk, PARTITION).read()
    assert state is not None
    assert (state.leader_epoch, state.leader_id, state.voted_id) == (1_003, -1, -1)


def test_after_a_crash_a_restored_directory_is_whole_or_refused() -> None:
    disk = MemoryDisk()
    restore(disk)
    check_whole(disk)
    whole = []
    for crash_at in range(1, disk.operations + 2):
        for choose in (nothing_unsynced_survives, everything_survives, names_survive_without_data()):
            crashing = MemoryDisk()
            crashing.crash_at = crash_at
            try:
                restore(crashing)
            except SimulatedCrash:
                pass
            found = crashing.after_crash(choose)
            try:
                open_directory(
                    found, "/data", 7, other_directories=("/more",), new_directory_id=lambda: b"", now_ms=0
                )
            except DirectoryProblem:
                whole.append(False)
            else:
                whole.append(True)
                check_whole(found)
    assert True in whole
    assert False in whole


def test_a_static_quorums_voters_are_not_in_the_log() -> None:
    disk = MemoryDisk()
    restore(disk, PLAN._replace(is_static=True))
    header = CheckpointReader(disk, checkpoint_path(PARTITION, PLAN.snapshot_id)).header
    assert (header.kraft_version, header.voters) == (0, None)
    state = QuorumStateFile(disk, PARTITION).read()
    assert state is not None
    assert [one.voter_id for one in state.current_voters or ()] == [7]


@pytest.mark.parametrize("path", [f"{PARTITION}/00000000000000000000.log", "/more/meta.properties"])
def test_a_directory_that_is_not_empty_is_not_changed(path: str) -> None:
    disk = MemoryDisk()
    disk.open(path, create=True)
    with pytest.raises(DirectoryProblem, match="is not empty"):
        restore(disk)
    assert disk.paths() == [path]
