"""A secured quorum of three: Apache Kafka's controllers become kraftd's, one after the other, and back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from testkit.certificates import Authority
from testkit.cluster import random_uuid
from testkit.node import Kind
from testkit.process import HOST, free_port, wait_until
from tests.kafka.secured.nodes import (
    OF_CONTROLLER,
    PROTOCOLS,
    admin,
    broker,
    controller,
    scram_jaas,
)
from tests.kafka.secured.test_secured_clusters import creation_error, may_create
from tests.security.secured_daemon import PLAIN_MODULE, SCRAM_MODULE, plain

pytestmark = [pytest.mark.kafka, pytest.mark.thorough]

IDS = (100, 101, 102)
SCRAM = "SCRAM-SHA-512"


class Three:
    """Controllers 100 to 102 over SASL_SSL, and broker 1; all authorize.

    Controllers log in by PLAIN, since Apache Kafka's cannot elect by SCRAM, and the broker by SCRAM.
    """

    def __init__(self, home: Path) -> None:
        authority = Authority()
        ports = {one: free_port() for one in IDS}
        names = [f"controller-{one}" for one in IDS]
        users = " ".join(f'user_{name}="{name}-secret"' for name in (*names, "admin"))
        common: dict[str, object] = {
            "listener.security.protocol.map": PROTOCOLS.format("SASL_SSL"),
            "controller.quorum.bootstrap.servers": ",".join(f"{HOST}:{port}" for port in ports.values()),
            "super.users": ";".join(f"User:{name}" for name in (*names, "broker", "admin", "ANONYMOUS")),
        }
        of_controllers = {
            "sasl.mechanism.controller.protocol": "PLAIN",
            f"{OF_CONTROLLER}sasl.enabled.mechanisms": f"PLAIN,{SCRAM}",
            f"{OF_CONTROLLER}scram-sha-512.sasl.jaas.config": f"{SCRAM_MODULE} required;",
        }
        self.controllers = {}
        for one, port in ports.items():
            own = f'username="controller-{one}" password="controller-{one}-secret"'
            jaas = {f"{OF_CONTROLLER}plain.sasl.jaas.config": f"{PLAIN_MODULE} required {own} {users};"}
            properties = {**common, **of_controllers, **jaas}
            login = plain("admin", "admin-secret")
            self.controllers[one] = controller(
                one, home / str(one), port, authority, properties, login, "apache"
            )
        of_broker = {
            "sasl.mechanism.controller.protocol": SCRAM,
            f"{OF_CONTROLLER}scram-sha-512.sasl.jaas.config": scram_jaas("broker", "broker-secret"),
        }
        self.clients_port = free_port()
        own_ports = free_port(), self.clients_port
        self.broker = broker(1, home / "broker", own_ports, authority, {**common, **of_broker})
        self.initial = ",".join(f"{one}@{HOST}:{port}:{random_uuid()}" for one, port in ports.items())

    def start(self) -> None:
        cluster_id = random_uuid()
        user = ("--add-scram", f"{SCRAM}=[name=broker,password=broker-secret]")
        for one in self.controllers.values():
            one.format(cluster_id, "--initial-controllers", self.initial, *user)
        self.broker.format(cluster_id, "--no-initial-controllers")
        for node in (*self.controllers.values(), self.broker):
            node.start()
        for node in (*self.controllers.values(), self.broker):
            node.wait_ready()

    def stop(self) -> None:
        for node in (self.broker, *self.controllers.values()):
            node.kill()

    def leader_id(self) -> int:
        """The id of the leader that all controllers name; OSError while they do not agree."""
        found = {one.active_controller() for one in self.controllers.values()}
        if len(found) != 1 or -1 in found:
            raise OSError(f"no common leader, but {found}")
        return found.pop()

    def wait_for_leader(self) -> int:
        wait_until(lambda: self.leader_id() >= 0, "all know one leader")
        return self.leader_id()

    def replace(self, node_id: int, kind: Kind) -> None:
        one = self.controllers[node_id]
        one.stop()
        one.kind = kind
        one.start()
        one.wait_ready()
        self.wait_for_leader()


@pytest.fixture
def three(tmp_path: Path) -> Iterator[Three]:
    quorum = Three(tmp_path)
    try:
        quorum.start()
        yield quorum
    finally:
        quorum.stop()


def test_a_secured_quorum_moves_to_kraftd_and_back_voter_by_voter(three: Three, kind: Kind) -> None:
    root, alice = admin(three.clients_port, "admin"), admin(three.clients_port, "alice")
    rule = may_create("User:alice", "moved-")
    root.create_acls([rule])[rule].result(20)
    others: tuple[Kind, ...] = ("apache",) if kind == "apache" else ("kraftd", "apache")
    for other in others:
        leader = three.wait_for_leader()
        for node_id in sorted(IDS, key=lambda one: one == leader):
            three.replace(node_id, other)
            allowed = (None, "TOPIC_ALREADY_EXISTS")
            name = f"moved-{other}-{node_id}"
            wait_until(lambda: creation_error(alice, name) in allowed, "alice may create")  # noqa: B023
            assert creation_error(alice, f"payments-{other}-{node_id}") == "TOPIC_AUTHORIZATION_FAILED"
