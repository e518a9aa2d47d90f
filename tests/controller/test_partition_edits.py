"""The values that all changes of one operation share: the topic's settings, and directories of replicas."""

from __future__ import annotations

import pytest

from kraftd.controller.partitions.change import Election
from kraftd.controller.partitions.edits import PartitionEdits, default_directories, leadership
from kraftd.types import DIRECTORY_LOST, DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED
from tests.controller.cluster import Cluster, directory


@pytest.mark.parametrize(
    ("of_cluster", "of_topic", "replicas", "min_isr"),
    [
        (None, None, 3, 1),
        ("2", None, 3, 2),
        ("2", "3", 3, 3),
        ("2", "4", 3, 3),
        ("2", None, 2, 2),
        ("2", None, 1, 1),
        ("1", "2", 1, 1),
    ],
)
def test_min_insync_replicas_is_capped_by_the_replication_factor(
    of_cluster: str | None, of_topic: str | None, replicas: int, min_isr: int
) -> None:
    cluster = Cluster().brokers(0, 1, 2)
    topic = cluster.topic("a", tuple(range(replicas)), (0, 1, 2))
    if of_cluster:
        cluster.config("min.insync.replicas", of_cluster)
    if of_topic:
        cluster.config("min.insync.replicas", of_topic, topic="a")
    edits = PartitionEdits(cluster.ctx)
    assert edits.settings(topic) == edits.settings(topic) == (min_isr, False)


def test_each_topic_of_an_operation_has_its_own_settings() -> None:
    cluster = Cluster().brokers(0, 1, 2)
    cluster.config("min.insync.replicas", "2")
    plain, other, small = (cluster.topic(name, (0, 1, 2)) for name in ("plain", "other", "third"))
    one = cluster.topic("one", (0,))
    cluster.config("min.insync.replicas", "3", topic="other")
    cluster.config("unclean.leader.election.enable", "true", topic="other")
    edits = PartitionEdits(cluster.ctx)
    topics = (one, plain, other, small)
    assert [edits.settings(topic) for topic in topics] == [(1, False), (2, False), (3, True), (2, False)]
    assert [edits.election(topic) for topic in topics] == [
        Election.ONLINE,
        Election.ONLINE,
        Election.UNCLEAN,
        Election.ONLINE,
    ]


def test_a_new_replica_is_in_its_brokers_only_directory_or_not_assigned_yet__kip858() -> None:
    cluster = Cluster(metadata_version=16).broker(0)  # before brokers registered directories
    assert default_directories(cluster.image)(0) == DIRECTORY_MIGRATING
    cluster = Cluster().broker(1).broker(2, directories=2).broker(3, directories=0)
    place = default_directories(cluster.image)
    assert [place(broker_id) for broker_id in (1, 2, 3, 9)] == [
        directory(1),
        DIRECTORY_UNASSIGNED,
        DIRECTORY_MIGRATING,
        DIRECTORY_UNASSIGNED,
    ]


def test_a_broker_leads_if_it_is_active_and_the_replicas_directory_online() -> None:
    cluster = Cluster().broker(1).broker(2, fenced=True).broker(3, directories=0)
    may_lead = leadership(cluster.image)
    places = [(1, directory(1)), (1, directory(7)), (1, DIRECTORY_UNASSIGNED), (1, DIRECTORY_LOST)]
    places += [(2, directory(2)), (3, directory(7)), (3, DIRECTORY_LOST), (9, directory(9))]
    assert [may_lead(*one) for one in places] == [True, False, True, False, False, True, False, False]
    assert not leadership(cluster.image, leaving=1)(1, directory(1))
    assert leadership(cluster.image, joining=2)(2, directory(2))
