"""Answers to hostile requests can be encoded."""

from __future__ import annotations

import pytest

from kraftd.controller.partitions.election import elect_leaders
from kraftd.controller.partitions.reassignment import alter_partition_reassignments
from kraftd.controller.topics.create_partitions import create_partitions
from kraftd.controller.topics.create_topics import create_topics
from kraftd.controller.topics.delete_topics import delete_topics
from kraftd.messages import alter_partition_reassignments_request as reassign
from kraftd.messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from kraftd.messages.create_topics_request import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kraftd.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kraftd.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from kraftd.wire.codec import encode_bytes
from tests.controller.cluster import Cluster

LONGEST = "\0" * 32_767  # its repr is four times as long


@pytest.mark.parametrize("name", [LONGEST, "💥" * 8_191, "../" * 9_000, "%s{0}"])
def test_an_error_about_any_name_fits_into_its_answer(name: str) -> None:
    cluster = Cluster().brokers(0)
    moves = [reassign.ReassignablePartition(0, (0,))]
    configs = [
        [CreatableTopicConfig(name, "1")],
        [CreatableTopicConfig(name, None)],
        [CreatableTopicConfig("retention.ms", name)],
    ]
    cases = [
        (create_topics, CreateTopicsRequest([CreatableTopic(name, 1, 1)]), 7),
        *[(create_topics, CreateTopicsRequest([CreatableTopic("a", 1, 1, [], c)]), 7) for c in configs],
        (delete_topics, DeleteTopicsRequest([DeleteTopicState(name)], (), 1), 6),
        (create_partitions, CreatePartitionsRequest([CreatePartitionsTopic(name, 2, None)], 1), 3),
        (elect_leaders, ElectLeadersRequest(0, [TopicPartitions(name, (0,))]), 2),
        (
            alter_partition_reassignments,
            reassign.AlterPartitionReassignmentsRequest(1, True, [reassign.ReassignableTopic(name, moves)]),
            1,
        ),
    ]
    for decide, request, version in cases:
        assert encode_bytes(decide(cluster.ctx, request, version).answer, version)
    assert cluster.image.topic_count == 0
