"""Brokers report the directories of their replicas: AssignReplicasToDirs."""

from __future__ import annotations

from typing import Any

import pytest

from kraftd.controller.partitions.directories import assign_replicas_to_dirs
from kraftd.ground.refusal import Refusal
from kraftd.messages.assign_replicas_to_dirs_request import (
    AssignReplicasToDirsRequest,
    DirectoryData,
    PartitionData,
    TopicData,
)
from kraftd.types import DIRECTORY_LOST, DIRECTORY_UNASSIGNED
from kraftd.wire.error_code import ErrorCode
from tests.controller.cluster import Cluster, directory, partition


@pytest.fixture
def cluster() -> Cluster:
    return Cluster().broker(0, directories=2).brokers(1, 2)


def assign(cluster: Cluster, place: bytes, *partitions: tuple[bytes, int], epoch: int = 100) -> Any:
    topics = [TopicData(topic_id, [PartitionData(index)]) for topic_id, index in partitions]
    request = AssignReplicasToDirsRequest(0, epoch, [DirectoryData(place, topics)])
    (answered,) = cluster.decide(assign_replicas_to_dirs, request, 0).directories
    return [ErrorCode(p.error_code) for topic in answered.topics for p in topic.partitions]


def test_a_replica_on_many_directories_is_assigned_when_its_broker_reports_it(
    cluster: Cluster,
) -> None:
    topic = cluster.topic("a", partition((0, 1), directories=(DIRECTORY_UNASSIGNED, directory(1))))
    assert assign(cluster, directory(0, 1), (topic.id, 0)) == [ErrorCode.NONE]
    now = topic.partitions[0]
    assert now.directories == (directory(0, 1), directory(1))
    assert (now.isr, now.leader_epoch, now.partition_epoch) == ((0, 1), 0, 1)
    assert assign(cluster, directory(0, 1), (topic.id, 0)) == [ErrorCode.NONE]
    assert topic.partitions[0].partition_epoch == 1


@pytest.mark.parametrize("place", [DIRECTORY_LOST, directory(77)])
def test_a_replica_in_a_directory_that_is_not_online_leaves_its_isr(cluster: Cluster, place: bytes) -> None:
    topic = cluster.topic("a", (0, 1))
    assert assign(cluster, place, (topic.id, 0)) == [ErrorCode.NONE]
    now = topic.partitions[0]
    assert (now.directories[0], now.isr, now.leader) == (place, (1,), 1)


def test_a_broker_cannot_assign_what_it_does_not_host(cluster: Cluster) -> None:
    topic = cluster.topic("a", (1, 2))
    wanted = [(topic.id, 0), (topic.id, 5), (b"\7" * 16, 0)]
    assert assign(cluster, directory(0), *wanted) == [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
    ]


def test_a_stale_broker_and_an_old_metadata_version_refuse_the_request(cluster: Cluster) -> None:
    with pytest.raises(Refusal) as stale:
        assign(cluster, directory(0), epoch=99)
    assert stale.value.code is ErrorCode.STALE_BROKER_EPOCH
    with pytest.raises(Refusal) as old:
        assign(Cluster(metadata_version=16).brokers(0), directory(0))
    assert old.value.code is ErrorCode.UNSUPPORTED_VERSION
