"""Requested elections and periodic ones."""

from __future__ import annotations

from typing import Any

import pytest

from kraftd.controller.partitions.election import balance_leaders, elect_leaders, elect_unclean_leaders
from kraftd.ground.refusal import Refusal
from kraftd.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from kraftd.messages.remove_topic_record import RemoveTopicRecord
from kraftd.metadata.state import NO_LEADER
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.record_frame import VersionedRecord
from tests.controller.cluster import Cluster, partition

PREFERRED, UNCLEAN = 0, 1


@pytest.fixture
def cluster() -> Cluster:
    """Partition 0 has its preferred leader. The second replica leads 1. The first replica of 2 is fenced.

    The only replica of 3 in sync is fenced.
    """
    cluster = Cluster().brokers(0, 1, 2).broker(3, fenced=True)
    cluster.topic(
        "a",
        (0, 1),
        partition((0, 1), leader=1),
        partition((3, 1), isr=(1,)),
        partition((1, 3), isr=(3,), leader=NO_LEADER),
    )
    return cluster


def elect(cluster: Cluster, kind: int, topics: dict[str, tuple[int, ...]] | None) -> Any:
    wanted = None if topics is None else [TopicPartitions(*item) for item in topics.items()]
    results = cluster.decide(elect_leaders, ElectLeadersRequest(kind, wanted), 2).replica_election_results
    return {
        (topic.topic, result.partition_id): ErrorCode(result.error_code)
        for topic in results
        for result in topic.partition_result
    }


def leaders(cluster: Cluster) -> list[int]:
    (topic,) = cluster.image.topics.values()
    return [state.leader for state in topic.partitions.values()]


def test_a_preferred_election_makes_the_first_replica_leader_if_possible(cluster: Cluster) -> None:
    assert elect(cluster, PREFERRED, {"a": (0, 1, 2, 9), "none": (0,)}) == {
        ("a", 0): ErrorCode.ELECTION_NOT_NEEDED,
        ("a", 1): ErrorCode.NONE,
        ("a", 2): ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        ("a", 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("none", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert leaders(cluster) == [0, 0, 1, NO_LEADER]


def test_an_unclean_election_finds_a_leader_whatever_the_config(cluster: Cluster) -> None:
    assert elect(cluster, UNCLEAN, {"a": (1, 3)}) == {
        ("a", 1): ErrorCode.ELECTION_NOT_NEEDED,
        ("a", 3): ErrorCode.NONE,
    }
    assert leaders(cluster) == [0, 1, 1, 1]


def test_no_replica_leads_when_none_is_alive(cluster: Cluster) -> None:
    cluster.change_broker(1, fenced=1)
    assert elect(cluster, UNCLEAN, {"a": (3,)}) == {("a", 3): ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE}


def test_of_all_partitions_those_that_need_no_election_are_not_answered(cluster: Cluster) -> None:
    cluster.topic("quiet", (0,))
    request = ElectLeadersRequest(PREFERRED, None)
    results = cluster.decide(elect_leaders, request, 2).replica_election_results
    answered = {topic.topic: [r.partition_id for r in topic.partition_result] for topic in results}
    assert answered == {"a": [1, 2, 3], "quiet": []}


def test_an_empty_list_of_partitions_elects_no_leader(cluster: Cluster) -> None:
    assert elect_leaders(cluster.ctx, ElectLeadersRequest(PREFERRED, []), 2).records == []


def test_an_unknown_kind_of_election_is_refused(cluster: Cluster) -> None:
    with pytest.raises(Refusal) as refused:
        elect(cluster, 2, None)
    assert refused.value.code is ErrorCode.INVALID_REQUEST


def test_balancing_moves_partitions_to_their_preferred_leaders(cluster: Cluster) -> None:
    decision = balance_leaders(cluster.ctx)
    cluster.apply(decision.records)
    assert leaders(cluster) == [0, 0, 1, NO_LEADER]
    assert decision.answer is False


def test_balancing_makes_a_limited_number_of_elections_a_run() -> None:
    cluster = Cluster().brokers(0, 1)
    cluster.topic("a", *[partition((0, 1), leader=1)] * 1_000)
    moved = []
    for again in (True, True, False, False):
        decision = balance_leaders(cluster.ctx)
        cluster.apply(decision.records)
        moved.append(len(decision.records))
        assert decision.answer is again
    assert moved == [400, 400, 200, 0]


def test_balancing_examines_a_limited_number_of_partitions_a_run() -> None:
    cluster = Cluster().brokers(0, 1).broker(2, fenced=True)
    cluster.topic("cannot", *[partition((2, 1), isr=(1,), leader=1)] * 600)
    cluster.topic("can", *[partition((0, 1), leader=1)] * 10)
    ctx = cluster.ctx  # it keeps the position of the last run
    runs = []
    for _ in range(3):
        decision = balance_leaders(ctx)
        cluster.apply(decision.records)
        assert decision.after is not None
        decision.after(0)
        runs.append((len(decision.records), decision.answer))
    assert runs == [(0, True), (10, False), (0, True)]


def test_partitions_deleted_between_two_runs_are_skipped() -> None:
    cluster = Cluster().brokers(0, 1)
    topic = cluster.topic("a", *[partition((0, 1), leader=1)] * 600)
    ctx = cluster.ctx
    decision = balance_leaders(ctx)
    assert decision.answer is True
    assert decision.after is not None
    decision.after(0)
    cluster.apply([VersionedRecord(RemoveTopicRecord(topic.id), 0)])
    decision = balance_leaders(ctx)
    assert (decision.records, decision.answer) == ([], False)


def test_a_topic_with_unclean_elections_enabled_elects_at_the_next_check(cluster: Cluster) -> None:
    assert elect_unclean_leaders(cluster.ctx).records == []
    cluster.config("unclean.leader.election.enable", "true", topic="a")
    cluster.apply(elect_unclean_leaders(cluster.ctx).records)
    assert leaders(cluster) == [0, 1, 1, 1]


def test_the_cluster_may_allow_unclean_elections_for_all_topics(cluster: Cluster) -> None:
    cluster.config("unclean.leader.election.enable", "true")
    cluster.apply(elect_unclean_leaders(cluster.ctx).records)
    assert leaders(cluster)[3] == 1


def test_an_election_reports_unknown_topics_and_partitions(cluster: Cluster) -> None:
    request = ElectLeadersRequest(PREFERRED, [TopicPartitions("a", (9,)), TopicPartitions("none", (0,))])
    results = cluster.decide(elect_leaders, request, 2).replica_election_results
    assert {topic.topic: topic.partition_result[0].error_message for topic in results} == {
        "a": "There is no such partition.",
        "none": "There is no such topic.",
    }


@pytest.mark.parametrize(("run", "balance"), [(balance_leaders, True), (elect_unclean_leaders, False)])
def test_each_run_continues_where_the_last_one_ended(run: Any, balance: bool) -> None:
    cluster = Cluster().brokers(0, 1).broker(2, fenced=True)
    state = partition((0, 1), leader=1) if balance else partition((0, 2), isr=(2,), leader=NO_LEADER)
    cluster.topic("a", *[state] * 600)
    cluster.topic("b", state)
    cluster.config("unclean.leader.election.enable", "true")
    ctx, runs = cluster.ctx, []
    for _ in range(3):
        decision = run(ctx)
        runs.append((len(decision.records), decision.answer))
        assert decision.atomic is False and decision.after is not None
        decision.after(0)  # the image stays, and examined partitions are not examined again
    assert runs == [(400, True), (201, False), (400, True)]


def test_a_run_that_examined_everything_keeps_no_position(cluster: Cluster) -> None:
    ctx = cluster.ctx
    for run in (balance_leaders, elect_unclean_leaders):
        decision = run(ctx)
        assert decision.after is not None
        decision.after(0)
    assert ctx.walks == {}


def test_balancing_and_unclean_elections_keep_separate_positions() -> None:
    cluster = Cluster().brokers(0, 1).broker(2, fenced=True)
    cluster.topic("a", *[partition((0, 1), leader=1)] * 500)
    cluster.topic("b", *[partition((0, 2), isr=(2,), leader=NO_LEADER)] * 500)
    cluster.config("unclean.leader.election.enable", "true")
    ctx, counts = cluster.ctx, []
    for run in (elect_unclean_leaders, balance_leaders, elect_unclean_leaders):
        decision = run(ctx)
        counts.append(len(decision.records))
        assert decision.after is not None
        decision.after(0)
    assert counts[0] == 400 and counts[2] == 100
