"""A kraftd broker beside stock brokers of Kafka 3.9 to 4.2, at each metadata.version from 3.9 on, while all
are rolled to the newest release. A stock controller is upgraded before them.

Each broker leads a partition that all others follow. `make replication` plays it.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic

from testkit.fetch import KAFKA_VERSION
from testkit.node import Kind
from testkit.process import wait_until
from tests.kafka.replication.mixed import TOPIC, MixedCluster, Reader, Writer
from tests.kafka.replication.test_three_replicas import check_log

pytestmark = [pytest.mark.kafka, pytest.mark.thorough]

RELEASES = {1: "3.9.1", 2: "4.0.0", 3: "4.1.1", 4: "4.2.0"}
OURS = 5
UPGRADES = ("4.0", "4.1", "4.2", "4.3")  # after each of the stock brokers is of the newest release
RECORDS = 200  # in each partition


def check_each_leads_the_others(cluster: MixedCluster, topic: str) -> None:
    """Write to a partition of each broker, and compare the logs of all replicas byte for byte."""
    ids = cluster.ids
    placed = [[*ids[n:], *ids[:n]] for n in range(len(ids))]
    config = {"min.insync.replicas": str(len(ids))}
    cluster.admin.create_topics([NewTopic(topic, len(ids), replica_assignment=placed, config=config)])[
        topic
    ].result(30)
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", "log_level": 0})
    for number in range(RECORDS):
        for partition in range(len(ids)):
            producer.produce(topic, b"%06d" % number, partition=partition)
        producer.poll(0)
    assert producer.flush(60) == 0
    found = cluster.partitions(topic)
    assert [found[n].leader for n in range(len(ids))] == ids
    assert all(sorted(one.isrs) == ids for one in found.values())
    for partition in range(len(ids)):
        logs = {cluster.log(one, partition, topic) for one in ids}
        assert len(logs) == 1 and logs != {b""}, f"the logs of partition {partition} differ"


def metadata_version(cluster: MixedCluster) -> str:
    output = cluster.tool("features", "describe").out
    found = re.search(r"Feature: metadata.version\b.*FinalizedVersionLevel: (\S+)", output)
    assert found, output
    return found[1]


@pytest.mark.parametrize("controller", ["kraftd", "apache"])
def test_kraftd_replicates_with_each_release_while_all_are_upgraded(tmp_path: Path, controller: Kind) -> None:
    kinds: dict[int, Kind] = {**dict.fromkeys(RELEASES, "apache"), OURS: "kraftd"}  # type: ignore[dict-item]
    with MixedCluster(
        tmp_path,
        kinds,
        controller,
        session_timeout_ms=9000,
        releases=RELEASES,
        release_version="3.9",
        controller_release="3.9.1",
    ) as cluster:
        placed = [[OURS, *RELEASES], [*RELEASES, OURS]]
        topic = NewTopic(TOPIC, 2, replica_assignment=placed, config={"min.insync.replicas": "2"})
        cluster.admin.create_topics([topic])[TOPIC].result(30)
        cluster.wait_until_in_sync()
        writer, reader = Writer(cluster.bootstrap, 0.01), Reader(cluster.bootstrap, "g")
        try:
            writer.wait_for_more()
            assert metadata_version(cluster) == "3.9-IV0"
            check_each_leads_the_others(cluster, "at-3.9")
            for release in ("4.1.1", KAFKA_VERSION):  # Kafka's controller; kraftd's only starts again
                cluster.controller.stop()
                cluster.controller.release = release
                cluster.start_controller()
                writer.wait_for_more()
                check_each_leads_the_others(cluster, f"under-{release}")
            for broker_id, version in zip(RELEASES, UPGRADES, strict=True):
                stock, ours = cluster.brokers[broker_id], cluster.broker(OURS)
                stock.stop()
                stock.release = KAFKA_VERSION
                stock.start()
                cluster.wait_until_in_sync()
                ours.stop()
                ours.start()
                cluster.wait_until_in_sync()
                cluster.tool("features", "upgrade", "--release-version", version)
                assert metadata_version(cluster).startswith(version)
                writer.wait_for_more()
                cluster.tool("leader-election", "--election-type", "preferred", "--all-topic-partitions")
                check_each_leads_the_others(cluster, f"at-{version}")
        finally:
            writer.stop()
        try:
            wait_until(
                lambda: all(writer.acknowledged[n] <= reader.read[n] for n in (0, 1)),
                "the group has read all",
                60,
            )
        finally:
            reader.stop()
        for name in (TOPIC, "__consumer_offsets"):
            wait_until(lambda name=name: cluster.logs_are_equal(name), f"logs of {name} are equal", 30)  # type: ignore[misc]
        check_log(cluster, writer)
