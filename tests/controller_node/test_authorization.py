"""Permissions of a call on single resources, the codes of denials, and the names that they hide."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kraftd.acl import AclOperation, AclPatternType, AclPermission, AclResourceType
from kraftd.messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from kraftd.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraftd.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kraftd.messages.describe_cluster_request import DescribeClusterRequest
from kraftd.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from kraftd.messages.feature_level_record import FeatureLevelRecord
from kraftd.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraftd.messages.vote_request import VoteRequest
from kraftd.metadata.state import AclState
from kraftd.security.authorizer import StandardAuthorizer
from kraftd.security.authorizer_settings import AuthorizerSettings
from kraftd.types import ONE_UUID
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode
from tests.controller_node.harness import Harness

TOPIC, GROUP, CLUSTER = AclResourceType.TOPIC, AclResourceType.GROUP, AclResourceType.CLUSTER
_BEFORE_REGISTRATION = 14  # 3.6-IV2
TOPIC_DENIED, CLUSTER_DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def allow(type: AclResourceType, name: str, operation: AclOperation) -> AclState:
    literal, permission = AclPatternType.LITERAL, AclPermission.ALLOW
    return AclState(type, name, literal, "User:ANONYMOUS", "*", operation, permission)


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    harness = Harness(tmp_path).start()
    harness.unfenced()
    harness.create("a", "b")
    return harness


def guard(harness: Harness, *acls: AclState) -> None:
    authorizer = StandardAuthorizer(AuthorizerSettings())
    authorizer.change((), acls)
    authorizer.end_load()
    harness.node.boundary._authorizer = authorizer


def test_apis_of_the_cluster_are_denied_before_anything_else(harness: Harness) -> None:
    guard(harness)
    assert harness.ask(ApiKey.VOTE, 2, VoteRequest(cluster_id="wrong")).error_code == CLUSTER_DENIED


def test_describe_cluster_before_registrations_is_unsupported_for_all__kip919(harness: Harness) -> None:
    guard(harness)
    request = DescribeClusterRequest(endpoint_type=2)
    assert harness.ask(ApiKey.DESCRIBE_CLUSTER, 2, request).error_code == CLUSTER_DENIED
    image = harness.node.image
    image.apply(FeatureLevelRecord("metadata.version", _BEFORE_REGISTRATION), image.offset + 1, image.epoch)
    assert harness.ask(ApiKey.DESCRIBE_CLUSTER, 2, request).error_code == ErrorCode.UNSUPPORTED_VERSION


def test_before_acls_are_loaded_a_call_is_neither_denied_nor_allowed(harness: Harness) -> None:
    harness.node.boundary._authorizer = StandardAuthorizer(AuthorizerSettings())
    assert harness.ask(ApiKey.VOTE, 2, VoteRequest()).error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_creates_are_allowed_by_cluster_or_name_and_configs_may_be_hidden(harness: Harness) -> None:
    def created(*acls: AclState) -> Any:
        guard(harness, *acls)
        request = CreateTopicsRequest([CreatableTopic("c", 1, 1)], 1000, validate_only=True)
        return harness.ask(ApiKey.CREATE_TOPICS, 7, request).topics[0]

    assert created(allow(TOPIC, "x", AclOperation.CREATE)).error_code == TOPIC_DENIED
    for acl in (allow(TOPIC, "c", AclOperation.CREATE), allow(CLUSTER, "kafka-cluster", AclOperation.CREATE)):
        topic = created(acl)
        assert (topic.error_code, topic.topic_config_error_code) == (0, TOPIC_DENIED)
        assert topic.num_partitions == -1
    topic = created(allow(TOPIC, "c", AclOperation.CREATE), allow(TOPIC, "c", AclOperation.DESCRIBE_CONFIGS))
    assert (topic.topic_config_error_code, topic.num_partitions) == (0, 1)


def test_deletion_hides_names_from_a_caller_that_may_not_describe_them(harness: Harness) -> None:
    topic_id = harness.node.image.topic_names()["a"]
    guard(harness)
    topics = [DeleteTopicState(None, topic_id), DeleteTopicState(None, ONE_UUID), DeleteTopicState("absent")]
    answer = harness.ask(ApiKey.DELETE_TOPICS, 6, DeleteTopicsRequest(topics=topics, timeout_ms=1000))
    code_of = {(one.name, bytes(one.topic_id)): one.error_code for one in answer.responses}
    assert code_of[None, topic_id] == TOPIC_DENIED
    assert code_of[None, ONE_UUID] == ErrorCode.UNKNOWN_TOPIC_ID
    assert code_of["absent", bytes(16)] == TOPIC_DENIED
    guard(harness, allow(TOPIC, "a", AclOperation.DESCRIBE))
    answer = harness.ask(ApiKey.DELETE_TOPICS, 6, DeleteTopicsRequest(topics=topics[:1], timeout_ms=1000))
    assert [(one.name, one.error_code) for one in answer.responses] == [("a", TOPIC_DENIED)]
    guard(harness, allow(TOPIC, "a", AclOperation.DELETE))
    answer = harness.ask(ApiKey.DELETE_TOPICS, 6, DeleteTopicsRequest(topics=topics[:1], timeout_ms=1000))
    assert [one.error_code for one in answer.responses] == [0]


def test_adding_partitions_requires_alter_on_the_topic(harness: Harness) -> None:
    guard(harness, allow(TOPIC, "a", AclOperation.ALTER))
    request = CreatePartitionsRequest([CreatePartitionsTopic(name, 9, None) for name in "ab"], 1000)
    answer = harness.ask(ApiKey.CREATE_PARTITIONS, 3, request)
    assert {one.name: one.error_code for one in answer.results} == {"a": 0, "b": TOPIC_DENIED}


def test_denials_of_configs_depend_on_the_type_of_the_resource(harness: Harness) -> None:
    guard(harness, allow(TOPIC, "a", AclOperation.ALTER_CONFIGS))
    resources = [(2, "a"), (2, "b"), (4, "1"), (16, "m"), (32, "g"), (8, "100"), (8, "100")]
    config = AlterableConfig("retention.ms", 0, "1000")
    request = IncrementalAlterConfigsRequest([AlterConfigsResource(*one, [config]) for one in resources])
    answer = harness.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request)
    code_of = {(one.resource_type, one.resource_name): one.error_code for one in answer.responses}
    group_denied = ErrorCode.GROUP_AUTHORIZATION_FAILED
    codes = [0, TOPIC_DENIED, CLUSTER_DENIED, CLUSTER_DENIED, group_denied, CLUSTER_DENIED, CLUSTER_DENIED]
    assert [code_of[one] for one in resources] == codes
    assert len(answer.responses) == len(resources)
    assert harness.node.image.config(2, "a") == {"retention.ms": "1000"}
    assert not harness.node.image.config(2, "b")
    # ALTER_CONFIGS implies DESCRIBE_CONFIGS.
    described = [DescribeConfigsResource(*one) for one in resources[:3]]
    answer = harness.ask(ApiKey.DESCRIBE_CONFIGS, 4, DescribeConfigsRequest(described))
    code_of = {(one.resource_type, one.resource_name): one.error_code for one in answer.results}
    assert [code_of[one] for one in resources[:3]] == [0, TOPIC_DENIED, CLUSTER_DENIED]
    texts = {one.resource_name: one.error_message for one in answer.results if one.error_code}
    assert texts == {"b": TOPIC_DENIED.message, "1": CLUSTER_DENIED.message}


def test_a_config_behind_a_topic_that_is_named_twice_is_still_denied(harness: Harness) -> None:
    guard(harness, allow(TOPIC, "a", AclOperation.ALTER_CONFIGS))
    config = AlterableConfig("retention.ms", 0, "1000")
    resources = [AlterConfigsResource(TOPIC, name, [config]) for name in "aab"]
    answer = harness.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, IncrementalAlterConfigsRequest(resources))
    code_of = {one.resource_name: one.error_code for one in answer.responses}
    assert code_of == {"a": ErrorCode.INVALID_REQUEST, "b": TOPIC_DENIED}
    assert not harness.node.image.config(2, "b")


def test_configs_that_may_be_described_only_are_not_altered(harness: Harness) -> None:
    guard(harness, allow(TOPIC, "a", AclOperation.DESCRIBE_CONFIGS))
    config = AlterableConfig("retention.ms", 0, "1000")
    request = IncrementalAlterConfigsRequest([AlterConfigsResource(TOPIC, "a", [config])])
    answer = harness.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request)
    assert [one.error_code for one in answer.responses] == [TOPIC_DENIED]
