"""A cluster with SCRAM over TLS: a controller, an observer of its quorum, a broker, and clients' logins."""

from __future__ import annotations

from pathlib import Path

from testkit.certificates import Authority
from testkit.cluster import random_uuid
from testkit.node import Broker
from testkit.process import HOST, free_port
from tests.kafka.secured.nodes import OF_CONTROLLER, SecuredController, broker, controller, scram_jaas
from tests.security.secured_daemon import SCRAM_MODULE, scram, tls_keys

OF_EXTERNAL = "listener.name.external."
PROTOCOLS = "CONTROLLER:SASL_SSL,PLAINTEXT:PLAINTEXT,EXTERNAL:SASL_SSL"
SCRAM = "SCRAM-SHA-512"
JAAS = "scram-sha-512.sasl.jaas.config"
USERS = ("controller", "broker", "admin", "alice", "eve")


class Serving:
    """Controller 100, observer 300 and broker 1, each a SCRAM user of the bootstrap.

    `served` are the ports of the listener for clients, by node; kraftd's nodes have one too.
    """

    def __init__(self, home: Path) -> None:
        self.home, self.authority = home, Authority()
        port = free_port()
        self.served = {node_id: free_port() for node_id in (1, 100, 300)}
        self.common: dict[str, object] = {
            "listener.security.protocol.map": PROTOCOLS,
            "controller.quorum.bootstrap.servers": f"{HOST}:{port}",
            "super.users": "User:controller;User:broker;User:admin;User:ANONYMOUS",
            "sasl.mechanism.controller.protocol": SCRAM,
            f"{OF_CONTROLLER}sasl.enabled.mechanisms": SCRAM,
            f"{OF_EXTERNAL}sasl.enabled.mechanisms": SCRAM,
        }
        for node_id in self.served:
            (home / str(node_id)).mkdir()
        self.controller = self._kraftd(100, port)
        self.observer = self._kraftd(300, free_port())
        own = scram_jaas("broker", "broker-secret")
        self.broker: Broker = broker(
            1,
            home / "1",
            (free_port(), self.served[1]),
            self.authority,
            {
                **self.common,
                **tls_keys(self.home / "1", self.authority, "CN=broker-1", OF_EXTERNAL),
                OF_CONTROLLER + JAAS: own,
                OF_EXTERNAL + JAAS: own,
            },
        )

    def _kraftd(self, node_id: int, port: int) -> SecuredController:
        home = self.home / str(node_id)
        own = scram_jaas("controller", "controller-secret")
        properties = {
            **self.common,
            **tls_keys(home, self.authority, f"CN=node-{node_id}", OF_EXTERNAL),
            "listeners": f"CONTROLLER://{HOST}:{port},EXTERNAL://{HOST}:{self.served[node_id]}",
            "kraftd.client.listener.names": "EXTERNAL",
            "kraftd.audit.log": home / "audit.log",
            "sasl.mechanism.inter.broker.protocol": SCRAM,
            OF_CONTROLLER + JAAS: own,
            OF_EXTERNAL + JAAS: own,
        }
        return controller(node_id, home, port, self.authority, properties, scram("admin", "admin-secret"))

    def start(self) -> None:
        cluster_id = random_uuid()
        users = [f"{SCRAM}=[name={name},password={name}-secret]" for name in USERS]
        words = [word for user in users for word in ("--add-scram", user)]
        self.controller.format(cluster_id, "--standalone", *words)
        self.observer.format(cluster_id, "--no-initial-controllers", *words)
        self.broker.format(cluster_id, *words)
        for node in (self.controller, self.broker, self.observer):
            node.start()
        for node in (self.controller, self.broker, self.observer):
            node.wait_ready()

    def stop(self) -> None:
        for node in (self.observer, self.broker, self.controller):
            node.kill()

    def bootstrap(self, node_id: int) -> str:
        return f"{HOST}:{self.served[node_id]}"

    def client(self, name: str, node_id: int = 1) -> dict[str, str]:
        """The config of librdkafka to bootstrap from a node as a user."""
        return {
            "bootstrap.servers": self.bootstrap(node_id),
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": SCRAM,
            "sasl.username": name,
            "sasl.password": f"{name}-secret",
            "ssl.ca.location": str(self.authority.write_pem(self.home / "ca.pem")),
            "log_level": "0",
        }

    def client_file(self, name: str) -> Path:
        """A user's client file for Kafka's tools and kraftd's commands."""
        ca = self.authority.write_pem(self.home / "ca.pem")
        path = self.home / f"{name}.properties"
        path.write_text(
            f"security.protocol=SASL_SSL\nsasl.mechanism={SCRAM}\n"
            f'sasl.jaas.config={SCRAM_MODULE} required username="{name}" password="{name}-secret";\n'
            f"ssl.truststore.type=PEM\nssl.truststore.location={ca}\n"
        )
        return path
