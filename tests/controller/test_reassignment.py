"""Reassignments of replicas: start, completion, cancellation and listing."""

from __future__ import annotations

from typing import Any

import pytest

from kraftd.controller.partitions.reassignment import (
    alter_partition_reassignments,
    list_partition_reassignments,
    reverted,
)
from kraftd.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kraftd.messages.list_partition_reassignments_request import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from kraftd.metadata.state import NO_LEADER, PartitionState
from kraftd.wire.error_code import ErrorCode
from tests.controller.cluster import Cluster, directory, partition


@pytest.fixture
def cluster() -> Cluster:
    return Cluster().brokers(0, 1, 2, 3, 4)


def move(cluster: Cluster, *moves: Any, name: str = "a", may_change: bool = True) -> list[ErrorCode]:
    partitions = [ReassignablePartition(*(m if isinstance(m[0], int) else (0, *m))) for m in moves]
    request = AlterPartitionReassignmentsRequest(60_000, may_change, [ReassignableTopic(name, partitions)])
    (topic,) = cluster.decide(alter_partition_reassignments, request, 1).responses
    return [ErrorCode(result.error_code) for result in topic.partitions]


def only(cluster: Cluster) -> PartitionState:
    (topic,) = cluster.image.topics.values()
    return topic.partitions[0]


def test_new_replicas_are_added_before_old_ones_are_removed__kip455(cluster: Cluster) -> None:
    cluster.topic("a", (0, 1, 2))
    assert move(cluster, (0, (3, 4, 2))) == [ErrorCode.NONE]
    now = only(cluster)
    assert now.replicas == (3, 4, 2, 0, 1)
    assert (now.adding_replicas, now.removing_replicas) == ((3, 4), (0, 1))
    assert (now.leader, now.isr, now.leader_epoch) == (0, (0, 1, 2), 0)
    assert now.directories == tuple(directory(replica) for replica in now.replicas)


def test_reordering_the_same_replicas_completes_at_once(cluster: Cluster) -> None:
    cluster.topic("a", (0, 1, 2))
    assert move(cluster, (0, (2, 1, 0))) == [ErrorCode.NONE]
    assert (only(cluster).replicas, only(cluster).is_reassigning) == ((2, 1, 0), False)


def test_removing_replicas_completes_at_once_if_the_others_are_in_sync(cluster: Cluster) -> None:
    cluster.topic("a", (0, 1, 2))
    move(cluster, (0, (1, 2)))
    now = only(cluster)
    assert (now.replicas, now.isr, now.leader, now.leader_epoch) == ((1, 2), (1, 2), 1, 1)


def test_removing_replicas_waits_until_the_others_are_in_sync(cluster: Cluster) -> None:
    cluster.topic("a", partition((0, 1, 2), isr=(0, 1)))
    move(cluster, (0, (1, 2)))
    assert (only(cluster).replicas, only(cluster).isr) == ((1, 2, 0), (0, 1))
    assert only(cluster).is_reassigning


def test_a_cancelled_reassignment_restores_the_former_replicas(cluster: Cluster) -> None:
    cluster.topic("a", (0, 1, 2))
    before = only(cluster)
    move(cluster, (0, (3, 4, 2)))
    assert move(cluster, (0, None)) == [ErrorCode.NONE]
    now = only(cluster)
    assert sorted(now.replicas) == sorted(before.replicas) and not now.is_reassigning
    assert (now.isr, now.leader) == (before.isr, before.leader)
    assert now.leader_epoch > before.leader_epoch


def test_cancelling_is_refused_if_only_added_replicas_are_in_sync(cluster: Cluster) -> None:
    moving = partition((3, 0), isr=(3,), adding_replicas=(3,), removing_replicas=(0,))
    cluster.topic("a", moving)
    assert move(cluster, (0, None)) == [ErrorCode.INVALID_REPLICA_ASSIGNMENT]
    cluster.config("unclean.leader.election.enable", "true", topic="a")
    assert move(cluster, (0, None)) == [ErrorCode.NONE]
    assert (only(cluster).replicas, only(cluster).isr, only(cluster).leader) == ((0,), (0,), 0)


@pytest.mark.parametrize(
    ("replicas", "code"),
    [
        ((), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ((1, 1), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ((1, 9), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (None, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
    ],
)
def test_a_reassignment_to_invalid_replicas_is_refused(
    cluster: Cluster, replicas: tuple[int, ...] | None, code: ErrorCode
) -> None:
    cluster.topic("a", (0, 1))
    assert move(cluster, (0, replicas)) == [code]
    assert move(cluster, (5, replicas)) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert move(cluster, (0, replicas), name="none") == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_the_replication_factor_changes_only_if_allowed__kip860(cluster: Cluster) -> None:
    cluster.topic("a", (0, 1))
    refused = [ErrorCode.INVALID_REPLICATION_FACTOR]
    assert move(cluster, (0, (2, 3, 4)), may_change=False) == refused
    assert move(cluster, (0, (2, 3)), may_change=False) == [ErrorCode.NONE]
    # Four replicas for now, but two are wanted.
    assert move(cluster, (0, (0, 1, 2, 3)), may_change=False) == refused
    assert move(cluster, (0, (1, 4)), may_change=False) == [ErrorCode.NONE]


def test_a_partition_named_twice_is_moved_twice(cluster: Cluster) -> None:
    cluster.topic("a", (0, 1))
    assert move(cluster, (0, (2, 3)), (0, (1, 0))) == [ErrorCode.NONE] * 2
    now = only(cluster)
    assert set(now.replicas) == {0, 1} | {*now.adding_replicas, *now.removing_replicas}
    assert len(now.replicas) == len(now.directories) and now.partition_epoch == 2


def test_pending_reassignments_are_listed_all_or_by_name(cluster: Cluster) -> None:
    cluster.topic("a", (0, 1), (0, 1))
    cluster.topic("b", (0, 1))
    move(cluster, (1, (2, 3)))

    def listed(*topics: ListPartitionReassignmentsTopics) -> Any:
        request = ListPartitionReassignmentsRequest(60_000, list(topics) or None)
        answer = cluster.decide(list_partition_reassignments, request, 0)
        return {t.name: [(p.partition_index, p.replicas) for p in t.partitions] for t in answer.topics}

    assert listed() == {"a": [(1, (2, 3, 0, 1))]}
    assert listed(ListPartitionReassignmentsTopics("a", (0, 1, 7))) == listed()
    assert (
        listed(ListPartitionReassignmentsTopics("a", (0,)), ListPartitionReassignmentsTopics("b", (0,))) == {}
    )
    assert listed(ListPartitionReassignmentsTopics("none", (0,))) == {}


@pytest.mark.parametrize(("unclean", "leader"), [("false", NO_LEADER), ("true", 2)])
def test_a_cancelled_reassignment_elects_uncleanly_if_allowed(
    cluster: Cluster, unclean: str, leader: int
) -> None:
    cluster.topic("a", partition((1, 0, 2), isr=(1, 0), leader=1, adding_replicas=(1,)))
    cluster.config("unclean.leader.election.enable", unclean, topic="a")
    cluster.change_broker(0, fenced=1)
    assert move(cluster, (0, None)) == [ErrorCode.NONE]
    assert (only(cluster).replicas, only(cluster).leader) == ((0, 2), leader)


@pytest.mark.parametrize(
    ("state", "isr", "replicas", "is_unclean"),
    [
        (partition((3, 0, 1), adding_replicas=(3,)), (0, 1), (0, 1), False),
        (partition((3, 0, 1), isr=(3,), adding_replicas=(3,)), (0,), (0, 1), True),
        (partition((0, 1), removing_replicas=(1,)), (0, 1), (0, 1), False),
    ],
)
def test_a_cancelled_reassignment_keeps_the_replicas_that_it_did_not_add(
    state: PartitionState, isr: tuple[int, ...], replicas: tuple[int, ...], is_unclean: bool
) -> None:
    assert reverted(state) == (isr, replicas, is_unclean)
