"""Clients with certificates that bootstrap from kraftd, on a stock cluster with mutual TLS throughout."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from testkit.certificates import Authority
from testkit.cluster import random_uuid
from testkit.java import ToolRun, tools
from testkit.node import Broker, Kind
from testkit.process import HOST, free_port, wait_until
from tests.kafka.secured.nodes import SecuredController, broker, controller
from tests.security.secured_daemon import tls_keys

pytestmark = pytest.mark.kafka

VALUES = [f"value-{number}" for number in range(20)]


class ByCertificates:
    """Apache Kafka's controller 100 and brokers 1 and 2, and kraftd's 300, which observes and serves clients.

    Every listener uses TLS and requires a certificate; clients know only kraftd's address.
    """

    def __init__(self, home: Path) -> None:
        self.home, self.authority = home, Authority()
        self.outer_ports: list[int] = []  # of the brokers, for clients
        port, self.served = free_port(), free_port()
        nodes = ("controller-100", "broker-1", "broker-2", "controller-300", "admin")
        self.common: dict[str, object] = {
            "listener.security.protocol.map": "CONTROLLER:SSL,INTERNAL:SSL,EXTERNAL:SSL",
            "controller.quorum.bootstrap.servers": f"{HOST}:{port}",
            "super.users": ";".join(f"User:{name}" for name in nodes),
            "ssl.client.auth": "required",
            "ssl.principal.mapping.rules": "RULE:^CN=([^,]+).*$/$1/,DEFAULT",
        }
        self.controller = self._controller(100, "apache", port, f"CONTROLLER://{HOST}:{port}", {})
        own = free_port()
        self.observer = self._controller(
            300,
            "kraftd",
            own,
            f"CONTROLLER://{HOST}:{own},EXTERNAL://{HOST}:{self.served}",
            {"kraftd.client.listener.names": "EXTERNAL"},
        )
        self.brokers = [self._broker(1), self._broker(2)]

    def _keys(self, name: str) -> dict[str, object]:
        home = self.home / name
        home.mkdir()
        return {**self.common, **tls_keys(home, self.authority, f"CN={name}")}

    def _controller(
        self, node_id: int, kind: Kind, port: int, listeners: str, more: dict[str, object]
    ) -> SecuredController:
        keys = {**self._keys(f"controller-{node_id}"), "listeners": listeners, **more}
        home = self.home / f"controller-{node_id}"
        return controller(node_id, home, port, self.authority, keys, kind=kind)

    def _broker(self, node_id: int) -> Broker:
        name, ports = f"broker-{node_id}", (free_port(), free_port())
        self.outer_ports.append(ports[1])
        listeners = f"INTERNAL://{HOST}:{ports[0]},EXTERNAL://{HOST}:{ports[1]}"
        keys = {
            **self._keys(name),
            "listeners": listeners,
            "advertised.listeners": listeners,
            "inter.broker.listener.name": "INTERNAL",
            "offsets.topic.replication.factor": 2,
        }
        return broker(node_id, self.home / name, ports, self.authority, keys)

    def start(self) -> None:
        cluster_id = random_uuid()
        self.controller.format(cluster_id, "--standalone")
        for node in (*self.brokers, self.observer):
            node.format(cluster_id, "--no-initial-controllers")
        for node in (self.controller, *self.brokers, self.observer):
            node.start()
        for node in (self.controller, *self.brokers, self.observer):
            node.wait_ready()

    def stop(self) -> None:
        for node in (self.observer, *self.brokers, self.controller):
            node.kill()

    def client(self, name: str, port: int = 0) -> dict[str, str]:
        """librdkafka's config with that name's certificate; it begins at kraftd, or at that port."""
        issued = self.authority.issue(f"CN={name}")
        certificate, key = (self.home / f"{name}.{kind}.pem" for kind in ("certificate", "key"))
        certificate.write_text(issued.chain_pem)
        key.write_text(issued.key_pem)
        return {
            "bootstrap.servers": f"{HOST}:{port or self.served}",
            "security.protocol": "SSL",
            "ssl.ca.location": str(self.authority.write_pem(self.home / "ca.pem")),
            "ssl.certificate.location": str(certificate),
            "ssl.key.location": str(key),
            "log_level": "0",
        }

    def tool(self, user: str, name: str, *arguments: object, stdin: str = "") -> ToolRun:
        """Run one of Kafka's tools with that user's certificate, through kraftd."""
        store = self.authority.issue(f"CN={user}").write_pem(self.home / f"{user}.pem")
        file = self.home / f"{user}.properties"
        file.write_text(
            f"security.protocol=SSL\nssl.keystore.type=PEM\nssl.keystore.location={store}\n"
            f"ssl.truststore.type=PEM\n"
            f"ssl.truststore.location={self.authority.write_pem(self.home / 'ca.pem')}\n"
        )
        way = ("--bootstrap-server", f"{HOST}:{self.served}", "--command-config", file)
        return tools().run(name, *way, *arguments, stdin=stdin).check()


@pytest.fixture(scope="module")
def cluster(kind: Kind, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ByCertificates]:
    if kind != "kraftd":
        pytest.skip("Apache Kafka's controllers serve no clients")
    started = ByCertificates(tmp_path_factory.mktemp("mutual-tls"))
    try:
        started.start()
        yield started
    finally:
        started.stop()


def create(cluster: ByCertificates, user: str, topic: str) -> None:
    """Create a topic on both brokers, and allow that user all operations on it."""
    admin = AdminClient(cluster.client("admin"))
    admin.create_topics([NewTopic(topic, 2, 2)])[topic].result(30)
    literal, permission = ResourcePatternType.LITERAL, AclPermissionType.ALLOW
    rules = [
        AclBinding(type, topic, literal, f"User:{user}", "*", AclOperation.ALL, permission)
        for type in (ResourceType.TOPIC, ResourceType.GROUP)
    ]
    for future in admin.create_acls(rules).values():
        future.result(30)

    def is_replicated() -> bool:
        partitions = admin.list_topics(topic, timeout=20).topics[topic].partitions.values()
        return len(partitions) == 2 and all(len(one.isrs) == 2 for one in partitions)

    wait_until(is_replicated, f"{topic} is replicated")
    for port in cluster.outer_ports:  # a producer that is refused once gives up
        client = AdminClient(cluster.client(user, port))
        wait_until(
            lambda client=client: client.list_topics(topic, timeout=20).topics[topic].error is None,  # type: ignore[misc]
            f"the broker at {port} has the rules",
        )


def test_librdkafka_is_authorized_by_its_certificate(cluster: ByCertificates) -> None:
    create(cluster, "alice", "rd")
    failed: list[object] = []
    producer = Producer({**cluster.client("alice"), "enable.idempotence": True})
    for value in VALUES:
        producer.produce("rd", value, on_delivery=lambda error, _: failed.append(error))
    assert producer.flush(60) == 0 and set(failed) == {None}
    consumer = Consumer({**cluster.client("alice"), "group.id": "rd", "auto.offset.reset": "earliest"})
    consumer.subscribe(["rd"])
    seen = [consumer.poll(60) for _ in VALUES]
    consumer.commit(asynchronous=False)
    consumer.close()
    assert sorted((one.value() or b"").decode() for one in seen if one is not None) == sorted(VALUES)
    admin = AdminClient(cluster.client("admin"))
    assert {one.id for one in admin.describe_cluster().result(30).nodes} == {1, 2}
    assert admin.describe_consumer_groups(["rd"])["rd"].result(30).group_id == "rd"
    stranger = AdminClient(cluster.client("eve"))
    with pytest.raises(KafkaException, match="TOPIC_AUTHORIZATION_FAILED"):
        stranger.create_topics([NewTopic("of-eve", 1, 1)])["of-eve"].result(30)


def test_javas_tools_are_authorized_by_their_certificate(cluster: ByCertificates) -> None:
    create(cluster, "bob", "java")
    cluster.tool("bob", "console-producer", "--topic", "java", stdin="\n".join(VALUES))
    read = ("--topic", "java", "--group", "java", "--from-beginning", "--max-messages", len(VALUES))
    assert sorted(cluster.tool("bob", "console-consumer", *read).out.split()) == sorted(VALUES)
    described = cluster.tool("admin", "topics", "--describe", "--topic", "java").out
    assert "ReplicationFactor: 2" in described
    assert "java" in cluster.tool("admin", "consumer-groups", "--list").out.split()


def test_a_client_without_a_certificate_is_not_served(cluster: ByCertificates) -> None:
    config = {key: value for key, value in cluster.client("alice").items() if "certificate" not in key}
    del config["ssl.key.location"]
    with pytest.raises(KafkaException):
        AdminClient(config).list_topics(timeout=2)
