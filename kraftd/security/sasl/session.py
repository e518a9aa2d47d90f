"""The SASL states of one connection of a listener, as Kafka's SaslServerAuthenticator has them.

1. Until a handshake, only ApiVersions (once) and SaslHandshake. 2. Then SaslAuthenticate until the mechanism
is done; any other request fails the login. 3. A failure is sent once, after a delay, and ends the connection.
4. If sessions have a lifetime, a handshake on an authenticated connection begins a login, of the same
mechanism and principal; 5. without it in time, the connection ends with its next request, or when it stays
silent for long afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum

from kraftd.security.principals import USER, Principal
from kraftd.security.sasl.mechanism import SaslFailed, ServerExchange

SILENCE_AFTER_EXPIRY_MS = 10_000  # clients log in again with their next request: some wait for a parked fetch


class SaslState(Enum):
    """The state of a connection."""

    INITIAL = "initial"
    HANDSHAKE = "after ApiVersions"
    AUTHENTICATE = "authenticating"
    COMPLETE = "authenticated"
    FAILED = "failed"


class IllegalSaslStep(Exception):
    """A request that the state does not allow; the connection ends without an answer."""


class UnsupportedMechanism(Exception):
    """The handshake names a mechanism that the listener does not offer."""


class SaslRules:
    """The rules of a listener's connections: mechanisms, and the lifetime of a session.

    `begin` has a function for each mechanism that begins an exchange; `max_reauth_ms` is 0 for no limit.
    """

    def __init__(
        self,
        begin: Mapping[str, Callable[[], ServerExchange]],
        max_reauth_ms: Mapping[str, int] | None = None,
    ) -> None:
        self.begin = begin
        self.max_reauth_ms = max_reauth_ms or {}

    @property
    def mechanisms(self) -> list[str]:
        """The offered mechanisms, as named in handshakes."""
        return list(self.begin)

    def __repr__(self) -> str:
        return f"<SaslRules {' '.join(self.begin)}>"


class SaslSession:
    """One connection, from its first request on."""

    __slots__ = (
        *("_exchange", "_is_revoked", "_rules"),
        *("claimed", "expires_ms", "mechanism", "principal", "raw_tokens", "state"),
    )

    def __init__(self, rules: SaslRules) -> None:
        self.state = SaslState.INITIAL
        self.principal: Principal | None = None
        self.mechanism = ""
        self.claimed = ""  # the name that the peer says it has
        self.expires_ms: int | None = None  # when the session ends unless the peer authenticates again
        self.raw_tokens = False  # after SaslHandshake v0 frames are tokens
        self._rules = rules
        self._exchange: ServerExchange | None = None
        self._is_revoked: Callable[[int], bool] | None = None

    def why_over(self, now_ms: int, wall_ms: int) -> str | None:
        """Why an authenticated session that sends nothing must end; None if it may go on."""
        if not self.authenticated:
            return None
        if self.expires_ms is not None and now_ms >= self.expires_ms + SILENCE_AFTER_EXPIRY_MS:
            return "its session has expired"
        if self._is_revoked is not None and self._is_revoked(wall_ms):
            return "its credential was removed or has expired"
        return None

    @property
    def authenticated(self) -> bool:
        """Return whether requests of the connection are served."""
        return self.state is SaslState.COMPLETE

    def on_api_versions(self) -> None:
        """Handle a request for versions. Raises IllegalSaslStep if it is not allowed."""
        if self.state is not SaslState.INITIAL:
            raise IllegalSaslStep("ApiVersions twice, or during authentication")
        self.state = SaslState.HANDSHAKE

    def handshake(self, mechanism: str, version: int) -> None:
        """Begin a login. Raises UnsupportedMechanism, SaslFailed (another mechanism than before),
        IllegalSaslStep.
        """
        if self.state not in (SaslState.INITIAL, SaslState.HANDSHAKE, SaslState.COMPLETE):
            raise IllegalSaslStep("SaslHandshake during authentication")
        again = self.state is SaslState.COMPLETE
        begin = self._rules.begin.get(mechanism)
        if begin is None:
            self.state = SaslState.FAILED
            raise UnsupportedMechanism(mechanism)
        if again and mechanism != self.mechanism:
            self.state = SaslState.FAILED
            raise SaslFailed(
                f"re-authentication by {mechanism} of a connection that was authenticated by {self.mechanism}"
            )
        self.raw_tokens = version == 0 and not again
        self.mechanism = mechanism
        self._exchange = begin()
        self.state = SaslState.AUTHENTICATE

    def authenticate(self, token: bytes, now_ms: int, wall_ms: int) -> tuple[bytes, int]:
        """The answer to a token, and the rest of the session in ms (0: no limit, or not done).

        `now_ms` is of the clock of sessions, `wall_ms` of the clock of tokens. Raises SaslFailed,
        IllegalSaslStep.
        """
        exchange = self._exchange
        if self.state is not SaslState.AUTHENTICATE or exchange is None:
            raise IllegalSaslStep("SaslAuthenticate without a handshake")
        try:
            try:
                answer = exchange.respond(token, wall_ms)
            finally:
                self.claimed = exchange.claimed
            if exchange.login is None:
                return answer, 0
            login = exchange.login
            principal = Principal(USER, login.name, login.token_authenticated)
            if self.principal is not None and (self.principal.type, self.principal.name) != (
                USER,
                login.name,
            ):
                to_client = (
                    "Cannot change principals during re-authentication from "
                    f"{self.principal.type}.{self.principal.name}: {USER}.{login.name}"
                )
                raise SaslFailed(f"re-authentication of {self.principal} as {principal}", to_client)
        except SaslFailed:
            self.state = SaslState.FAILED
            self._exchange = None
            raise
        self.principal = principal
        self._is_revoked = login.is_revoked
        self._exchange = None
        self.state = SaslState.COMPLETE
        lifetime_ms = self._lifetime_ms(login.expires_ms, wall_ms)
        self.expires_ms = None if lifetime_ms is None else now_ms + lifetime_ms
        return answer, lifetime_ms or 0

    def _lifetime_ms(self, proof_expires_ms: int | None, wall_ms: int) -> int | None:
        limits = []
        if self._rules.max_reauth_ms.get(self.mechanism, 0) > 0:
            limits.append(self._rules.max_reauth_ms[self.mechanism])
        if proof_expires_ms is not None:
            limits.append(max(0, proof_expires_ms - wall_ms))
        return min(limits, default=None)

    def failure_text(self, failure: SaslFailed) -> str:
        """The text of a failure for the peer, which does not reveal what was wrong."""
        if failure.to_client is not None:
            return failure.to_client
        what = "re-authentication" if self.principal is not None else "authentication"
        return (
            f"Authentication failed during {what} due to invalid credentials with SASL mechanism "
            f"{self.mechanism}"
        )

    def __repr__(self) -> str:
        return f"<SaslSession {self.state.value} {self.mechanism} {self.principal or ''}>"
