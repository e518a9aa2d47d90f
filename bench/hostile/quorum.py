"""Three secured controllers of either kind: logins by PLAIN, an authorizer, and a second listener of TLS."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from kraftd.acl import AclOperation, AclPatternType, AclPermission, AclResourceType
from kraftd.messages.create_acls_request import AclCreation, CreateAclsRequest
from kraftd.messages.describe_quorum_response import PartitionData
from kraftd.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kraftd.messages.sasl_handshake_request import SaslHandshakeRequest
from kraftd.net.tls.contexts import TlsContexts
from kraftd.security.authorizer_settings import CLASS_NAME
from kraftd.security.sasl.jaas import PLAIN_MODULE
from kraftd.security.tls_settings import StoreSettings, TlsSettings
from testkit.certificates import Authority
from testkit.client import Client
from testkit.java import AS_KAFKA_STARTS
from testkit.node import Kind
from testkit.process import HOST, free_port
from testkit.quorum import DESCRIBE, Quorum

VOTERS = (100, 101, 102)
ADMIN, STRANGER, READER = "admin", "mallory", "alice"
HOSTILE_HOST = "127.0.0.2"  # the address that attacks come from, unless another is given
RSA_BITS = 2048
ACLS_VERSION = 3
ACLS_PER_REQUEST = 1_000
NO_PROPERTIES: Mapping[str, object] = MappingProxyType({})


class Target(NamedTuple):
    """What an attack knows: ports of the attacked node, and of all nodes."""

    port: int
    secure_port: int
    client_port: int  # 0: it serves no ordinary clients
    metrics_port: int  # 0: it has no such listener
    broker_port: int  # 0: there is no broker
    ports: tuple[int, ...]
    secure_ports: tuple[int, ...]
    authority_pem: str
    elements: int  # instead of the number that a row has; 0: that number
    cluster_id: str
    attacker: str  # the address that it comes from
    seed: int  # of the first random request; each has its own


def connect(
    port: int, user: str = "", authority_pem: str = "", *, host: str = "", timeout_s: float = 60
) -> Client:
    """A connection from an address, over TLS with an authority, logged in as a user; OSError without one."""
    tls = None
    if authority_pem:
        store = StoreSettings(type="PEM", certificates=authority_pem)
        tls = TlsContexts(TlsSettings(truststore=store)).client
    client = Client(HOST, port, "bench", timeout_s, tls, source=host)
    if user:
        client.call(SaslHandshakeRequest("PLAIN"), 1)
        answer = client.call(SaslAuthenticateRequest(f"\0{user}\0{user}-secret".encode()), 2)
        if answer.error_code:
            client.close()
            raise OSError(f"{user} cannot log in: {answer.error_message}")
    return client


class SecuredQuorum(Quorum):
    """A quorum whose controllers are asked as the administrator."""

    def quorum_by(self, node_id: int) -> PartitionData:
        with connect(self.controllers[node_id].port, ADMIN, timeout_s=20) as client:
            partition: PartitionData = client.call(DESCRIBE, 2).topics[0].partitions[0]
        return partition

    def start_controllers(self, *ids: int) -> int:
        chosen = [self.controllers[node_id] for node_id in ids or self.controllers]
        for controller in chosen:
            if not controller.data.exists():
                controller.format(self.cluster_id, "--initial-controllers", self.initial)
        for controller in chosen:
            controller.start()
        return self.wait_for_leader()


class Attacked:
    """The nodes under attack, with their ports."""

    def __init__(
        self, home: Path, kind: Kind, *, with_broker: bool, properties: Mapping[str, object] = NO_PROPERTIES
    ) -> None:
        self.kind, self.authority = kind, Authority()
        self.secure_ports, self.client_ports, self.metrics_ports = (
            {node_id: free_port() for node_id in VOTERS} for _ in range(3)
        )
        self.quorum = SecuredQuorum(
            home,
            dict.fromkeys(VOTERS, kind),
            controller_properties=self._properties(home) | dict(properties),
        )
        for node_id, controller in self.quorum.controllers.items():
            controller.jvm = AS_KAFKA_STARTS
            controller.properties |= self._listeners(node_id, controller.port)
            controller.write_properties()
        self.with_broker = with_broker
        self.broker_port = 0
        self.has_acls = False
        self.next_broker = 20

    def _properties(self, home: Path) -> dict[str, object]:
        users = " ".join(f'user_{name}="{name}-secret"' for name in (ADMIN, STRANGER, READER))
        jaas = f'{PLAIN_MODULE} required username="{ADMIN}" password="{ADMIN}-secret" {users};'
        keystore = self.authority.issue("CN=node", rsa_bits=RSA_BITS).write_pem(home / "node.pem")
        logins = {
            f"listener.name.{name}.{key}": value
            for name in ("controller", "secure", "clients")
            for key, value in (("sasl.enabled.mechanisms", "PLAIN"), ("plain.sasl.jaas.config", jaas))
        }
        return logins | {
            "controller.listener.names": "CONTROLLER,SECURE",
            "listener.security.protocol.map": (
                "CONTROLLER:SASL_PLAINTEXT,SECURE:SASL_SSL,CLIENTS:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT"
            ),
            "sasl.mechanism.controller.protocol": "PLAIN",
            "listener.name.secure.ssl.keystore.type": "PEM",
            "listener.name.secure.ssl.keystore.location": keystore,
            "authorizer.class.name": CLASS_NAME,
            "super.users": f"User:{ADMIN}",
            "broker.session.timeout.ms": 60_000,
        }

    def _listeners(self, node_id: int, port: int) -> dict[str, object]:
        listeners = f"CONTROLLER://{HOST}:{port},SECURE://{HOST}:{self.secure_ports[node_id]}"
        if self.kind == "apache":
            return {"listeners": listeners}
        return {
            "listeners": f"{listeners},CLIENTS://{HOST}:{self.client_ports[node_id]}",
            "kraftd.client.listener.names": "CLIENTS",
            "kraftd.metrics.listener": f"{HOST}:{self.metrics_ports[node_id]}",
        }

    def start(self) -> None:
        self.quorum.start_controllers()
        self.quorum.wait_for_voters(*VOTERS)
        if self.with_broker:
            self._start_broker()

    def _start_broker(self) -> None:
        """Start a stock broker, which passes on what its clients ask, as their principals."""
        shared = self.quorum.controllers[VOTERS[0]].properties
        jaas = shared["listener.name.controller.plain.sasl.jaas.config"]
        self.broker_port = free_port()
        listener = f"CLIENTS://{HOST}:{self.broker_port}"
        self.quorum.start_brokers(
            1,
            properties={
                "controller.listener.names": "CONTROLLER",
                "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT,CLIENTS:SASL_PLAINTEXT",
                "listeners": listener,
                "advertised.listeners": listener,
                "inter.broker.listener.name": "CLIENTS",
                "sasl.mechanism.inter.broker.protocol": "PLAIN",
                "sasl.mechanism.controller.protocol": "PLAIN",
                "listener.name.controller.plain.sasl.jaas.config": jaas,
                "listener.name.clients.sasl.enabled.mechanisms": "PLAIN",
                "listener.name.clients.plain.sasl.jaas.config": jaas,
                "authorizer.class.name": CLASS_NAME,
                "super.users": f"User:{ADMIN}",
            },
            jvm=AS_KAFKA_STARTS,
        )

    def target(
        self, *, follower: bool = False, elements: int = 0, attacker: str = HOSTILE_HOST, seed: int = 0
    ) -> Target:
        """The node to attack: the leader, or a follower."""
        leader = self.quorum.wait_for_leader()
        node_id = next(one for one in VOTERS if (one != leader) == follower)
        is_kraftd = self.kind == "kraftd"
        return Target(
            self.quorum.controllers[node_id].port,
            self.secure_ports[node_id],
            self.client_ports[node_id] if is_kraftd else 0,
            self.metrics_ports[node_id] if is_kraftd else 0,
            self.broker_port,
            tuple(one.port for one in self.quorum.controllers.values()),
            tuple(self.secure_ports.values()),
            self.authority.pem,
            elements,
            self.quorum.cluster_id,
            attacker,
            seed,
        )

    def new_brokers(self, count: int) -> int:
        """The first of some ids that no broker has had."""
        self.next_broker += count
        return self.next_broker - count

    def add_acls(self, count: int) -> None:
        """Add ACLs that allow and deny a reader the same topics: it may write to none."""
        if self.has_acls:
            return
        self.has_acls = True
        with connect(self.quorum.controller.port, ADMIN) as client:
            for start in range(0, count, ACLS_PER_REQUEST):
                rows = [
                    AclCreation(
                        AclResourceType.TOPIC,
                        f"team-{number // 2}",
                        AclPatternType.LITERAL,
                        f"User:{READER}",
                        "*",
                        AclOperation.WRITE,
                        AclPermission.DENY if number % 2 else AclPermission.ALLOW,
                    )
                    for number in range(start, min(start + ACLS_PER_REQUEST, count))
                ]
                client.call(CreateAclsRequest(rows), ACLS_VERSION)


@contextmanager
def attacked(
    kind: Kind, *, with_broker: bool, properties: Mapping[str, object] = NO_PROPERTIES
) -> Iterator[Attacked]:
    """Three running controllers of a kind, with a stock broker if wanted, and with more properties."""
    with tempfile.TemporaryDirectory(prefix="kraftd-bench-") as home:
        nodes = Attacked(Path(home), kind, with_broker=with_broker, properties=properties)
        try:
            nodes.start()
            yield nodes
        finally:
            nodes.quorum.close()
