"""Requests whose timeout has passed are not decided; parts that need no decision are still answered."""

from __future__ import annotations

from typing import Any

import pytest

from kraftd.controller.partitions.election import elect_leaders
from kraftd.controller.partitions.reassignment import alter_partition_reassignments
from kraftd.controller.topics.create_partitions import create_partitions
from kraftd.controller.topics.create_topics import create_topics
from kraftd.ground.refusal import Refusal
from kraftd.messages import alter_partition_reassignments_request as reassign
from kraftd.messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from kraftd.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraftd.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from kraftd.wire.error_code import ErrorCode
from tests.controller.cluster import Cluster

MOVE = reassign.ReassignableTopic("a", [reassign.ReassignablePartition(0, (1,))])


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster().brokers(0, 1)
    cluster.topic("a", (0, 1))
    return cluster


@pytest.mark.parametrize("timeout_ms", [0, -1, -(2**31)])
@pytest.mark.parametrize(
    ("decide", "request_"),
    [
        (create_topics, CreateTopicsRequest([CreatableTopic("b", 1, 1)])),
        (create_topics, CreateTopicsRequest([CreatableTopic("", 1, 1)])),
        (create_partitions, CreatePartitionsRequest([CreatePartitionsTopic("a", 3, None)])),
        (elect_leaders, ElectLeadersRequest(0, None)),
        (elect_leaders, ElectLeadersRequest(9, [TopicPartitions("a", (0,))])),
        (alter_partition_reassignments, reassign.AlterPartitionReassignmentsRequest(topics=[MOVE])),
    ],
)
def test_a_request_whose_timeout_has_passed_is_refused(
    cluster: Cluster, decide: Any, request_: Any, timeout_ms: int
) -> None:
    request_.timeout_ms = timeout_ms
    with pytest.raises(Refusal) as refused:
        decide(cluster.ctx, request_, 2)
    assert refused.value.code is ErrorCode.REQUEST_TIMED_OUT
    request_.timeout_ms = 1
    try:
        decide(cluster.ctx, request_, 2)
    except Refusal as other:
        assert other.code is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("decide", "request_"),
    [
        (create_topics, CreateTopicsRequest([])),
        (create_partitions, CreatePartitionsRequest([])),
        (elect_leaders, ElectLeadersRequest(0, [])),
        (alter_partition_reassignments, reassign.AlterPartitionReassignmentsRequest(topics=[])),
    ],
)
def test_a_request_that_needs_no_decision_ignores_its_timeout(
    cluster: Cluster, decide: Any, request_: Any
) -> None:
    request_.timeout_ms = 0
    assert decide(cluster.ctx, request_, 2).records == []
