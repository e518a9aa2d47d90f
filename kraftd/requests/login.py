"""The requests that a connection of a SASL listener may send before, during and after its login.

Frames are handled one at a time, in order: each is passed on to the boundary, answered here, or ends the
connection. ApiVersions is passed on once before the login; SaslHandshake and SaslAuthenticate are answered
here. Everything else before the login ends the connection, as with Kafka: without an answer before a
handshake, with ILLEGAL_SASL_STATE after it.
"""

from __future__ import annotations

from msgspec import Struct

from kraftd.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kraftd.messages.sasl_authenticate_response import SaslAuthenticateResponse
from kraftd.messages.sasl_handshake_request import SaslHandshakeRequest
from kraftd.messages.sasl_handshake_response import SaslHandshakeResponse
from kraftd.requests.refusals import refuse
from kraftd.security.sasl.mechanism import SaslFailed
from kraftd.security.sasl.session import (
    IllegalSaslStep,
    SaslRules,
    SaslSession,
    SaslState,
    UnsupportedMechanism,
)
from kraftd.wire.api import ApiKey, is_known, is_valid, request_class
from kraftd.wire.codec import decode_prefix
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.errors import ProtocolError, UnsupportedVersionError
from kraftd.wire.frames import encode_response, parse_request_header
from kraftd.wire.primitives import Buffer

MIN_REAUTHENTICATION_INTERVAL_MS = 1000


class PassOn(Struct, frozen=True):
    """Pass the frame on to the boundary."""


class Reply(Struct, frozen=True):
    """Answer with these bytes; the connection stays open."""

    parts: list[Buffer]


class Fail(Struct, frozen=True):
    """The login failed: after a delay send these bytes (None: nothing), and end the connection."""

    parts: list[Buffer]
    reason: str


class Fault(Struct, frozen=True):
    """A fault of this node: the login fails, with the traceback in the log."""

    parts: list[Buffer]
    error: Exception


class End(Struct, frozen=True):
    """End the connection without an answer."""

    reason: str


Outcome = PassOn | Reply | Fail | Fault | End
_PASS_ON = PassOn()
_SASL_KEYS = (b"\x00\x11", b"\x00\x24")  # the first bytes of frames of the two SASL APIs


class ConnectionLogin:
    """One connection: its session, and when it last began to log in again."""

    __slots__ = ("_began_ms", "_rules", "session")

    def __init__(self, rules: SaslRules) -> None:
        self.session = SaslSession(rules)
        self._rules = rules
        self._began_ms: int | None = None

    @property
    def has_begun(self) -> bool:
        """Return whether the peer has begun a login; a tool that only looks what a node is does not."""
        return self.session.state not in (SaslState.INITIAL, SaslState.HANDSHAKE)

    def needs_login(self, frames: list[memoryview], now_ms: int) -> bool:
        """Return whether any of the frames must be handled alone; few must after a login."""
        session = self.session
        if not session.authenticated or (session.expires_ms is not None and now_ms >= session.expires_ms):
            return True
        return any(frame[:2] in _SASL_KEYS for frame in frames)

    def take(self, frame: Buffer, now_ms: int, wall_ms: int) -> Outcome:
        """How to handle the next frame."""
        try:
            return self._judge(frame, now_ms, wall_ms)
        except Exception as error:
            return Fault([] if self.session.raw_tokens else _refusal(frame), error)

    def _judge(self, frame: Buffer, now_ms: int, wall_ms: int) -> Outcome:
        session = self.session
        if session.state is SaslState.FAILED:
            return End("a request after a failed login")
        if session.raw_tokens and session.state is SaslState.AUTHENTICATE:
            return self._raw_token(bytes(frame), now_ms, wall_ms)
        try:
            header, key, version, at = parse_request_header(frame)
            if session.state is SaslState.AUTHENTICATE and key != ApiKey.SASL_AUTHENTICATE:
                return self._out_of_place(key, version, frame, at, header.correlation_id)
            if session.authenticated and not self._begins_again(key, now_ms):
                if session.expires_ms is not None and now_ms >= session.expires_ms:
                    return End("its session has expired")
                return _PASS_ON
            if key == ApiKey.API_VERSIONS:
                # An unknown version is answered too, and the client may then try another.
                if is_valid(key, version):
                    session.on_api_versions()
                return _PASS_ON
            if key == ApiKey.SASL_HANDSHAKE:
                request = decode_prefix(SaslHandshakeRequest, version, frame, at)[0]
                return self._handshake(request, version, header.correlation_id, now_ms)
            if key == ApiKey.SASL_AUTHENTICATE:
                message = decode_prefix(SaslAuthenticateRequest, version, frame, at)[0]
                return self._authenticate(message, version, header.correlation_id, now_ms, wall_ms)
        except (ProtocolError, UnsupportedVersionError) as error:
            return End(f"no request: {error}")
        except IllegalSaslStep as error:
            return End(str(error))
        name = ApiKey(key).name if is_known(key) else f"API {key}"
        return End(f"{name} before authentication")

    def _out_of_place(self, key: int, version: int, frame: Buffer, at: int, correlation_id: int) -> Outcome:
        """Refuse a request where a token belongs. Raises ProtocolError, UnsupportedVersionError."""
        if not is_known(key):
            return End(f"API {key} during authentication")
        name = ApiKey(key).name
        if key == ApiKey.API_VERSIONS and not is_valid(key, version):
            version, request = 0, None  # answered in the first version, as before a login
        else:
            request = decode_prefix(request_class(key), version, frame, at)[0]
        self.session.state = SaslState.FAILED
        text = f"Unexpected {name} request during SASL authentication."
        response = refuse(key, version, request, ErrorCode.ILLEGAL_SASL_STATE, text)
        return Fail(encode_response(key, version, correlation_id, response), f"{name} during authentication")

    def _begins_again(self, key: int, now_ms: int) -> bool:
        """Return whether a request on an authenticated connection begins a new login."""
        return (
            key == ApiKey.SASL_HANDSHAKE
            and self.session.expires_ms is not None
            and (self._began_ms is None or now_ms - self._began_ms >= MIN_REAUTHENTICATION_INTERVAL_MS)
        )

    def _handshake(
        self, request: SaslHandshakeRequest, version: int, correlation_id: int, now_ms: int
    ) -> Outcome:
        error = ErrorCode.NONE
        if self.session.authenticated:
            self._began_ms = now_ms
        try:
            self.session.handshake(request.mechanism, version)
        except UnsupportedMechanism:
            error = ErrorCode.UNSUPPORTED_SASL_MECHANISM
        except SaslFailed as failure:
            return Fail([], str(failure))
        response = SaslHandshakeResponse(error, tuple(self._rules.mechanisms))
        parts = encode_response(ApiKey.SASL_HANDSHAKE, version, correlation_id, response)
        return Fail(parts, f"it asked for {request.mechanism[:40]!r}") if error else Reply(parts)

    def _authenticate(
        self, request: SaslAuthenticateRequest, version: int, correlation_id: int, now_ms: int, wall_ms: int
    ) -> Outcome:
        failed: SaslFailed | None = None
        try:
            answer, lifetime_ms = self.session.authenticate(bytes(request.auth_bytes), now_ms, wall_ms)
            response = SaslAuthenticateResponse(auth_bytes=answer, session_lifetime_ms=lifetime_ms)
        except SaslFailed as failure:
            failed = failure
            text = self.session.failure_text(failure)
            response = SaslAuthenticateResponse(ErrorCode.SASL_AUTHENTICATION_FAILED, text)
        parts = encode_response(ApiKey.SASL_AUTHENTICATE, version, correlation_id, response)
        return Reply(parts) if failed is None else Fail(parts, str(failed))

    def _raw_token(self, token: bytes, now_ms: int, wall_ms: int) -> Outcome:
        """Handle a bare token, as clients of SaslHandshake v0 send it; they get no answer to a failure."""
        try:
            answer, _ = self.session.authenticate(token, now_ms, wall_ms)
        except SaslFailed as failure:
            return Fail([], str(failure))
        return Reply([len(answer).to_bytes(4, "big"), answer])

    def __repr__(self) -> str:
        return f"<ConnectionLogin {self.session!r}>"


def _refusal(frame: Buffer) -> list[Buffer]:
    """The answer UNKNOWN_SERVER_ERROR to a request of a login; empty for any other frame."""
    if bytes(frame[:2]) not in _SASL_KEYS:
        return []
    try:
        header, key, version, _ = parse_request_header(frame)
    except ProtocolError:
        return []
    response = refuse(key, version, None, ErrorCode.UNKNOWN_SERVER_ERROR)
    return encode_response(key, version, header.correlation_id, response)
