"""A real daemon behind SASL_SSL and mTLS, with the authorizer: which clients log in, what each may do."""

from __future__ import annotations

import json
import socket
import ssl
import struct
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

from kraftd.messages.create_acls_request import AclCreation, CreateAclsRequest
from kraftd.messages.create_acls_response import CreateAclsResponse
from kraftd.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraftd.messages.create_topics_response import CreateTopicsResponse
from kraftd.messages.describe_cluster_request import DescribeClusterRequest
from kraftd.messages.describe_cluster_response import DescribeClusterResponse
from kraftd.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraftd.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from kraftd.messages.sasl_handshake_request import SaslHandshakeRequest
from kraftd.security.sasl.oauthbearer import OAuthBearerClient
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.frames import encode_request
from testkit.certificates import Authority
from testkit.process import wait_until
from testkit.secured_client import Client, Unreachable
from tests.runtime.daemon_process import CLUSTER_ID, DaemonProcess
from tests.security.secured_daemon import (
    PLAIN_MODULE,
    SCRAM_MODULE,
    STANDARD_AUTHORIZER,
    connect,
    plain,
    scram,
    tls_keys,
    tls_of,
)

AUTHORITY = Authority()
TOKEN_KEY = ec.generate_private_key(ec.SECP256R1())
PREFIX = "listener.name.controller."
# Of 500 connections in a handshake, which take 3 MiB. With uvloop's TLS transport they take 28 MiB.
MAX_GROWN_BYTES, MAX_KEPT_BYTES = 12 << 20, 8 << 20


def formatted_with_scram(daemon: DaemonProcess) -> None:
    scram = "SCRAM-SHA-512=[name=broker,password=broker-secret]"
    daemon.kraftd(
        *("format", "--config", str(daemon.properties), "--cluster-id", CLUSTER_ID, "--standalone"),
        *("--add-scram", scram),
    )


@pytest.fixture(scope="module")
def sasl_daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    """A daemon with SASL_SSL, PLAIN, SCRAM and OAUTHBEARER; the super user is User:admin."""
    home = tmp_path_factory.mktemp("sasl")
    (home / "secrets.properties").write_text("admin=admin-secret\n")
    public = ECAlgorithm.to_jwk(TOKEN_KEY.public_key(), as_dict=True)
    (home / "jwks.json").write_text(json.dumps({"keys": [{**public, "kid": "k"}]}))
    users = (
        'username="admin" password="${file:PATH:admin}" user_admin="${file:PATH:admin}" user_bob="bob-secret"'
    )
    keys = {
        "listener.security.protocol.map": "CONTROLLER:SASL_SSL",
        **tls_keys(home, AUTHORITY, "CN=node", PREFIX),
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512,OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": f"file:{home}/jwks.json",
        "sasl.oauthbearer.expected.issuer": "issuer",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "config.providers": "file",
        "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
        f"{PREFIX}plain.sasl.jaas.config": f"{PLAIN_MODULE} required {users};".replace(
            "PATH", str(home / "secrets.properties")
        ),
        f"{PREFIX}scram-sha-512.sasl.jaas.config": f"{SCRAM_MODULE} required;",
        "authorizer.class.name": STANDARD_AUTHORIZER,
        "super.users": "User:admin;User:broker",
        "connection.failed.authentication.delay.ms": "50",
        "kraftd.audit.log": str(home / "audit.log"),
        "kraftd.authentication.timeout.ms": "3000",
        "kraftd.ssl.handshake.timeout.ms": "2000",
        "socket.listen.backlog.size": "1000",
    }
    daemon = DaemonProcess(home, **{key.replace(".", "__"): value for key, value in keys.items()})
    formatted_with_scram(daemon)
    daemon.begin()
    wait_for(daemon, lambda: admin(daemon))
    yield daemon
    daemon.stop()


def wait_for(daemon: DaemonProcess, connected: object) -> None:
    """Wait until the active controller answers a request that only it can decide."""
    deadline = time.monotonic() + 30
    while True:
        try:
            with connected() as client:  # type: ignore[operator]
                answer = client.ask(
                    ApiKey.DESCRIBE_CLUSTER, DescribeClusterRequest(endpoint_type=2), DescribeClusterResponse
                )
                if not answer.error_code and answer.controller_id >= 0:
                    return
        except Unreachable:
            pass
        assert time.monotonic() < deadline, daemon.log.read_text()
        time.sleep(0.05)


def wait_for_line(daemon: DaemonProcess, text: str) -> None:
    deadline = time.monotonic() + 30
    while text not in daemon.log.read_text():
        assert time.monotonic() < deadline, daemon.log.read_text()
        time.sleep(0.05)


def admin(daemon: DaemonProcess) -> Client:
    return connect(daemon.port, tls_of(AUTHORITY), plain("admin", "admin-secret"))


def create_topic(client: Client, name: str) -> int:
    request = CreateTopicsRequest(topics=[CreatableTopic(name, 1, 1)], validate_only=True)
    return int(client.ask(ApiKey.CREATE_TOPICS, request, CreateTopicsResponse).topics[0].error_code)


def test_users_of_both_password_mechanisms_can_log_in(sasl_daemon: DaemonProcess) -> None:
    for login in (plain("admin", "admin-secret"), scram("broker", "broker-secret")):
        with connect(sasl_daemon.port, tls_of(AUTHORITY), login) as client:
            assert create_topic(client, "t") != ErrorCode.TOPIC_AUTHORIZATION_FAILED


@pytest.mark.parametrize(
    ("login", "message"),
    [
        (plain("admin", "wrong"), "Authentication failed: Invalid username or password"),
        (plain("nobody", "x"), "Authentication failed: Invalid username or password"),
        (scram("broker", "wrong"), "invalid credentials with SASL mechanism SCRAM-SHA-512"),
        (scram("nobody", "x"), "invalid credentials with SASL mechanism SCRAM-SHA-512"),
        (
            scram("broker", "broker-secret", "SCRAM-SHA-256"),
            "it does not take SCRAM-SHA-256; it offers PLAIN, SCRAM",
        ),
    ],
)
def test_a_failed_login_is_answered_as_by_kafka(
    sasl_daemon: DaemonProcess, login: object, message: str
) -> None:
    with pytest.raises(Unreachable, match=message):
        connect(sasl_daemon.port, tls_of(AUTHORITY), login)  # type: ignore[arg-type]


def bearer(issuer: str) -> Callable[[], OAuthBearerClient]:
    now = int(time.time())
    claims = {"sub": "admin", "iss": issuer, "iat": now, "exp": now + 60}
    return partial(OAuthBearerClient, jwt.encode(claims, TOKEN_KEY, "ES256", headers={"kid": "k"}))


def test_only_a_token_of_the_issuer_logs_its_subject_in(sasl_daemon: DaemonProcess) -> None:
    with connect(sasl_daemon.port, tls_of(AUTHORITY), bearer("issuer")) as client:
        assert create_topic(client, "t") != ErrorCode.TOPIC_AUTHORIZATION_FAILED
    with pytest.raises(Unreachable, match="refused the token"):
        connect(sasl_daemon.port, tls_of(AUTHORITY), bearer("another"))


def test_acls_take_effect_with_the_answer_to_their_creation(sasl_daemon: DaemonProcess) -> None:
    with (
        connect(sasl_daemon.port, tls_of(AUTHORITY), plain("bob", "bob-secret")) as bob,
        admin(sasl_daemon) as root,
    ):
        assert create_topic(bob, "orders-1") == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        allowed = AclCreation(
            resource_type=2,
            resource_name="orders-",
            resource_pattern_type=4,
            principal="User:bob",
            host="*",
            operation=5,
            permission_type=3,
        )
        answer = root.ask(ApiKey.CREATE_ACLS, CreateAclsRequest([allowed]), CreateAclsResponse)
        assert [one.error_code for one in answer.results] == [0]
        assert create_topic(bob, "orders-1") != ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert create_topic(bob, "payments") == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        denied = bob.ask(ApiKey.CREATE_ACLS, CreateAclsRequest([allowed]), CreateAclsResponse)
        assert [one.error_code for one in denied.results] == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED]


def raw(daemon: DaemonProcess) -> ssl.SSLSocket:
    sock = socket.create_connection(("127.0.0.1", daemon.port), timeout=20)
    return tls_of(AUTHORITY).client.wrap_socket(sock, server_hostname="127.0.0.1")


@pytest.mark.parametrize(
    "sent",
    [
        b"".join(encode_request(ApiKey.DESCRIBE_CLUSTER, 1, 1, "x", DescribeClusterRequest())),
        struct.pack(">i", 90 << 20) + b"\0\x12",
        struct.pack(">i", 65_537) + b"\0\x12\0\0",
        b"".join(encode_request(ApiKey.SASL_HANDSHAKE, 1, 1, "x", SaslHandshakeRequest("GSSAPI"))) * 3,
        b"GET / HTTP/1.1\r\n\r\n",
    ],
)
def test_unauthenticated_peers_get_no_answer_and_take_no_memory(
    sasl_daemon: DaemonProcess, sent: bytes
) -> None:
    with raw(sasl_daemon) as stranger:
        stranger.sendall(sent)
        received = b""
        while part := stranger.recv(4096):
            received += part
        assert len(received) < 100


def test_a_flood_of_frames_that_are_too_long_is_logged_in_few_lines(sasl_daemon: DaemonProcess) -> None:
    def line_count() -> int:
        return sasl_daemon.log.read_text().count("a frame of 94371840 bytes")

    before, announced = line_count(), struct.pack(">i", 90 << 20) + b"\0\x12"
    for _ in range(120):
        with raw(sasl_daemon) as stranger:
            stranger.sendall(announced)
            stranger.recv(1)
    wait_for_line(sasl_daemon, "more of the same was not logged")
    assert 0 < line_count() - before < 120


def test_denials_are_in_the_audit_stream(sasl_daemon: DaemonProcess) -> None:
    with connect(sasl_daemon.port, tls_of(AUTHORITY), plain("bob", "bob-secret")) as bob:
        assert create_topic(bob, "audited") == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    events = [json.loads(line) for line in (sasl_daemon.home / "audit.log").read_text().splitlines()]
    denied = next(one for one in events if one.get("resource") == "TOPIC:LITERAL:audited")
    assert denied["event"] == "authorization denied"
    assert (denied["principal"], denied["operation"], denied["api"]) == (
        "User:bob",
        "CREATE",
        "CREATE_TOPICS",
    )


def test_plaintext_and_unfinished_handshakes_time_out(sasl_daemon: DaemonProcess) -> None:
    with admin(sasl_daemon) as client:
        assert create_topic(client, "t") != ErrorCode.TOPIC_AUTHORIZATION_FAILED
    before_bytes = sasl_daemon.rss_bytes()
    half = [socket.create_connection(("127.0.0.1", sasl_daemon.port), timeout=20) for _ in range(500)]
    for number, sock in enumerate(half):
        if number % 2:
            sock.sendall(b"\x16\x03\x01\x02")
    with admin(sasl_daemon) as client:
        assert create_topic(client, "t") != ErrorCode.TOPIC_AUTHORIZATION_FAILED
    grown_bytes = sasl_daemon.rss_bytes() - before_bytes
    for sock in half:
        try:
            while sock.recv(4096):
                pass
        except ConnectionResetError:
            pass
        sock.close()
    assert grown_bytes < MAX_GROWN_BYTES
    wait_until(
        lambda: sasl_daemon.rss_bytes() < before_bytes + MAX_KEPT_BYTES, "memory is as before", timeout_s=60
    )


def test_commands_log_in_with_the_credentials_of_their_clients_file(
    sasl_daemon: DaemonProcess, tmp_path: Path
) -> None:
    client = tmp_path / "client.properties"
    text = (
        "security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\n"
        f'sasl.jaas.config={PLAIN_MODULE} required username="admin" password="{{}}";\n'
        f"ssl.truststore.type=PEM\nssl.truststore.location={AUTHORITY.write_pem(tmp_path / 'ca.pem')}\n"
    )
    command = ("quorum", "describe", "--bootstrap", f"127.0.0.1:{sasl_daemon.port}", "--command-config")
    client.write_text(text.format("admin-secret"))
    assert "LeaderId:" in sasl_daemon.kraftd(*command, str(client)).stdout
    client.write_text(text.format("wrong"))
    refused = sasl_daemon.kraftd(*command, str(client), check=False)
    assert "Authentication failed: Invalid username or password" in refused.stderr
    plaintext = sasl_daemon.kraftd("topics", *command[2:4], check=False)
    assert "give --command-config if its listener is secured" in plaintext.stderr
    client.write_text("security.protocol=SASL_SSL\nsasl.mechanism=GSSAPI\n")
    refused = sasl_daemon.kraftd(*command, str(client), check=False)
    assert (refused.returncode, "kraftd does not offer GSSAPI" in refused.stderr) == (2, True)


def test_doctor_examines_a_secured_quorum_with_the_nodes_own_file(sasl_daemon: DaemonProcess) -> None:
    done = sasl_daemon.kraftd("doctor", "--config", str(sasl_daemon.properties), "--json", check=False)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    # A sync may be slow here, as this machine's disk stalls now and then.
    wrong = [one for one in found if one["level"] in ("problem", "warning") and one["area"] != "disk"]
    assert wrong == []
    assert any(one["text"].startswith("a single voter") for one in found), found
    assert any((one["area"], one["text"]) == ("ports", "this node answers") for one in found)


def test_no_log_contains_a_secret(sasl_daemon: DaemonProcess) -> None:
    text = sasl_daemon.log.read_text()
    assert "login failed" in text
    for secret in ("admin-secret", "bob-secret", "broker-secret", "PRIVATE KEY", "wrong"):
        assert secret not in text.replace("wrong password", "")


# -- mTLS


@pytest.fixture(scope="module")
def tls_daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    """A daemon with SSL and client certificates; its own name is a super user."""
    home = tmp_path_factory.mktemp("tls")
    keys = {
        "listener.security.protocol.map": "CONTROLLER:SSL",
        **tls_keys(home, AUTHORITY, "CN=node,OU=Nodes", PREFIX),
        f"{PREFIX}ssl.client.auth": "required",
        f"{PREFIX}ssl.principal.mapping.rules": "RULE:^CN=([^,]+).*$/$1/L,DEFAULT",
        "authorizer.class.name": STANDARD_AUTHORIZER,
        "super.users": "User:node;User:admin",
    }
    daemon = DaemonProcess(home, **{key.replace(".", "__"): value for key, value in keys.items()})
    daemon.format().begin()
    wait_for(daemon, lambda: connect(daemon.port, tls_of(AUTHORITY, AUTHORITY.issue("CN=Admin"))))
    yield daemon
    daemon.stop()


def test_doctor_leaves_no_warning_in_the_log_of_a_tls_node(tls_daemon: DaemonProcess) -> None:
    def warnings() -> list[dict[str, Any]]:
        return [line for line in tls_daemon.lines() if line["level"] != "info"]

    before = len(warnings())
    tls_daemon.kraftd("doctor", "--config", str(tls_daemon.properties), check=False)
    with socket.create_connection(("127.0.0.1", tls_daemon.port)):
        pass  # as a load balancer does
    assert warnings()[before:] == []
    at = f"127.0.0.1:{tls_daemon.port}"
    done = tls_daemon.kraftd("doctor", "--bootstrap", at, check=False)
    assert "it speaks TLS" in done.stdout
    assert warnings()[before:] == []
    for _ in range(2):  # a client with a wrong protocol tries again
        with pytest.raises(Unreachable):
            connect(tls_daemon.port)
    wait_until(lambda: len(warnings()) > before, "a line says so")
    assert {line["reason"] for line in warnings()[before:]} == {"WRONG_VERSION_NUMBER"}


def test_the_principal_comes_from_the_certificate(tls_daemon: DaemonProcess) -> None:
    with connect(tls_daemon.port, tls_of(AUTHORITY, AUTHORITY.issue("CN=ADMIN,OU=X"))) as client:
        assert create_topic(client, "t") != ErrorCode.TOPIC_AUTHORIZATION_FAILED
    with connect(tls_daemon.port, tls_of(AUTHORITY, AUTHORITY.issue("CN=eve"))) as client:
        assert create_topic(client, "t") == ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_no_untrusted_or_expired_certificate_is_accepted(tls_daemon: DaemonProcess) -> None:
    foreign = Authority("CN=Foreign").issue("CN=admin")
    for issued in (None, foreign, AUTHORITY.issue("CN=admin", days=-1)):
        with pytest.raises(Unreachable):
            connect(tls_daemon.port, tls_of(AUTHORITY, issued))


def test_a_certificate_is_renewed_while_clients_are_connected(tls_daemon: DaemonProcess) -> None:
    admin = tls_of(AUTHORITY, AUTHORITY.issue("CN=admin"))
    path = tls_daemon.home / "node.pem"

    def served() -> bytes | None:
        sock = socket.create_connection(("127.0.0.1", tls_daemon.port), timeout=20)
        with admin.client.wrap_socket(sock, server_hostname="127.0.0.1") as secured:
            return secured.getpeercert(binary_form=True)

    before = served()
    with connect(tls_daemon.port, admin) as client:
        other = tls_daemon.home / "other.pem"
        for at, certificate in ((tls_daemon.home / "absent.pem", None), (other, AUTHORITY.issue("CN=node"))):
            if certificate is not None:
                certificate.write_pem(at)
            config = AlterableConfig(f"{PREFIX}ssl.keystore.location", 0, str(at))
            request = IncrementalAlterConfigsRequest([AlterConfigsResource(4, "100", [config])])
            key = ApiKey.INCREMENTAL_ALTER_CONFIGS
            changed = client.ask(key, request, IncrementalAlterConfigsResponse)
            assert [one.error_code for one in changed.responses] == [0]
            wait_for_line(
                tls_daemon,
                "absent.pem: cannot be read" if certificate is None else '"new certificates are used"',
            )
            assert (served() == before) is (certificate is None)
        config = AlterableConfig(f"{PREFIX}ssl.keystore.location", 1, None)
        request = IncrementalAlterConfigsRequest([AlterConfigsResource(4, "100", [config])])
        client.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, request, IncrementalAlterConfigsResponse)
        wait_until(lambda: served() == before, "the file's certificate is back")
        path.write_text("no certificate")
        wait_for_line(tls_daemon, "it holds no private key in PEM")
        assert served() == before
        AUTHORITY.issue("CN=node,OU=Nodes").write_pem(path)
        wait_until(lambda: served() != before, "the new certificate is served")
        assert create_topic(client, "t") != ErrorCode.TOPIC_AUTHORIZATION_FAILED
