"""The frames that a connection of a SASL listener may send, and their answers."""

from __future__ import annotations

from typing import Any

import pytest

from kraftd.messages.api_versions_request import ApiVersionsRequest
from kraftd.messages.describe_cluster_request import DescribeClusterRequest
from kraftd.messages.metadata_request import MetadataRequest
from kraftd.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kraftd.messages.sasl_handshake_request import SaslHandshakeRequest
from kraftd.requests.login import ConnectionLogin, End, Fail, Fault, Outcome, PassOn, Reply
from kraftd.security.sasl.mechanism import Login, SaslFailed
from kraftd.security.sasl.session import SaslRules
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.frames import encode_request, parse_response

MECHANISM, ANOTHER = "PLAIN", "SCRAM-SHA-256"
HANDSHAKE, AUTHENTICATE = ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE
SESSION_MS = 60_000


class Exchange:
    """A login in two steps: any token is answered with itself and the time, then b"done" completes it."""

    def __init__(self) -> None:
        self.login: Login | None = None
        self.claimed = ""

    def respond(self, token: bytes, now_ms: int) -> bytes:
        if token == b"wrong":
            raise SaslFailed("the token is wrong", "told")
        if token == b"done":
            self.login = Login("alice")
            return b""
        return b"%s at %d" % (token, now_ms)


class Connection:
    """A connection with its own correlation ids; time passes only when the test sets it."""

    def __init__(self, max_reauth_ms: int = 0) -> None:
        begin = {MECHANISM: Exchange, ANOTHER: Exchange}
        self.login = ConnectionLogin(SaslRules(begin, {MECHANISM: max_reauth_ms}))
        self.now_ms = 1_000
        self._correlation_id = 40

    def send(self, key: int, version: int, request: Any) -> Outcome:
        self._correlation_id += 1
        frame = b"".join(encode_request(key, version, self._correlation_id, "c", request))[4:]
        return self.raw(frame)

    def raw(self, frame: bytes) -> Outcome:
        return self.login.take(memoryview(frame), self.now_ms, 7_000)

    def handshake(self, mechanism: str = MECHANISM, version: int = 1) -> Outcome:
        return self.send(HANDSHAKE, version, SaslHandshakeRequest(mechanism))

    def authenticate(self, token: bytes, version: int = 2) -> Outcome:
        return self.send(AUTHENTICATE, version, SaslAuthenticateRequest(token))

    def versions(self, version: int = 3) -> Outcome:
        return self.send(ApiKey.API_VERSIONS, version, ApiVersionsRequest())

    def metadata(self) -> Outcome:
        return self.send(ApiKey.METADATA, 12, MetadataRequest())

    def log_in(self) -> Outcome:
        self.handshake()
        return self.authenticate(b"done")

    def answer(self, outcome: Outcome, key: int, version: int) -> Any:
        """The message in an answer, whose correlation id and size must be those of the last request."""
        assert isinstance(outcome, Reply | Fail | Fault)
        whole = b"".join(outcome.parts)
        assert int.from_bytes(whole[:4], "big") == len(whole) - 4
        header, message = parse_response(key, version, memoryview(whole)[4:])
        assert header.correlation_id == self._correlation_id
        return message


def test_a_login_is_answered_step_by_step_and_then_requests_are_served() -> None:
    connection = Connection()
    assert isinstance(connection.versions(), PassOn)
    shaken = connection.handshake()
    assert isinstance(shaken, Reply)
    answer = connection.answer(shaken, HANDSHAKE, 1)
    assert (answer.error_code, list(answer.mechanisms)) == (ErrorCode.NONE, [MECHANISM, ANOTHER])
    first = connection.authenticate(b"hello")
    assert isinstance(first, Reply)
    assert connection.answer(first, AUTHENTICATE, 2).auth_bytes == b"hello at 7000"
    last = connection.answer(connection.authenticate(b"done"), AUTHENTICATE, 2)
    assert (last.error_code, last.auth_bytes, last.session_lifetime_ms) == (ErrorCode.NONE, b"", 0)
    assert isinstance(connection.metadata(), PassOn)
    assert isinstance(connection.versions(), PassOn)
    connection.now_ms = 1 << 40
    assert isinstance(connection.metadata(), PassOn)  # a session without a lifetime never ends


def test_a_session_with_a_lifetime_ends_with_the_first_request_after_it__kip368() -> None:
    connection = Connection(SESSION_MS)
    answer = connection.answer(connection.log_in(), AUTHENTICATE, 2)
    assert answer.session_lifetime_ms == SESSION_MS
    connection.now_ms += SESSION_MS - 1
    assert isinstance(connection.metadata(), PassOn)
    connection.now_ms += 1
    assert connection.metadata() == End("its session has expired")
    older = Connection(SESSION_MS)
    older.handshake()
    answer = older.answer(older.authenticate(b"done", version=0), AUTHENTICATE, 0)
    assert answer.session_lifetime_ms == 0  # v0 has no field for it


def test_a_connection_logs_in_again_at_most_once_a_second__kip368() -> None:
    connection = Connection(SESSION_MS)
    connection.log_in()
    assert isinstance(connection.handshake(), Reply)  # the first time at once
    assert isinstance(connection.authenticate(b"done"), Reply)
    connection.now_ms += 999
    assert isinstance(connection.handshake(), PassOn)  # too early: the boundary answers it
    connection.now_ms += 1
    assert isinstance(connection.handshake(), Reply)
    assert isinstance(connection.metadata(), Fail)  # no other request until that login is complete
    lasting = Connection()
    lasting.log_in()
    assert isinstance(lasting.handshake(), PassOn)


def test_reauthentication_by_another_mechanism_gets_no_answer__kip368() -> None:
    connection = Connection(SESSION_MS)
    connection.log_in()
    failed = connection.handshake(ANOTHER)
    assert isinstance(failed, Fail)
    assert failed.parts == []
    assert f"re-authentication by {ANOTHER}" in failed.reason


def test_an_unknown_mechanism_is_refused_with_a_list_and_the_connection_fails() -> None:
    connection = Connection()
    failed = connection.handshake("NONE" + "X" * 100)
    answer = connection.answer(failed, HANDSHAKE, 1)
    assert isinstance(failed, Fail)
    assert answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert list(answer.mechanisms) == [MECHANISM, ANOTHER]
    assert failed.reason == f"it asked for {'NONE' + 'X' * 36!r}"
    assert connection.handshake() == End("a request after a failed login")


def test_a_wrong_token_is_answered_and_the_connection_fails() -> None:
    connection = Connection()
    connection.handshake()
    failed = connection.authenticate(b"wrong")
    assert isinstance(failed, Fail)
    answer = connection.answer(failed, AUTHENTICATE, 2)
    assert (answer.error_code, answer.error_message) == (ErrorCode.SASL_AUTHENTICATION_FAILED, "told")
    assert failed.reason == "the token is wrong"
    assert isinstance(connection.metadata(), End)


def test_after_a_handshake_of_v0_frames_are_bare_tokens() -> None:
    connection = Connection()
    assert isinstance(connection.handshake(version=0), Reply)
    assert connection.raw(b"hello") == Reply([(13).to_bytes(4, "big"), b"hello at 7000"])
    assert connection.raw(b"done") == Reply([bytes(4), b""])
    assert isinstance(connection.metadata(), PassOn)
    lasting = Connection(SESSION_MS)
    lasting.handshake(version=0)
    lasting.raw(b"done")
    lasting.now_ms += SESSION_MS - 1
    assert isinstance(lasting.metadata(), PassOn)
    lasting.now_ms += 1
    assert lasting.metadata() == End("its session has expired")
    failing = Connection()
    failing.handshake(version=0)
    assert failing.raw(b"wrong") == Fail([], "the token is wrong")


def test_api_versions_is_answered_once_before_the_login_and_not_during_it() -> None:
    connection = Connection()
    unknown = (18).to_bytes(2, "big") + (99).to_bytes(2, "big") + (1).to_bytes(4, "big") + b"\xff\xff\0"
    assert isinstance(connection.raw(unknown), PassOn)
    assert isinstance(connection.versions(), PassOn)  # another version, after the unknown one
    assert connection.versions() == End("ApiVersions twice, or during authentication")
    connection = Connection()
    connection.handshake()
    refused = connection.raw(unknown)
    assert isinstance(refused, Fail)
    assert bytes(b"".join(refused.parts)[4:10]) == b"\0\0\0\1\0\x22"


@pytest.mark.parametrize(
    ("key", "version", "request_"),
    [
        (ApiKey.API_VERSIONS, 3, ApiVersionsRequest()),
        (ApiKey.SASL_HANDSHAKE, 1, SaslHandshakeRequest(MECHANISM)),
        (ApiKey.DESCRIBE_CLUSTER, 1, DescribeClusterRequest()),
    ],
)
@pytest.mark.parametrize("begun", [False, True])
def test_another_request_where_a_token_belongs_is_refused_and_the_login_fails(
    key: ApiKey, version: int, request_: Any, begun: bool
) -> None:
    connection = Connection()
    connection.handshake()
    if begun:
        connection.authenticate(b"hello")
    refused = connection.send(key, version, request_)
    assert isinstance(refused, Fail)
    assert refused.reason == f"{key.name} during authentication"
    assert connection.answer(refused, key, version).error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert connection.authenticate(b"done") == End("a request after a failed login")


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (b"\0\x03\0\x0c\0\0\0\1\xff\xff\0\0", "METADATA before authentication"),
        (b"\x03\xe7\0\0\0\0\0\1\xff\xff", "API 999 before authentication"),
        (b"\0", "no request: "),
        (b"\0\x11\0\x63\0\0\0\1\xff\xff", "no request: "),
        (b"\0\x24\0\x02\0\0\0\1\xff\xff\0\1\0", "SaslAuthenticate without a handshake"),
    ],
)
def test_other_requests_before_the_login_are_not_answered(frame: bytes, reason: str) -> None:
    outcome = Connection().raw(frame)
    assert isinstance(outcome, End)
    assert outcome.reason.startswith(reason)


def test_frames_are_checked_one_by_one_during_a_login_and_at_a_sessions_end() -> None:
    connection = Connection(SESSION_MS)

    def needs_login(*beginnings: bytes) -> bool:
        frames = [memoryview(beginning + bytes(8)) for beginning in beginnings]
        return connection.login.needs_login(frames, connection.now_ms)

    assert needs_login(b"\0\x03")
    connection.log_in()
    assert not needs_login(b"\0\x03", b"\0\x12", b"\x11\0")
    assert needs_login(b"\0\x03", b"\0\x11")
    assert needs_login(b"\0\x24", b"\0\x03")
    connection.now_ms += SESSION_MS - 1
    assert not needs_login(b"\0\x03")
    connection.now_ms += 1
    assert needs_login(b"\0\x03")
    connection = Connection()
    connection.log_in()
    assert not needs_login(b"\0\x03")


@pytest.mark.parametrize("version", [0, 2])
def test_a_fault_in_a_login_is_answered_in_the_version_of_its_request(
    monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    connection = Connection()
    connection.handshake()
    error = ZeroDivisionError("planted")

    def fail(*_: Any) -> Any:
        raise error

    monkeypatch.setattr(ConnectionLogin, "_authenticate", fail)
    outcome = connection.authenticate(b"done", version)
    assert isinstance(outcome, Fault) and outcome.error is error
    assert connection.answer(outcome, AUTHENTICATE, version).error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_fault_in_what_is_no_request_of_a_login_has_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> Any:
        raise ZeroDivisionError("planted")

    connection, raw = Connection(), Connection()
    raw.handshake(version=0)  # bare tokens follow
    monkeypatch.setattr(ConnectionLogin, "_judge", fail)
    for frame in (b"\0\3\0\1", b"\0\x11", b"\0\x24\0"):
        outcome = connection.raw(frame)
        assert isinstance(outcome, Fault) and outcome.parts == []
    outcome = raw.authenticate(b"done")  # a bare token may begin like this
    assert isinstance(outcome, Fault) and outcome.parts == []
