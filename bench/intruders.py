"""``python -m bench.intruders``: hostile peers of a secured controller, and ordinary heartbeats meanwhile.

It measures kraftd alone: Apache Kafka's controllers have neither a handshake timeout nor a limit of refusals
logged.
"""

from __future__ import annotations

import argparse
import base64
import json
import multiprocessing
import random
import socket
import ssl
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm
from rich.console import Console
from rich.table import Table

from bench.admin import LISTENER, client_context, tls_properties
from bench.load import HEARTBEAT_VERSION, BenchBroker
from bench.measure import percentile
from kraftd.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kraftd.messages.sasl_handshake_request import SaslHandshakeRequest
from kraftd.net.tls.contexts import TlsContexts
from kraftd.security.authorizer_settings import CLASS_NAME
from kraftd.security.sasl.jaas import OAUTHBEARER_MODULE, PLAIN_MODULE, SCRAM_MODULE
from kraftd.security.sasl.scram_client import ScramClient
from kraftd.security.tls_settings import StoreSettings, TlsSettings
from testkit.certificates import Authority
from testkit.client import Client
from testkit.cluster import Cluster
from testkit.process import HOST, free_port

BROKERS = 10
INTERVAL_S = 0.05
HALF_OPEN = 500
LOGINS = "listener.name.logins."


class Target(NamedTuple):
    """The listeners that hostile peers attack (mTLS, and with logins), and a stranger's contexts."""

    tls_port: int
    login_port: int
    trusting: ssl.SSLContext  # trusts the controller and has no certificate
    foreign: ssl.SSLContext
    expired: ssl.SSLContext


# One act of a hostile peer; it is repeated.
Attack = Callable[[Target], None]


def half_handshakes(target: Target) -> None:
    """500 connections that begin a handshake and stop; each is opened again after it was closed."""
    while len(_held) < HALF_OPEN:
        sock = socket.create_connection((HOST, target.tls_port))
        if len(_held) % 2:
            sock.sendall(b"\x16\x03\x01\x02\x00\x01\x00")
        sock.setblocking(False)
        _held.append(sock)
    for sock in list(_held):
        with suppress(BlockingIOError):
            try:
                if sock.recv(4096):
                    continue
            except ConnectionError:
                pass
            sock.close()
            _held.remove(sock)
    time.sleep(0.02)


_held: list[socket.socket] = []


def garbage(target: Target) -> None:
    """Random bytes in place of a handshake."""
    with socket.create_connection((HOST, target.login_port)) as sock:
        sock.sendall(random.randbytes(2000))
        sock.recv(100)


def downgrades(target: Target) -> None:
    """A client that speaks TLS 1.1 at most."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_ciphers("ALL:@SECLEVEL=0")
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        context.minimum_version, context.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
    _shake(target.tls_port, context)


def foreign_certificates(target: Target) -> None:
    """A certificate of another authority."""
    _shake(target.tls_port, target.foreign)


def expired_certificates(target: Target) -> None:
    """An expired certificate."""
    _shake(target.tls_port, target.expired)


def _shake(port: int, context: ssl.SSLContext) -> None:
    plain = socket.create_connection((HOST, port))
    try:
        with context.wrap_socket(plain, server_hostname=HOST) as sock:
            sock.recv(1)  # in TLS 1.3 a refusal follows the handshake
    finally:
        plain.close()


def garbage_tokens(target: Target) -> None:
    """A login with a token of random bytes."""
    token = base64.b64encode(random.randbytes(300))
    _log_in(target, "OAUTHBEARER", b"n,,\x01auth=Bearer " + token + b"\x01\x01", b"\x01")


def oversized_tokens(target: Target) -> None:
    """A token of nearly 64 KiB, whose claims are deeply nested."""
    head = base64.urlsafe_b64encode(b'{"alg":"ES256","kid":"k"}').rstrip(b"=")
    claims = base64.urlsafe_b64encode(b"[" * 46_000).rstrip(b"=")
    _log_in(target, "OAUTHBEARER", b"n,,\x01auth=Bearer " + head + b"." + claims + b".c2ln\x01\x01", b"\x01")


def endless_frames(target: Target) -> None:
    """A frame that announces 90 MiB before any login."""
    with _client(target) as client:
        client.socket.sendall((90 << 20).to_bytes(4, "big") + bytes(1000))
        client.socket.recv(1)


def wrong_passwords(target: Target) -> None:
    """A login with a wrong password."""
    _log_in(target, "PLAIN", b"\0admin\0" + random.randbytes(8).hex().encode())


def replayed_logins(target: Target) -> None:
    """The messages of another SCRAM login, sent again."""
    exchange = ScramClient("SCRAM-SHA-512", "admin", "admin-secret", "nonce-that-was-overheard")
    with _client(target) as client:
        client.call(SaslHandshakeRequest("SCRAM-SHA-512"), 1)
        answer = client.call(SaslAuthenticateRequest(exchange.first(0)), 2)
        final = exchange.respond(answer.auth_bytes, 0)
    _log_in(target, "SCRAM-SHA-512", exchange.first(0), final or b"")


def _client(target: Target) -> Client:
    return Client(HOST, target.login_port, tls=target.trusting, timeout_s=10)


def _log_in(target: Target, mechanism: str, *messages: bytes) -> None:
    with _client(target) as client:
        client.call(SaslHandshakeRequest(mechanism), 1)
        for message in messages:
            answer = client.call(SaslAuthenticateRequest(message), 2)
        if not answer.error_code:
            raise SystemExit(f"{mechanism} let a hostile peer in")


ATTACKS: dict[str, Attack | None] = {
    "no attack": None,
    "500 half handshakes": half_handshakes,
    "garbage": garbage,
    "downgrades": downgrades,
    "foreign certificates": foreign_certificates,
    "expired certificates": expired_certificates,
    "garbage tokens": garbage_tokens,
    "oversized tokens": oversized_tokens,
    "frames of 90 MiB": endless_frames,
    "wrong passwords": wrong_passwords,
    "replayed SCRAM logins": replayed_logins,
}


def _attack(attack: Attack, target: Target, ends_s: float, counts: multiprocessing.Queue[int]) -> None:
    """Repeat an attack; the target of the hostile process."""
    count = 0
    while time.time() < ends_s:
        with suppress(OSError, EOFError):
            attack(target)
        count += 1
    counts.put(count)


@contextmanager
def secured(home: Path) -> Iterator[tuple[Cluster, Target, ssl.SSLContext]]:
    """A controller with one listener of mTLS and one of SASL_SSL."""
    authority, login_port = Authority(), free_port()
    public = ECAlgorithm.to_jwk(ec.generate_private_key(ec.SECP256R1()).public_key(), as_dict=True)
    (home / "jwks.json").write_text(json.dumps({"keys": [{**public, "kid": "k"}]}))
    users = 'username="admin" password="admin-secret" user_admin="admin-secret"'
    stores = tls_properties(authority, home)
    properties = {
        **stores,
        **{f"{LOGINS}{key.removeprefix(LISTENER)}": value for key, value in stores.items() if "store" in key},
        "controller.listener.names": "CONTROLLER,LOGINS",
        "listener.security.protocol.map": "CONTROLLER:SSL,LOGINS:SASL_SSL,PLAINTEXT:PLAINTEXT",
        f"{LOGINS}sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512,OAUTHBEARER",
        f"{LOGINS}plain.sasl.jaas.config": f"{PLAIN_MODULE} required {users};",
        f"{LOGINS}scram-sha-512.sasl.jaas.config": f"{SCRAM_MODULE} required;",
        f"{LOGINS}oauthbearer.sasl.jaas.config": f"{OAUTHBEARER_MODULE} required;",
        "sasl.oauthbearer.jwks.endpoint.url": f"file:{home}/jwks.json",
        "authorizer.class.name": CLASS_NAME,
        "super.users": "User:node;User:root",
        "broker.session.timeout.ms": 60_000,
        "kraftd.ssl.handshake.timeout.ms": 3000,
    }
    foreign, expired = Authority("CN=Foreign").issue("CN=root"), authority.issue("CN=root", days=-1)
    root = client_context(authority, "root")
    with Cluster(home, "kraftd", controller_properties=properties) as cluster:
        port = cluster.controller.port
        target = Target(
            port,
            login_port,
            TlsContexts(TlsSettings(truststore=StoreSettings(type="PEM", certificates=authority.pem))).client,
            *(
                TlsContexts(
                    TlsSettings(
                        keystore=StoreSettings(type="PEM", key=one.key_pem, certificates=one.chain_pem),
                        truststore=StoreSettings(type="PEM", certificates=authority.pem),
                    )
                ).client
                for one in (foreign, expired)
            ),
        )
        cluster.controller.properties["listeners"] = (
            f"CONTROLLER://{HOST}:{port},LOGINS://{HOST}:{login_port}"
        )
        cluster.controller.write_properties()
        cluster.controller.tls = root
        user = "SCRAM-SHA-512=[name=admin,password=admin-secret]"
        cluster.controller.format(cluster.cluster_id, "--standalone", "--add-scram", user)
        cluster.start_controller()
        yield cluster, target, root


def heartbeats_ms(brokers: list[BenchBroker], ends_s: float) -> list[float]:
    """The duration of each heartbeat that was due until then, counted from when it was due."""
    times_ms, due_s = [], time.time()
    step_s = INTERVAL_S / len(brokers)
    while due_s < ends_s:
        for broker in brokers:
            time.sleep(max(due_s - time.time(), 0))
            broker.client.call(broker.heartbeat(), HEARTBEAT_VERSION)
            times_ms.append((time.time() - due_s) * 1000)
            due_s = max(due_s + step_s, time.time() - step_s)
    return times_ms


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.intruders", description=__doc__)
    parser.add_argument("--seconds", type=float, default=6, help="duration of each kind of attack")
    options = parser.parse_args()
    shown = Table(title=f"Heartbeats of {BROKERS} brokers over mTLS, each every {INTERVAL_S * 1000:.0f} ms")
    for column in ("meanwhile", "times", "p50, ms", "p99, ms", "worst, ms", "memory, MiB", "lines logged"):
        shown.add_column(column, justify="left" if column == "meanwhile" else "right")
    with (
        tempfile.TemporaryDirectory(prefix="kraftd-bench-") as home,
        secured(Path(home)) as (cluster, target, root),
    ):
        node = cluster.controller
        brokers = [
            BenchBroker(number + 1, node.port, cluster.cluster_id, tls=root) for number in range(BROKERS)
        ]
        for broker in brokers:
            broker.unfence()
        for name, attack in ATTACKS.items():
            before_mib, before_lines = node.rss_mib(), node.log.read_text().count("\n")
            ends_s = time.time() + options.seconds
            counts: multiprocessing.Queue[int] = multiprocessing.Queue()
            if attack is not None:
                hostile = multiprocessing.Process(target=_attack, args=(attack, target, ends_s, counts))
                hostile.start()
            times_ms = heartbeats_ms(brokers, ends_s)
            count = 0
            if attack is not None:
                count = counts.get()
                hostile.join()
            lines = node.log.read_text().count("\n") - before_lines
            cells = (sorted(times_ms)[len(times_ms) // 2], percentile(times_ms, 0.99), max(times_ms))
            memory = f"{node.rss_mib() - before_mib:+.1f}"
            shown.add_row(name, str(count), *(f"{one:.1f}" for one in cells), memory, str(lines))
    Console(highlight=False, width=None if sys.stdout.isatty() else 120).print(shown)
    return 0


if __name__ == "__main__":
    sys.exit(main())
