"""Three controllers that know each other by SCRAM users of the bootstrap alone, or by tokens of an issuer."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

from kraftd.security.jaas import OAUTHBEARER_MODULE
from testkit.certificates import Authority
from testkit.process import wait_until
from tests.runtime.daemon_process import CLUSTER_ID, DaemonProcess, free_port
from tests.security.secured_daemon import SCRAM_MODULE, STANDARD_AUTHORIZER, connect, scram

PREFIX = "listener.name.controller."
IDS = (100, 101, 102)


def by_scram(_: Path) -> dict[str, str]:
    """SASL_PLAINTEXT, with a user of the bootstrap."""
    jaas = f'{SCRAM_MODULE} required username="controller" password="secret";'
    return {
        "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256",
        "sasl.mechanism.controller.protocol": "SCRAM-SHA-256",
        f"{PREFIX}scram-sha-256.sasl.jaas.config": jaas,
    }


def by_token(home: Path) -> dict[str, str]:
    """SASL_SSL with PKCS12 stores; a token of the node's in a file, an issuer's keys in another."""
    key, authority = ec.generate_private_key(ec.SECP256R1()), Authority()
    public = ECAlgorithm.to_jwk(key.public_key(), as_dict=True)
    (home / "jwks.json").write_text(json.dumps({"keys": [{**public, "kid": "k"}]}))
    now = int(time.time())
    claims = {"sub": "controller", "iss": "issuer", "aud": "kafka", "iat": now, "exp": now + 600}
    (home / "token.jwt").write_text(jwt.encode(claims, key, "ES256", headers={"kid": "k"}) + "\n")
    store = authority.issue("CN=node").write_pkcs12(home / "node.p12", "changeit")
    return {
        "listener.security.protocol.map": "CONTROLLER:SASL_SSL",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.mechanism.controller.protocol": "OAUTHBEARER",
        f"{PREFIX}oauthbearer.sasl.jaas.config": f"{OAUTHBEARER_MODULE} required;",
        "sasl.oauthbearer.jwks.endpoint.url": f"file:{home}/jwks.json",
        "sasl.oauthbearer.token.endpoint.url": f"file:{home}/token.jwt",
        "sasl.oauthbearer.expected.issuer": "issuer",
        "sasl.oauthbearer.expected.audience": "kafka",
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(store),
        "ssl.keystore.password": "changeit",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": authority.pem.strip().replace("\n", "\\n"),
        "authorizer.class.name": STANDARD_AUTHORIZER,
        "super.users": "User:controller",
    }


@pytest.fixture
def three(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[list[DaemonProcess]]:
    ports = [free_port() for _ in IDS]
    keys = {
        **request.param(tmp_path),
        "controller.quorum.bootstrap.servers": "",
        "controller.quorum.voters": ",".join(
            f"{one}@127.0.0.1:{port}" for one, port in zip(IDS, ports, strict=True)
        ),
        f"{PREFIX}connections.max.reauth.ms": "1500",
    }
    daemons = []
    for node_id, port in zip(IDS, ports, strict=True):
        home = tmp_path / str(node_id)
        home.mkdir()
        settings = {**keys, "node.id": str(node_id)}
        daemon = DaemonProcess(
            home, port, **{key.replace(".", "__"): value for key, value in settings.items()}
        )
        user = "SCRAM-SHA-256=[name=controller,password=secret]"
        command = ("format", "--config", str(daemon.properties), "--cluster-id", CLUSTER_ID)
        daemon.kraftd(*command, "--add-scram", user)
        daemons.append(daemon.begin())
    yield daemons
    for daemon in daemons:
        daemon.stop()


def leader_count(daemons: list[DaemonProcess], text: str) -> int:
    return sum(daemon.log.read_text().count(text) for daemon in daemons)


@pytest.mark.parametrize("three", [by_scram], indirect=True)
def test_controllers_elect_by_scram_and_stay_in_touch_past_their_sessions(
    three: list[DaemonProcess],
) -> None:
    wait_until(lambda: leader_count(three, '"active controller"') == 1, "a controller is active")
    wait_until(lambda: leader_count(three, '"controller registered"') >= 3, "all are registered")
    time.sleep(2.5)  # sessions end after 1.5 s; controllers log in again on their open connections
    assert leader_count(three, "its session has expired") == 0
    with connect(three[0].port, None, scram("controller", "secret", "SCRAM-SHA-256")):
        pass
    assert leader_count(three, '"active controller"') == 1


@pytest.mark.parametrize("three", [by_token], indirect=True)
def test_controllers_elect_by_tokens_of_an_issuer_over_tls(three: list[DaemonProcess]) -> None:
    wait_until(lambda: leader_count(three, '"active controller"') == 1, "a controller is active")
    wait_until(lambda: leader_count(three, '"controller registered"') >= 3, "all are registered")
    assert leader_count(three, "login failed") == 0
