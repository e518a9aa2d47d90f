"""The tables of a directory that Apache Kafka's own controller writes.

They are compared with its AdminClient's answers and with the image that its classes build from the log.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import ConfigResource, NewTopic, ResourceType

from kraftd.spark.inputs.layout import find_replica
from kraftd.spark.inputs.replicas import plan_log
from kraftd.spark.timeline import Timeline
from kraftd.spark.validation.checks import checks_of_small_log
from testkit.cluster import SESSION_TIMEOUT_MS, Cluster
from tests.spark.images import expected_rows, in_order, kafka_image
from tests.spark.test_tables import Story, assert_state, rows_of, timeline_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two brokers, one of them killed: topics were created, changed, deleted and created again."""
    settings = {"broker.session.timeout.ms": SESSION_TIMEOUT_MS}
    cluster = Cluster(tmp_path_factory.mktemp("kafka"), "apache", controller_properties=settings)
    with cluster:
        cluster.start_controller()
        cluster.start_brokers(1, 2)
        admin = cluster.admin
        names = ("kept", "again", "gone")
        topics = [NewTopic(name, 3, 2, config={"retention.ms": "1000"}) for name in names]
        for future in admin.create_topics(topics).values():
            future.result()
        for future in admin.delete_topics(["again", "gone"]).values():
            future.result()
        for future in admin.create_topics([NewTopic("again", 2, 2)]).values():
            future.result()
        resource = ConfigResource(ResourceType.TOPIC, "kept", {"min.insync.replicas": "2"})
        for future in admin.alter_configs([resource]).values():
            future.result()
        cluster.brokers[2].kill()
        cluster.wait_for_live_brokers(1)
        cluster.wait_until(lambda: cluster.partition("kept").isrs == [1], "the ISR has shrunk")
        yield cluster


@pytest.fixture(scope="module")
def timeline(spark: SparkSession, cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Timeline:
    """The timeline of the running controller's log."""
    return timeline_of(spark, cluster.controller.data, staged=tmp_path_factory.mktemp("staged") / "it")


def test_the_tables_agree_with_kafkas_admin_client(timeline: Timeline, cluster: Cluster) -> None:
    metadata = cluster.metadata()
    assert {row["name"] for row in rows_of(timeline, "topics")} == set(metadata.topics) == {"kept", "again"}
    partitions = rows_of(timeline, "partitions")
    assert {(row["topic_name"], row["partition_id"]): (row["leader"], row["isr"]) for row in partitions} == {
        (name, index): (part.leader, part.isrs)
        for name, topic in metadata.topics.items()
        for index, part in topic.partitions.items()
    }
    assert {row["broker_id"]: row["fenced"] for row in rows_of(timeline, "brokers")} == {1: False, 2: True}
    configs = [row for row in rows_of(timeline, "configs") if row["resource_type_name"] == "TOPIC"]
    table_configs = [(row["resource_name"], row["name"], row["value"]) for row in configs]
    assert table_configs == [("kept", "min.insync.replicas", "2")]
    assert "metadata.version" in {row["name"] for row in rows_of(timeline, "features")}


def test_the_tables_have_the_events_of_a_killed_broker(timeline: Timeline) -> None:
    moves = rows_of(timeline, "leader_moves")
    assert moves and {(row["old_leader"], row["new_leader"], row["cause"]) for row in moves} == {
        (2, 1, "broker fenced")
    }
    open_intervals = {
        (row["kind"], row["topic_name"], row["partition_id"])
        for row in rows_of(timeline, "partition_intervals")
        if row["end_offset"] is None
    }
    under = {("under_replicated", "kept", index) for index in range(3)}
    under |= {("under_replicated", "again", index) for index in range(2)}
    assert open_intervals == under | {("under_min_isr", "kept", index) for index in range(3)}
    actions = [(row["action"], row["resource"]) for row in rows_of(timeline, "audit")]
    assert actions.count(("create topic", "TOPIC again")) == 2
    assert actions.count(("delete topic", "TOPIC gone")) == 1
    checks = checks_of_small_log(timeline, [timeline.source.replica], pytest.fail)
    assert {name: check() for name, check in checks.items()} == dict.fromkeys(checks)


def test_the_state_equals_that_of_kafkas_image_classes(timeline: Timeline) -> None:
    image = kafka_image(timeline.source.log)
    assert len(image.topics) == 2
    assert_state(timeline, image)


def test_kafkas_image_classes_give_the_expected_state_of_a_story(tmp_path: Path) -> None:
    story = Story(tmp_path / "node", seed=11)
    log = plan_log(find_replica(str(story.directory.path)))
    ours, theirs = expected_rows(story.image(story.committed)), expected_rows(kafka_image(log))
    assert {name: in_order(rows) for name, rows in ours.items()} == {
        name: in_order(rows) for name, rows in theirs.items()
    }
    assert all(ours.values())
