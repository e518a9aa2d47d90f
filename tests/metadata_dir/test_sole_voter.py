"""A survivor becomes the only voter: its report, and a crash, which leaves the old state or the new."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftd.log.disk import write_atomically
from kraftd.log.errors import DirectoryProblem
from kraftd.log.memory_disk import (
    MemoryDisk,
    SimulatedCrash,
    everything_survives,
    names_survive_without_data,
    nothing_unsynced_survives,
)
from kraftd.messages.leader_change_message import LeaderChangeMessage, Voter
from kraftd.messages.quorum_state_data import QuorumStateData
from kraftd.messages.quorum_state_data import Voter as StateVoter
from kraftd.metadata_dir.files.checkpoint import BOOTSTRAP_ID, CheckpointWriter
from kraftd.metadata_dir.files.high_watermark import HighWatermarkFile, Mark
from kraftd.metadata_dir.files.quorum_state import QuorumStateFile
from kraftd.metadata_dir.formatting.voters import InitialVoter, voters_record
from kraftd.metadata_dir.recovery import open_log
from kraftd.metadata_dir.rescue.sole_voter import (
    Survey,
    compare,
    kept_copies,
    make_sole_voter,
    recovered_epoch,
    survey,
)
from kraftd.types import OffsetAndEpoch
from kraftd.wire.batch import ControlRecordType, build_control_batch, control_records, iter_batches
from tests.metadata_dir.logs import DIRECTORY, SMALL_SEGMENTS, batch, content, opened

DATA = "/data"
VOTERS = [InitialVoter(each, "host", 9090 + each, bytes(15) + bytes([100 + each])) for each in (1, 2, 3)]
SURVIVOR = VOTERS[1]
EPOCH = 1_007


def surviving(kraft_version: int = 1) -> MemoryDisk:
    """A directory of a quorum of three whose log has two epochs, and whose node voted in epoch 7."""
    disk = MemoryDisk()
    CheckpointWriter(
        disk,
        DIRECTORY,
        BOOTSTRAP_ID,
        last_contained_log_timestamp_ms=0,
        now_ms=0,
        kraft_version=kraft_version,
        voters=voters_record(VOTERS, "CONTROLLER") if kraft_version else None,
    ).freeze()
    log = open_log(disk, DIRECTORY, SMALL_SEGMENTS).log
    for offset in range(0, 30, 3):
        log.append(batch(offset, 3, epoch=1 if offset < 15 else 4))
    log.close()
    state = QuorumStateData(
        leader_id=3, leader_epoch=7, voted_id=3, voted_directory_id=VOTERS[2].directory_id
    )
    QuorumStateFile(disk, DIRECTORY).write(state, version=kraft_version)
    return disk.after_crash(everything_survives)


def recover(disk: MemoryDisk) -> OffsetAndEpoch:
    return make_sole_voter(disk, DATA, SURVIVOR, "CONTROLLER", epoch=EPOCH, now_ms=5)


def test_a_survey_reports_the_contents_of_a_directory_and_changes_nothing() -> None:
    disk = surviving()
    before = {path: disk.read_bytes(path) for path in disk.paths()}
    found = survey(disk, DATA)
    assert (found.end, found.epoch, found.committed) == (OffsetAndEpoch(30, 4), 7, 0)
    assert (found.kraft_version, found.voter_ids) == (1, [1, 2, 3])
    assert recovered_epoch([found]) == EPOCH
    assert {path: disk.read_bytes(path) for path in disk.paths()} == before


def test_a_survey_reports_the_high_watermark_on_disk_as_committed() -> None:
    disk = surviving()
    HighWatermarkFile(disk, DIRECTORY, Mark()).write(Mark(21, 4))
    assert survey(disk, DATA).committed == 21


@pytest.mark.parametrize("damage", [b"", b"{", None])
def test_a_lost_quorum_state_is_no_obstacle_to_a_recovery(damage: bytes | None) -> None:
    """A higher epoch than any vote replaces the file: with no other voter left there is no other remedy."""
    disk = surviving()
    path = f"{DIRECTORY}/quorum-state"
    disk.remove(path)
    if damage is not None:
        write_atomically(disk, path, damage)
    found = survey(disk, DATA)
    assert found.epoch == 4
    assert len(found.notes) == (damage is not None)
    make_sole_voter(disk, DATA, SURVIVOR, "CONTROLLER", epoch=recovered_epoch([found]), now_ms=5)
    assert survey(disk, DATA).voter_ids == [2]


def test_a_static_directory_names_its_voters_in_quorum_state_and_elections() -> None:
    disk = surviving(kraft_version=0)
    log = open_log(disk, DIRECTORY, SMALL_SEGMENTS).log
    elected = LeaderChangeMessage(leader_id=3, voters=[Voter(1), Voter(2), Voter(3)])
    log.append(build_control_batch([(ControlRecordType.LEADER_CHANGE, elected, 0)], 30, 5, 0))
    log.close()
    state = QuorumStateData(leader_id=3, leader_epoch=5, current_voters=[StateVoter(2), StateVoter(3)])
    QuorumStateFile(disk, DIRECTORY).write(state, version=0)
    named_by = survey(disk, DATA).named_by
    assert named_by == {"the last election in the log": {1, 2, 3}, "quorum-state": {2, 3}}


def test_a_survey_of_a_log_replaced_by_a_snapshot_reports_its_epoch() -> None:
    disk = surviving()
    newest = OffsetAndEpoch(50, 6)
    CheckpointWriter(disk, DIRECTORY, newest, last_contained_log_timestamp_ms=5, now_ms=6).freeze()
    found = survey(disk, DATA)
    assert (found.end, found.committed, found.epoch) == (newest, 50, 7)


def test_the_survivor_is_the_only_voter_in_a_much_higher_epoch_and_keeps_its_log() -> None:
    disk = surviving()
    _, log, _ = opened(disk)
    whole = content(log)
    assert recover(disk) == OffsetAndEpoch(32, EPOCH)
    found = survey(disk, DATA)
    assert (found.end, found.epoch, found.voter_ids) == (OffsetAndEpoch(32, EPOCH), EPOCH, [2])
    _, log, _ = opened(disk)
    assert content(log)[:-1] == whole
    records = control_records(next(iter_batches(content(log)[-1])))
    assert [one.type for one in records] == [ControlRecordType.LEADER_CHANGE, ControlRecordType.KRAFT_VOTERS]
    assert [one.version for one in records] == [0, 0]  # Apache Kafka reads no other version
    state = QuorumStateFile(disk, DIRECTORY).read()
    assert state is not None
    assert (state.leader_epoch, state.leader_id, state.voted_id) == (EPOCH, -1, -1)


def test_a_crash_at_every_operation_leaves_the_old_voters_or_the_new_one() -> None:
    disk = surviving()
    _, log, _ = opened(disk)
    whole = content(log)
    start = disk.operations
    recover(disk)
    outcomes = set()
    for crash_at in range(1, disk.operations - start + 2):
        for choose in (
            nothing_unsynced_survives,
            everything_survives,
            names_survive_without_data(),
            *(random.Random(seed).randrange for seed in range(3)),
        ):
            crashing = surviving()
            crashing.crash_at = crash_at
            done = False
            try:
                recover(crashing)
                done = True
            except SimulatedCrash:
                pass
            after = crashing.after_crash(choose)
            found = survey(after, DATA)
            outcomes.add(tuple(found.voter_ids))
            assert found.voter_ids in ([1, 2, 3], [2])
            assert found.epoch in (7, EPOCH)
            if found.voter_ids == [2]:
                state = QuorumStateFile(after, DIRECTORY).read()
                assert state is not None
                assert state.leader_epoch == EPOCH
            assert not done or found.voter_ids == [2]
            _, log, _ = opened(after)
            assert content(log)[: len(whole)] == whole
            if found.voter_ids != [2]:  # the recovery can be repeated
                again = recovered_epoch([survey(after, DATA)])
                make_sole_voter(after, DATA, SURVIVOR, "CONTROLLER", epoch=again, now_ms=6)
                assert survey(after, DATA).voter_ids == [2]
    assert outcomes == {(1, 2, 3), (2,)}


def test_a_recovery_keeps_copies_of_the_files_it_changes() -> None:
    disk = surviving()
    copies = kept_copies(disk, DATA, EPOCH)
    before = {copy: disk.read_bytes(path) for path, copy in copies}
    assert {path.rsplit("/", 1)[-1] for path, _ in copies} >= {"quorum-state", "leader-epoch-checkpoint"}
    recover(disk)
    assert {copy: disk.read_bytes(copy) for _, copy in copies} == before
    _, _, report = opened(disk)
    assert report.notes == []
    assert set(before) <= set(disk.paths())


def test_recovery_writes_no_voters_to_the_log_of_a_static_quorum() -> None:
    disk = surviving(kraft_version=0)
    assert recover(disk) == OffsetAndEpoch(31, EPOCH)
    found = survey(disk, DATA)
    assert (found.end, found.kraft_version, found.voter_ids) == (OffsetAndEpoch(31, EPOCH), 0, [])
    state = QuorumStateFile(disk, DIRECTORY).read()
    assert state is not None
    assert (state.leader_epoch, state.leader_id, state.voted_id) == (EPOCH, -1, -1)
    assert [one.voter_id for one in state.current_voters or ()] == [2]
    assert b'"data_version":0' in disk.read_bytes(f"{DIRECTORY}/quorum-state")


def test_an_epoch_that_is_not_above_all_known_ones_is_refused() -> None:
    disk = surviving()
    with pytest.raises(DirectoryProblem, match="not above 7"):
        make_sole_voter(disk, DATA, SURVIVOR, "CONTROLLER", epoch=7, now_ms=5)


def test_an_epoch_near_the_last_one_is_refused() -> None:
    far = survey(surviving(), DATA)._replace(epoch=(1 << 31) - 1_000)
    with pytest.raises(DirectoryProblem, match="leaves no room"):
        recovered_epoch([far])


def test_recovery_refuses_a_directory_without_a_log() -> None:
    with pytest.raises(DirectoryProblem, match="holds no metadata log"):
        survey(MemoryDisk(), DATA)


EPOCHS = st.lists(st.integers(1, 4), max_size=12).map(sorted)


@given(EPOCHS, EPOCHS, st.integers(0, 5))
def test_two_logs_are_equal_before_the_offset_where_their_epochs_differ(
    one: list[int], two: list[int], shared: int
) -> None:
    # Raft guarantees this: equal offset and epoch only after an equal prefix.
    prefix = [1] * shared
    two = [epoch + 10 * (epoch in one) for epoch in two]
    mine, other = prefix + [each + 1 for each in one], prefix + sorted(each + 1 for each in two)
    found = compare(_of(mine), _of(other))
    assert found == (shared, len(one), len(two))


def _of(epochs: list[int]) -> Survey:
    starts = [(epoch, epochs.index(epoch)) for epoch in sorted(set(epochs))]
    end = OffsetAndEpoch(len(epochs), epochs[-1] if epochs else 0)
    return Survey(end, 0, end.epoch, 1, None, tuple(starts), ())
