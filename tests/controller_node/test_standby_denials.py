"""Requests that a standby answers itself, as in Kafka: denied ones, and requests that change nothing."""

from __future__ import annotations

from typing import Any

import pytest

from kraftd.messages import alter_configs_request as legacy
from kraftd.messages import incremental_alter_configs_request as incremental
from kraftd.messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from kraftd.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraftd.metadata.state import AclState
from kraftd.security.authorizer import AuthorizerSettings, StandardAuthorizer
from kraftd.types import METADATA_TOPIC
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode
from tests.controller_node.test_followers import Two, two

__all__ = ["two"]

DENIED, INVALID = ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.INVALID_REQUEST
NOT_CONTROLLER = ErrorCode.NOT_CONTROLLER
ALLOWED = [AclState(2, "mine", 3, "User:ANONYMOUS", "*", 2, 3)]  # everything on the topic "mine"


@pytest.fixture
def standby(two: Two) -> Any:
    """A standby with an authorizer that allows one topic."""
    authorizer = StandardAuthorizer(AuthorizerSettings())
    authorizer.change([], ALLOWED)
    authorizer.end_load()
    two.follower.node.boundary._authorizer = authorizer
    return two.follower


def codes(results: Any) -> list[int]:
    return [one.error_code for one in results]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["yours"], [DENIED]),
        (["yours", METADATA_TOPIC, "twice", "twice"], [DENIED, INVALID, INVALID]),
        (["mine"], [NOT_CONTROLLER]),
        (["yours", "mine"], [NOT_CONTROLLER] * 2),
        ([], []),
    ],
)
def test_denied_creates_are_answered_without_the_leader(
    standby: Any, names: list[str], expected: list[int]
) -> None:
    request = CreateTopicsRequest([CreatableTopic(name, 1, 1) for name in names], 1_000)
    assert codes(standby.ask(ApiKey.CREATE_TOPICS, 7, request).topics) == expected


@pytest.mark.parametrize(("name", "expected"), [("yours", DENIED), ("mine", NOT_CONTROLLER)])
def test_denied_changes_of_partitions_and_configs_are_answered_at_once(
    standby: Any, name: str, expected: int
) -> None:
    more = CreatePartitionsRequest([CreatePartitionsTopic(name, 2)], 1_000)
    assert codes(standby.ask(ApiKey.CREATE_PARTITIONS, 3, more).results) == [expected]
    exactly = legacy.AlterConfigsRequest([legacy.AlterConfigsResource(2, name, [])])
    assert codes(standby.ask(ApiKey.ALTER_CONFIGS, 2, exactly).responses) == [expected]
    change = incremental.IncrementalAlterConfigsRequest([incremental.AlterConfigsResource(2, name, [])])
    assert codes(standby.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, change).responses) == [expected]


def test_topics_that_the_cluster_allows_are_created_by_the_leader_alone(standby: Any) -> None:
    authorizer = standby.node.boundary._authorizer
    authorizer.change([], [AclState(4, "kafka-cluster", 3, "User:ANONYMOUS", "*", 5, 3)])  # CREATE
    request = CreateTopicsRequest([CreatableTopic("yours", 1, 1)], 1_000)
    assert codes(standby.ask(ApiKey.CREATE_TOPICS, 7, request).topics) == [NOT_CONTROLLER]
