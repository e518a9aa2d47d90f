"""Creation, deletion and growth of topics."""

from __future__ import annotations

from typing import Any

import pytest

from kraftd.controller.topics.create_partitions import create_partitions
from kraftd.controller.topics.create_topics import create_topics
from kraftd.controller.topics.delete_topics import delete_topics
from kraftd.ground.refusal import Refusal
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
from kraftd.types import ONE_UUID, ZERO_UUID
from kraftd.wire.error_code import ErrorCode
from tests.controller.cluster import Cluster, directory

LATEST = 7


@pytest.fixture
def cluster() -> Cluster:
    return Cluster().brokers(0, 1, 2)


def create(cluster: Cluster, *topics: CreatableTopic, **more: Any) -> Any:
    return cluster.decide(create_topics, CreateTopicsRequest(list(topics)), LATEST, **more).topics


def codes(results: Any) -> dict[str | None, ErrorCode]:
    return {result.name: ErrorCode(result.error_code) for result in results}


# Creating


def test_the_answer_to_a_create_has_id_size_and_effective_configs(cluster: Cluster) -> None:
    configs = [CreatableTopicConfig("retention.ms", "1000")]
    (result,) = create(cluster, CreatableTopic("a", 3, 2, [], configs))
    topic = cluster.image.topic_named("a")
    assert topic is not None and topic.id == result.topic_id
    assert (result.error_code, result.error_message) == (0, None)
    assert (result.num_partitions, result.replication_factor) == (3, 2) == (len(topic.partitions), 2)
    answered = {config.name: (config.value, config.config_source) for config in result.configs}
    assert answered["retention.ms"] == ("1000", 1)
    assert answered["cleanup.policy"] == ("delete", 5)
    assert len(answered) > 30
    assert cluster.image.config(2, "a") == {"retention.ms": "1000"}


def test_a_new_partition_is_in_sync_and_led_by_its_first_replica(
    cluster: Cluster,
) -> None:
    create(cluster, CreatableTopic("a", 1, 3))
    partition = cluster.image.topic_named("a").partitions[0]
    assert partition.isr == partition.replicas and partition.leader == partition.replicas[0]
    assert partition.directories == tuple(directory(replica) for replica in partition.replicas)
    assert (partition.leader_epoch, partition.partition_epoch) == (0, 0)


def test_minus_one_means_the_default_number_of_partitions_and_replicas() -> None:
    cluster = Cluster(num_partitions=4, default_replication_factor=2).brokers(0, 1, 2)
    (result,) = create(cluster, CreatableTopic("a", -1, -1))
    assert (result.num_partitions, result.replication_factor) == (4, 2)


def test_validate_only_answers_the_same_and_writes_nothing(cluster: Cluster) -> None:
    request = CreateTopicsRequest([CreatableTopic("a", 3, 2), CreatableTopic("", 1, 1)], validate_only=True)
    decision = create_topics(cluster.ctx, request, LATEST)
    assert codes(decision.answer.topics) == {"a": ErrorCode.NONE, "": ErrorCode.INVALID_TOPIC_EXCEPTION}
    assert decision.records == []


def test_a_refused_topic_does_not_prevent_the_creation_of_others(cluster: Cluster) -> None:
    cluster.topic("there", (0, 1))
    cluster.topic("dot.ted", (0, 1))
    topics = [
        CreatableTopic("good", 1, 1),
        CreatableTopic("../x", 1, 1),
        CreatableTopic("there", 1, 1),
        CreatableTopic("dot_ted", 1, 1),
        CreatableTopic("none", 0, 1),
        CreatableTopic("few", 1, 4),
        CreatableTopic("negative", 1, -2),
        CreatableTopic("null", 1, 1, [], [CreatableTopicConfig("retention.ms", None)]),
        CreatableTopic("config", 1, 1, [], [CreatableTopicConfig("no.such.config", "1")]),
    ]
    results = create(cluster, *topics)
    assert codes(results) == {
        "good": ErrorCode.NONE,
        "../x": ErrorCode.INVALID_TOPIC_EXCEPTION,
        "there": ErrorCode.TOPIC_ALREADY_EXISTS,
        "dot_ted": ErrorCode.INVALID_TOPIC_EXCEPTION,
        "none": ErrorCode.INVALID_PARTITIONS,
        "few": ErrorCode.INVALID_REPLICATION_FACTOR,
        "negative": ErrorCode.INVALID_REPLICATION_FACTOR,
        "null": ErrorCode.INVALID_CONFIG,
        "config": ErrorCode.INVALID_CONFIG,
    }
    assert all(result.error_message for result in results if result.error_code)
    assert set(cluster.image.topic_names()) == {"there", "dot.ted", "good"}


@pytest.mark.parametrize(
    ("assignments", "code"),
    [
        ([(0, (0, 1)), (1, (1, 2))], ErrorCode.NONE),
        ([(1, (0, 1)), (0, (1, 2))], ErrorCode.NONE),
        ([(0, (0, 1)), (2, (1, 2))], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([(0, (0, 1)), (0, (1, 2))], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([(0, (0, 0))], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([(0, ())], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([(0, (0, 9))], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([(0, (0, 1)), (1, (1,))], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([(0, (3,))], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_an_invalid_explicit_assignment_is_refused(
    cluster: Cluster, assignments: list[tuple[int, tuple[int, ...]]], code: ErrorCode
) -> None:
    cluster.broker(3, fenced=True)
    assigned = [CreatableReplicaAssignment(*assignment) for assignment in assignments]
    (result,) = create(cluster, CreatableTopic("a", -1, -1, assigned))
    assert result.error_code == code
    if code is ErrorCode.NONE:
        partitions = cluster.image.topic_named("a").partitions
        assert {(index, p.replicas) for index, p in partitions.items()} == set(assignments)


def test_a_replica_assigned_to_a_fenced_broker_is_not_in_sync_and_does_not_lead(cluster: Cluster) -> None:
    cluster.broker(3, fenced=True)
    create(cluster, CreatableTopic("a", -1, -1, [CreatableReplicaAssignment(0, (3, 1, 2))]))
    partition = cluster.image.topic_named("a").partitions[0]
    assert (partition.replicas, partition.isr, partition.leader) == ((3, 1, 2), (1, 2), 1)


@pytest.mark.parametrize("count", [10_001, 2**31 - 1])
def test_more_than_ten_thousand_partitions_are_refused_before_placement(cluster: Cluster, count: int) -> None:
    request = CreateTopicsRequest([CreatableTopic("a", 1, 1), CreatableTopic("b", count, 1)])
    with pytest.raises(Refusal) as refused:
        create_topics(cluster.ctx, request, LATEST)
    assert refused.value.code == ErrorCode.POLICY_VIOLATION == 44


def test_more_than_ten_thousand_records_at_once_are_refused(cluster: Cluster) -> None:
    with pytest.raises(Refusal) as refused:
        create(cluster, *[CreatableTopic(f"t{i}", 1, 1) for i in range(5_001)])
    assert refused.value.code == ErrorCode.POLICY_VIOLATION
    assert len(create(cluster, *[CreatableTopic(f"t{i}", 1, 1) for i in range(5_000)])) == 5_000


def test_shown_configs_depend_on_the_senders_permissions(
    cluster: Cluster,
) -> None:
    seen, hidden = create(
        cluster,
        CreatableTopic("seen", 1, 1),
        CreatableTopic("hidden", 1, 1),
        describable=lambda name: name == "seen",
    )
    assert seen.topic_config_error_code == 0 and seen.configs
    assert hidden.topic_config_error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED and not hidden.configs
    assert (hidden.error_code, hidden.num_partitions) == (0, -1)
    made = cluster.image.topic_named("hidden")
    assert made is not None and (hidden.name, hidden.topic_id) == ("hidden", made.id)


def test_no_record_newer_than_the_metadata_version_is_written() -> None:
    for level, version in ((7, 0), (17, 1), (23, 2)):
        cluster = Cluster(metadata_version=level).brokers(0)
        decision = create_topics(cluster.ctx, CreateTopicsRequest([CreatableTopic("a", 1, 1)]), LATEST)
        assert decision.records[-1].version == version
        assert bool(decision.records[-1].message.directories) == (version > 0)
        cluster.apply(decision.records)


class FixedRandomness:
    """Draws of these topic ids in order."""

    def __init__(self, *topic_ids: bytes) -> None:
        self.topic_ids = list(topic_ids)

    def below(self, n: int) -> int:
        return 0

    def uuid(self) -> bytes:
        return self.topic_ids.pop(0)


@pytest.mark.parametrize("first", [b"\xf7", b"\xfc", b"\0"])
def test_a_topic_id_is_new_not_reserved_and_does_not_look_like_an_option(first: bytes) -> None:
    known, good = b"\1" * 16, first + b"\xf8" * 15
    dashes = [byte + bytes(15) for byte in (b"\xf8", b"\xfb")]  # "-" in base64
    rng = FixedRandomness(known, ZERO_UUID, ONE_UUID, *dashes, known, good)
    cluster = Cluster(rng=rng).broker(0)
    create(cluster, CreatableTopic("known", 1, 1))
    create(cluster, CreatableTopic("new", 1, 1))
    assert set(cluster.image.topics) == {known, good}


# Deleting


def delete(cluster: Cluster, *topics: Any, **more: Any) -> Any:
    states = [
        DeleteTopicState(topic) if isinstance(topic, str) else DeleteTopicState(None, topic)
        for topic in topics
    ]
    return cluster.decide(delete_topics, DeleteTopicsRequest(states, (), 1000), 6, **more).responses


def test_topics_are_deleted_by_name_and_by_id_with_their_configs(cluster: Cluster) -> None:
    cluster.topic("a", (0, 1))
    b = cluster.topic("b", (0, 1))
    cluster.config("retention.ms", "1", topic="a")
    results = delete(cluster, "a", b.id)
    assert codes(results) == {"a": ErrorCode.NONE, "b": ErrorCode.NONE}
    assert cluster.image.topic_count == 0 and not cluster.image.config(2, "a")


def test_a_topic_that_is_named_by_name_and_by_id_is_not_deleted(cluster: Cluster) -> None:
    a, b = cluster.topic("a", (0,)), cluster.topic("b", (0,))
    states = [
        DeleteTopicState(None, a.id),
        DeleteTopicState("a"),
        DeleteTopicState("b"),
        DeleteTopicState(None, b"\7" * 16),
    ]
    request = DeleteTopicsRequest(states, (), 1000)
    decision = delete_topics(cluster.ctx, request, 6, refused_ids={b.id})
    invalid = ErrorCode.INVALID_REQUEST
    assert {(r.name, r.topic_id, r.error_code) for r in decision.answer.responses} == {
        ("a", a.id, invalid),
        ("b", b.id, invalid),
        (None, b"\7" * 16, ErrorCode.UNKNOWN_TOPIC_ID),
    }
    assert decision.records == []


# Growing


def grow(cluster: Cluster, name: str, count: int, *assignments: tuple[int, ...], **more: Any) -> Any:
    assigned = [CreatePartitionsAssignment(replicas) for replicas in assignments] or None
    request = CreatePartitionsRequest([CreatePartitionsTopic(name, count, assigned)], 1000, **more)
    (result,) = cluster.decide(create_partitions, request, 3).results
    return ErrorCode(result.error_code)


def test_new_partitions_have_the_topics_replication_factor(cluster: Cluster) -> None:
    topic = cluster.topic("a", (0, 1), (1, 2))
    assert grow(cluster, "a", 5) is ErrorCode.NONE
    assert sorted(topic.partitions) == [0, 1, 2, 3, 4]
    assert all(len(p.replicas) == 2 for p in topic.partitions.values())
    assert grow(cluster, "a", 6, (2, 0)) is ErrorCode.NONE
    assert topic.partitions[5].replicas == (2, 0)


def test_an_invalid_growth_of_a_topic_is_refused(cluster: Cluster) -> None:
    topic = cluster.topic("a", (0, 1), (1, 2))
    cluster.broker(3, fenced=True).broker(4, fenced=True)
    assert grow(cluster, "none", 5) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert grow(cluster, "a", 2) is ErrorCode.INVALID_PARTITIONS
    assert grow(cluster, "a", 1) is ErrorCode.INVALID_PARTITIONS
    assert grow(cluster, "a", 4, (0, 1)) is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert grow(cluster, "a", 3, (0, 1, 2)) is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert grow(cluster, "a", 3, (3, 4)) is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert grow(cluster, "a", 2**31 - 1) is ErrorCode.POLICY_VIOLATION
    assert grow(cluster, "a", 4, validate_only=True) is ErrorCode.NONE
    assert len(topic.partitions) == 2
