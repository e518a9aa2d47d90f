"""A kraftd broker beside a stock one, under Apache Kafka's own controller of any release."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic

from testkit.cluster import SESSION_TIMEOUT_MS, Cluster
from testkit.fetch import KAFKA_VERSION
from testkit.node import Controller
from testkit.process import HOST, free_port, wait_until


@pytest.mark.parametrize(
    "release", ["3.9.1", pytest.param("4.2.0", marks=pytest.mark.thorough), KAFKA_VERSION]
)
def test_a_kraftd_broker_joins_and_leaves_a_cluster_of_apache_kafka(tmp_path: Path, release: str) -> None:
    settings = {"broker.session.timeout.ms": SESSION_TIMEOUT_MS}
    with Cluster(tmp_path, "apache", controller_properties=settings) as cluster:
        cluster.controller.release = release
        cluster.start_controller()
        cluster.start_brokers(1, releases={1: release})
        port = free_port()
        ours = Controller(
            "kraftd",
            2,
            tmp_path / "ours",
            port,
            {**cluster._quorum, "process.roles": "broker", "listeners": f"PLAINTEXT://{HOST}:{port}"},
        )
        ours.format(cluster.cluster_id)
        ours.start()

        def brokers() -> dict[int, int]:
            return {one.id: one.port for one in cluster.admin.list_topics(timeout=10).brokers.values()}

        wait_until(lambda: brokers() == {1: cluster.brokers[1].port, 2: port}, "the stock broker names both")
        ours.wait_for_log('"state":"RUNNING"')
        if release == "3.9.1":  # later controllers refuse such small segments
            small = NewTopic("small", 1, replica_assignment=[[2, 1]], config={"segment.bytes": "60000"})
            cluster.admin.create_topics([small])["small"].result(30)
            producer = Producer({"bootstrap.servers": ours.address, "acks": "all", "log_level": 0})
            for _ in range(100):
                producer.produce("small", bytes(2_000))
                producer.flush(0.1)
            assert producer.flush(30) == 0
            assert sorted(cluster.partition("small").isrs) == [1, 2]
        assert ours.stop() == 0
        assert "PENDING_CONTROLLED_SHUTDOWN" in ours.log_text()
        wait_until(lambda: set(brokers()) == {1}, "the broker that left is fenced", SESSION_TIMEOUT_MS / 2000)
