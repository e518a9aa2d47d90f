"""A leader's answers to Fetch: errors, divergence, records, and waiting (KIP-595, KIP-1166)."""

from __future__ import annotations

from typing import Any

import pytest

from kraftd.messages.fetch_request import FetchRequest
from kraftd.messages.fetch_response import FetchResponse, PartitionData
from kraftd.raft.effects import RespondRecords
from kraftd.raft.events import (
    AppendRequested,
    LogStartMoved,
    RequestAbandoned,
    ResignRequested,
    ShutdownRequested,
    SnapshotTaken,
)
from kraftd.types import OffsetAndEpoch
from kraftd.wire.batch import iter_batches
from kraftd.wire.error_code import ErrorCode
from tests.raft.lone import broker_fetch
from tests.raft.world import World

ANY_MARK = (1 << 63) - 1
BROKER = 7


@pytest.fixture
def world() -> World:
    """A single voter that leads epoch 1; log end and high watermark are 3."""
    world = World()
    world.add_voters([1])
    world.start(1)
    world.run(10)
    return world


def fetch(world: World, message: FetchRequest, *, version: int = 18) -> FetchResponse | None:
    """The answer, or None if the fetch is parked."""
    if version < 15 and message.replica_state.replica_id >= 0:
        message.replica_id, message.replica_state.replica_id = message.replica_state.replica_id, -1
    world.ask(1, object(), message, version)
    return answer_to(world)


def answer_to(world: World) -> FetchResponse | None:
    """The answer to the last fetch."""
    answer: Any = world.answers.get(world.last_request_id, (None, None))[1]
    return answer


def partition_of(answer: FetchResponse | None) -> PartitionData:
    assert answer is not None, "it is parked"
    return answer.responses[0].partitions[0]


def at_end(world: World, mark: int = -1, max_wait_ms: int = 500) -> FetchRequest:
    core = world.core(1)
    return broker_fetch(BROKER, core.epoch, core.log_end_offset, core.log.last_epoch, mark, max_wait_ms)


def append(world: World, *values: bytes) -> None:
    world.step(1, AppendRequested(object(), list(values), world.core(1).epoch))


# --- errors -------------------------------------------------------------------------------------------


def test_fetch_for_another_cluster_is_refused_as_a_whole(world: World) -> None:
    message = at_end(world)
    message.cluster_id = "other"
    answer = fetch(world, message)
    assert answer is not None and answer.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID


def test_fetch_that_names_no_cluster_is_served(world: World) -> None:
    message = broker_fetch(BROKER, 1, 0, 0, -1)
    message.cluster_id = None
    assert partition_of(fetch(world, message)).error_code == ErrorCode.NONE


def test_fetch_of_another_topic_or_partition_is_invalid(world: World) -> None:
    topic, partition, none = at_end(world), at_end(world), at_end(world)
    topic.topics[0].topic_id = bytes(15) + b"\x09"
    partition.topics[0].partitions[0].partition = 1
    none.topics = []
    for message in (topic, partition, none):
        answer = fetch(world, message)
        assert answer is not None and answer.error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("epoch", "offset", "last_epoch", "wait_ms", "error"),
    [
        (0, 3, 0, 500, ErrorCode.FENCED_LEADER_EPOCH),
        (2, 3, 1, 500, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (1, -1, 1, 500, ErrorCode.INVALID_REQUEST),
        (1, 3, -1, 500, ErrorCode.INVALID_REQUEST),
        (1, 3, 2, 500, ErrorCode.INVALID_REQUEST),
        (1, 3, 1, -1, ErrorCode.INVALID_REQUEST),
    ],
)
def test_error_has_leader_epoch_and_endpoint(
    world: World, epoch: int, offset: int, last_epoch: int, wait_ms: int, error: ErrorCode
) -> None:
    answer = fetch(world, broker_fetch(BROKER, epoch, offset, last_epoch, -1, wait_ms))
    partition = partition_of(answer)
    assert partition.error_code == error
    assert (partition.current_leader.leader_id, partition.current_leader.leader_epoch) == (1, 1)
    assert answer is not None
    assert [(one.node_id, one.host) for one in answer.node_endpoints] == [(1, "n1")]


@pytest.mark.parametrize("version", range(13, 17))
def test_answers_before_version_17_have_no_endpoints__kip853(world: World, version: int) -> None:
    answer = fetch(world, broker_fetch(BROKER, 0, 3, 0, ANY_MARK), version=version)
    assert partition_of(answer).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert answer is not None and answer.node_endpoints == []


@pytest.mark.parametrize("version", range(4, 13))
def test_versions_without_topic_ids_are_invalid_as_in_kafka(world: World, version: int) -> None:
    message = at_end(world, ANY_MARK)
    if version < 12:
        message.cluster_id = None
        message.topics[0].partitions[0].last_fetched_epoch = -1
    if version < 9:
        message.topics[0].partitions[0].current_leader_epoch = -1
    answer = fetch(world, message, version=version)
    assert answer is not None and answer.responses == []
    if version >= 7:
        assert answer.error_code == ErrorCode.INVALID_REQUEST


def test_replica_that_does_not_lead_names_the_leader(world: World) -> None:
    world.add_observer(2)
    world.start(2)
    world.run(100)
    world.ask(2, object(), at_end(world))
    answer = answer_to(world)
    assert partition_of(answer).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert answer is not None and answer.node_endpoints[0].host == "n1"


def test_fetch_from_a_leader_that_shuts_down_is_refused() -> None:
    world = World()
    world.add_voters([1])
    world.start(1)
    world.run(10)
    world.autosync = False
    append(world, b"x")
    world.step(1, ShutdownRequested(1000))
    assert partition_of(fetch(world, at_end(world))).error_code == ErrorCode.BROKER_NOT_AVAILABLE


# --- records and divergence ---------------------------------------------------------------------


def test_at_least_one_whole_batch_is_returned_despite_the_limits(world: World) -> None:
    append(world, b"x" * 5000)
    append(world, b"y")
    world.run(10)
    message = broker_fetch(BROKER, 1, 3, 1, -1)
    message.max_bytes = 0
    records = partition_of(fetch(world, message)).records
    assert records is not None
    assert [(one.header.base_offset, one.header.next_offset) for one in iter_batches(records)] == [(3, 4)]


def test_fetch_at_zero_without_snapshots_starts_with_the_control_batch(world: World) -> None:
    partition = partition_of(fetch(world, broker_fetch(BROKER, 1, 0, 0, -1)))
    assert partition.records is not None
    assert next(iter_batches(partition.records)).header.is_control
    assert partition.high_watermark == 3


@pytest.mark.parametrize(
    ("offset", "last_epoch", "diverging"),
    [(9, 1, (3, 1)), (2, 0, (0, 0)), (1, 0, (0, 0))],
)
def test_fetch_that_does_not_continue_the_log_gets_the_point_of_divergence(
    world: World, offset: int, last_epoch: int, diverging: tuple[int, int]
) -> None:
    partition = partition_of(fetch(world, broker_fetch(BROKER, 1, offset, last_epoch, 3)))
    point = partition.diverging_epoch
    assert (point.end_offset, point.epoch) == diverging
    assert not partition.records


@pytest.mark.parametrize(("offset", "last_epoch"), [(0, 0), (2, 1), (4, 0)])  # below it, or of an older epoch
def test_fetch_below_the_log_start_or_at_zero_gets_the_snapshots_id__kip630(
    world: World, offset: int, last_epoch: int
) -> None:
    append(world, b"x", b"y")
    world.run(10)
    world.step(1, SnapshotTaken(OffsetAndEpoch(3, 1), 100))
    world.step(1, LogStartMoved(3))
    partition = partition_of(fetch(world, broker_fetch(BROKER, 1, offset, last_epoch, 3)))
    assert (partition.snapshot_id.end_offset, partition.snapshot_id.epoch) == (3, 1)


def test_unsynced_records_are_not_sent_to_observers(world: World) -> None:
    world.autosync = False
    append(world, b"x")
    assert fetch(world, broker_fetch(BROKER, 1, 3, 1, 3)) is None
    world.sync(1)
    assert partition_of(answer_to(world)).high_watermark == 4


# --- waiting ------------------------------------------------------------------------------------------


def test_fetch_is_parked_when_remote_high_watermark_equals_leaders__kip1166(world: World) -> None:
    assert fetch(world, at_end(world, 3)) is None


@pytest.mark.parametrize("mark", [-1, 0, 2])
def test_unknown_or_lower_high_watermark_is_answered_at_once__kip1166(world: World, mark: int) -> None:
    partition = partition_of(fetch(world, at_end(world, mark)))
    assert partition.high_watermark == 3 and not partition.records


@pytest.mark.parametrize("version", range(13, 18))
def test_versions_without_a_high_watermark_are_parked_without_records__kip1166(
    world: World, version: int
) -> None:
    assert fetch(world, at_end(world, ANY_MARK), version=version) is None


def test_unknown_high_watermark_is_parked_while_the_leader_has_none__kip1166() -> None:
    world = World()
    world.autosync = False
    world.add_voters([1])
    world.start(1)
    message = broker_fetch(BROKER, 1, 0, 0, -1)
    assert fetch(world, message) is None
    world.sync(1)
    assert partition_of(answer_to(world)).high_watermark == 3


def test_fetch_with_max_wait_0_is_answered_without_records(world: World) -> None:
    partition = partition_of(fetch(world, at_end(world, 3, max_wait_ms=0)))
    assert not partition.records and partition.error_code == ErrorCode.NONE


@pytest.mark.parametrize("version", [13, 17, 18])
def test_parked_fetch_is_answered_once_by_append_and_commit(world: World, version: int) -> None:
    assert fetch(world, at_end(world, ANY_MARK if version < 18 else 3), version=version) is None
    append(world, b"x")
    world.run(10)
    effect, _ = world.answers[world.last_request_id]
    assert isinstance(effect, RespondRecords) and (effect.offset, effect.end_offset) == (3, 4)
    partition = partition_of(answer_to(world))
    assert partition.high_watermark == 4
    world.run(2000)  # the invariants see a second answer


def test_parked_fetch_is_answered_at_its_deadline_and_not_before(world: World) -> None:
    assert fetch(world, at_end(world, 3, max_wait_ms=500)) is None
    world.run(499)
    assert answer_to(world) is None
    world.run(1)
    assert partition_of(answer_to(world)).error_code == ErrorCode.NONE


def test_parked_fetch_is_refused_when_the_leader_resigns(world: World) -> None:
    assert fetch(world, at_end(world, 3)) is None
    world.step(1, ResignRequested(1))
    assert partition_of(answer_to(world)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_abandoned_fetch_is_not_answered(world: World) -> None:
    assert fetch(world, at_end(world, 3)) is None
    world.step(1, RequestAbandoned(world.last_request_id))
    assert world.invariants is not None
    world.invariants.parked.clear()
    append(world, b"x")
    world.run(1000)
    assert answer_to(world) is None


def test_fetch_without_a_replica_id_is_served_and_not_tracked_as_observer(world: World) -> None:
    assert partition_of(fetch(world, broker_fetch(-1, 1, 0, 0, -1))).records
    assert world.core(1)._replica.role.progress.observers == {}  # type: ignore[union-attr]


def test_leader_does_not_fetch_from_itself(world: World) -> None:
    answer = fetch(world, broker_fetch(1, 1, 3, 1, -1))
    assert partition_of(answer).error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_fetch_with_the_leaders_id_that_diverges_gets_the_divergence_point(
    world: World,
) -> None:
    """As in Apache Kafka, which checks the sender only if the position is valid."""
    partition = partition_of(fetch(world, broker_fetch(1, 1, 1000, 1, -1)))
    assert (partition.error_code, partition.diverging_epoch.epoch) == (ErrorCode.NONE, 1)
