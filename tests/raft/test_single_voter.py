"""A single voter: it elects itself, commits by its own sync, and shuts down at once."""

from __future__ import annotations

import pytest

from kraftd.ground.effect import Effect
from kraftd.messages.describe_quorum_request import DescribeQuorumRequest, PartitionData, TopicData
from kraftd.messages.describe_quorum_response import DescribeQuorumResponse
from kraftd.messages.kraft_version_record import KRaftVersionRecord
from kraftd.messages.leader_change_message import LeaderChangeMessage
from kraftd.messages.leader_change_message import Voter as LeaderChangeVoter
from kraftd.messages.voters_record import VotersRecord
from kraftd.raft.effects import (
    AppendAborted,
    AppendAccepted,
    AppendCommitted,
    AppendRecords,
    AppendRefused,
    HighWatermarkMoved,
    LeadershipChanged,
    PersistElection,
    ShutdownCompleted,
    SyncLog,
)
from kraftd.raft.events import (
    AppendRequested,
    RecordsSynced,
    ResignRequested,
    ShutdownRequested,
)
from kraftd.raft.transitions import State
from kraftd.types import METADATA_TOPIC
from kraftd.wire.batch import control_records, iter_batches
from kraftd.wire.error_code import ErrorCode
from tests.raft.lone import broker_fetch
from tests.raft.world import World, directory_id


def one_voter(*, static: bool = False, autosync: bool = True, **options: int) -> tuple[World, list[Effect]]:
    world = World()
    world.autosync = autosync
    effects: list[Effect] = []
    world.log = lambda node_id, effect: effects.append(effect)
    world.add_voters([1], static=static, **options)
    world.start(1)
    return world, effects


def kinds(effects: list[Effect]) -> list[str]:
    return [type(effect).__name__ for effect in effects]


@pytest.mark.parametrize("static", [False, True])
def test_single_voter_leads_in_its_first_step__kip595(static: bool) -> None:
    world, effects = one_voter(static=static, autosync=False)
    core = world.core(1)
    assert (core.state, core.epoch, core.leader_id) == (State.LEADER, 1, 1)
    assert isinstance(effects[0], PersistElection)
    assert (effects[0].state.leader_id, effects[0].version) == (1, 0 if static else 1)
    assert not any(isinstance(effect, HighWatermarkMoved | LeadershipChanged) for effect in effects)
    effects.clear()
    world.sync(1)
    assert effects == [HighWatermarkMoved(core.log_end_offset), LeadershipChanged(1, 1, True)]


def test_first_batch_of_a_dynamic_quorum_has_kraft_version_and_voters__kip853() -> None:
    world, effects = one_voter()
    appended = next(effect for effect in effects if isinstance(effect, AppendRecords))
    (batch,) = iter_batches(appended.data)
    messages = [record.message for record in control_records(batch)]
    change, version, voters = messages
    me = [LeaderChangeVoter(1)]
    assert change == LeaderChangeMessage(leader_id=1, voters=me, granting_voters=me)
    assert version == KRaftVersionRecord(kraft_version=1)
    assert isinstance(voters, VotersRecord)
    assert [voter.voter_directory_id for voter in voters.voters] == [directory_id(1)]
    assert world.core(1).kraft_version == 1


def test_first_batch_of_a_static_quorum_is_a_leader_change_alone() -> None:
    world, effects = one_voter(static=True)
    appended = next(effect for effect in effects if isinstance(effect, AppendRecords))
    (batch,) = iter_batches(appended.data)
    assert [type(record.message) for record in control_records(batch)] == [LeaderChangeMessage]
    assert world.core(1).kraft_version == 0


def test_voters_are_written_to_the_log_once() -> None:
    world, effects = one_voter()
    world.run(10)
    world.crash(1)
    effects.clear()
    world.start(1)
    appended = next(effect for effect in effects if isinstance(effect, AppendRecords))
    (batch,) = iter_batches(appended.data)
    assert [type(record.message) for record in control_records(batch)] == [LeaderChangeMessage]
    assert world.core(1).epoch == 2


def test_append_commits_when_it_is_synced_and_not_before() -> None:
    world, effects = one_voter()
    world.run(10)
    world.autosync = False
    effects.clear()
    world.step(1, AppendRequested("a", [b"x", b"y"], 1))
    assert kinds(effects) == ["AppendAccepted", "AppendRecords", "SyncLog"]
    assert effects[0] == AppendAccepted("a", 3, 5, 1)
    effects.clear()
    world.sync(1)
    assert effects == [HighWatermarkMoved(5), AppendCommitted("a", 5)]


def test_appends_that_arrive_during_a_sync_share_the_next_one() -> None:
    world, effects = one_voter()
    world.run(10)
    world.autosync = False
    effects.clear()
    for name in "abc":
        world.step(1, AppendRequested(name, [b"x"], 1))
    assert kinds(effects).count("SyncLog") == 1
    world.nodes[1].disk.synced_end = 4
    world.step(1, RecordsSynced(4))
    assert [effect for effect in effects if isinstance(effect, SyncLog)] == [SyncLog(4), SyncLog(6)]
    assert AppendCommitted("a", 4) in effects and AppendCommitted("b", 6) not in effects
    world.sync(1)
    assert AppendCommitted("b", 6) in effects and AppendCommitted("c", 6) in effects


def test_an_empty_append_waits_for_the_commit_of_earlier_records() -> None:
    world, effects = one_voter()
    world.run(10)
    effects.clear()
    world.step(1, AppendRequested("now", [], 1))
    assert effects == [AppendAccepted("now", 3, 3, 1), AppendCommitted("now", 3)]
    world.autosync = False
    world.step(1, AppendRequested("a", [b"x"], 1))
    world.step(1, AppendRequested("read", [], 1))
    assert AppendCommitted("read", 4) not in effects
    world.sync(1)
    assert AppendCommitted("read", 4) in effects


def test_a_batch_holds_no_more_bytes_than_the_configured_maximum() -> None:
    world, effects = one_voter(max_batch_bytes=1000)
    world.run(10)
    effects.clear()
    values = [bytes(100)] * 12
    world.step(1, AppendRequested("atomic", values, 1))
    assert effects == [AppendRefused("atomic", ErrorCode.RECORD_LIST_TOO_LARGE)]
    effects.clear()
    world.step(1, AppendRequested("any", values, 1, atomic=False))
    appended = [one for one in effects if isinstance(one, AppendRecords)]
    assert len(appended) == 2
    assert all(len(one.data) <= 1000 for one in appended)


@pytest.mark.parametrize("epoch", [0, 2])
def test_append_decided_in_another_epoch_is_refused(epoch: int) -> None:
    world, effects = one_voter()
    world.run(10)
    effects.clear()
    world.step(1, AppendRequested("a", [b"x"], epoch))
    assert effects == [AppendRefused("a", ErrorCode.NOT_CONTROLLER)]


def test_oversized_atomic_append_is_refused_and_any_other_is_split() -> None:
    world, effects = one_voter()
    world.run(10)
    effects.clear()
    values = [bytes(1 << 20)] * 9
    world.step(1, AppendRequested("atomic", values, 1))
    assert effects == [AppendRefused("atomic", ErrorCode.RECORD_LIST_TOO_LARGE)]
    effects.clear()
    world.step(1, AppendRequested("any", values, 1, atomic=False))
    spans = [(one.base_offset, one.end_offset) for one in effects if isinstance(one, AppendRecords)]
    assert spans == [(3, 7), (7, 12)]
    assert AppendAccepted("any", 3, 12, 1) in effects


def test_restart_does_not_lead_the_same_epoch_again() -> None:
    world, _ = one_voter()
    world.run(10)
    for epoch in (2, 3, 4):
        world.crash(1)
        world.start(1)
        world.run(10)
        assert world.core(1).epoch == epoch


def test_unsynced_records_are_gone_after_a_crash_and_were_never_committed() -> None:
    world, effects = one_voter()
    world.run(10)
    world.autosync = False
    world.step(1, AppendRequested("a", [b"x"], 1))
    world.crash(1)
    world.autosync = True
    world.start(1)
    world.run(10)
    assert AppendCommitted("a", 4) not in effects
    assert world.core(1).log_end_offset == 4  # the second epoch's LeaderChange has its offset


def test_resigning_aborts_what_is_not_committed_and_the_next_epoch_is_led_again() -> None:
    world, effects = one_voter()
    world.run(10)
    world.autosync = False
    world.step(1, AppendRequested("a", [b"x"], 1))
    effects.clear()
    world.step(1, ResignRequested(1))
    assert AppendAborted("a") in effects and LeadershipChanged(1, None, False) in effects
    assert world.core(1).state is State.RESIGNED
    world.autosync = True
    world.sync(1)
    assert world.run(20_000, until=lambda: world.core(1).is_leader)
    assert world.core(1).epoch > 1


def test_shutdown_completes_once_everything_is_synced() -> None:
    world, effects = one_voter()
    world.run(10)
    world.autosync = False
    world.step(1, AppendRequested("a", [b"x"], 1))
    world.ask(1, "parked", broker_fetch(7, 1, 4, 1, 3, max_wait_ms=60_000))
    world.step(1, ShutdownRequested(5_000))
    assert ShutdownCompleted(True) not in effects
    effects.clear()
    world.sync(1)
    assert AppendCommitted("a", 4) in effects
    assert effects[-1] == ShutdownCompleted(True)
    assert "parked" in world.answers
    world.step(1, AppendRequested("late", [b"x"], 1))
    assert effects[-1] == AppendRefused("late", ErrorCode.NOT_CONTROLLER)


def test_shutdown_gives_up_when_its_time_is_over() -> None:
    world, effects = one_voter()
    world.run(10)
    world.autosync = False
    world.step(1, AppendRequested("a", [b"x"], 1))
    world.step(1, ShutdownRequested(5_000))
    world.run(5_000)
    assert effects[-1] == ShutdownCompleted(False)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_describe_quorum_shows_leader_and_observers_with_their_times__kip836(version: int) -> None:
    world, _ = one_voter()
    world.run(10)
    world.ask(1, "first", broker_fetch(7, 1, 0, 0, -1))
    world.run(50)
    caught_up_ms = world.now_ms
    world.ask(1, "second", broker_fetch(7, 1, 3, 1, -1))
    world.run(25)
    topics = [TopicData(METADATA_TOPIC, [PartitionData(0)])]
    world.ask(1, "describe", DescribeQuorumRequest(topics), version)
    answer = world.answers["describe"][1]
    assert isinstance(answer, DescribeQuorumResponse)
    partition = answer.topics[0].partitions[0]
    assert (partition.leader_id, partition.leader_epoch, partition.high_watermark) == (1, 1, 3)
    (voter,), (observer,) = partition.current_voters, partition.observers
    assert (voter.replica_id, voter.log_end_offset) == (1, 3)
    assert (observer.replica_id, observer.log_end_offset) == (7, 3)
    if version >= 1:
        assert voter.last_fetch_timestamp == voter.last_caught_up_timestamp == world.now_ms
        assert observer.last_fetch_timestamp == observer.last_caught_up_timestamp == caught_up_ms
    if version >= 2:
        assert voter.replica_directory_id == directory_id(1)
        assert [(node.node_id, node.listeners[0].name) for node in answer.nodes] == [(1, "CONTROLLER")]


def test_describe_quorum_of_another_partition_is_unknown_of_a_follower_not_leader() -> None:
    world, _ = one_voter()
    world.run(10)
    world.ask(1, "other", DescribeQuorumRequest([TopicData("other", [PartitionData(3)])]))
    answer = world.answers["other"][1]
    assert isinstance(answer, DescribeQuorumResponse)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    observer = world.add_observer(2)
    world.start(observer.id)
    world.ask(2, "follower", DescribeQuorumRequest([TopicData(METADATA_TOPIC, [PartitionData(0)])]))
    answer = world.answers["follower"][1]
    assert isinstance(answer, DescribeQuorumResponse)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_sync_that_began_before_a_truncation_does_not_count_for_later_writes() -> None:
    world, _ = one_voter()
    world.run(10)
    world.autosync = False
    world.step(1, AppendRequested("a", [b"x", b"y"], 1))
    replica = world.core(1)._replica
    replica.log.truncate_to(4)
    replica.truncated()
    replica.log.append(1, 4, 6)
    assert replica.synced(6)
    assert replica.log.synced_end_offset == 4
