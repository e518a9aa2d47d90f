"""Who may be in sync: AlterPartition."""

from __future__ import annotations

from typing import Any

import pytest

from kraftd.controller.decision import Refusal
from kraftd.controller.partitions.isr import alter_partition
from kraftd.messages.alter_partition_request import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
    TopicData,
)
from kraftd.metadata.state import RECOVERED, RECOVERING, PartitionState
from kraftd.wire.error_code import ErrorCode
from tests.controller.cluster import Cluster, partition


@pytest.fixture
def cluster() -> Cluster:
    return Cluster().brokers(0, 1, 2, 3)


def propose(
    cluster: Cluster, *isr: int | tuple[int, int], sender: int = 0, version: int = 3, **more: Any
) -> Any:
    """The answer to a leader's proposal for the only partition; a member is an id, or an id and an epoch."""
    (topic,) = cluster.image.topics.values()
    now = topic.partitions[0]
    members = [member if isinstance(member, tuple) else (member, 100 + member) for member in isr]
    data = PartitionData(
        0,
        now.leader_epoch,
        tuple(id_ for id_, _ in members) if version < 3 else (),
        [BrokerState(*member) for member in members] if version >= 3 else [],
        now.leader_recovery_state,
        now.partition_epoch,
    )
    for name, value in more.items():
        setattr(data, name, value)
    request = AlterPartitionRequest(sender, 100 + sender, [TopicData(topic.id, [data])])
    return cluster.decide(alter_partition, request, version).topics[0].partitions[0]


def state(cluster: Cluster) -> PartitionState:
    (topic,) = cluster.image.topics.values()
    return topic.partitions[0]


@pytest.mark.parametrize("version", [2, 3])
def test_a_leader_shrinks_and_grows_its_isr_and_hears_the_new_partition_epoch(
    cluster: Cluster, version: int
) -> None:
    cluster.topic("a", (0, 1, 2))
    answer = propose(cluster, 0, 1, version=version)
    assert (answer.error_code, answer.isr, answer.partition_epoch) == (0, (0, 1), 1)
    assert (answer.leader_id, answer.leader_epoch) == (0, 0)
    answer = propose(cluster, 0, 2, 1, version=version)
    assert (answer.isr, answer.partition_epoch) == ((0, 2, 1), 2)
    assert state(cluster).isr == (0, 2, 1)


def test_the_same_isr_again_changes_nothing(cluster: Cluster) -> None:
    cluster.topic("a", (0, 1, 2))
    answer = propose(cluster, 0, 1, 2)
    assert (answer.error_code, answer.isr, answer.partition_epoch) == (0, (0, 1, 2), 0)


def test_before_3_6_a_smaller_isr_bumps_the_leader_epoch() -> None:
    cluster = Cluster(metadata_version=11).brokers(0, 1, 2)
    cluster.topic("a", (0, 1, 2))
    assert propose(cluster, 0, 1).leader_epoch == 1
    assert propose(cluster, 0, 1, 2).leader_epoch == 1


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"leader_epoch": 6}, ErrorCode.NOT_CONTROLLER),
        ({"partition_epoch": 8}, ErrorCode.NOT_CONTROLLER),
        ({"leader_epoch": 4}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"partition_epoch": 6}, ErrorCode.INVALID_UPDATE_VERSION),
        ({"leader_recovery_state": RECOVERING}, ErrorCode.INVALID_REQUEST),
        ({"leader_recovery_state": 7}, ErrorCode.INVALID_REQUEST),
        ({"partition_index": 5}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_a_proposal_from_another_time_is_refused(
    cluster: Cluster, change: dict[str, int], code: ErrorCode
) -> None:
    cluster.topic("a", partition((0, 1, 2), leader_epoch=5, partition_epoch=7))
    assert propose(cluster, 0, 1, **change).error_code == code
    assert state(cluster).isr == (0, 1, 2)


@pytest.mark.parametrize("isr", [(1, 2), (), (0, 0), (0, 3), (0, -1)])
def test_an_isr_without_its_leader_or_with_others_than_replicas_is_invalid(
    cluster: Cluster, isr: tuple[int, ...]
) -> None:
    cluster.topic("a", (0, 1, 2))
    assert propose(cluster, *isr).error_code == ErrorCode.INVALID_REQUEST


def test_only_the_leader_may_propose(cluster: Cluster) -> None:
    cluster.topic("a", (0, 1, 2))
    assert propose(cluster, 0, 1, sender=1).error_code == ErrorCode.INVALID_REQUEST


def test_a_broker_of_another_epoch_never_enters_an_isr__kip903(cluster: Cluster) -> None:
    cluster.topic("a", partition((0, 1, 2), isr=(0,)))
    assert propose(cluster, 0, (1, 100)).error_code == ErrorCode.INELIGIBLE_REPLICA
    assert propose(cluster, 0, (1, 102)).error_code == ErrorCode.INELIGIBLE_REPLICA
    assert state(cluster).isr == (0,)
    assert propose(cluster, 0, (1, -1)).error_code == 0


def test_a_fenced_or_stopping_or_unknown_broker_never_enters_an_isr__kip841(cluster: Cluster) -> None:
    cluster.topic("a", partition((0, 1, 2, 9), isr=(0,)))
    cluster.change_broker(1, fenced=1)
    cluster.change_broker(2, shutting_down=1)
    for member in (1, 2, 9):
        assert propose(cluster, 0, member).error_code == ErrorCode.INELIGIBLE_REPLICA
        assert propose(cluster, 0, member, version=2).error_code == ErrorCode.INELIGIBLE_REPLICA


@pytest.mark.parametrize(("sender", "epoch"), [(0, 99), (0, 101), (9, 109)])
def test_a_sender_that_is_not_registered_under_its_epoch_is_refused_whole(
    cluster: Cluster, sender: int, epoch: int
) -> None:
    topic = cluster.topic("a", (0, 1))
    request = AlterPartitionRequest(sender, epoch, [TopicData(topic.id, [PartitionData(0)])])
    with pytest.raises(Refusal) as refused:
        alter_partition(cluster.ctx, request, 3)
    assert refused.value.code is ErrorCode.STALE_BROKER_EPOCH


def test_an_unknown_topic_id_is_answered_for_each_of_its_partitions(cluster: Cluster) -> None:
    wanted = TopicData(b"\7" * 16, [PartitionData(0), PartitionData(1)])
    answer = cluster.decide(alter_partition, AlterPartitionRequest(0, 100, [wanted]), 3)
    assert [p.error_code for p in answer.topics[0].partitions] == [ErrorCode.UNKNOWN_TOPIC_ID] * 2


def test_a_leader_elected_uncleanly_recovers_alone_and_says_when_it_has__kip704(cluster: Cluster) -> None:
    cluster.topic("a", partition((0, 1), isr=(0,), leader_recovery_state=RECOVERING))
    assert propose(cluster, 0, 1).error_code == ErrorCode.INVALID_REQUEST
    answer = propose(cluster, 0, leader_recovery_state=RECOVERED)
    assert (answer.error_code, answer.leader_recovery_state) == (0, RECOVERED)
    assert propose(cluster, 0, 1).error_code == 0


def test_the_isr_that_completes_a_reassignment_takes_the_leadership_from_its_sender(cluster: Cluster) -> None:
    moving = partition((1, 2, 0), isr=(0,), leader=0, adding_replicas=(1, 2), removing_replicas=(0,))
    cluster.topic("a", moving)
    assert propose(cluster, 0, 1, 2).error_code == ErrorCode.NEW_LEADER_ELECTED
    now = state(cluster)
    assert (now.replicas, now.isr, now.leader) == ((1, 2), (1, 2), 1)
    assert (now.leader_epoch, now.partition_epoch, now.is_reassigning) == (1, 1, False)


def test_below_min_insync_replicas_a_replica_that_leaves_stays_eligible__kip966() -> None:
    cluster = Cluster(elr=True).brokers(0, 1, 2)
    cluster.topic("a", (0, 1, 2))
    cluster.config("min.insync.replicas", "2", topic="a")
    propose(cluster, 0, 1)
    assert state(cluster).elr == ()
    propose(cluster, 0)
    assert state(cluster).elr == (1,)
    propose(cluster, 0, 2)
    assert state(cluster).elr == ()
