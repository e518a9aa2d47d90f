"""The common interface of SASL mechanisms: one exchange per login, on the server's and the client's side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

PLAIN = "PLAIN"
SCRAM_SHA_256 = "SCRAM-SHA-256"
SCRAM_SHA_512 = "SCRAM-SHA-512"
OAUTHBEARER = "OAUTHBEARER"
MECHANISMS = (PLAIN, SCRAM_SHA_256, SCRAM_SHA_512, OAUTHBEARER)


class SaslFailed(Exception):
    """A login failed. `to_client` is the text for the peer; None for one that reveals nothing.

    The exception's own text is for this side's log; it has no secret in it.
    """

    def __init__(self, reason: str, to_client: str | None = None) -> None:
        super().__init__(reason)
        self.to_client = to_client


class Login:
    """The result of a login: the authorized name, whether by delegation token, and its expiry.

    `is_revoked` returns whether the credential is gone, at a time in ms; None if that cannot happen.
    """

    __slots__ = ("expires_ms", "is_revoked", "name", "token_authenticated")

    def __init__(
        self,
        name: str,
        *,
        token_authenticated: bool = False,
        expires_ms: int | None = None,
        is_revoked: Callable[[int], bool] | None = None,
    ) -> None:
        self.name = name
        self.token_authenticated = token_authenticated
        self.expires_ms = expires_ms
        self.is_revoked = is_revoked

    def __repr__(self) -> str:
        return f"<Login of {self.name}{' by token' if self.token_authenticated else ''}>"


class ServerExchange(Protocol):
    """The server's side of one login."""

    login: Login | None  # set by the step that completes it
    claimed: str  # the name that the client says it has, empty until then

    def respond(self, token: bytes, now_ms: int) -> bytes:
        """The answer to the client's next message. Raises SaslFailed."""


class ClientExchange(Protocol):
    """The client's side of one login."""

    mechanism: str
    complete: bool

    def first(self, now_ms: int) -> bytes:
        """The first message, which the client sends without a challenge. Raises SaslFailed."""

    def respond(self, challenge: bytes, now_ms: int) -> bytes | None:
        """The next message; None if there is none to send. Raises SaslFailed."""
