"""Work on very many partitions is done in several callbacks, with the result of a single one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kraftd.controller_node import events
from kraftd.controller_node.deciding import decisions, long_decisions
from kraftd.ground import pace as pace
from kraftd.messages import alter_configs_request as legacy
from kraftd.messages import alter_partition_request as alter_partition
from kraftd.messages import assign_replicas_to_dirs_request as assign
from kraftd.messages import create_topics_request as create_topics
from kraftd.messages import incremental_alter_configs_request as incremental
from kraftd.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kraftd.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraftd.messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from kraftd.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kraftd.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from kraftd.messages.elect_leaders_request import ElectLeadersRequest
from kraftd.messages.list_partition_reassignments_request import ListPartitionReassignmentsRequest
from kraftd.messages.unregister_broker_request import UnregisterBrokerRequest
from kraftd.metadata import tables
from kraftd.metadata.image import Image
from kraftd.raft import events as raft_events
from kraftd.replica.replay import Replay
from kraftd.requests.events import SliceDue
from kraftd.wire.api import ApiKey
from kraftd.wire.batch import iter_batches, values
from kraftd.wire.error_code import ErrorCode
from tests.controller_node.harness import Harness

NAMES = [f"t{number}" for number in range(12)]
PARTITIONS = 5
TOPIC = 2
Arguments = tuple[ApiKey, int, Any]


class ClusterHarness(Harness):
    """Three brokers, and topics with replicas on two of them; the second one leads no partition yet."""

    epochs: dict[int, int]

    def prepared(self) -> ClusterHarness:
        self.start()
        self.epochs = {broker: self.unfenced(broker) for broker in (1, 2, 3)}
        self.made([assigned(name, 1, 2) for name in NAMES])
        return self

    def made(self, topics: list[create_topics.CreatableTopic]) -> None:
        answer = self.ask(ApiKey.CREATE_TOPICS, 7, create_topics.CreateTopicsRequest(topics, 1000))
        assert {topic.error_code for topic in answer.topics} == {ErrorCode.NONE}

    def heartbeat(self, broker: int, **fields: Any) -> Arguments:
        offset = self.storage.log.log_end
        request = BrokerHeartbeatRequest(broker, self.epochs[broker], offset, **fields)
        return ApiKey.BROKER_HEARTBEAT, 1, request

    def do(self, arguments: Arguments) -> Any:
        answer = self.ask(*arguments)
        assert answer is not None
        return answer

    def id_of(self, name: str) -> bytes:
        topic = self.node.image.topic_named(name)
        assert topic is not None
        return topic.id


def assigned(name: str, *replicas: int, partitions: int = PARTITIONS) -> create_topics.CreatableTopic:
    rows = [create_topics.CreatableReplicaAssignment(index, replicas) for index in range(partitions)]
    return create_topics.CreatableTopic(name, -1, -1, rows)


# Requests by name: each function prepares what its request needs, and returns the request.


def create_many(harness: ClusterHarness) -> Arguments:
    topics = [create_topics.CreatableTopic(f"new-{number}", 4, 2) for number in range(20)]
    return ApiKey.CREATE_TOPICS, 7, create_topics.CreateTopicsRequest(topics, 1000)


def create_wide(harness: ClusterHarness) -> Arguments:
    topic = create_topics.CreatableTopic("wide", 1_500, 2)
    return ApiKey.CREATE_TOPICS, 7, create_topics.CreateTopicsRequest([topic], 1000)


def create_wide_assigned(harness: ClusterHarness) -> Arguments:
    wide = assigned("wide", 3, 1, partitions=1_100)
    return ApiKey.CREATE_TOPICS, 7, create_topics.CreateTopicsRequest([wide], 1000)


def grow(harness: ClusterHarness) -> Arguments:
    topics = [CreatePartitionsTopic(name, 60, None) for name in [*NAMES, "unknown"]]
    return ApiKey.CREATE_PARTITIONS, 3, CreatePartitionsRequest(topics, 1000)


def delete(harness: ClusterHarness) -> Arguments:
    topics = [DeleteTopicState(name, bytes(16)) for name in [*NAMES[:6], "unknown"]]
    topics += [DeleteTopicState(None, harness.id_of(name)) for name in NAMES[5:]]
    return ApiKey.DELETE_TOPICS, 6, DeleteTopicsRequest(topics, (), 1000)


def elect_preferred(harness: ClusterHarness) -> Arguments:
    harness.do(harness.heartbeat(1, want_fence=True))
    harness.do(harness.heartbeat(1))
    harness.do(proposal(harness, 2, (2, 1), 1))
    return ApiKey.ELECT_LEADERS, 2, ElectLeadersRequest(0, None, 1000)


def elect_uncleanly(harness: ClusterHarness) -> Arguments:
    harness.do(harness.heartbeat(1, want_fence=True))  # leaves the ISRs,
    harness.do(harness.heartbeat(2, want_fence=True))  # the last of which stays,
    harness.do(harness.heartbeat(1))  # and may not lead
    return ApiKey.ELECT_LEADERS, 2, ElectLeadersRequest(1, None, 1000)


def set_configs(harness: ClusterHarness) -> Arguments:
    configs = [incremental.AlterableConfig("retention.ms", 0, "7")]
    rows = [incremental.AlterConfigsResource(TOPIC, name, configs) for name in [*NAMES, "unknown"]]
    return ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, incremental.IncrementalAlterConfigsRequest(rows, False)


def replace_configs(harness: ClusterHarness) -> Arguments:
    rows = [
        legacy.AlterConfigsResource(TOPIC, name, [legacy.AlterableConfig("retention.ms", "9")])
        for name in NAMES
    ]
    return ApiKey.ALTER_CONFIGS, 2, legacy.AlterConfigsRequest(rows, False)


def describe(harness: ClusterHarness) -> Arguments:
    harness.do(set_configs(harness))
    rows = [DescribeConfigsResource(TOPIC, name, None) for name in [*NAMES, "unknown"]]
    rows += [DescribeConfigsResource(TOPIC, name, ("retention.ms", "no.such")) for name in NAMES]
    return ApiKey.DESCRIBE_CONFIGS, 4, DescribeConfigsRequest(rows, True, False)


def reassignment(replicas: tuple[int, ...] | None) -> Arguments:
    rows = [ReassignablePartition(index, replicas) for index in range(PARTITIONS)]
    topics = [ReassignableTopic(name, rows) for name in [*NAMES, "unknown"]]
    return ApiKey.ALTER_PARTITION_REASSIGNMENTS, 1, AlterPartitionReassignmentsRequest(1000, topics=topics)


def reassign(harness: ClusterHarness) -> Arguments:
    return reassignment((3, 2))


def call_off(harness: ClusterHarness) -> Arguments:
    harness.do(reassign(harness))
    return reassignment(None)


def list_moves(harness: ClusterHarness) -> Arguments:
    harness.do(reassign(harness))
    return ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, ListPartitionReassignmentsRequest(1000, None)


def proposal(harness: ClusterHarness, leader: int, isr: tuple[int, ...], epoch: int) -> Arguments:
    """The leader's proposal with these epochs; parts of it name topics or partitions that do not exist."""
    members = [alter_partition.BrokerState(broker, harness.epochs[broker]) for broker in isr]
    rows = [
        alter_partition.PartitionData(index, epoch, (), members, 0, epoch) for index in range(PARTITIONS + 1)
    ]
    topics = [alter_partition.TopicData(harness.id_of(name), rows) for name in NAMES]
    topics.append(alter_partition.TopicData(bytes(15) + b"\7", rows))
    request = alter_partition.AlterPartitionRequest(leader, harness.epochs[leader], topics)
    return ApiKey.ALTER_PARTITION, 3, request


def shrink(harness: ClusterHarness) -> Arguments:
    return proposal(harness, 1, (1,), 0)


def assign_directories(harness: ClusterHarness) -> Arguments:
    rows = [assign.PartitionData(index) for index in range(PARTITIONS)]
    topics = [assign.TopicData(harness.id_of(name), rows) for name in NAMES]
    lost = assign.DirectoryData(bytes(15) + b"\x99", topics)
    return ApiKey.ASSIGN_REPLICAS_TO_DIRS, 0, assign.AssignReplicasToDirsRequest(1, harness.epochs[1], [lost])


def fence(harness: ClusterHarness) -> Arguments:
    return harness.heartbeat(1, want_fence=True)


def lose_directory(harness: ClusterHarness) -> Arguments:
    broker = harness.node.image.brokers[1]
    return harness.heartbeat(1, offline_log_dirs=broker.directories)


def come_back(harness: ClusterHarness) -> Arguments:
    harness.made([assigned(f"alone-{number}", 3) for number in range(10)])
    harness.do(harness.heartbeat(3, want_fence=True))
    return harness.heartbeat(3)


def register_again(harness: ClusterHarness) -> Arguments:
    harness.clock.ms += 60_000  # its session has ended, but it is not fenced yet
    return ApiKey.BROKER_REGISTRATION, 4, harness.registration(1, incarnation=9)


def unregister(harness: ClusterHarness) -> Arguments:
    return ApiKey.UNREGISTER_BROKER, 0, UnregisterBrokerRequest(1)


DECISIONS: list[Callable[[ClusterHarness], Arguments]] = [
    create_many,
    create_wide,
    create_wide_assigned,
    grow,
    delete,
    elect_preferred,
    elect_uncleanly,
    set_configs,
    replace_configs,
    reassign,
    call_off,
    shrink,
    assign_directories,
    fence,
    lose_directory,
    come_back,
    register_again,
    unregister,
]
READS: list[Callable[[ClusterHarness], Arguments]] = [describe, list_moves]
ATOMIC = {create_many, create_wide, create_wide_assigned, grow, delete, set_configs, replace_configs}
ATOMIC |= {reassign, call_off}


def named(prepare: Callable[[ClusterHarness], Arguments]) -> str:
    return prepare.__name__


@pytest.fixture
def short_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the budget of a callback tiny."""
    monkeypatch.setattr(pace, "MAX_SLICE_WORK_US", 40)
    monkeypatch.setattr(long_decisions, "APPLY_BUDGET_US", 60)
    monkeypatch.setattr(long_decisions, "MAX_RUN_RECORDS", 40)
    monkeypatch.setattr(decisions, "MAX_INLINE_RECORDS", 3)


def town_before(
    tmp_path: Path, prepare: Callable[[ClusterHarness], Arguments]
) -> tuple[ClusterHarness, Arguments]:
    harness = ClusterHarness(tmp_path).prepared()
    return harness, prepare(harness)


def run_callback(harness: ClusterHarness) -> None:
    harness.step(SliceDue())


def busy(harness: ClusterHarness) -> bool:
    """Return whether there is work for the next callback: of a decision, or of a request around it."""
    return harness.node.decisions.long.busy or harness.node.boundary.large.busy


def run_callbacks(harness: ClusterHarness) -> int:
    """Run callbacks until no work is left; return how many."""
    for count in range(10_000):
        if not busy(harness):
            return count
        run_callback(harness)
    raise AssertionError("it does not end")


def written(harness: ClusterHarness, start: int) -> list[list[bytes]]:
    """The records of each batch from an offset on."""
    data = harness.storage.log.read(start, 1 << 24, harness.storage.log.log_end)
    return [[bytes(value) for value in values(batch)] for batch in iter_batches(data)]


def replayed(harness: ClusterHarness) -> Image:
    """The image of a plain replay of the log."""
    replay, end = Replay(Image()), harness.storage.log.log_end
    replay.more(end)
    replay.begin(0, harness.storage.log.read(0, 1 << 26, end))
    while replay.run_slice(end) is not None:
        pass
    return replay.image


def flat(batches: list[list[bytes]]) -> list[bytes]:
    return [value for batch in batches for value in batch]


@pytest.mark.parametrize("prepare", [*DECISIONS, *READS], ids=named)
def test_several_callbacks_give_the_answer_and_records_of_one(
    tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, prepare: Any
) -> None:
    monkeypatch.setattr(pace, "MAX_SLICE_WORK_US", 1 << 40)
    monkeypatch.setattr(decisions, "MAX_INLINE_RECORDS", 1 << 40)
    whole, arguments = town_before(tmp_path, prepare)
    start = whole.storage.log.log_end
    whole.runs_slices_by_itself = False
    expected = whole.do(arguments)
    expected_records = flat(written(whole, start))
    assert expected_records or prepare in READS

    request.getfixturevalue("short_slices")
    harness, arguments = town_before(tmp_path, prepare)
    harness.runs_slices_by_itself = False
    place = harness.send(*arguments)
    assert harness.answer(place) is None
    assert run_callbacks(harness) > 2
    assert harness.answer(place) == expected
    batches = written(harness, start)
    assert flat(batches) == expected_records
    if prepare in ATOMIC:
        assert len(batches) == 1
    assert harness.node.image == whole.node.image == replayed(harness)
    assert harness.node.following.replay.next_offset == harness.storage.log.log_end


@pytest.mark.parametrize("prepare", [*DECISIONS, *READS], ids=named)
@pytest.mark.usefixtures("short_slices")
def test_requests_between_the_callbacks_wait_or_are_answered(tmp_path: Path, prepare: Any) -> None:
    harness, arguments = town_before(tmp_path, prepare)
    harness.runs_slices_by_itself = False
    place = harness.send(*arguments)
    behind = harness.create("behind", connection_id=2)
    leaves = 2 if prepare is come_back else 3
    moved = harness.send(*harness.heartbeat(leaves, want_fence=True), connection_id=3)
    answered = 0
    while busy(harness):
        if harness.node.decisions.long.is_under_way and harness.answer(moved) is None:
            changes = harness.node.image.brokers[2].fenced
            beat = harness.send(*harness.heartbeat(2), connection_id=4)
            fetched = harness.fetch(harness.storage.log.log_end + 5, connection_id=5)
            answered += harness.answer(fetched) is not None
            assert changes or not harness.answer(beat).error_code
        run_callback(harness)
    assert answered > 1 or prepare is describe  # its answer is made while others decide
    assert harness.answer(place) is not None
    assert harness.answer(behind).topics[0].error_code == ErrorCode.NONE
    assert harness.answer(moved).is_fenced
    assert harness.node.image == replayed(harness)


@pytest.mark.parametrize("prepare", [*DECISIONS, *READS], ids=named)
@pytest.mark.parametrize("syncs", [True, False], ids=["committed at once", "not committed"])
@pytest.mark.usefixtures("short_slices")
def test_leadership_may_end_in_any_of_the_callbacks(tmp_path: Path, prepare: Any, syncs: bool) -> None:
    number = 0
    while True:
        harness, arguments = town_before(tmp_path, prepare)
        before = replayed(harness)
        harness.runs_slices_by_itself = False
        harness.sync_by_itself = syncs
        place = harness.send(*arguments)
        behind = harness.create("behind", connection_id=2)
        for _ in range(number):
            run_callback(harness)
        if not harness.node.decisions.long.is_under_way:
            return
        harness.runs_slices_by_itself = True
        harness.step(raft_events.ResignRequested(harness.node.core.epoch))
        assert not harness.node.decisions.long.busy
        run_callback(harness)  # requested before callbacks came by themselves
        assert harness.answer(place) is not None
        assert harness.answer(behind).topics[0].error_code == ErrorCode.NOT_CONTROLLER
        assert harness.node.image == (replayed(harness) if syncs else before)
        assert harness.node.following.replay.next_offset == harness.node.core.high_watermark
        harness.sync_by_itself = True
        while harness.pending_syncs:
            harness.sync()
        harness.advance(5_000)
        assert harness.node.active
        assert harness.node.image == replayed(harness)
        number += 1 + number // 4


@pytest.mark.usefixtures("short_slices")
def test_a_broker_that_dies_between_the_callbacks_is_fenced_afterwards(tmp_path: Path) -> None:
    harness, arguments = town_before(tmp_path, create_many)
    harness.runs_slices_by_itself = False
    place = harness.send(*arguments)
    for _ in range(3):
        run_callback(harness)
    harness.do(harness.heartbeat(2))
    harness.advance(8_000)
    harness.do(harness.heartbeat(2))
    harness.do(harness.heartbeat(1))
    harness.advance(2_000)
    assert harness.node.decisions.long.is_under_way
    assert not harness.node.image.brokers[3].fenced
    run_callbacks(harness)
    assert {topic.error_code for topic in harness.answer(place).topics} == {ErrorCode.NONE}
    assert harness.node.image.led_count(3) > 0
    harness.runs_slices_by_itself = True
    harness.advance(100)
    assert harness.node.image.brokers[3].fenced
    assert not harness.node.image.brokers[2].fenced
    assert harness.node.image.led_count(3) == 0
    assert harness.node.image == replayed(harness)


@pytest.mark.usefixtures("short_slices")
def test_non_atomic_records_are_one_batch_applied_while_the_disk_syncs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long_decisions, "MAX_RUN_RECORDS", len(NAMES) * PARTITIONS)
    harness, arguments = town_before(tmp_path, shrink)
    harness.runs_slices_by_itself = harness.sync_by_itself = False
    start = harness.storage.log.log_end
    place = harness.send(*arguments)
    run_callbacks(harness)
    assert len(written(harness, start)) == harness.pending_syncs == 1
    assert harness.node.image == replayed(harness)
    assert harness.answer(place) is None
    harness.sync()
    assert harness.answer(place) is not None


def town_after_first_run(tmp_path: Path) -> tuple[ClusterHarness, tuple[int, int], int]:
    """A controller that has appended the first run of a decision, the request's place, and the log end before
    it.
    """
    harness, arguments = town_before(tmp_path, shrink)
    harness.runs_slices_by_itself = False
    start = harness.storage.log.log_end
    place = harness.send(*arguments)
    while harness.storage.log.log_end == start:
        run_callback(harness)
    return harness, place, start


@pytest.mark.usefixtures("short_slices")
def test_leadership_lost_between_two_runs_refuses_the_request(tmp_path: Path) -> None:
    harness, place, start = town_after_first_run(tmp_path)
    assert start < harness.node.core.high_watermark < start + len(NAMES) * PARTITIONS
    harness.step(raft_events.ResignRequested(harness.node.core.epoch))
    assert harness.answer(place).error_code == ErrorCode.NOT_CONTROLLER


@pytest.mark.usefixtures("short_slices")
def test_a_full_disk_stops_a_non_atomic_decision_between_two_batches(tmp_path: Path) -> None:
    harness, place, start = town_after_first_run(tmp_path)
    harness.step(events.DiskFilled("no room"))
    run_callbacks(harness)
    assert harness.answer(place).error_code == ErrorCode.NOT_CONTROLLER
    assert start < harness.storage.log.log_end < start + len(NAMES) * PARTITIONS
    assert harness.node.image == replayed(harness)


@pytest.mark.usefixtures("short_slices")
def test_a_standby_describes_in_several_callbacks_and_then_reads_the_log(tmp_path: Path) -> None:
    harness, arguments = town_before(tmp_path, describe)
    harness.step(raft_events.ResignRequested(harness.node.core.epoch))
    harness.runs_slices_by_itself = False
    place = harness.send(*arguments)
    assert busy(harness)
    run_callbacks(harness)
    described = harness.answer(place)
    assert [row.error_code for row in described.results].count(ErrorCode.NONE) == 2 * len(NAMES)
    harness.runs_slices_by_itself = True
    harness.advance(5_000)
    assert harness.node.active
    assert harness.node.image == replayed(harness)


def test_replaced_state_of_a_large_decision_is_freed_in_several_callbacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "_MAX_ENTRIES_FORGOTTEN_PER_CALL", 4)
    harness, arguments = town_before(tmp_path, delete)
    harness.runs_slices_by_itself = False
    place = harness.send(*arguments)
    assert len(harness.answer(place).responses) == len(NAMES) + 1
    image, counts = harness.node.image, []
    for _ in range(200):
        counts.append(image.uncommitted_change_count)
        if not counts[-1]:
            break
        run_callback(harness)
    assert len(counts) > 10
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] == 0
    run_callback(harness)
    assert harness.node.image == replayed(harness)
    harness.runs_slices_by_itself = True
    harness.step(raft_events.ResignRequested(harness.node.core.epoch))
    harness.advance(5_000)
    assert harness.node.active
    assert harness.node.image == replayed(harness)
