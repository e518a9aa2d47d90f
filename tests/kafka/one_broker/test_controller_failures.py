"""A controller is killed or stopped and started again, in any order with its broker: no topic is lost."""

from __future__ import annotations

import itertools
import threading

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from testkit.cluster import Cluster

pytestmark = pytest.mark.kafka


class Creates(threading.Thread):
    """Creates topics one after another, several at a time, and keeps the acknowledged names."""

    def __init__(self, cluster: Cluster, prefix: str, at_once: int = 8) -> None:
        super().__init__(daemon=True)
        self.acknowledged: list[str] = []
        self._prefix, self._at_once = prefix, at_once
        self._admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
        self._stopping = threading.Event()

    def run(self) -> None:
        for batch in itertools.count():
            if self._stopping.is_set():
                return
            names = [f"{self._prefix}-{batch}-{index}" for index in range(self._at_once)]
            futures = [
                (
                    name,
                    self._admin.create_topics([NewTopic(name, 2, 1)], request_timeout=5, operation_timeout=5)[
                        name
                    ],
                )
                for name in names
            ]
            for name, future in futures:
                try:
                    future.result()
                except KafkaException:
                    continue
                self.acknowledged.append(name)

    def stop(self) -> None:
        self._stopping.set()
        self.join()


def topics(cluster: Cluster) -> set[str]:
    return set(cluster.tool("topics", "--list").out.split())


def round_trip(cluster: Cluster, topic: str, value: bytes) -> None:
    """Produce a record and read it back."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    delivered = []
    producer.produce(topic, value, on_delivery=lambda error, message: delivered.append((error, message)))
    assert producer.flush(60) == 0
    assert delivered[0][0] is None
    reader = Consumer(
        {"bootstrap.servers": cluster.bootstrap, "group.id": "round-trip", "auto.offset.reset": "earliest"}
    )
    reader.subscribe([topic])
    for _ in range(600):
        message = reader.poll(0.1)
        if message is not None and message.error() is None and message.value() == value:
            break
    else:
        raise AssertionError(f"{value!r} was not read back from {topic}")
    reader.close()


def test_no_acknowledged_topic_is_lost_if_the_controller_is_killed(
    one_broker: Cluster,
) -> None:
    cluster = one_broker
    acknowledged: list[str] = []
    for round_number in range(3):
        creates = Creates(cluster, f"round{round_number}")
        creates.start()
        cluster.wait_until(lambda creates=creates: len(creates.acknowledged) >= 60, "60 topics acknowledged")
        cluster.controller.kill()
        cluster.start_controller()
        count = len(creates.acknowledged)
        cluster.wait_until(
            lambda creates=creates, count=count: len(creates.acknowledged) >= count + 16,
            "creates are served again",
        )
        creates.stop()
        acknowledged += creates.acknowledged
    cluster.wait_until(
        lambda: set(acknowledged) <= topics(cluster), f"the broker knows all {len(acknowledged)} topics"
    )
    assert all(len(cluster.metadata().topics[name].partitions) == 2 for name in acknowledged)
    for future in cluster.admin.delete_topics(sorted(topics(cluster)), operation_timeout=30).values():
        future.exception(60)


def test_a_broker_keeps_serving_while_the_controller_is_down(one_broker: Cluster) -> None:
    cluster = one_broker
    cluster.create_topic("unattended")
    round_trip(cluster, "unattended", b"before")
    cluster.controller.kill()
    round_trip(cluster, "unattended", b"meanwhile")
    cluster.start_controller()
    cluster.create_topic("attended")
    round_trip(cluster, "attended", b"after")


def test_the_controller_ends_cleanly_on_sigterm_and_serves_again(one_broker: Cluster) -> None:
    cluster = one_broker
    cluster.create_topic("clean")
    code = cluster.controller.stop()
    assert code == (0 if cluster.controller.kind == "kraftd" else 143)
    cluster.start_controller()
    assert "clean" in topics(cluster)
    cluster.create_topic("clean-again")


@pytest.mark.parametrize("order", [("controller", "broker"), ("broker", "controller")], ids="-then-".join)
def test_nothing_is_lost_after_both_were_killed_and_started_in_any_order(
    one_broker: Cluster, order: tuple[str, str]
) -> None:
    cluster, name = one_broker, f"both-{order[0]}-first"
    cluster.create_topic(name, partitions=3, retention_ms=7654321)
    round_trip(cluster, name, b"kept")
    broker = cluster.brokers[1]
    cluster.controller.kill()
    broker.kill()
    if order[0] == "controller":
        cluster.start_controller()
        broker.start()
    else:
        broker.start()
        broker.wait_for_log("Transition from SHUTDOWN to STARTING")
        cluster.start_controller()
    broker.wait_ready()
    cluster.wait_for_live_brokers(1)
    described = cluster.tool("topics", "--describe", "--topic", name).out
    assert "PartitionCount: 3" in described
    assert "retention.ms=7654321" in described
    round_trip(cluster, name, b"and more")


def test_a_frozen_controller_that_wakes_keeps_serving(one_broker: Cluster) -> None:
    cluster = one_broker
    cluster.create_topic("before-the-sleep")
    cluster.controller.freeze()
    creates = Creates(cluster, "asleep", at_once=1)
    creates.start()
    round_trip(cluster, "before-the-sleep", b"awake without it")
    cluster.controller.thaw()
    cluster.wait_until(lambda: len(creates.acknowledged) >= 3, "creates are served")
    creates.stop()
    cluster.wait_until(lambda: set(creates.acknowledged) <= topics(cluster), "the broker knows them all")
