"""Refusals that repeat the elements of the request, as Kafka's getErrorResponse does."""

from __future__ import annotations

from typing import Any

import pytest

from kraftd.messages import alter_client_quotas_request as quotas
from kraftd.messages import alter_user_scram_credentials_request as scram
from kraftd.messages import list_offsets_request as offsets
from kraftd.messages.alter_partition_request import AlterPartitionRequest, TopicData
from kraftd.messages.alter_replica_log_dirs_request import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from kraftd.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraftd.messages.delete_groups_request import DeleteGroupsRequest
from kraftd.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kraftd.messages.describe_groups_request import DescribeGroupsRequest
from kraftd.messages.describe_transactions_request import DescribeTransactionsRequest
from kraftd.messages.describe_user_scram_credentials_request import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from kraftd.messages.elect_leaders_request import ElectLeadersRequest
from kraftd.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kraftd.messages.list_partition_reassignments_request import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from kraftd.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kraftd.messages.unregister_broker_request import UnregisterBrokerRequest
from kraftd.requests.refusals import refuse
from kraftd.wire.api import ApiKey
from kraftd.wire.codec import encode_bytes
from kraftd.wire.error_code import ErrorCode

DENIED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED


@pytest.mark.parametrize(("version", "named"), [(4, True), (12, True), (13, False), (18, False)])
def test_a_refused_fetch_names_its_session_and_before_v13_its_partitions(version: int, named: bool) -> None:
    topic = FetchTopic("x", bytes(15) + b"\7", partitions=[FetchPartition(0), FetchPartition(3)])
    answer: Any = refuse(ApiKey.FETCH, version, FetchRequest(session_id=5, topics=[topic]), DENIED)
    assert (answer.error_code, answer.session_id) == (DENIED, 5)
    partitions = [
        (one.partition_index, one.error_code, one.high_watermark, one.records)
        for topic in answer.responses
        for one in topic.partitions
    ]
    assert partitions == ([(0, DENIED, -1, b""), (3, DENIED, -1, b"")] if named else [])
    assert [(one.topic, one.topic_id) for one in answer.responses] == (
        [("x", bytes(15) + b"\7")] if named else []
    )
    encode_bytes(answer, max(version, 7))


@pytest.mark.parametrize("version", [1, 12, 13])
def test_refused_metadata_names_each_requested_topic(version: int) -> None:
    request = MetadataRequest([MetadataRequestTopic(name="a"), MetadataRequestTopic(bytes(16), None)])
    answer: Any = refuse(ApiKey.METADATA, version, request, ErrorCode.INVALID_REQUEST)
    assert [(one.name, one.error_code) for one in answer.topics] == [
        ("a", ErrorCode.INVALID_REQUEST),
        ("", ErrorCode.INVALID_REQUEST),
    ]
    encode_bytes(answer, version)


def test_refused_listing_of_reassignments_names_the_requested_partitions() -> None:
    request = ListPartitionReassignmentsRequest(1, [ListPartitionReassignmentsTopics("a", (2, 0))])
    answer: Any = refuse(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, request, DENIED, "no")
    assert (answer.error_code, answer.error_message) == (DENIED, "no")
    assert [(one.name, [each.partition_index for each in one.partitions]) for one in answer.topics] == [
        ("a", [2, 0])
    ]
    everything: Any = refuse(
        ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, ListPartitionReassignmentsRequest(1, None), DENIED
    )
    assert everything.topics == []


def test_a_refusal_without_a_text_has_null_as_in_kafka() -> None:
    request = CreateTopicsRequest([CreatableTopic("a", 1, 1)])
    answer: Any = refuse(ApiKey.CREATE_TOPICS, 7, request, ErrorCode.REQUEST_TIMED_OUT)
    (topic,) = answer.topics
    assert (topic.error_code, topic.error_message) == (ErrorCode.REQUEST_TIMED_OUT, None)
    whole: Any = refuse(ApiKey.ELECT_LEADERS, 2, ElectLeadersRequest(0, None), ErrorCode.REQUEST_TIMED_OUT)
    encode_bytes(whole, 2)


@pytest.mark.parametrize(
    ("key", "request_", "listed", "name"),
    [
        (ApiKey.DESCRIBE_GROUPS, DescribeGroupsRequest(("a", "b")), "groups", "group_id"),
        (ApiKey.DELETE_GROUPS, DeleteGroupsRequest(("a", "b")), "results", "group_id"),
        (
            ApiKey.DESCRIBE_TRANSACTIONS,
            DescribeTransactionsRequest(("a", "b")),
            "transaction_states",
            "transactional_id",
        ),
    ],
)
def test_listed_groups_and_transactions_are_refused_one_by_one(
    key: ApiKey, request_: Any, listed: str, name: str
) -> None:
    answer: Any = refuse(key, 0, request_, DENIED)
    found = [(getattr(one, name), one.error_code) for one in getattr(answer, listed)]
    assert found == [("a", DENIED), ("b", DENIED)]


def test_partitions_of_topics_are_refused_with_their_index_only() -> None:
    rows = [offsets.ListOffsetsPartition(3, 9, 7), offsets.ListOffsetsPartition(0)]
    request = offsets.ListOffsetsRequest(-1, 0, [offsets.ListOffsetsTopic("a", rows)])
    answer: Any = refuse(ApiKey.LIST_OFFSETS, 9, request, DENIED)
    assert [topic.name for topic in answer.topics] == ["a"]
    assert [
        (one.partition_index, one.error_code, one.leader_epoch) for one in answer.topics[0].partitions
    ] == [
        (3, DENIED, -1),
        (0, DENIED, -1),
    ]


def test_users_of_scram_are_refused_once_each_and_in_order() -> None:
    request = scram.AlterUserScramCredentialsRequest(
        [scram.ScramCredentialDeletion("b", 1), scram.ScramCredentialDeletion("a", 1)],
        [scram.ScramCredentialUpsertion("b", 2)],
    )
    answer: Any = refuse(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, request, DENIED, "no")
    found = [(one.user, one.error_code, one.error_message) for one in answer.results]
    assert found == [("a", DENIED, "no"), ("b", DENIED, "no")]


def test_described_users_are_refused_without_their_names() -> None:
    request = DescribeUserScramCredentialsRequest([UserName("a"), UserName("b")])
    answer: Any = refuse(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, request, DENIED, "no")
    assert (answer.error_code, answer.error_message) == (DENIED, "no")
    assert [(one.user, one.error_code, one.error_message) for one in answer.results] == [
        ("", DENIED, "no")
    ] * 2
    everyone = DescribeUserScramCredentialsRequest(None)
    assert refuse(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, everyone, DENIED).results == []  # type: ignore[attr-defined]


def test_moves_between_log_directories_are_refused_by_their_topics() -> None:
    topics = [AlterReplicaLogDirTopic("t", (0, 9)), AlterReplicaLogDirTopic("u", (1,))]
    request = AlterReplicaLogDirsRequest([AlterReplicaLogDir("/a", topics), AlterReplicaLogDir("/b")])
    answer: Any = refuse(ApiKey.ALTER_REPLICA_LOG_DIRS, 2, request, DENIED)
    assert [
        (topic.topic_name, one.partition_index, one.error_code)
        for topic in answer.results
        for one in topic.partitions
    ] == [("t", 0, DENIED), ("t", 9, DENIED), ("u", 1, DENIED)]


def test_entities_of_quotas_are_refused_in_the_form_that_was_sent() -> None:
    parts = [quotas.EntityData("user", "a"), quotas.EntityData("client-id", None)]
    request = quotas.AlterClientQuotasRequest([quotas.EntryData(parts, [])])
    answer: Any = refuse(ApiKey.ALTER_CLIENT_QUOTAS, 1, request, DENIED, "no")
    (entry,) = answer.entries
    assert (entry.error_code, entry.error_message) == (DENIED, "no")
    assert [(one.entity_type, one.entity_name) for one in entry.entity] == [
        ("user", "a"),
        ("client-id", None),
    ]


@pytest.mark.parametrize("text", [None, "no"])
def test_a_refusal_of_the_whole_request_has_a_text_and_no_elements(text: str | None) -> None:
    answer: Any = refuse(ApiKey.UNREGISTER_BROKER, 0, UnregisterBrokerRequest(1), DENIED, text)
    assert (answer.error_code, answer.error_message) == (DENIED, text)
    partitions = AlterPartitionRequest(1, 2, [TopicData(bytes(16))])
    whole: Any = refuse(ApiKey.ALTER_PARTITION, 3, partitions, DENIED, text)
    assert (whole.error_code, whole.topics) == (DENIED, [])


def test_refused_descriptions_of_quotas_have_no_list_at_all() -> None:
    answer: Any = refuse(ApiKey.DESCRIBE_CLIENT_QUOTAS, 1, None, DENIED)
    assert (answer.error_code, answer.entries) == (DENIED, None)


@pytest.mark.parametrize("version", [1, 5, 6])
def test_topics_to_delete_are_refused_one_by_one_in_every_version(version: int) -> None:
    by_name = DeleteTopicsRequest(topic_names=("a", "b"))
    by_state = DeleteTopicsRequest([DeleteTopicState("a"), DeleteTopicState("b")])
    answer: Any = refuse(ApiKey.DELETE_TOPICS, version, by_name if version < 6 else by_state, DENIED)
    assert [(one.name, one.error_code) for one in answer.responses] == [("a", DENIED), ("b", DENIED)]
    unread: Any = refuse(ApiKey.DELETE_TOPICS, version, None, DENIED)
    assert unread.responses == []
