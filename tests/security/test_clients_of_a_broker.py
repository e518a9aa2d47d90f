"""Clients of a whole Kafka over its secured listeners: TLS with certificates, and SCRAM over TLS."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer

from testkit.certificates import Authority
from testkit.cluster import random_uuid
from testkit.node import Controller
from testkit.process import HOST, free_port
from tests.security.secured_daemon import SCRAM_MODULE, STANDARD_AUTHORIZER

LISTENERS = {"INTERNAL": "PLAINTEXT", "TLS": "SSL", "USERS": "SASL_SSL", "CONTROLLER": "PLAINTEXT"}
PATIENCE_S = 20


class Secured:
    """A kraftd node with both roles. CN=alice and bob may do everything, carol nothing."""

    def __init__(self, home: Path) -> None:
        self.home, authority = home, Authority()
        self.trust = authority.write_pem(home / "trust.pem")
        self.alice = authority.issue("CN=alice").write_pem(home / "alice.pem")
        self.ports = {name: free_port() for name in LISTENERS}
        users = "listener.name.users."
        properties: dict[str, object] = {
            "process.roles": "broker,controller",
            "listeners": ",".join(f"{name}://{HOST}:{port}" for name, port in self.ports.items()),
            "listener.security.protocol.map": ",".join(f"{k}:{v}" for k, v in LISTENERS.items()),
            "inter.broker.listener.name": "INTERNAL",
            "controller.quorum.bootstrap.servers": f"{HOST}:{self.ports['CONTROLLER']}",
            "offsets.topic.replication.factor": 1,
            "offsets.topic.num.partitions": 1,
            "group.initial.rebalance.delay.ms": 0,
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": authority.issue("CN=node").write_pem(home / "node.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": self.trust,
            "listener.name.tls.ssl.client.auth": "required",
            f"{users}sasl.enabled.mechanisms": "SCRAM-SHA-512",
            f"{users}scram-sha-512.sasl.jaas.config": f"{SCRAM_MODULE} required;",
            "authorizer.class.name": STANDARD_AUTHORIZER,
            "super.users": "User:ANONYMOUS;User:CN=alice;User:bob",
        }
        self.node = Controller("kraftd", 1, home / "node", self.ports["CONTROLLER"], properties)
        scram = [
            word
            for name in ("bob", "carol")
            for word in ("--add-scram", f"SCRAM-SHA-512=[name={name},password=p]")
        ]
        self.node.format(random_uuid(), "--standalone", *scram)
        self.node.start()
        self.node.wait_for_log('"state":"RUNNING"')

    def client(self, listener: str, **more: object) -> dict[str, Any]:
        """The configuration of a client at a listener."""
        found: dict[str, Any] = {"bootstrap.servers": f"{HOST}:{self.ports[listener]}", **more}
        if listener != "INTERNAL":
            found |= {"security.protocol": LISTENERS[listener], "ssl.ca.location": str(self.trust)}
        return found

    def user(self, name: str) -> dict[str, Any]:
        secret = {"sasl.username": name, "sasl.password": "p", "sasl.mechanism": "SCRAM-SHA-512"}
        return self.client("USERS", **secret)


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    kafka = Secured(tmp_path_factory.mktemp("secured-broker"))
    yield kafka
    kafka.node.kill()


def send(config: dict[str, Any], topic: str) -> KafkaError | None:
    ends: list[KafkaError | None] = []
    producer = Producer({**config, "message.timeout.ms": PATIENCE_S * 1000})
    producer.produce(topic, b"value", on_delivery=lambda error, _: ends.append(error))
    producer.flush(PATIENCE_S)
    (end,) = ends
    return end


def receive(config: dict[str, Any], topic: str) -> bytes | KafkaError:
    """The first record or error that a member of a group gets."""
    consumer = Consumer({**config, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    try:
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            message = consumer.poll(0.5)
            if message is not None:
                error = message.error()
                value = message.value()
                assert error is not None or value is not None
                return error or value
        raise TimeoutError(f"nothing of {topic}")
    finally:
        consumer.close()


def test_a_certificate_is_a_principal(kafka: Secured) -> None:
    keys = {name: str(kafka.alice) for name in ("ssl.certificate.location", "ssl.key.location")}
    config = kafka.client("TLS", **keys)
    assert send(config, "by-certificate") is None
    assert receive(config, "by-certificate") == b"value"


def test_a_user_of_scram_produces_and_consumes(kafka: Secured) -> None:
    assert send(kafka.user("bob"), "by-scram") is None
    assert receive(kafka.user("bob"), "by-scram") == b"value"


def test_a_user_without_rights_gets_neither_topic_nor_group(kafka: Secured) -> None:
    assert send(kafka.client("INTERNAL"), "closed") is None
    refused = send(kafka.user("carol"), "closed")
    assert refused is not None and refused.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    found = receive(kafka.user("carol"), "closed")
    assert isinstance(found, KafkaError) and found.code() == KafkaError.GROUP_AUTHORIZATION_FAILED
