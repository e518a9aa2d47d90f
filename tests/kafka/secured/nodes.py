"""Controllers and stock brokers of secured clusters: their keys, certificates and users."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from kraftd.messages.describe_cluster_request import DescribeClusterRequest
from kraftd.messages.describe_cluster_response import DescribeClusterResponse
from kraftd.security.sasl.mechanism import ClientExchange
from kraftd.wire.api import ApiKey
from testkit.certificates import Authority
from testkit.java import ToolRun, tools
from testkit.node import Broker, Controller
from testkit.process import HOST
from testkit.secured_client import Client, Unreachable
from tests.security.secured_daemon import (
    PLAIN_MODULE,
    SCRAM_MODULE,
    STANDARD_AUTHORIZER,
    connect,
    tls_of,
)

OF_CONTROLLER = "listener.name.controller."
PROTOCOLS = "CONTROLLER:{},PLAINTEXT:PLAINTEXT,EXTERNAL:SASL_PLAINTEXT"
USERS = {"admin": "admin-secret", "alice": "alice-secret"}


class SecuredController(Controller):
    """A controller whose secured listener the test asks for the leader."""

    authority: Authority
    login: Callable[[], ClientExchange] | None = None

    def connect(self) -> Client:
        issued = self.authority.issue("CN=admin") if self.login is None else None
        return connect(self.port, tls_of(self.authority, issued), self.login)

    def active_controller(self) -> int:
        """The id of the active controller that this one knows, -1 while there is none."""
        try:
            with self.connect() as client:
                request = DescribeClusterRequest(endpoint_type=2)
                answer = client.ask(ApiKey.DESCRIBE_CLUSTER, request, DescribeClusterResponse)
                return int(answer.controller_id)
        except Unreachable as error:
            raise OSError(str(error)) from None

    def wait_ready(self, timeout_s: float = 90) -> None:
        self.wait(lambda: self.active_controller() >= 0, "knows the active controller", timeout_s)


def stores(home: Path, authority: Authority, subject: str) -> dict[str, object]:
    """The TLS keys of the controller listener of a node with that subject."""
    home.mkdir(parents=True, exist_ok=True)
    return {
        f"{OF_CONTROLLER}ssl.keystore.type": "PEM",
        f"{OF_CONTROLLER}ssl.keystore.location": authority.issue(subject).write_pem(home / "node.pem"),
        f"{OF_CONTROLLER}ssl.truststore.type": "PEM",
        f"{OF_CONTROLLER}ssl.truststore.location": authority.write_pem(home / "trust.pem"),
    }


def controller(
    node_id: int,
    home: Path,
    port: int,
    authority: Authority,
    properties: Mapping[str, object],
    login: Callable[[], ClientExchange] | None = None,
    kind: str = "kraftd",
) -> SecuredController:
    created = SecuredController(
        kind,  # type: ignore[arg-type]
        node_id,
        home,
        port,
        {
            "authorizer.class.name": STANDARD_AUTHORIZER,
            **stores(home, authority, f"CN=controller-{node_id}"),
            **properties,
        },
    )
    created.authority, created.login = authority, login
    return created


def broker(
    node_id: int, home: Path, ports: tuple[int, int], authority: Authority, properties: Mapping[str, object]
) -> Broker:
    """A broker with a plain listener for brokers, and one for clients that log in by PLAIN."""
    users = " ".join(f'user_{name}="{password}"' for name, password in USERS.items())
    inner, outer = (
        f"{name}://127.0.0.1:{port}" for name, port in zip(("PLAINTEXT", "EXTERNAL"), ports, strict=True)
    )
    return Broker(
        node_id,
        home,
        ports[0],
        {},
        {
            "listeners": f"{inner},{outer}",
            "advertised.listeners": f"{inner},{outer}",
            "inter.broker.listener.name": "PLAINTEXT",
            "authorizer.class.name": STANDARD_AUTHORIZER,
            "listener.name.external.sasl.enabled.mechanisms": "PLAIN",
            "listener.name.external.plain.sasl.jaas.config": f"{PLAIN_MODULE} required {users};",
            **stores(home, authority, f"CN=broker-{node_id}"),
            **properties,
        },
    )


def scram_jaas(name: str, password: str) -> str:
    return f'{SCRAM_MODULE} required username="{name}" password="{password}";'


def admin(port: int, name: str) -> AdminClient:
    return AdminClient(
        {
            "bootstrap.servers": f"127.0.0.1:{port}",
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": name,
            "sasl.password": USERS[name],
            "log_level": 0,
        }
    )


class OverSasl(NamedTuple):
    """A controller over SASL_SSL and a broker; clients log in at `clients_port`.

    `client_files` are properties of Kafka's tools: by user for the broker's clients, and `controller` for the
    admin at the controller itself.
    """

    controller: SecuredController
    broker: Broker
    clients_port: int
    client_files: dict[str, Path]

    def tool(self, name: str, *arguments: object, user: str = "admin") -> ToolRun:
        """Run one of Kafka's tools as that user through the broker."""
        bootstrap = ("--bootstrap-server", f"{HOST}:{self.clients_port}")
        return self._run(name, self.client_files[user], bootstrap, arguments)

    def controller_tool(self, name: str, *arguments: object) -> ToolRun:
        """Run one of Kafka's tools as the admin, directly at the controller."""
        return self._run(
            name,
            self.client_files["controller"],
            ("--bootstrap-controller", self.controller.address),
            arguments,
        )

    def _run(
        self, name: str, file: Path, bootstrap: tuple[str, str], arguments: tuple[object, ...]
    ) -> ToolRun:
        # The features and quorum tools take these before their verb, the cluster tool after it.
        options = (*bootstrap, "--command-config", file)
        words = (*arguments, *options) if name == "cluster" else (*options, *arguments)
        return tools().run(name, *words)


def can_log_in(cluster: OverSasl, name: str, password: str) -> bool:
    """Return whether a client of the broker logs in by SCRAM."""
    client = AdminClient(
        {
            "bootstrap.servers": f"{HOST}:{cluster.clients_port}",
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": name,
            "sasl.password": password,
            "log_level": 0,
        }
    )
    try:
        client.list_topics(timeout=2)
    except KafkaException:
        return False
    return True
