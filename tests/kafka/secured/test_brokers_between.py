"""A kraftd broker and a stock one replicate each other's partitions over a secured listener of their own."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from kraftd.messages.metadata_request import MetadataRequest
from kraftd.messages.metadata_response import MetadataResponse
from kraftd.wire.api import ApiKey
from testkit.certificates import Authority
from testkit.cluster import random_uuid
from testkit.node import Controller, Kind
from testkit.process import HOST, free_port, wait_until
from tests.kafka.secured.nodes import scram_jaas
from tests.security.secured_daemon import PLAIN_MODULE, STANDARD_AUTHORIZER, connect, plain

pytestmark = pytest.mark.kafka

KINDS: dict[int, Kind] = {1: "kraftd", 2: "apache"}
RACKS = {1: "a", 2: "b"}
SCRAM = "SCRAM-SHA-512"
TOPIC, TRANSACTIONS, RECORDS = "t", 6, 4  # records of a transaction
SERVES: dict[Kind, str] = {"kraftd": '"state":"RUNNING"', "apache": "Kafka Server started"}


class Between:
    """A controller over mutual TLS. Brokers talk over `between`, and clients log in by PLAIN elsewhere."""

    def __init__(self, home: Path, between: str) -> None:
        self.home, self.authority, self.port = home, Authority(), free_port()
        protocols = f"CONTROLLER:SSL,BETWEEN:{between},CLIENTS:SASL_PLAINTEXT"
        self.common: dict[str, object] = {
            "controller.quorum.bootstrap.servers": f"{HOST}:{self.port}",
            "listener.security.protocol.map": protocols,
            "listener.name.controller.ssl.client.auth": "required",
            "ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/",
            "authorizer.class.name": STANDARD_AUTHORIZER,
            "super.users": "User:admin;User:broker;User:controller;User:node-1;User:node-2",
            "broker.session.timeout.ms": 30_000,
        }
        listens = {"listeners": f"CONTROLLER://{HOST}:{self.port}"}
        self.controller = self._node("kraftd", 100, "controller", self.port, listens)
        self.clients = {node_id: free_port() for node_id in KINDS}
        self.brokers = {node_id: self._broker(node_id) for node_id in KINDS}

    def _node(self, kind: Kind, node_id: int, name: str, port: int, own: dict[str, Any]) -> Controller:
        home = self.home / name
        home.mkdir()
        stores = {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": self.authority.issue(f"CN={name}").write_pem(home / "node.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": self.authority.write_pem(home / "trust.pem"),
        }
        return Controller(kind, node_id, home, port, {**self.common, **stores, **own})

    def _broker(self, node_id: int) -> Controller:
        port = free_port()
        listeners = f"BETWEEN://{HOST}:{port},CLIENTS://{HOST}:{self.clients[node_id]}"
        users = "user_admin=admin user_alice=alice"
        own = {
            "process.roles": "broker",
            "listeners": listeners,
            "advertised.listeners": listeners,
            "inter.broker.listener.name": "BETWEEN",
            "broker.rack": RACKS[node_id],
            "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
            "listener.name.between.ssl.client.auth": "required",
            "listener.name.between.sasl.enabled.mechanisms": SCRAM,
            "sasl.mechanism.inter.broker.protocol": SCRAM,
            "listener.name.between.scram-sha-512.sasl.jaas.config": scram_jaas("broker", "broker-secret"),
            "listener.name.clients.sasl.enabled.mechanisms": "PLAIN",
            "listener.name.clients.plain.sasl.jaas.config": f"{PLAIN_MODULE} required {users};",
            "offsets.topic.replication.factor": 2,
            "offsets.topic.num.partitions": 2,
            "transaction.state.log.replication.factor": 2,
            "transaction.state.log.num.partitions": 2,
            "transaction.state.log.min.isr": 2,
            "group.initial.rebalance.delay.ms": 0,
        }
        return self._node(KINDS[node_id], node_id, f"node-{node_id}", port, own)

    def start(self) -> None:
        cluster_id, user = random_uuid(), f"{SCRAM}=[name=broker,password=broker-secret]"
        self.controller.format(cluster_id, "--standalone", "--add-scram", user)
        self.controller.start()
        for node in self.brokers.values():
            node.format(cluster_id, *(["--no-initial-controllers"] if node.kind == "apache" else []))
            node.start()
        for node in self.brokers.values():
            node.wait_for_log(SERVES[node.kind], 60)

    def stop(self) -> None:
        for node in (*self.brokers.values(), self.controller):
            node.kill()

    def settings(self, user: str, **more: object) -> dict[str, Any]:
        return {
            "bootstrap.servers": ",".join(f"{HOST}:{port}" for port in self.clients.values()),
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": user,
            "sasl.password": user,
            "log_level": 0,
            **{key.replace("_", "."): value for key, value in more.items()},
        }

    def log(self, node_id: int, partition: int) -> bytes:
        return next((self.brokers[node_id].data / f"{TOPIC}-{partition}").glob("*.log")).read_bytes()


@pytest.fixture(params=["SASL_SSL", "SSL"])
def between(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Between]:
    cluster = Between(tmp_path, request.param)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def shows_topic_to_alice(port: int) -> bool:
    """Ask this broker: other clients of Kafka ask any of those that they know."""
    with connect(port, login=plain("alice", "alice")) as client:
        answer = client.ask(ApiKey.METADATA, MetadataRequest(None), MetadataResponse)
    return TOPIC in [topic.name for topic in answer.topics]


def test_brokers_of_both_kinds_replicate_and_coordinate_over_a_secured_listener(between: Between) -> None:
    admin = AdminClient(between.settings("admin"))
    topic = NewTopic(TOPIC, 2, replica_assignment=[[1, 2], [2, 1]], config={"min.insync.replicas": "2"})
    admin.create_topics([topic])[TOPIC].result(30)
    everything = (ResourcePatternType.LITERAL, "User:alice", "*", AclOperation.ALL, AclPermissionType.ALLOW)
    of = (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID)
    for created in admin.create_acls([AclBinding(kind, "*", *everything) for kind in of]).values():
        created.result(30)
    for port in between.clients.values():
        wait_until(partial(shows_topic_to_alice, port), "the broker knows the rights")

    # Coordinators of either kind let leaders of either kind write markers.
    for number in range(TRANSACTIONS):
        producer = Producer(between.settings("alice", transactional_id=f"id-{number}"))
        producer.init_transactions(30)
        producer.begin_transaction()
        for record in range(RECORDS):
            producer.produce(TOPIC, b"%d.%d" % (number, record), partition=record % 2)
        producer.commit_transaction(30)

    for rack in RACKS.values():
        own = {"group.id": f"group-{rack}", "client.rack": rack, "auto.offset.reset": "earliest"}
        consumer = Consumer(between.settings("alice") | own)
        consumer.subscribe([TOPIC])
        found: list[bytes] = []

        def has_all(consumer: Consumer = consumer, found: list[bytes] = found) -> bool:
            found += [one.value() for one in consumer.consume(100, 0.5) if one.error() is None]
            return len(found) >= TRANSACTIONS * RECORDS

        wait_until(has_all, f"a reader in rack {rack} has all records", 30)
        assert len(set(found)) == len(found) == TRANSACTIONS * RECORDS
        consumer.commit(asynchronous=False)
        consumer.close()
    for partition in (0, 1):
        assert between.log(1, partition) == between.log(2, partition)
    assert '"level":"error"' not in between.brokers[1].log_text() + between.controller.log_text()
