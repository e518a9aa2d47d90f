"""Clients of a whole Kafka over its secured listeners, with certificates and with each mechanism of SASL.
Brokers replicate over such a listener, too.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from kraftd.security.sasl.jaas import OAUTHBEARER_MODULE
from testkit.certificates import Authority
from testkit.cluster import random_uuid
from testkit.identity_provider import IdentityProvider
from testkit.node import Controller
from testkit.process import HOST, free_port, wait_until
from tests.security.secured_daemon import PLAIN_MODULE, SCRAM_MODULE, STANDARD_AUTHORIZER, tls_keys

LISTENERS = {
    "INTERNAL": "PLAINTEXT",
    "TLS": "SSL",
    "USERS": "SASL_SSL",
    "OPEN": "SASL_PLAINTEXT",
    "CONTROLLER": "PLAINTEXT",
}
WAIT_S = 20
ONE_BROKER: dict[str, object] = {
    "offsets.topic.replication.factor": 1,
    "offsets.topic.num.partitions": 1,
    "group.initial.rebalance.delay.ms": 0,
}


def logins(listener: str, **modules: str) -> dict[str, object]:
    """The keys of a listener's mechanisms; in their names, _ is a dash."""
    prefix = f"listener.name.{listener.lower()}"
    jaas = {
        f"{prefix}.{name.replace('_', '-')}.sasl.jaas.config": f"{text};" for name, text in modules.items()
    }
    mechanisms = ",".join(name.replace("_", "-").upper() for name in modules)
    return {f"{prefix}.sasl.enabled.mechanisms": mechanisms, **jaas}


def token_keys(home: Path, provider: IdentityProvider) -> dict[str, object]:
    return {
        "sasl.oauthbearer.jwks.endpoint.url": f"file:{provider.write_jwks(home / 'jwks.json')}",
        "sasl.oauthbearer.expected.issuer": "issuer",
    }


class Secured:
    """A kraftd node with both roles. CN=alice and bob may do everything, carol nothing."""

    def __init__(self, home: Path) -> None:
        authority = Authority()
        self.alice = authority.issue("CN=alice").write_pem(home / "alice.pem")
        self.provider = IdentityProvider({})
        self.ports = {name: free_port() for name in LISTENERS}
        plain = f'{PLAIN_MODULE} required user_bob="q" user_carol="q"'
        properties: dict[str, object] = {
            **ONE_BROKER,
            "process.roles": "broker,controller",
            "listeners": ",".join(f"{name}://{HOST}:{port}" for name, port in self.ports.items()),
            "listener.security.protocol.map": ",".join(f"{k}:{v}" for k, v in LISTENERS.items()),
            "inter.broker.listener.name": "INTERNAL",
            "controller.quorum.bootstrap.servers": f"{HOST}:{self.ports['CONTROLLER']}",
            **tls_keys(home, authority, "CN=node"),
            "listener.name.tls.ssl.client.auth": "required",
            **logins("USERS", scram_sha_512=f"{SCRAM_MODULE} required", plain=plain),
            **logins("OPEN", oauthbearer=f"{OAUTHBEARER_MODULE} required", plain=plain),
            **token_keys(home, self.provider),
            "authorizer.class.name": STANDARD_AUTHORIZER,
            "super.users": "User:ANONYMOUS;User:CN=alice;User:bob",
            "kraftd.audit.log": home / "audit.log",
        }
        self.audit_log = home / "audit.log"
        self.trust = home / "trust.pem"
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

    def user(self, name: str, mechanism: str, listener: str) -> dict[str, Any]:
        """The configuration of a user who logs in with a password or with a token."""
        if mechanism == "OAUTHBEARER":
            granted = self.provider.token(name), time.time() + self.provider.lifetime_s
            return self.client(listener, **{"sasl.mechanism": mechanism, "oauth_cb": lambda _: granted})
        password = "q" if mechanism == "PLAIN" else "p"
        secret = {"sasl.username": name, "sasl.password": password, "sasl.mechanism": mechanism}
        return self.client(listener, **secret)


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    kafka = Secured(tmp_path_factory.mktemp("secured-broker"))
    yield kafka
    kafka.node.kill()


def send(config: dict[str, Any], topic: str) -> KafkaError | None:
    ends: list[KafkaError | None] = []
    producer = Producer({**config, "message.timeout.ms": WAIT_S * 1000})
    producer.produce(topic, b"value", on_delivery=lambda error, _: ends.append(error))
    producer.flush(WAIT_S)
    (end,) = ends
    return end


def receive(config: dict[str, Any], topic: str) -> bytes | KafkaError:
    """The first record or error that a member of a group gets."""
    consumer = Consumer({**config, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    try:
        end = time.monotonic() + WAIT_S
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


WAYS = pytest.mark.parametrize(
    ("mechanism", "listener"),
    [("SCRAM-SHA-512", "USERS"), ("PLAIN", "USERS"), ("PLAIN", "OPEN"), ("OAUTHBEARER", "OPEN")],
)


@WAYS
def test_a_user_of_each_mechanism_produces_and_consumes(
    kafka: Secured, mechanism: str, listener: str
) -> None:
    user, topic = kafka.user("bob", mechanism, listener), f"by-{mechanism}-{listener}"
    assert send(user, topic) is None
    assert receive(user, topic) == b"value"


@WAYS
def test_a_user_without_rights_gets_neither_topic_nor_group(
    kafka: Secured, mechanism: str, listener: str
) -> None:
    user = kafka.user("carol", mechanism, listener)
    assert send(kafka.client("INTERNAL"), "closed") is None
    refused = send(user, "closed")
    assert refused is not None and refused.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    found = receive(user, "closed")
    assert isinstance(found, KafkaError) and found.code() == KafkaError.GROUP_AUTHORIZATION_FAILED
    events = [json.loads(line) for line in kafka.audit_log.read_text().splitlines()]
    denied = {
        (one["api"], one["resource"])
        for one in events
        if one["event"] == "authorization denied" and one["principal"] == "User:carol"
    }
    assert {("METADATA", "TOPIC:LITERAL:closed"), ("FIND_COORDINATOR", "GROUP:LITERAL:g")} <= denied, denied


def by_certificate(home: Path, authority: Authority) -> dict[str, object]:
    return {
        "listener.security.protocol.map": "BETWEEN:SSL,CLIENTS:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "listener.name.between.ssl.client.auth": "required",
    }


def by_password(home: Path, authority: Authority) -> dict[str, object]:
    module = f'{PLAIN_MODULE} required username="broker" password="b" user_broker="b"'
    return {
        "listener.security.protocol.map": "BETWEEN:SASL_SSL,CLIENTS:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        **logins("BETWEEN", plain=module),
    }


def by_token(home: Path, authority: Authority) -> dict[str, object]:
    provider = IdentityProvider({})
    (home / "token.jwt").write_text(provider.token("broker"))
    return {
        "listener.security.protocol.map": "BETWEEN:SASL_PLAINTEXT,CLIENTS:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
        **logins("BETWEEN", oauthbearer=f"{OAUTHBEARER_MODULE} required"),
        **token_keys(home, provider),
        "sasl.oauthbearer.token.endpoint.url": f"file:{home}/token.jwt",
    }


@pytest.mark.parametrize("way", [by_certificate, by_password, by_token])
def test_a_follower_logs_in_at_the_listener_between_brokers(
    tmp_path: Path, way: Callable[[Path, Authority], dict[str, object]]
) -> None:
    authority, controller_port, clients_port = Authority(), free_port(), free_port()
    common: dict[str, object] = {
        **ONE_BROKER,
        **tls_keys(tmp_path, authority, "CN=broker"),
        "ssl.endpoint.identification.algorithm": "",
        "inter.broker.listener.name": "BETWEEN",
        "controller.quorum.bootstrap.servers": f"{HOST}:{controller_port}",
        **way(tmp_path, authority),
        "authorizer.class.name": STANDARD_AUTHORIZER,
        "super.users": "User:ANONYMOUS;User:CN=broker;User:broker",
    }
    first_listens = f"BETWEEN://{HOST}:{free_port()},CLIENTS://{HOST}:{clients_port},CONTROLLER://{HOST}:{controller_port}"
    roles = {"process.roles": "broker,controller", "listeners": first_listens}
    first = Controller("kraftd", 1, tmp_path / "first", controller_port, {**common, **roles})
    port = free_port()
    roles = {"process.roles": "broker", "listeners": f"BETWEEN://{HOST}:{port}"}
    second = Controller("kraftd", 2, tmp_path / "second", port, {**common, **roles})
    cluster_id = random_uuid()
    first.format(cluster_id, "--standalone")
    second.format(cluster_id)
    try:
        for one in (first, second):
            one.start()
            one.wait_for_log('"state":"RUNNING"')
        config: dict[str, Any] = {"bootstrap.servers": f"{HOST}:{clients_port}"}
        admin = AdminClient(config)
        replicas = NewTopic("t", 1, replica_assignment=[[1, 2]], config={"min.insync.replicas": "2"})
        admin.create_topics([replicas])["t"].result(WAIT_S)
        assert send({**config, "acks": "all"}, "t") is None
        (partition,) = admin.list_topics("t", timeout=WAIT_S).topics["t"].partitions.values()
        assert sorted(partition.isrs) == [1, 2]
        logs = [one.data / "t-0" / f"{0:020}.log" for one in (first, second)]
        wait_until(lambda: logs[0].read_bytes() == logs[1].read_bytes() != b"", "the logs are equal")
    finally:
        second.kill()
        first.kill()
