"""AlterPartition: the replicas that may join the ISR."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from kraftd.controller.partitions.isr import alter_partition
from kraftd.ground.refusal import Refusal
from kraftd.messages.alter_partition_request import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
    TopicData,
)
from kraftd.metadata.state import NO_LEADER, RECOVERED, RECOVERING, PartitionState
from kraftd.wire.error_code import ErrorCode
from tests.controller.cluster import Cluster, directory, partition


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
def test_a_leader_shrinks_and_grows_its_isr_and_gets_the_new_partition_epoch(
    cluster: Cluster, version: int
) -> None:
    cluster.topic("a", (0, 1, 2))
    answer = propose(cluster, 0, 1, version=version)
    assert (answer.error_code, answer.isr, answer.partition_epoch) == (0, (0, 1), 1)
    assert (answer.leader_id, answer.leader_epoch) == (0, 0)
    answer = propose(cluster, 0, 2, 1, version=version)
    assert (answer.isr, answer.partition_epoch) == ((0, 2, 1), 2)
    assert state(cluster).isr == (0, 2, 1)


def test_a_proposal_of_the_same_isr_changes_nothing(cluster: Cluster) -> None:
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
def test_a_proposal_with_other_epochs_is_refused(
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


def test_the_epoch_of_a_member_is_compared_whether_it_joins_or_stays__kip903(cluster: Cluster) -> None:
    cluster.topic("a", partition((0, 1, 2), isr=(0, 1, 2)))
    before = state(cluster)
    for isr in (((0, 99), (1, 101)), ((0, 100), (1, 100))):
        assert propose(cluster, *isr).error_code == ErrorCode.INELIGIBLE_REPLICA
    assert state(cluster) == before
    assert propose(cluster, (0, 100), (1, -1)).error_code == 0
    assert state(cluster).isr == (0, 1)


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


def test_an_unknown_topic_id_is_refused_for_each_of_its_partitions(cluster: Cluster) -> None:
    wanted = TopicData(b"\7" * 16, [PartitionData(0), PartitionData(1)])
    answer = cluster.decide(alter_partition, AlterPartitionRequest(0, 100, [wanted]), 3)
    assert [p.error_code for p in answer.topics[0].partitions] == [ErrorCode.UNKNOWN_TOPIC_ID] * 2


def test_an_uncleanly_elected_leader_recovers_alone_and_reports_it__kip704(cluster: Cluster) -> None:
    cluster.topic("a", partition((0, 1), isr=(0,), leader_recovery_state=RECOVERING))
    assert propose(cluster, 0, 1).error_code == ErrorCode.INVALID_REQUEST
    answer = propose(cluster, 0, leader_recovery_state=RECOVERED)
    assert (answer.error_code, answer.leader_recovery_state) == (0, RECOVERED)
    assert propose(cluster, 0, 1).error_code == 0


def test_an_isr_that_completes_a_reassignment_may_end_its_senders_leadership(cluster: Cluster) -> None:
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


def odd_request(cluster: Cluster, random: Random) -> AlterPartitionRequest:
    """Proposals for three topics of equal and different partitions; some are repeated, some have an error."""
    topics = []
    for topic in list(cluster.image.topics.values()):
        proposals = []
        for index, now in topic.partitions.items():
            members = random.choice(((0, 1), (0, 1), (0,), (0,), (0,), (0, 1, 2), (1, 2), (0, 3)))
            data = PartitionData(
                index,
                now.leader_epoch,
                (),
                [BrokerState(member, 100 + member) for member in members],
                now.leader_recovery_state,
                now.partition_epoch,
            )
            if random.random() < 0.3:
                name, wrong = random.choice(
                    (
                        ("leader_epoch", 9),
                        ("leader_epoch", -1),
                        ("partition_epoch", 9),
                        ("partition_epoch", -1),
                        ("leader_recovery_state", RECOVERING),
                        ("partition_index", 77),
                        ("new_isr_with_epochs", [BrokerState(0, 100), BrokerState(1, 7)]),
                    )
                )
                setattr(data, name, wrong)
            proposals.append(data)
        topics.append(TopicData(topic.id, proposals))
    topics.insert(1, TopicData(b"\7" * 16, [PartitionData(0), PartitionData(3)]))
    return AlterPartitionRequest(0, 100, topics)


@pytest.mark.parametrize("elr", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_proposals_in_one_request_are_decided_as_each_alone(seed: int, elr: bool) -> None:
    random = Random(seed)
    cluster = Cluster(elr=elr).brokers(0, 1, 2, 3)
    cluster.change_broker(3, fenced=1)
    # Equal partitions are one object, even across topics with different settings; others are moving.
    moving = partition((1, 2, 0), isr=(0,), leader=0, adding_replicas=(1, 2), removing_replicas=(0,))
    for name in ("a", "b", "c"):
        cluster.topic(name, *[random.choice(((0, 1, 2), (0, 1, 2), (0, 2, 1), moving)) for _ in range(40)])
    states: dict[PartitionState, PartitionState] = {}
    for topic in cluster.image.topics.values():
        for index, state in topic.partitions.items():
            topic.partitions[index] = states.setdefault(state, state)
    assert len(states) == 3
    cluster.config("min.insync.replicas", "2", topic="b")
    request = odd_request(cluster, random)
    answer, records = cluster.decided(alter_partition, request, 3)
    alone = [
        cluster.decided(alter_partition, AlterPartitionRequest(0, 100, [TopicData(topic.topic_id, [one])]), 3)
        for topic in request.topics
        for one in topic.partitions
    ]
    assert [row for topic in answer.topics for row in topic.partitions] == [
        row for one, _ in alone for topic in one.topics for row in topic.partitions
    ]
    assert records == [record for _, made in alone for record in made]


def test_a_request_with_equal_proposals_is_not_modified(cluster: Cluster) -> None:
    topic = cluster.topic("a", *[(0, 1, 2)] * 5)
    members = [BrokerState(0, 100), BrokerState(1, 101)]
    proposals = [PartitionData(index, 0, (), members, 0, 0) for index in range(5)]
    request = AlterPartitionRequest(0, 100, [TopicData(topic.id, proposals)])
    answer = cluster.decide(alter_partition, request, 3)
    assert [proposal.partition_index for proposal in proposals] == list(range(5))
    assert [row.partition_index for row in answer.topics[0].partitions] == list(range(5))


def test_each_answer_names_its_partition_and_can_be_encoded(cluster: Cluster) -> None:
    topic = cluster.topic("a", (0, 1), (0, 1), partition((1, 0), leader=0, removing_replicas=(0,)), (0, 1))
    rows = []
    for index, isr, epoch in ((3, (0,), 0), (1, (0, 9), 0), (2, (0, 1), 0), (3, (0,), 7), (9, (0,), 0)):
        members = [BrokerState(member, 100 + member) for member in isr]
        rows.append(PartitionData(index, epoch, (), members, RECOVERED, 0))
    request = AlterPartitionRequest(0, 100, [TopicData(topic.id, rows), TopicData(b"\7" * 16, rows[:1])])
    known, unknown = cluster.decide(alter_partition, request, 3).topics
    assert [(one.partition_index, one.error_code) for one in known.partitions] == [
        (3, ErrorCode.NONE),
        (1, ErrorCode.INVALID_REQUEST),
        (2, ErrorCode.NEW_LEADER_ELECTED),
        (3, ErrorCode.NOT_CONTROLLER),
        (9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert [(one.partition_index, one.error_code) for one in unknown.partitions] == [
        (3, ErrorCode.UNKNOWN_TOPIC_ID)
    ]


@pytest.mark.parametrize(
    ("recovery", "proposed", "isr", "code"),
    [
        (RECOVERING, RECOVERING, (0,), ErrorCode.NONE),
        (RECOVERING, RECOVERING, (0, 1), ErrorCode.INVALID_REQUEST),
        (RECOVERED, RECOVERING, (0,), ErrorCode.INVALID_REQUEST),
        (RECOVERED, RECOVERED, (0,), ErrorCode.NONE),
    ],
)
def test_only_a_recovering_leader_may_report_recovery__kip704(
    cluster: Cluster, recovery: int, proposed: int, isr: tuple[int, ...], code: ErrorCode
) -> None:
    cluster.topic("a", partition((0, 1), isr=(0,), leader_recovery_state=recovery))
    assert propose(cluster, *isr, leader_recovery_state=proposed).error_code == code


@pytest.mark.parametrize(("unclean", "leader"), [("false", NO_LEADER), ("true", 1)])
def test_a_proposing_leader_whose_directory_is_lost_is_replaced(
    cluster: Cluster, unclean: str, leader: int
) -> None:
    cluster.topic("a", partition((0, 1), isr=(0, 1), directories=(directory(77), directory(1))))
    cluster.config("unclean.leader.election.enable", unclean, topic="a")
    assert propose(cluster, 0).error_code == ErrorCode.NEW_LEADER_ELECTED
    assert state(cluster).leader == leader
