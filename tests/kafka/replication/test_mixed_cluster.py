"""A stock broker and a kraftd broker replicate each other's partitions, under kraftd's controller."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic

from kraftd.wire.batch import iter_batches, records
from testkit.cluster import Cluster
from testkit.node import Controller, Node
from testkit.process import HOST, free_port, wait_until

pytestmark = pytest.mark.kafka

STOCK, OURS = 1, 2
SETTINGS = {
    "broker.heartbeat.interval.ms": 300,
    "replica.lag.time.max.ms": 3000,
    "replica.fetch.backoff.ms": 200,
    "num.replica.fetchers": 2,
}


class MixedCluster(Cluster):
    """Broker 1 is stock, broker 2 is kraftd's."""

    def __init__(self, home: Path) -> None:
        timeout = {"broker.session.timeout.ms": 3000}
        super().__init__(home, "kraftd", controller_properties=timeout, broker_properties=SETTINGS)
        self.start_controller()
        port = free_port()
        properties = {
            **self._quorum,
            **SETTINGS,
            "process.roles": "broker",
            "listeners": f"PLAINTEXT://{HOST}:{port}",
        }
        self.ours = Controller("kraftd", OURS, home / "ours", port, properties)
        self.ours.format(self.cluster_id)
        self.ours.start()
        self.start_brokers(STOCK)

    @property
    def nodes(self) -> list[Node]:
        return [*super().nodes, self.ours]

    def broker(self, broker_id: int) -> Node:
        return self.ours if broker_id == OURS else self.brokers[STOCK]

    def isrs(self) -> list[list[int]]:
        return [sorted(one.isrs) for _, one in sorted(self.partitions("t").items())]

    def leaders(self) -> list[int]:
        return [one.leader for _, one in sorted(self.partitions("t").items())]

    def wait_until_in_sync(self) -> None:
        wait_until(lambda: self.isrs() == [[STOCK, OURS]] * 2, "both brokers are in both ISRs", 60)

    def log(self, broker_id: int, partition: int) -> bytes:
        """All segments of a partition's log."""
        directory = self.broker(broker_id).data / f"t-{partition}"
        return b"".join(path.read_bytes() for path in sorted(directory.glob("*.log")))

    def logs_are_equal(self) -> bool:
        return all(self.log(STOCK, one) == self.log(OURS, one) for one in (0, 1))

    def epochs(self, broker_id: int, partition: int, log_end: int) -> list[list[int]]:
        """The leader epochs that have records, each with its first offset."""
        path = self.broker(broker_id).data / f"t-{partition}" / "leader-epoch-checkpoint"
        rows = [list(map(int, line.split())) for line in path.read_text().splitlines()[2:]]
        return [row for row in rows if row[1] < log_end]


class Writer:
    """An idempotent producer with acks=all, which writes numbers to both partitions until it is stopped."""

    def __init__(self, bootstrap: str) -> None:
        self.acknowledged: list[set[bytes]] = [set(), set()]
        self._stopped = threading.Event()
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 1,
                "topic.metadata.refresh.interval.ms": 1000,
                "message.timeout.ms": 60_000,
                "log_level": 0,
            }
        )
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        number = 0
        while not self._stopped.is_set():
            for partition in (0, 1):
                self._producer.produce("t", b"%08d" % number, partition=partition, callback=self._delivered)
            number += 1
            self._producer.poll(0.005)
        assert self._producer.flush(60) == 0

    def _delivered(self, error: object, message: object) -> None:
        if error is None:
            self.acknowledged[message.partition()].add(message.value())  # type: ignore[attr-defined]

    def counts(self) -> list[int]:
        return [len(one) for one in self.acknowledged]

    def wait_for_more(self) -> None:
        """Wait until more records of both partitions are acknowledged."""
        before = self.counts()
        wait_until(
            lambda: all(self.counts()[one] > before[one] + 20 for one in (0, 1)),
            "records are written",
            60,
        )

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join(90)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[MixedCluster]:
    cluster = MixedCluster(tmp_path)
    with cluster:
        yield cluster


def test_each_kind_of_broker_is_killed_and_no_acknowledged_record_is_lost(cluster: MixedCluster) -> None:
    cluster.wait_for_live_brokers(STOCK, OURS)
    topic = NewTopic("t", 2, replica_assignment=[[STOCK, OURS], [OURS, STOCK]])
    cluster.admin.create_topics([topic])["t"].result(30)
    cluster.wait_until_in_sync()
    writer = Writer(f"{cluster.bootstrap},{cluster.ours.address}")
    try:
        writer.wait_for_more()
        for killed, other in ((OURS, STOCK), (STOCK, OURS)):
            node = cluster.broker(killed)
            node.kill()
            wait_until(lambda other=other: cluster.leaders() == [other] * 2, f"{other} leads", 60)  # type: ignore[misc]
            writer.wait_for_more()
            node.start()
            cluster.wait_until_in_sync()
            writer.wait_for_more()
    finally:
        writer.stop()
    wait_until(cluster.logs_are_equal, "the logs are equal", 20)
    assert cluster.ours.stop() == 0
    cluster.brokers[STOCK].stop()
    for partition in (0, 1):
        log = cluster.log(OURS, partition)
        assert log == cluster.log(STOCK, partition)
        values = [one.value for batch in iter_batches(log) for one in records(batch)]
        assert writer.acknowledged[partition] <= {bytes(one or b"") for one in values}
        assert len(values) == len(set(map(bytes, values))), "a record is there twice"  # type: ignore[arg-type]
        ours = cluster.epochs(OURS, partition, len(values))
        assert ours == cluster.epochs(STOCK, partition, len(values)) and len(ours) > 1
    assert '"level":"error"' not in cluster.ours.log_text()
