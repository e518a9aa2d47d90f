"""A policy is called for each creation and change, and can refuse it (KIP-108, KIP-133)."""

from __future__ import annotations

from typing import Any

import pytest

from kraftd.controller.configs.changes import alter_configs, incremental_alter_configs
from kraftd.controller.policies import ConfigChange, NewTopic, Policies, PolicyViolation
from kraftd.controller.topics.create_topics import create_topics
from kraftd.messages import alter_configs_request as legacy
from kraftd.messages import incremental_alter_configs_request as incremental
from kraftd.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kraftd.wire.error_code import ErrorCode
from tests.controller.cluster import Cluster


class NotingPolicy:
    """A policy that notes each call, and raises the error that the test sets."""

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.raises: Exception | None = None

    def validate(self, metadata: Any) -> None:
        self.calls.append(metadata)
        if self.raises is not None:
            raise self.raises


@pytest.fixture
def policy() -> NotingPolicy:
    return NotingPolicy()


def create(cluster: Cluster, policy: NotingPolicy, *topics: CreatableTopic) -> list[tuple[int, str | None]]:
    ctx = cluster.ctx
    ctx.policies = Policies(create_topic=policy)
    decision = create_topics(ctx, CreateTopicsRequest(list(topics)), 7)
    cluster.apply(decision.records)
    return [(topic.error_code, topic.error_message) for topic in decision.answer.topics]


def test_a_policy_receives_counts_or_the_assignment_with_configs(policy: NotingPolicy) -> None:
    cluster = Cluster(num_partitions=3, default_replication_factor=2).brokers(0, 1, 2)
    configs = [CreatableTopicConfig("retention.ms", "5")]
    rows = [CreatableReplicaAssignment(0, (1, 2)), CreatableReplicaAssignment(1, (2, 0))]
    create(
        cluster, policy, CreatableTopic("a", -1, -1, [], configs), CreatableTopic("b", -1, -1, rows, configs)
    )
    assert policy.calls == [
        NewTopic(name="a", num_partitions=3, replication_factor=2, configs={"retention.ms": "5"}),
        NewTopic(name="b", assignments={0: (1, 2), 1: (2, 0)}, configs={"retention.ms": "5"}),
    ]


def test_a_topic_that_a_policy_refuses_is_answered_with_its_text(policy: NotingPolicy) -> None:
    cluster = Cluster().brokers(0)
    policy.raises = PolicyViolation("no more topics")
    assert create(cluster, policy, CreatableTopic("a", 1, 1)) == [
        (ErrorCode.POLICY_VIOLATION, "no more topics")
    ]
    assert not cluster.image.topics


def test_a_failing_policy_refuses_and_invalid_topics_are_not_passed_to_it(policy: NotingPolicy) -> None:
    cluster = Cluster().brokers(0)
    policy.raises = KeyError("secret")
    answers = create(cluster, policy, CreatableTopic("a", 1, 1), CreatableTopic("b", 1, 9))
    assert answers[0] == (ErrorCode.UNKNOWN_SERVER_ERROR, "The policy failed with KeyError.")
    assert answers[1][0] == ErrorCode.INVALID_REPLICATION_FACTOR
    assert len(policy.calls) == 1


def test_a_policy_of_configs_receives_only_the_named_changes(policy: NotingPolicy) -> None:
    cluster = Cluster().brokers(0)
    cluster.topic("a", (0,))
    cluster.config("retention.ms", "7", topic="a")
    cluster.config("segment.bytes", "9999999", topic="a")
    ctx = cluster.ctx
    ctx.policies = Policies(alter_config=policy)
    changes = [incremental.AlterableConfig("retention.ms", 1, None)]
    changes += [incremental.AlterableConfig("max.message.bytes", 0, "5")]
    resource = incremental.AlterConfigsResource(2, "a", changes)
    request = incremental.IncrementalAlterConfigsRequest([resource])
    assert incremental_alter_configs(ctx, request, forwarded=False).answer.responses[0].error_code == 0
    whole = legacy.AlterConfigsResource(2, "a", [legacy.AlterableConfig("retention.ms", "8")])
    alter_configs(ctx, legacy.AlterConfigsRequest([whole]), forwarded=False)
    assert policy.calls == [
        ConfigChange(
            resource_type=2, resource_name="a", configs={"retention.ms": None, "max.message.bytes": "5"}
        ),
        ConfigChange(resource_type=2, resource_name="a", configs={"retention.ms": "8"}),
    ]


def test_a_change_that_a_policy_refuses_is_not_made(policy: NotingPolicy) -> None:
    cluster = Cluster().brokers(0)
    cluster.topic("a", (0,))
    ctx = cluster.ctx
    ctx.policies = Policies(alter_config=policy)
    policy.raises = PolicyViolation("never")
    whole = legacy.AlterConfigsResource(2, "a", [legacy.AlterableConfig("retention.ms", "8")])
    decision = alter_configs(ctx, legacy.AlterConfigsRequest([whole]), forwarded=False)
    (response,) = decision.answer.responses
    assert (response.error_code, response.error_message) == (ErrorCode.POLICY_VIOLATION, "never")
    assert not decision.records
