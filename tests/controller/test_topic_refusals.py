"""Error texts for topics that are not created, grown or deleted, and for elections that are not held."""

from __future__ import annotations

from typing import Any

import pytest

from kraftd.controller.partitions.election import elect_leaders
from kraftd.controller.partitions.reassignment import alter_partition_reassignments
from kraftd.controller.topics.assignment import check_assignment
from kraftd.controller.topics.create_partitions import create_partitions
from kraftd.controller.topics.create_topics import create_topics
from kraftd.controller.topics.delete_topics import delete_topics
from kraftd.controller.topics.names import topic_name_problem
from kraftd.ground.refusal import Refusal
from kraftd.messages import alter_partition_reassignments_request as reassign
from kraftd.messages.create_partitions_request import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kraftd.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kraftd.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kraftd.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from kraftd.metadata.state import NO_LEADER
from kraftd.types import ZERO_UUID
from kraftd.wire.error_code import ErrorCode
from tests.controller.cluster import Cluster, partition

INVALID_ASSIGNMENT = ErrorCode.INVALID_REPLICA_ASSIGNMENT
INVALID_FACTOR = ErrorCode.INVALID_REPLICATION_FACTOR
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    """Three brokers and two that are fenced; a topic of two partitions with two replicas each."""
    built = Cluster().brokers(0, 1, 2).brokers(3, 4, fenced=True)
    built.topic("there", (0, 1), (1, 2))
    built.topic("dot.ted", (0,))
    return built


def assigned(*replicas: tuple[int, ...], indexes: tuple[int, ...] = (0, 1, 2)) -> CreatableTopic:
    rows = [CreatableReplicaAssignment(*row) for row in zip(indexes, replicas, strict=False)]
    return CreatableTopic("a", -1, -1, rows)


@pytest.mark.parametrize(
    ("topic", "code", "text"),
    [
        (
            CreatableTopic("there", 1, 1),
            ErrorCode.TOPIC_ALREADY_EXISTS,
            "Topic 'there' already exists.",
        ),
        (
            CreatableTopic("dot_ted", 1, 1),
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            "Topic 'dot_ted' collides with topic 'dot.ted': metrics show '.' as '_'.",
        ),
        *[
            (
                CreatableTopic("a", count, 1),
                ErrorCode.INVALID_PARTITIONS,
                "The number of partitions has to be greater than 0, or -1 for the default.",
            )
            for count in (0, -2)
        ],
        *[
            (
                CreatableTopic("a", 1, factor),
                INVALID_FACTOR,
                "The replication factor has to be greater than 0, or -1 for the default.",
            )
            for factor in (0, -2)
        ],
        (
            CreatableTopic("a", 1, 6),
            INVALID_FACTOR,
            "Unable to replicate the partition 6 time(s): a replication factor of 6 needs as many brokers, "
            "but only 5 are registered and not shutting down or cordoned.",
        ),
        (
            CreatableTopic(
                "a", 1, 1, [], [CreatableTopicConfig(key, None) for key in ("segment.ms", "retention.ms")]
            ),
            ErrorCode.INVALID_CONFIG,
            "These topic configs have no value: segment.ms,retention.ms",
        ),
        (
            CreatableTopic("a", -1, 1, [CreatableReplicaAssignment(0, (0,))]),
            ErrorCode.INVALID_REQUEST,
            "With replicas assigned, the replication factor has to be -1.",
        ),
        (
            CreatableTopic("a", 1, -1, [CreatableReplicaAssignment(0, (0,))]),
            ErrorCode.INVALID_REQUEST,
            "With replicas assigned, the number of partitions has to be -1.",
        ),
        (
            assigned((0,), (1,), indexes=(5, 5)),
            INVALID_ASSIGNMENT,
            "Replicas of partition 5 are assigned twice.",
        ),
        (
            assigned((0,), (1,), indexes=(0, 2)),
            INVALID_ASSIGNMENT,
            "Partitions have to be numbered from 0 on without a gap.",
        ),
        (assigned(()), INVALID_ASSIGNMENT, "The assignment of a partition has no replicas."),
        (
            assigned((0, 9, 8)),
            INVALID_ASSIGNMENT,
            "The assignment names broker 8, but no such broker is registered.",
        ),
        (
            assigned((2, 0, 1, 2, 1)),
            INVALID_ASSIGNMENT,
            "The assignment names broker 1 more than once for the same partition.",
        ),
        (
            assigned((0, 1), (1, 2, 0)),
            INVALID_ASSIGNMENT,
            "The assignment gives a partition 3 replica(s), where the other partitions have 2.",
        ),
        (
            assigned((0,), (3,)),
            INVALID_ASSIGNMENT,
            "All brokers assigned to partition 1 are fenced or in controlled shutdown.",
        ),
    ],
)
def test_a_topic_that_cannot_be_created_is_refused_with_the_reason(
    cluster: Cluster, topic: CreatableTopic, code: ErrorCode, text: str
) -> None:
    [result] = create_topics(cluster.ctx, CreateTopicsRequest([topic]), 7).answer.topics
    assert (result.name, result.error_code, result.error_message) == (topic.name, code, text)


@pytest.mark.parametrize(
    ("text", "more"),
    [
        ("every broker is fenced, shutting down or has all its log directories cordoned", {"fenced": True}),
        ("a replication factor of 0 is not positive", {}),
    ],
)
def test_a_default_placement_fails_without_brokers_or_replicas(text: str, more: dict[str, bool]) -> None:
    cluster = Cluster(default_replication_factor=1 if more else 0).broker(0, **more)
    topic = CreatableTopic("a", 1, -1)
    [result] = create_topics(cluster.ctx, CreateTopicsRequest([topic]), 7).answer.topics
    factor = 1 if more else 0
    assert result.error_message == f"Unable to replicate the partition {factor} time(s): {text}."
    assert result.error_code == INVALID_FACTOR


def test_the_limit_on_partitions_counts_all_topics_of_a_request() -> None:
    cluster = Cluster(num_partitions=3_000).broker(0)

    def total_of(last: int) -> str | None:
        topics = [
            CreatableTopic("default", -1, 1),
            CreatableTopic("default-too", -1, 1),
            assigned((0,), (0,)),
            CreatableTopic("none", -7, 1),
            CreatableTopic("number", 3_000, 1),
            CreatableTopic("another", last, 1),
        ]
        try:
            create_topics(cluster.ctx, CreateTopicsRequest(topics, validate_only=True), 7)
        except Refusal as refusal:
            assert refusal.code == ErrorCode.POLICY_VIOLATION
            return refusal.message
        return None

    text = "The request asks for 10001 partitions, the most at once is 10000."
    assert total_of(999) == text
    assert total_of(998) == "The request would change too much at once: more than 10000 records."
    assert total_of(900) is None


def test_a_refused_name_has_the_reason() -> None:
    bad = "has characters other than ASCII letters and digits, '.', '_' and '-'."
    assert {name: topic_name_problem(name) for name in ("", ".", "..", "a b", "n" * 249)} == {
        "": "A topic's name cannot be empty.",
        ".": "A topic cannot be named '.'.",
        "..": "A topic cannot be named '..'.",
        "a b": f"Topic name 'a b' {bad}",
        "n" * 249: None,
    }
    assert topic_name_problem("ä" * 249) == f"Topic name {'ä' * 249!r} {bad}"
    for length, shown in ((250, "n" * 250), (300, "n" * 300), (301, "n" * 300 + "…")):
        text = f"Topic name {shown!r} has {length} characters, the most is 249."
        assert topic_name_problem("n" * length) == text


@pytest.mark.parametrize(
    ("count", "assignments", "code", "text"),
    [
        (2, None, ErrorCode.INVALID_PARTITIONS, "The topic has 2 partition(s) already."),
        (
            1,
            None,
            ErrorCode.INVALID_PARTITIONS,
            "Topic there has 2 partition(s), 1 would not be more.",
        ),
        (
            4,
            [(0, 1)],
            INVALID_ASSIGNMENT,
            "2 partition(s) are to be added, but 1 assignment(s) were given.",
        ),
        (
            10_003,
            None,
            ErrorCode.POLICY_VIOLATION,
            "10001 partitions are too many to add: a request may add 10000 in all.",
        ),
        (10_002, None, ErrorCode.NONE, None),
        (
            4,
            [(0, 1), (4, 3)],
            INVALID_ASSIGNMENT,
            "All brokers assigned to partition 3 are fenced or in controlled shutdown.",
        ),
    ],
)
def test_a_topic_that_cannot_grow_is_refused_with_the_reason(
    cluster: Cluster, count: int, assignments: list[tuple[int, ...]] | None, code: ErrorCode, text: str | None
) -> None:
    rows = None if assignments is None else [CreatePartitionsAssignment(row) for row in assignments]
    request = CreatePartitionsRequest([CreatePartitionsTopic("there", count, rows)], 1_000, True)
    [result] = create_partitions(cluster.ctx, request, 3).answer.results
    assert (result.name, result.error_code, result.error_message) == ("there", code, text)


def test_very_many_new_partitions_are_numbered_without_a_gap() -> None:
    cluster = Cluster().brokers(0, 1)
    create = CreateTopicsRequest([CreatableTopic("a", 1_100, 1)])
    cluster.decide(create_topics, create, 7)
    topic = cluster.image.topic_named("a")
    assert topic is not None
    assert list(topic.partitions) == list(range(1_100))
    cluster.decide(
        create_partitions, CreatePartitionsRequest([CreatePartitionsTopic("a", 2_200, None)], 9), 3
    )
    assert list(topic.partitions) == list(range(2_200))
    assert cluster.image.offset < 2_200 + 10


def test_a_topic_that_is_not_deleted_has_the_reason(cluster: Cluster) -> None:
    there = cluster.image.topic_named("there")
    assert there is not None
    states = [
        DeleteTopicState("there"),
        DeleteTopicState(None, there.id),
        DeleteTopicState("gone"),
        DeleteTopicState(None, b"\6" * 16),
    ]
    answer = delete_topics(cluster.ctx, DeleteTopicsRequest(states, (), 1_000), 6).answer
    messages = {(r.name, r.topic_id): r.error_message for r in answer.responses}
    assert messages == {
        ("there", there.id): "This topic was also given by its id.",
        ("gone", ZERO_UUID): UNKNOWN.message,
        (None, b"\6" * 16): ErrorCode.UNKNOWN_TOPIC_ID.message,
    }


def test_an_election_that_is_not_held_has_the_reason() -> None:
    cluster = Cluster().brokers(0, 1).broker(3, fenced=True)
    cluster.topic(
        "t", (0, 1), partition((3, 1), isr=(3, 1), leader=1), partition((3,), leader=NO_LEADER), (1, 0)
    )
    cluster.topic("moved", partition((0, 1), leader=1))

    def results_of(kind: int, name: str, *indexes: int) -> list[tuple[Any, ...]]:
        request = ElectLeadersRequest(kind, [TopicPartitions(name, indexes)])
        [topic] = elect_leaders(cluster.ctx, request, 2).answer.replica_election_results
        return [(r.partition_id, r.error_code, r.error_message) for r in topic.partition_result]

    not_needed = ErrorCode.ELECTION_NOT_NEEDED
    assert results_of(0, "t", 0, 1, 9) == [
        (0, not_needed, "The preferred replica is the leader already."),
        (1, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "The preferred replica cannot lead now."),
        (9, UNKNOWN, "There is no such partition."),
    ]
    assert results_of(1, "t", 3, 2) == [
        (3, not_needed, "The partition has a leader."),
        (2, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, "No replica can lead now, whether in sync or not."),
    ]
    assert results_of(0, "gone", 0) == [(0, UNKNOWN, "There is no such topic.")]
    assert results_of(0, "moved", 0) == [(0, ErrorCode.NONE, None)]


def test_an_invalid_reassignment_is_refused_with_the_reason() -> None:
    cluster = Cluster().brokers(0, 1, 2)
    moving = partition((1, 2, 0), isr=(1,), leader=1, adding_replicas=(1, 2), removing_replicas=(0,))
    only_added = partition((1, 2), isr=(1,), leader=1, adding_replicas=(1, 2))
    cluster.topic("t", (0, 1), moving, only_added)

    def result_of(name: str, index: int, replicas: tuple[int, ...] | None, may_change: bool = True) -> Any:
        topic_moves = reassign.ReassignableTopic(name, [reassign.ReassignablePartition(index, replicas)])
        request = reassign.AlterPartitionReassignmentsRequest(60_000, may_change, [topic_moves])
        [topic] = alter_partition_reassignments(cluster.ctx, request, 1).answer.responses
        [result] = topic.partitions
        assert (topic.name, result.partition_index) == (name, index)
        return result.error_code, result.error_message

    assert result_of("gone", 0, (0,)) == (UNKNOWN, "There is no topic 'gone'.")
    assert result_of("t", 9, (0,)) == (UNKNOWN, "There is no partition t-9.")
    assert result_of("t", 0, (0, 1, 2), may_change=False) == (
        INVALID_FACTOR,
        "The replication factor would change from 2 to 3.",
    )
    assert result_of("t", 1, None) == (
        INVALID_ASSIGNMENT,
        "The reassignment of t-1 cannot be cancelled: only replicas that it added are in sync, "
        "and unclean leader election is not enabled.",
    )
    assert result_of("t", 2, None) == (
        INVALID_ASSIGNMENT,
        "The reassignment adds all the replicas there are.",
    )


def test_very_many_replicas_on_one_broker_are_refused_at_once(cluster: Cluster) -> None:
    known = next(iter(cluster.image.brokers))
    with pytest.raises(Refusal, match=f"names broker {known} more than once"):
        check_assignment(cluster.image, (known,) * 1_000_000, None)
    with pytest.raises(Refusal, match="names broker 999"):
        check_assignment(cluster.image, (known, 999) * 500_000, None)
