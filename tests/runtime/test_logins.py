"""A fault of this node in a login: its peer gets an answer, the log the traceback, and the node continues."""

from __future__ import annotations

import asyncio
import signal
import struct
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from kraftd.config.security import ListenerSecurity, SecurityConfig
from kraftd.messages.api_versions_request import ApiVersionsRequest
from kraftd.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kraftd.messages.sasl_handshake_request import SaslHandshakeRequest
from kraftd.net.connection import Connection
from kraftd.net.limits import Limits
from kraftd.net.listener import Connections
from kraftd.requests.effects import AuditLine
from kraftd.runtime.clock import Clock
from kraftd.runtime.connections.logins import Logins
from kraftd.runtime.reporting.limited_log import MAX_LINES_PER_PERIOD
from kraftd.runtime.security.assembly import ListenerGuard, Security
from kraftd.security.sasl.mechanism import Login
from kraftd.security.sasl.plain import PlainServer
from kraftd.security.sasl.session import SILENCE_AFTER_EXPIRY_MS, SaslRules, SaslSession
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.frames import encode_request, parse_response
from testkit.certificates import Authority
from testkit.memory_transport import MemoryTransport
from testkit.process import wait_until
from tests.runtime.daemon_process import DaemonProcess

LISTENER = "CONTROLLER"


class Lines:
    """A log that keeps its lines."""

    def __init__(self) -> None:
        self.errors: list[tuple[str, dict[str, Any]]] = []
        self.warnings: list[tuple[str, dict[str, Any]]] = []

    def error(self, text: str, **fields: Any) -> None:
        self.errors.append((text, fields))

    def warning(self, text: str, **fields: Any) -> None:
        self.warnings.append((text, fields))


class Door:
    """Connections of one SASL listener, without sockets."""

    def __init__(self, loop: asyncio.AbstractEventLoop, failure_delay_ms: int = 0) -> None:
        self.log = Lines()
        self.events: list[AuditLine] = []
        security = Security(SecurityConfig(), {})
        guard = security.listeners[LISTENER] = ListenerGuard(ListenerSecurity(listener=LISTENER), None)
        guard.rules = SaslRules({"PLAIN": lambda: PlainServer({"alice": "right"})}, {"PLAIN": 0})
        self.logins = Logins(
            security,
            lambda *_: None,
            loop,
            Clock(),
            self.log,
            timeout_ms=60_000,
            failure_delay_ms=failure_delay_ms,
            audit=self.events.append,
        )
        self.connections = Connections(self, Limits(), loop.call_soon)

    def connection_admitted(self, connection: Connection) -> None:
        self.logins.admitted(connection)

    def frames_received(self, connection: Connection, first_slot: int, frames: list[memoryview]) -> None:
        self.logins.frames_received(connection, first_slot, frames)

    def connection_lost(self, connection: Connection, reason: str | None) -> None:
        self.logins.lost(connection)


@pytest.mark.parametrize(
    ("step", "key", "request_"),
    [
        ("handshake", ApiKey.SASL_HANDSHAKE, SaslHandshakeRequest("PLAIN")),
        ("authenticate", ApiKey.SASL_AUTHENTICATE, SaslAuthenticateRequest(b"secret")),
    ],
)
def test_a_fault_in_a_login_is_answered_and_logged_with_its_traceback(
    monkeypatch: pytest.MonkeyPatch, step: str, key: ApiKey, request_: Any
) -> None:
    def planted(*_: Any) -> None:
        raise ZeroDivisionError("planted")

    async def log_in() -> tuple[Door, MemoryTransport]:
        door = Door(asyncio.get_running_loop())
        connection = door.connections.factory(LISTENER)()
        transport = MemoryTransport(("127.0.0.1", 5))
        connection.connection_made(transport)
        monkeypatch.setattr(SaslSession, step, planted)
        connection.data_received(b"".join(encode_request(key, 1, 7, "c", request_)))
        while not connection.closing:
            await asyncio.sleep(0)
        return door, transport

    door, transport = asyncio.run(log_in())
    sent = transport.take()
    assert struct.unpack_from(">i", sent) == (len(sent) - 4,)
    header, answer = parse_response(key, 1, memoryview(sent)[4:])
    assert header.correlation_id == 7
    assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR  # type: ignore[attr-defined]
    ((text, fields),) = door.log.errors
    assert text == "a login failed because of an internal error" and "secret" not in repr(fields)
    assert isinstance(fields["exc_info"], ZeroDivisionError) and fields["exc_info"].__traceback__ is not None
    assert door.logins.failed[LISTENER] == 1


def test_a_single_request_without_a_login_has_no_line_and_further_ones_have() -> None:
    """A single one may be of a tool that looks what the listener speaks."""
    versions = b"".join(encode_request(ApiKey.API_VERSIONS, 3, 1, "c", ApiVersionsRequest("a", "1")))

    async def look(door: Door, host: str) -> None:
        connection = door.connections.factory(LISTENER)()
        connection.connection_made(MemoryTransport((host, 5)))
        connection.data_received(versions)
        connection.data_received(versions)
        assert connection.closing

    async def looks() -> Door:
        door = Door(asyncio.get_running_loop())
        for host in ("10.0.0.9", "10.0.0.8", "10.0.0.9"):
            await look(door, host)
        door.logins.handshake_failed(LISTENER, ("10.0.0.7", 5), "WRONG_VERSION_NUMBER")
        return door

    door = asyncio.run(looks())
    ((text, fields),) = door.log.warnings
    assert (text, fields["peer"]) == ("connection closed", "10.0.0.9:5")
    assert door.logins.failed[LISTENER] == 4


def requests(*messages: Any) -> bytes:
    """Frames of a login: a handshake, then tokens."""
    keys = [ApiKey.SASL_HANDSHAKE, *[ApiKey.SASL_AUTHENTICATE] * (len(messages) - 1)]
    frames = [
        encode_request(key, 1, at, "c", one) for at, (key, one) in enumerate(zip(keys, messages, strict=True))
    ]
    return b"".join(part for frame in frames for part in frame)


def test_authentications_are_audited_with_address_mechanism_and_principal() -> None:
    async def log_in() -> Door:
        door = Door(asyncio.get_running_loop())
        for token in (b"\0alice\0right", b"\0alice\0wrong", b"\0mallory\0right"):
            connection = door.connections.factory(LISTENER)()
            connection.connection_made(MemoryTransport(("2001:db8::7", 5)))
            connection.data_received(requests(SaslHandshakeRequest("PLAIN"), SaslAuthenticateRequest(token)))
        door.logins.handshake_failed(LISTENER, ("10.0.0.9", 5), "no certificate")
        for _ in range(500):
            door.logins.handshake_failed(LISTENER, ("10.0.0.9", 5), "no certificate")
        assert door.logins.audit.end_period() == 500 + 3 - 200
        return door

    events = asyncio.run(log_in()).events
    at = {"mechanism": "PLAIN", "host": "2001:db8:0:0:0:0:0:7", "listener": LISTENER}
    assert [(one.event, dict(one.fields)) for one in events[:4]] == [
        ("authentication succeeded", {"principal": "User:alice", **at}),
        ("authentication failed", {"principal": "User:alice", **at, "reason": "wrong password of 'alice'"}),
        ("authentication failed", {"principal": "User:mallory", **at, "reason": "no user 'mallory'"}),
        (
            "authentication failed",
            {
                "principal": "",
                "mechanism": "TLS",
                "host": "10.0.0.9",
                "listener": LISTENER,
                "reason": "no certificate",
            },
        ),
    ]
    assert len(events) == 1 + 200


def test_sessions_end_whose_user_session_or_certificate_is_no_longer_valid() -> None:
    async def serve() -> None:
        door, gone = Door(asyncio.get_running_loop()), set[str]()
        door.logins.security.listeners[LISTENER].rules = SaslRules(
            {"SCRAM": lambda: Known(gone)}, {"SCRAM": 0}
        )
        connections = []
        for name in (b"alice", b"bob", b"carol", b"dave"):
            connection = door.connections.factory(LISTENER)()
            connection.connection_made(MemoryTransport(("10.0.0.9", 5)))
            connection.data_received(requests(SaslHandshakeRequest("SCRAM"), SaslAuthenticateRequest(name)))
            connections.append(connection)
        while not all(one.login.session.authenticated for one in connections):
            await asyncio.sleep(0)  # requests may wait for the loop's next turn
        alice, bob, carol, dave = connections
        waiting = door.connections.factory(LISTENER)()  # not authenticated yet: its own time limit holds
        waiting.connection_made(MemoryTransport(("10.0.0.9", 5)))
        door.logins.end_revoked(door.connections)
        assert not any(one.closing for one in (*connections, waiting))
        gone.add("bob")
        now_ms = door.logins._clock.now_ms()
        # Alice may wait for a parked fetch, and log in again with her next request.
        alice.login.session.expires_ms = now_ms - 1
        carol.login.session.expires_ms = now_ms - SILENCE_AFTER_EXPIRY_MS
        certificate = Authority().issue("CN=dave", days=-1).certificate.public_bytes(Encoding.DER)
        dave.login = None
        door.logins._certificates.add(dave.id, LISTENER, certificate)
        door.logins.end_revoked(door.connections)
        assert [one.closing for one in (alice, bob, carol, dave, waiting)] == [False, True, True, True, False]
        reasons = [fields["reason"] for _, fields in door.log.warnings]
        assert reasons == [
            "its credential was removed or has expired",
            "its session has expired",
            "its certificate has expired",
        ]

    asyncio.run(serve())


def test_a_login_is_judged_by_the_wall_clock_of_now() -> None:
    """A node that has run since before the clock was set sees the time of each token rightly."""

    async def log_in_twice() -> list[int]:
        door, ahead_ns, seen_ms = Door(asyncio.get_running_loop()), [0], []

        class Noting(Known):
            def respond(self, token: bytes, now_ms: int) -> bytes:
                seen_ms.append(now_ms)
                return super().respond(token, now_ms)

        door.logins._clock = Clock(lambda: 10**18 + ahead_ns[0], lambda: 5)
        door.logins.security.listeners[LISTENER].rules = SaslRules(
            {"SCRAM": lambda: Noting(set())}, {"SCRAM": 0}
        )
        for ahead_ns[0] in (0, 3_600_000_000_000):
            connection = door.connections.factory(LISTENER)()
            connection.connection_made(MemoryTransport(("10.0.0.9", 5)))
            connection.data_received(requests(SaslHandshakeRequest("SCRAM"), SaslAuthenticateRequest(b"a")))
        return seen_ms

    first_ms, second_ms = asyncio.run(log_in_twice())
    assert second_ms - first_ms == 3_600_000


class Known:
    """A mechanism whose token is the name of a user, which may be gone later."""

    def __init__(self, gone: set[str]) -> None:
        self.login: Login | None = None
        self.claimed = ""
        self._gone = gone

    def respond(self, token: bytes, now_ms: int) -> bytes:
        name = token.decode()
        self.login = Login(name, is_revoked=lambda _: name in self._gone)
        return b""


def test_a_frame_after_a_failed_login_does_not_shorten_its_delay() -> None:
    async def guess() -> None:
        loop = asyncio.get_running_loop()
        door = Door(loop, failure_delay_ms=200)
        connection = door.connections.factory(LISTENER)()
        transport = MemoryTransport(("127.0.0.1", 5))
        connection.connection_made(transport)
        handshake = encode_request(ApiKey.SASL_HANDSHAKE, 1, 1, "c", SaslHandshakeRequest("PLAIN"))
        wrong = encode_request(
            ApiKey.SASL_AUTHENTICATE, 1, 2, "c", SaslAuthenticateRequest(b"\0alice\0wrong")
        )
        began_s = loop.time()
        connection.data_received(b"".join([*handshake, *wrong]))
        transport.take()
        for _ in range(3):
            connection.data_received(b"".join(wrong))
            await asyncio.sleep(0.01)
        while not connection.closing:
            await asyncio.sleep(0.01)
        assert loop.time() - began_s >= 0.2
        answer = transport.take()
        assert parse_response(ApiKey.SASL_AUTHENTICATE, 1, memoryview(answer)[4:])[0].correlation_id == 2
        assert door.logins.failed[LISTENER] == 1

    asyncio.run(guess())


def test_certificates_whose_name_cannot_be_read_are_lines_of_limited_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Connection, "peer_certificate", lambda _: b"no certificate")

    async def connect() -> Door:
        door = Door(asyncio.get_running_loop())
        door.logins.security.listeners[LISTENER].rules = None
        for _ in range(3 * MAX_LINES_PER_PERIOD):
            connection = door.connections.factory(LISTENER)()
            connection.connection_made(MemoryTransport(("10.0.0.9", 5)))
            assert connection.closing
        return door

    door = asyncio.run(connect())
    assert door.log.errors == [] and len(door.log.warnings) == MAX_LINES_PER_PERIOD
    assert not any("exc_info" in fields for _, fields in door.log.warnings)
    assert door.logins.failed[LISTENER] == 3 * MAX_LINES_PER_PERIOD


def test_a_fault_outside_of_any_request_is_logged_and_the_loop_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "from kraftd.runtime.connections.logins import Logins\n"
        "admitted = Logins.admitted\n"
        "def broken(self, connection):\n"
        "    Logins.admitted = admitted\n"
        "    1 // 0\n"
        "Logins.admitted = broken\n"
    )
    daemon = DaemonProcess(tmp_path).format()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    daemon.begin()
    try:
        assert daemon.process is not None and daemon.process.stdout is not None
        assert b"listening" in daemon.process.stdout.readline()
        daemon.client().close()
        wait_until(lambda: any("exception" in line for line in daemon.lines()), "the fault is logged")
        (error_line,) = [line for line in daemon.lines() if "exception" in line]
        assert (
            error_line["event"] == "an unexpected error in the event loop"
            and "ZeroDivisionError" in error_line["exception"]
        )
        assert daemon.client().api_versions().error_code == 0
        assert daemon.stop() == 0
    finally:
        daemon.stop(signal.SIGKILL)
