"""A real daemon ends idle sessions whose user, token, certificate or authority is removed or has expired."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

from kraftd.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
)
from kraftd.messages.alter_user_scram_credentials_response import AlterUserScramCredentialsResponse
from kraftd.messages.create_delegation_token_request import CreateDelegationTokenRequest
from kraftd.messages.create_delegation_token_response import CreateDelegationTokenResponse
from kraftd.messages.describe_cluster_request import DescribeClusterRequest
from kraftd.messages.describe_cluster_response import DescribeClusterResponse
from kraftd.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from kraftd.messages.expire_delegation_token_response import ExpireDelegationTokenResponse
from kraftd.security.sasl.oauthbearer import OAuthBearerClient
from kraftd.security.sasl.scram_client import ScramClient
from kraftd.security.sasl.scram_messages import CODES
from kraftd.wire.api import ApiKey
from testkit.certificates import Authority
from testkit.process import free_port, wait_until
from testkit.secured_client import Client, Unreachable
from tests.runtime.daemon_process import CLUSTER_ID, DaemonProcess
from tests.security.secured_daemon import PLAIN_MODULE, SCRAM_MODULE, connect, plain, scram, tls_keys, tls_of

SCRAM = "SCRAM-SHA-512"
LIFETIMES_S = 2, 10, 50  # of a token or certificate; a longer one if a slow machine logs in too late
WITHIN_S = 60
AUTHORITY, OTHER_AUTHORITY = Authority(), Authority("CN=Other CA")
TOKEN_KEY = ec.generate_private_key(ec.SECP256R1())


def settings(home: Path, port: int, secure_port: int) -> dict[str, str]:
    public = ECAlgorithm.to_jwk(TOKEN_KEY.public_key(), as_dict=True)
    (home / "jwks.json").write_text(json.dumps({"keys": [{**public, "kid": "k"}]}))
    users = f'{PLAIN_MODULE} required username="admin" password="secret" user_admin="secret";'
    return {
        "listeners": f"CONTROLLER://127.0.0.1:{port},SECURE://127.0.0.1:{secure_port}",
        "controller.listener.names": "CONTROLLER,SECURE",
        "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT,SECURE:SSL",
        **tls_keys(home, AUTHORITY, "CN=node", "listener.name.secure."),
        "listener.name.secure.ssl.client.auth": "required",
        "sasl.enabled.mechanisms": f"PLAIN,{SCRAM},OAUTHBEARER",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.controller.plain.sasl.jaas.config": users,
        "listener.name.controller.scram-sha-512.sasl.jaas.config": f"{SCRAM_MODULE} required;",
        "sasl.oauthbearer.jwks.endpoint.url": f"file:{home}/jwks.json",
        "sasl.oauthbearer.expected.issuer": "issuer",
        "delegation.token.secret.key": "a-key",
    }


def by_bearer_token(port: int, lifetime_s: int) -> Client:
    now_s = int(time.time())
    claims = {"sub": "carol", "iss": "issuer", "iat": now_s, "exp": now_s + lifetime_s}
    token = jwt.encode(claims, TOKEN_KEY, "ES256", headers={"kid": "k"})
    return connect(port, login=partial(OAuthBearerClient, token))


def by_certificate(port: int, lifetime_s: int) -> Client:
    return connect(port, tls_of(AUTHORITY, AUTHORITY.issue("CN=dave", days=lifetime_s / 86_400)))


def by_other_authority(port: int) -> Client:
    return connect(port, tls_of(AUTHORITY, OTHER_AUTHORITY.issue("CN=erin")))


def before_it_expires(connected: Callable[[int], Client]) -> Client:
    """A client whose token or certificate is still valid when it connects."""
    for lifetime_s in LIFETIMES_S:
        try:
            return connected(lifetime_s)
        except Unreachable:
            continue
    raise AssertionError(f"not connected within {LIFETIMES_S[-1]} s")


def is_ended(client: Client) -> bool:
    """Wait until the other side closes an idle connection."""
    client._socket.settimeout(WITHIN_S)
    try:
        return client._socket.recv(1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


def is_served(client: Client) -> bool:
    request = DescribeClusterRequest(endpoint_type=2)
    return not client.ask(ApiKey.DESCRIBE_CLUSTER, request, DescribeClusterResponse).error_code


def test_idle_sessions_end_with_their_user_token_certificate_or_authority(tmp_path: Path) -> None:
    port, secure_port = free_port(), free_port()
    keys = {key.replace(".", "__"): value for key, value in settings(tmp_path, port, secure_port).items()}
    daemon = DaemonProcess(tmp_path, port, **keys)
    trusted = tmp_path / "trust.pem"
    trusted.write_text(AUTHORITY.pem + OTHER_AUTHORITY.pem)
    users = [f"{SCRAM}=[name={name},password=secret]" for name in ("alice", "bob")]
    command = ("format", "--config", str(daemon.properties), "--cluster-id", CLUSTER_ID, "--standalone")
    daemon.kraftd(*command, "--add-scram", users[0], "--add-scram", users[1])
    daemon.begin()
    clients: list[Client] = []

    def begin(client: Client) -> Client:
        clients.append(client)
        return client

    def is_active() -> bool:
        try:
            with connect(port, login=plain("admin", "secret")) as client:
                request = DescribeClusterRequest(endpoint_type=2)
                answer = client.ask(ApiKey.DESCRIBE_CLUSTER, request, DescribeClusterResponse)
                return not answer.error_code and answer.controller_id >= 0
        except Unreachable:
            return False

    try:
        wait_until(is_active, "the controller is active")
        admin = begin(connect(port, login=plain("admin", "secret")))
        token = admin.ask(
            ApiKey.CREATE_DELEGATION_TOKEN,
            CreateDelegationTokenRequest(None, None, [], -1),
            CreateDelegationTokenResponse,
        )
        assert token.error_code == 0
        password = base64.b64encode(token.hmac).decode()
        by_token = partial(
            ScramClient, SCRAM, token.token_id, password, "nonce-of-a-token", {"tokenauth": "true"}
        )
        alice, bob = (begin(connect(port, login=scram(name, "secret"))) for name in ("alice", "bob"))
        owner = begin(connect(port, login=by_token))
        carol = begin(before_it_expires(partial(by_bearer_token, port)))
        dave = begin(before_it_expires(partial(by_certificate, secure_port)))
        erin = begin(by_other_authority(secure_port))
        frank = begin(connect(secure_port, tls_of(AUTHORITY, AUTHORITY.issue("CN=frank"))))
        assert all(is_served(one) for one in (admin, alice, bob, owner, erin, frank))
        AUTHORITY.write_pem(trusted)
        deletion = AlterUserScramCredentialsRequest([ScramCredentialDeletion("alice", CODES[SCRAM])])
        deleted = admin.ask(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, deletion, AlterUserScramCredentialsResponse)
        assert [one.error_code for one in deleted.results] == [0]
        expiry = ExpireDelegationTokenRequest(token.hmac, -1)
        expired = admin.ask(ApiKey.EXPIRE_DELEGATION_TOKEN, expiry, ExpireDelegationTokenResponse)
        assert expired.error_code == 0
        assert [is_ended(one) for one in (alice, owner, carol, dave, erin)] == [True] * 5
        assert all(is_served(one) for one in (bob, admin, frank))
        reasons = [line["reason"] for line in daemon.lines() if line["event"] == "connection closed"]
        removed = "its credential was removed or has expired"
        assert sorted(reasons) == [
            "its certificate has expired",
            "its certificate is no longer trusted",
            removed,
            removed,
            "its session has expired",
        ]
    finally:
        for one in clients:
            one._socket.close()
        daemon.stop()
