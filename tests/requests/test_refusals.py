"""Refusals whose elements repeat what was asked, as Kafka's getErrorResponse of each request does."""

from __future__ import annotations

from typing import Any

import pytest

from kraftd.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraftd.messages.elect_leaders_request import ElectLeadersRequest
from kraftd.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kraftd.messages.list_partition_reassignments_request import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from kraftd.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kraftd.requests.refusals import refuse
from kraftd.wire.api import ApiKey
from kraftd.wire.codec import encode_bytes
from kraftd.wire.error_code import ErrorCode

DENIED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED


@pytest.mark.parametrize(("version", "named"), [(4, True), (12, True), (13, False), (18, False)])
def test_a_refused_fetch_names_its_session_and_before_v13_its_partitions(version: int, named: bool) -> None:
    topic = FetchTopic("x", partitions=[FetchPartition(0), FetchPartition(3)])
    answer: Any = refuse(ApiKey.FETCH, version, FetchRequest(session_id=5, topics=[topic]), DENIED)
    assert (answer.error_code, answer.session_id) == (DENIED, 5)
    partitions = [
        (one.partition_index, one.error_code, one.high_watermark, one.records)
        for topic in answer.responses
        for one in topic.partitions
    ]
    assert partitions == ([(0, DENIED, -1, b""), (3, DENIED, -1, b"")] if named else [])
    encode_bytes(answer, max(version, 7))


@pytest.mark.parametrize("version", [1, 12, 13])
def test_refused_metadata_names_each_topic_that_was_asked_for(version: int) -> None:
    request = MetadataRequest([MetadataRequestTopic(name="a"), MetadataRequestTopic(bytes(16), None)])
    answer: Any = refuse(ApiKey.METADATA, version, request, ErrorCode.INVALID_REQUEST)
    assert [(one.name, one.error_code) for one in answer.topics] == [
        ("a", ErrorCode.INVALID_REQUEST),
        ("", ErrorCode.INVALID_REQUEST),
    ]
    encode_bytes(answer, version)


def test_a_refused_listing_of_reassignments_names_the_partitions_that_were_asked_for() -> None:
    asked = ListPartitionReassignmentsRequest(1, [ListPartitionReassignmentsTopics("a", (2, 0))])
    answer: Any = refuse(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, asked, DENIED, "no")
    assert (answer.error_code, answer.error_message) == (DENIED, "no")
    assert [(one.name, [each.partition_index for each in one.partitions]) for one in answer.topics] == [
        ("a", [2, 0])
    ]
    everything: Any = refuse(
        ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, ListPartitionReassignmentsRequest(1, None), DENIED
    )
    assert everything.topics == []


def test_a_refusal_without_a_text_says_null_as_kafkas_do() -> None:
    request = CreateTopicsRequest([CreatableTopic("a", 1, 1)])
    answer: Any = refuse(ApiKey.CREATE_TOPICS, 7, request, ErrorCode.REQUEST_TIMED_OUT)
    (topic,) = answer.topics
    assert (topic.error_code, topic.error_message) == (ErrorCode.REQUEST_TIMED_OUT, None)
    whole: Any = refuse(ApiKey.ELECT_LEADERS, 2, ElectLeadersRequest(0, None), ErrorCode.REQUEST_TIMED_OUT)
    encode_bytes(whole, 2)
