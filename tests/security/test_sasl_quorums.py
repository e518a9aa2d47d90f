"""Three controllers that log in at each other by SCRAM users of the bootstrap, or by tokens.

Tokens are in a file, or granted by an identity provider whose clients the controllers are.
"""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

from kraftd.messages.describe_cluster_request import DescribeClusterRequest
from kraftd.messages.describe_cluster_response import DescribeClusterResponse
from kraftd.security.sasl.jaas import OAUTHBEARER_MODULE
from kraftd.security.sasl.oauthbearer import OAuthBearerClient
from kraftd.wire.api import ApiKey
from testkit.certificates import Authority
from testkit.identity_provider import IdentityProvider
from testkit.process import free_port, wait_until
from tests.runtime.daemon_process import CLUSTER_ID, DaemonProcess
from tests.security.secured_daemon import SCRAM_MODULE, STANDARD_AUTHORIZER, connect, scram

WITHOUT_TOKEN = "this node has no new token for its logins"
PREFIX = "listener.name.controller."
IDS = (100, 101, 102)


def by_scram(_: Path) -> dict[str, str]:
    """Settings for SASL_PLAINTEXT with a user of the bootstrap."""
    jaas = f'{SCRAM_MODULE} required username="controller" password="secret";'
    return {
        "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256",
        "sasl.mechanism.controller.protocol": "SCRAM-SHA-256",
        f"{PREFIX}scram-sha-256.sasl.jaas.config": jaas,
    }


def by_token(home: Path) -> dict[str, str]:
    """Settings for SASL_SSL with PKCS12 stores, and files with the node's token and the issuer's keys."""
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
    with started(tmp_path, request.param(tmp_path)) as daemons:
        yield daemons


@contextmanager
def started(tmp_path: Path, security: dict[str, str]) -> Iterator[list[DaemonProcess]]:
    """Three daemons, formatted and started, and stopped at the end."""
    ports = [free_port() for _ in IDS]
    keys = {
        **security,
        "controller.quorum.bootstrap.servers": "",
        "controller.quorum.voters": ",".join(
            f"{one}@127.0.0.1:{port}" for one, port in zip(IDS, ports, strict=True)
        ),
        f"{PREFIX}connections.max.reauth.ms": "1500",
    }
    daemons: list[DaemonProcess] = []
    try:
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
    finally:
        for daemon in daemons:
            daemon.stop()


def leader_count(daemons: list[DaemonProcess], text: str) -> int:
    return sum(daemon.log.read_text().count(text) for daemon in daemons)


@pytest.mark.parametrize("three", [by_scram], indirect=True)
def test_controllers_elect_by_scram_and_stay_connected_past_their_sessions(
    three: list[DaemonProcess],
) -> None:
    wait_until(lambda: leader_count(three, '"active controller"') == 1, "a controller is active")
    wait_until(lambda: leader_count(three, '"controller registered"') >= 3, "all are registered")
    time.sleep(2.5)  # sessions end after 1.5 s; controllers log in again on their open connections
    assert leader_count(three, "its session has expired") == 0
    looked = three[0].kraftd("doctor", "--bootstrap", f"127.0.0.1:{three[0].port}", check=False)
    assert "it wants a login by SASL" in looked.stdout
    assert "connection closed" not in three[0].log.read_text()
    with connect(three[0].port, None, scram("controller", "secret", "SCRAM-SHA-256")):
        pass
    assert leader_count(three, '"active controller"') == 1


@pytest.mark.parametrize("three", [by_token], indirect=True)
def test_controllers_elect_with_tokens_of_an_issuer_over_tls(three: list[DaemonProcess]) -> None:
    wait_until(lambda: leader_count(three, '"active controller"') == 1, "a controller is active")
    wait_until(lambda: leader_count(three, '"controller registered"') >= 3, "all are registered")
    assert leader_count(three, "login failed") == 0


@pytest.mark.parametrize("three", [by_token], indirect=True)
def test_recover_asks_secured_voters_as_the_node_itself(three: list[DaemonProcess]) -> None:
    wait_until(lambda: leader_count(three, '"controller registered"') >= 3, "all are registered")
    survivor = next(one for one in three if '"active controller"' not in one.log.read_text())
    survivor.stop()
    with survivor.properties.open("a") as file:
        own = f"{IDS[three.index(survivor)]}@127.0.0.1:{survivor.port}"
        file.write(f"controller.quorum.voters={own}\n")
    recover = (
        *("quorum", "recover", "--config", str(survivor.properties)),
        *("--cluster-id-confirm", CLUSTER_ID),
    )
    refused = survivor.kraftd(*recover, check=False)
    assert refused.returncode == 1
    assert "A majority of the voters is not lost" in refused.stderr
    assert "leads in epoch" in refused.stderr
    for one in three:
        one.stop(signal.SIGKILL)
    assert f"Controller {own[:3]} is the only voter" in survivor.kraftd(*recover).stdout


def by_grant(home: Path, provider: IdentityProvider, secret: str) -> dict[str, str]:
    """Settings for SASL_PLAINTEXT with the client "controller" of an identity provider over TLS."""
    trust = provider.write_authority(home / "idp-ca.pem")
    options = f'ssl.truststore.type="PEM" ssl.truststore.location="{trust}"'
    return {
        "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.mechanism.controller.protocol": "OAUTHBEARER",
        f"{PREFIX}oauthbearer.sasl.jaas.config": f"{OAUTHBEARER_MODULE} required {options};",
        "sasl.oauthbearer.jwks.endpoint.url": f"file:{provider.write_jwks(home / 'jwks.json')}",
        "sasl.oauthbearer.expected.issuer": "issuer",
        "sasl.oauthbearer.clock.skew.seconds": "0",
        "sasl.oauthbearer.token.endpoint.url": provider.token_url,
        "sasl.oauthbearer.client.credentials.client.id": "controller",
        "sasl.oauthbearer.client.credentials.client.secret": secret,
        "sasl.login.retry.backoff.max.ms": "500",
    }


def test_controllers_elect_once_tokens_are_granted_and_renew_them(tmp_path: Path) -> None:
    provider = IdentityProvider(
        {"controller": "s3cret"}, lifetime_s=4, authority=Authority(), port=free_port()
    )
    with started(tmp_path, by_grant(tmp_path, provider, "s3cret")) as daemons:
        for daemon in daemons:
            wait_until(
                lambda log=daemon.log: WITHOUT_TOKEN in log.read_text(), "each logs that it has no token"
            )
        text = daemons[0].log.read_text()
        assert f"the token endpoint {provider.token_url}: it does not answer: Connection refused" in text
        with provider:
            wait_until(lambda: leader_count(daemons, '"controller registered"') >= 3, "all are registered")
            assert leader_count(daemons, "a token was fetched again") == 3
            before = len(provider.requests)
            wait_until(lambda: len(provider.requests) >= before + 6, "tokens are replaced twice each")
            token = provider.token("controller")
            with connect(daemons[0].port, None, lambda: OAuthBearerClient(token)) as one:
                request = DescribeClusterRequest(endpoint_type=2)
                described = one.ask(ApiKey.DESCRIBE_CLUSTER, request, DescribeClusterResponse)
            assert described.controller_id in IDS
            assert leader_count(daemons, "s3cret") == leader_count(daemons, token[:20]) == 0


def test_a_refused_client_gets_the_reason_without_its_secret(tmp_path: Path) -> None:
    with IdentityProvider({"controller": "s3cret"}, authority=Authority()) as provider:
        keys = by_grant(tmp_path, provider, "wr0ng")
        daemon = DaemonProcess(tmp_path, **{key.replace(".", "__"): value for key, value in keys.items()})
        daemon.format().begin()
        try:
            wait_until(lambda: WITHOUT_TOKEN in daemon.log.read_text(), "it logs that it has no token")
            assert "it answers with status 401: invalid_client: wrong credentials" in daemon.log.read_text()
            assert "wr0ng" not in daemon.log.read_text()
            check_commands(daemon, tmp_path, keys)
        finally:
            daemon.stop()


def check_commands(daemon: DaemonProcess, home: Path, keys: dict[str, str]) -> None:
    """A client's file with the credentials in the login module's options, as before Kafka 4.1."""
    jaas, file = keys[f"{PREFIX}oauthbearer.sasl.jaas.config"].rstrip(";"), home / "client.properties"
    text = (
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\n"
        f'sasl.jaas.config={jaas} clientId="controller" clientSecret="{{}}" scope="kafka";\n'
        f"sasl.oauthbearer.token.endpoint.url={keys['sasl.oauthbearer.token.endpoint.url']}\n"
    )
    command = (
        *("quorum", "describe", "--bootstrap", f"127.0.0.1:{daemon.port}"),
        *("--command-config", str(file)),
    )
    file.write_text(text.format("s3cret"))
    assert "LeaderId:" in daemon.kraftd(*command).stdout
    file.write_text(text.format("wr0ng"))
    refused = daemon.kraftd(*command, check=False)
    assert "it answers with status 401: invalid_client" in refused.stderr
    assert (refused.returncode != 0, "wr0ng" in refused.stderr + refused.stdout) == (True, False)
