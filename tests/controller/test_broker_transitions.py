"""What happens to partitions when a broker's state changes."""

from __future__ import annotations

import pytest

from kraftd.controller.brokers import transitions
from kraftd.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kraftd.messages.partition_change_record import PartitionChangeRecord
from kraftd.metadata.state import NO_LEADER, RECOVERING, PartitionState
from kraftd.wire.record_frame import VersionedRecord
from tests.controller.cluster import Cluster, directory, partition


@pytest.fixture
def cluster() -> Cluster:
    return Cluster().brokers(0, 1, 2)


def only(cluster: Cluster) -> PartitionState:
    (topic,) = cluster.image.topics.values()
    (state,) = topic.partitions.values()
    return state


def fence(cluster: Cluster, broker_id: int) -> None:
    cluster.apply(transitions.handle_broker_fenced(cluster.ctx, broker_id))


def unfence(cluster: Cluster, broker_id: int) -> None:
    cluster.apply(transitions.handle_broker_unfenced(cluster.ctx, broker_id, 100 + broker_id))


def test_a_fenced_broker_leaves_every_isr_and_the_next_replica_in_sync_leads(cluster: Cluster) -> None:
    topic = cluster.topic("a", (0, 1, 2), (1, 2, 0), partition((0, 2, 1), isr=(0, 1)), (1, 2))
    fence(cluster, 0)
    assert cluster.image.brokers[0].fenced
    partitions = list(topic.partitions.values())
    assert [p.isr for p in partitions] == [(1, 2), (1, 2), (1,), (1, 2)]
    assert [p.leader for p in partitions] == [1, 1, 1, 1]
    assert [p.leader_epoch for p in partitions] == [1, 0, 1, 0]
    assert [p.partition_epoch for p in partitions] == [1, 1, 1, 0]


def test_only_partitions_with_the_fenced_broker_in_sync_change(cluster: Cluster) -> None:
    cluster.topic("a", partition((0, 2), isr=(2,), leader=NO_LEADER))  # 2 could lead
    [record] = transitions.handle_broker_fenced(cluster.ctx, 0)
    assert record == VersionedRecord(BrokerRegistrationChangeRecord(0, 100, fenced=1), 0)


def test_an_unregistered_broker_leaves_the_isr_of_a_leaderless_partition(cluster: Cluster) -> None:
    cluster.topic("a", partition((0, 1), isr=(0, 1), leader=NO_LEADER))
    cluster.change_broker(1, fenced=1)
    cluster.apply(transitions.handle_broker_unregistered(cluster.ctx, 0, 100))
    assert (only(cluster).isr, only(cluster).leader) == ((1,), NO_LEADER)


def test_an_unfenced_broker_leads_leaderless_partitions_where_it_may(cluster: Cluster) -> None:
    cluster.change_broker(1, fenced=1)
    uncleanly = cluster.topic("uncleanly", partition((0, 1), isr=(1,), leader=NO_LEADER))
    cluster.config("unclean.leader.election.enable", "true", topic="uncleanly")
    cleanly = cluster.topic("cleanly", partition((0, 1), isr=(1,), leader=NO_LEADER))
    # The reassignment is complete, but there is no leader to report it.
    moving = partition((1, 0), isr=(1,), leader=NO_LEADER, removing_replicas=(0,))
    moved = cluster.topic("moved", moving)
    unfence(cluster, 0)
    assert (uncleanly.partitions[0].leader, uncleanly.partitions[0].isr) == (0, (0,))
    assert (cleanly.partitions[0].leader, cleanly.partitions[0].partition_epoch) == (NO_LEADER, 0)
    assert (moved.partitions[0].replicas, moved.partitions[0].is_reassigning) == ((1,), False)


def test_the_last_in_sync_replica_stays_in_the_isr_and_leads_again(cluster: Cluster) -> None:
    cluster.topic("a", partition((0, 1), isr=(0,)))
    fence(cluster, 0)
    assert (only(cluster).leader, only(cluster).isr, only(cluster).leader_epoch) == (NO_LEADER, (0,), 1)
    fence(cluster, 1)
    unfence(cluster, 1)
    assert only(cluster).leader == NO_LEADER
    unfence(cluster, 0)
    assert (only(cluster).leader, only(cluster).isr, only(cluster).leader_epoch) == (0, (0,), 2)


def test_with_unclean_leader_election_another_replica_leads_alone_and_has_to_recover(
    cluster: Cluster,
) -> None:
    cluster.topic("a", partition((0, 1), isr=(0,)))
    cluster.config("unclean.leader.election.enable", "true", topic="a")
    fence(cluster, 0)
    now = only(cluster)
    assert (now.leader, now.isr, now.leader_recovery_state) == (1, (1,), RECOVERING)


def test_a_stopping_broker_is_marked_once_and_loses_its_leaderships(cluster: Cluster) -> None:
    cluster.topic("a", (0, 1, 2))
    cluster.apply(transitions.handle_broker_in_controlled_shutdown(cluster.ctx, 0, 100))
    assert cluster.image.brokers[0].in_controlled_shutdown
    assert (only(cluster).leader, only(cluster).isr) == (1, (1, 2))
    assert transitions.handle_broker_in_controlled_shutdown(cluster.ctx, 0, 100) == []


def test_an_unregistered_broker_is_gone_but_its_replicas_stay_assigned(cluster: Cluster) -> None:
    cluster.topic("a", (0, 1, 2))
    cluster.apply(transitions.handle_broker_unregistered(cluster.ctx, 0, 100))
    assert 0 not in cluster.image.brokers
    assert (only(cluster).replicas, only(cluster).isr) == ((0, 1, 2), (1, 2))


def test_an_isr_member_that_is_no_replica_counts_as_a_brokers_partition(cluster: Cluster) -> None:
    """Kafka may leave such a member if a reassignment removes a replica whose directory is lost."""
    cluster.topic("a", partition((1,), isr=(0,)))
    assert len(list(cluster.image.partitions_of(0))) == 1
    lost = [directory(0)]
    assert len(transitions.handle_directories_offline(cluster.ctx, 0, 100, lost)) == 1
    cluster.apply(transitions.handle_broker_unregistered(cluster.ctx, 0, 100))
    assert (only(cluster).isr, only(cluster).leader) == ((0,), NO_LEADER)
    cluster.image.remove_partitions(*cluster.image.topics.values())
    assert list(cluster.image.partitions_of(0)) == []


# Eligible leader replicas (KIP-966)


def test_with_elr_disabled_the_next_unfencing_clears_eligible_replicas__kip966(cluster: Cluster) -> None:
    cluster.topic("a", partition((0,), isr=(), elr=(0,), last_known_elr=(0,), leader=NO_LEADER))
    fence(cluster, 0)
    unfence(cluster, 1)
    assert (only(cluster).elr, only(cluster).last_known_elr, only(cluster).leader) == ((), (0,), NO_LEADER)


@pytest.fixture
def elr() -> Cluster:
    cluster = Cluster(elr=True).brokers(0, 1, 2)
    cluster.config("min.insync.replicas", "2")
    return cluster


def test_an_eligible_replica_leads_when_no_replica_is_in_sync__kip966(elr: Cluster) -> None:
    elr.topic("a", (0, 1, 2))
    for broker_id in (2, 1, 0):
        fence(elr, broker_id)
    now = only(elr)
    assert (now.isr, now.elr, now.leader, now.last_known_elr) == ((), (0, 1), NO_LEADER, (0,))
    unfence(elr, 2)
    assert only(elr).leader == NO_LEADER
    unfence(elr, 1)
    now = only(elr)
    assert (now.isr, now.elr, now.leader, now.last_known_elr) == ((1,), (0,), 1, ())


def test_a_return_makes_no_copies_of_eligible_replicas_and_partition_numbers(elr: Cluster) -> None:
    """A broker of very many partitions returns to all of them at once."""
    topic = elr.topic("a", *[(0,)] * 300)
    fence(elr, 0)
    *_, last = transitions.handle_broker_unfenced(elr.ctx, 0, 100)
    assert isinstance(last.message, PartitionChangeRecord) and last.message.isr == (0,)
    assert last.message.isr is topic.partitions[299].elr
    assert last.message.partition_id is list(topic.partitions)[299]


def test_a_broker_that_shuts_down_in_order_becomes_eligible__kip966(elr: Cluster) -> None:
    elr.topic("a", (0, 1))
    elr.apply(transitions.handle_broker_in_controlled_shutdown(elr.ctx, 1, 101))
    assert (only(elr).isr, only(elr).elr, only(elr).leader) == ((0,), (1,), 0)


def test_what_is_eligible_alone_changes_no_leader_epoch__kip966(elr: Cluster) -> None:
    elr.topic("a", partition((0, 1), isr=(0,), elr=(1,), leader_epoch=4, partition_epoch=6))
    elr.apply(transitions.handle_broker_shutdown(elr.ctx, 1, clean=False))
    now = only(elr)
    assert (now.elr, now.leader, now.leader_epoch, now.partition_epoch) == ((), 0, 4, 7)


def test_after_unclean_shutdowns_of_all_the_last_known_leader_may_lead_again__kip966(elr: Cluster) -> None:
    elr.topic("a", (0, 1, 2))
    for broker_id in (2, 1, 0):
        fence(elr, broker_id)
    for broker_id in (0, 1):
        elr.apply(transitions.handle_broker_shutdown(elr.ctx, broker_id, clean=False))
    assert (only(elr).elr, only(elr).last_known_elr) == ((), (0,))
    unfence(elr, 1)
    assert only(elr).leader == NO_LEADER
    unfence(elr, 0)
    now = only(elr)
    assert (now.leader, now.isr, now.leader_recovery_state) == (0, (0,), RECOVERING)


def test_an_unregistered_broker_that_is_eligible_stays_so_as_in_kafka__kip966(elr: Cluster) -> None:
    elr.topic("a", (0, 1))
    fence(elr, 1)
    elr.apply(transitions.handle_broker_unregistered(elr.ctx, 1, 101))
    assert (only(elr).isr, only(elr).elr) == ((0,), (1,))


def test_a_clean_shutdown_keeps_a_broker_eligible_an_unclean_one_does_not__kip966(elr: Cluster) -> None:
    elr.topic("a", (0, 1))
    elr.topic("b", (0, 1))
    elr.apply(transitions.handle_broker_shutdown(elr.ctx, 1, clean=True))
    assert {t.partitions[0].elr for t in elr.image.topics.values()} == {(1,)}
    elr.apply(transitions.handle_broker_shutdown(elr.ctx, 1, clean=False))
    assert {t.partitions[0].elr for t in elr.image.topics.values()} == {()}


# Directories (KIP-858, KIP-1066)


def test_replicas_in_a_lost_directory_leave_their_isrs_and_the_others_stay(cluster: Cluster) -> None:
    cluster.broker(5, directories=2)
    first, second = (directory(5, n) for n in (0, 1))
    topic = cluster.topic(
        "a",
        partition((5, 0), directories=(first, directory(0))),
        partition((5, 0), directories=(second, directory(0))),
    )
    lost = transitions.handle_directories_offline(cluster.ctx, 5, 105, (first, b"\7" * 16))
    cluster.apply(lost)
    assert [p.isr for p in topic.partitions.values()] == [(0,), (5, 0)]
    assert cluster.image.brokers[5].directories == (second,)
    assert transitions.handle_directories_offline(cluster.ctx, 5, 105, (first,)) == []


def test_a_replica_in_a_lost_directory_does_not_lead(cluster: Cluster) -> None:
    cluster.broker(5, directories=2)
    cluster.topic("a", partition((0, 5, 1), directories=(directory(0), directory(77), directory(1))))
    fence(cluster, 0)
    assert only(cluster).leader == 1


def test_cordoned_directories_are_recorded_only_if_they_change(cluster: Cluster) -> None:
    def note(cordoned: tuple[bytes, ...] | None) -> int:
        records = transitions.handle_directories_cordoned(cluster.ctx, 0, 100, cordoned)
        cluster.apply(records)
        return len(records)

    assert note(None) == 0
    assert note(()) == 1
    assert note(()) == 0
    assert note((directory(0),)) == 1
    assert not cluster.image.brokers[0].has_uncordoned_directory()


def test_before_their_metadata_version_directories_are_not_recorded() -> None:
    cluster = Cluster(metadata_version=16).brokers(0)
    assert transitions.handle_directories_offline(cluster.ctx, 0, 100, (directory(0),)) == []
    assert transitions.handle_directories_cordoned(cluster.ctx, 0, 100, (directory(0),)) == []
