"""Controllers of Apache Kafka and kraftd, and a broker: each a client of one identity provider."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from kraftd.messages.init_producer_id_request import InitProducerIdRequest
from kraftd.messages.init_producer_id_response import InitProducerIdResponse
from kraftd.security.sasl.jaas import OAUTHBEARER_MODULE
from kraftd.security.sasl.oauthbearer import OAuthBearerClient
from kraftd.wire.api import ApiKey
from testkit.certificates import Authority
from testkit.cluster import random_uuid
from testkit.identity_provider import IdentityProvider
from testkit.java import TOOLS, java_command
from testkit.node import Broker, Controller, Kind, kraftd_command
from testkit.process import HOST, free_port, wait_until
from tests.security.secured_daemon import STANDARD_AUTHORIZER, connect

pytestmark = pytest.mark.kafka

KAFKAS = "org.apache.kafka.common.security.oauthbearer"
OF_CONTROLLER, OF_EXTERNAL = (f"listener.name.{name}.oauthbearer." for name in ("controller", "external"))
CREDENTIALS = "sasl.oauthbearer.client.credentials.client"
KINDS: dict[int, Kind] = {100: "kraftd", 101: "apache"}
AT_BROKERS = "at-brokers"  # kraftd's own client id when it asks brokers
PROTOCOLS = {
    "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT,EXTERNAL:SASL_PLAINTEXT"
}
NAMES = ("controller-100", "controller-101", "broker-1", AT_BROKERS, "admin")


class Granted:
    """Two voters, neither of which can be elected without the other, a broker, and the admin's client file.

    kraftd's controller serves clients at `clients_port`; they log in there as they do at the broker.
    """

    def __init__(self, home: Path) -> None:
        authority = Authority()
        self.provider = IdentityProvider({name: f"{name}-s3cret" for name in NAMES}, authority=authority)
        self.provider.start()
        trust = authority.write_pem(home / "idp-ca.pem")
        jaas = f'{OAUTHBEARER_MODULE} required ssl.truststore.type="PEM" ssl.truststore.location="{trust}";'
        keys = f"file:{self.provider.write_jwks(home / 'jwks.json')}"
        # Kafka requires the allowed URLs on the command line.
        allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={keys},{self.provider.token_url}"
        self.environment = {"JAVA_TOOL_OPTIONS": allowed}
        ports = {node_id: free_port() for node_id in KINDS}
        common: dict[str, object] = {
            "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT",
            "controller.quorum.voters": ",".join(f"{one}@{HOST}:{port}" for one, port in ports.items()),
            "authorizer.class.name": STANDARD_AUTHORIZER,
            "super.users": ";".join(f"User:{name}" for name in NAMES),
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            "sasl.mechanism.controller.protocol": "OAUTHBEARER",
            **logins(OF_CONTROLLER, jaas),
            "sasl.oauthbearer.jwks.endpoint.url": keys,
            "sasl.oauthbearer.expected.issuer": "issuer",
            "sasl.oauthbearer.token.endpoint.url": self.provider.token_url,
            "sasl.oauthbearer.scope": "kafka",
        }
        self.controllers = [
            Controller(
                kind,
                node_id,
                home / str(node_id),
                ports[node_id],
                {**common, **credentials(f"controller-{node_id}")},
            )
            for node_id, kind in KINDS.items()
        ]
        self._serve_clients(jaas)
        self.broker = self._broker(home / "broker", common, jaas)
        self.client_file = home / "admin.properties"
        self.client_file.write_text(
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\n"
            f"sasl.jaas.config={jaas}\n"
            f"sasl.login.callback.handler.class={KAFKAS}.OAuthBearerLoginCallbackHandler\n"
            f"sasl.oauthbearer.token.endpoint.url={self.provider.token_url}\n"
            f"{CREDENTIALS}.id=admin\n{CREDENTIALS}.secret=admin-s3cret\n"
            "sasl.oauthbearer.header.urlencode=true\n"
        )

    def _serve_clients(self, jaas: str) -> None:
        """Give kraftd's a listener for clients, and a login at brokers' listener of that name."""
        kraftds = self.controllers[0]
        self.clients_port = free_port()
        kraftds.properties |= {
            **PROTOCOLS,
            "listeners": f"{kraftds.properties['listeners']},EXTERNAL://{HOST}:{self.clients_port}",
            "kraftd.client.listener.names": "EXTERNAL",
            "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
            **logins(OF_EXTERNAL, jaas),
            **credentials(AT_BROKERS, OF_EXTERNAL),
        }
        kraftds.write_properties()

    def _broker(self, home: Path, common: dict[str, object], jaas: str) -> Broker:
        inner, outer = f"PLAINTEXT://{HOST}:{free_port()}", f"EXTERNAL://{HOST}:{free_port()}"
        properties: dict[str, object] = {
            **common,
            **PROTOCOLS,
            "listeners": f"{inner},{outer}",
            "advertised.listeners": f"{inner},{outer}",
            "inter.broker.listener.name": "PLAINTEXT",
            **credentials("broker-1"),
            **logins(OF_EXTERNAL, jaas),
        }
        return Broker(1, home, free_port(), {}, properties)

    def start(self) -> None:
        cluster_id = random_uuid()
        for one in (*self.controllers, self.broker):
            one.environment.update(self.environment)
            one.format(cluster_id)
            one.start()

    def stop(self) -> None:
        for one in (self.broker, *self.controllers):
            one.kill()
        self.provider.stop()

    def described_by_kraftds_command(self, at: Controller) -> str:
        """kraftd's description of the quorum as the admin; nothing while the command fails."""
        options = ("--bootstrap", at.address, "--command-config", self.client_file)
        done = subprocess.run(
            kraftd_command("quorum", "describe", *options), capture_output=True, text=True, check=False
        )
        return done.stdout if done.returncode == 0 else ""

    def described_by_kafkas_tool(self, at: Controller) -> str:
        """The output of Kafka's tool with the same file."""
        options = ("--bootstrap-controller", at.address, "--command-config", str(self.client_file))
        done = subprocess.run(
            java_command(TOOLS["metadata-quorum"], *options, "describe", "--status"),
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, **self.environment},
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def logins(prefix: str, jaas: str) -> dict[str, str]:
    """The keys of a listener, with Kafka's classes for both ends of a login."""
    return {
        f"{prefix}sasl.jaas.config": jaas,
        f"{prefix}sasl.login.callback.handler.class": f"{KAFKAS}.OAuthBearerLoginCallbackHandler",
        f"{prefix}sasl.server.callback.handler.class": f"{KAFKAS}.OAuthBearerValidatorCallbackHandler",
    }


def credentials(name: str, prefix: str = "") -> dict[str, str]:
    """The keys of a client of the identity provider."""
    return {f"{prefix}{CREDENTIALS}.id": name, f"{prefix}{CREDENTIALS}.secret": f"{name}-s3cret"}


@pytest.fixture
def granted(tmp_path: Path) -> Iterator[Granted]:
    cluster = Granted(tmp_path)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def test_kraftd_and_apache_kafka_log_in_at_each_other_as_clients_of_one_provider(granted: Granted) -> None:
    kraftds, kafkas = granted.controllers
    for one in (kraftds, kafkas):
        wait_until(
            lambda: "LeaderId:" in granted.described_by_kraftds_command(one),  # noqa: B023
            f"{one!r} knows a leader",
            timeout_s=120,
            poll_s=0.5,
        )
    assert "LeaderId:" in granted.described_by_kafkas_tool(kraftds)
    assert_asks_the_broker(granted)
    # Both sent equal requests, and the log of kraftd's controller has no secret.
    by_client: dict[str, set[tuple[tuple[str, str], ...]]] = {}
    for headers, body in granted.provider.requests:
        names = ("accept", "authorization", "cache-control", "content-type", "content-length")
        request = (*((name, headers.get(name, "")) for name in names), ("body", body))
        by_client.setdefault(headers["authorization"], set()).add(request)
    assert len(by_client) == len(NAMES)  # including kraftd's own requests to brokers
    assert all(len(sent) == 1 for sent in by_client.values()), by_client
    assert "s3cret" not in kraftds.log.read_text()


def assert_asks_the_broker(granted: Granted) -> None:
    """Through kraftd, which logs in at the broker by a granted token, a client gets a producer id."""
    token = granted.provider.token("admin")

    def producer_error() -> int:
        with connect(granted.clients_port, None, lambda: OAuthBearerClient(token)) as client:
            request = InitProducerIdRequest(None, 60_000)
            return int(client.ask(ApiKey.INIT_PRODUCER_ID, request, InitProducerIdResponse).error_code)

    wait_until(lambda: producer_error() == 0, "the broker is asked", timeout_s=60)
