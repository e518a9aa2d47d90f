"""SASL PLAIN (RFC 4616), with Kafka's users: ``user_<name>="<password>"`` of the login module."""

from __future__ import annotations

import hmac
from collections.abc import Mapping

from kraftd.security.sasl.mechanism import PLAIN, Login, SaslFailed

USER_PREFIX = "user_"
MAX_TOKEN_BYTES = 65_536


def plain_users(options: Mapping[str, str]) -> dict[str, str]:
    """Names to passwords, of the options of a PlainLoginModule."""
    return {
        key.removeprefix(USER_PREFIX): value for key, value in options.items() if key.startswith(USER_PREFIX)
    }


class PlainServer:
    """One login by name and password."""

    def __init__(self, users: Mapping[str, str]) -> None:
        self.login: Login | None = None
        self.claimed = ""
        self._users = users

    def respond(self, token: bytes, now_ms: int) -> bytes:
        parts = token.decode(errors="replace").split("\0", 3)
        if len(parts) != 3:
            text = f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}"
            raise SaslFailed("malformed PLAIN message", text)
        authorization, name, password = parts
        self.claimed = name
        for value, what in ((name, "username"), (password, "password")):
            if not value:
                raise SaslFailed(f"no {what}", f"Authentication failed: {what} not specified")
        # Compared even for an unknown name, so that the duration is the same.
        known = self._users.get(name)
        equal = hmac.compare_digest((known or "").encode(), password.encode())
        if known is None or not equal:
            raise SaslFailed(
                f"wrong password of {name!r}" if known is not None else f"no user {name!r}",
                "Authentication failed: Invalid username or password",
            )
        if authorization not in ("", name):
            text = (
                "Authentication failed: Client requested an authorization id that is different from username"
            )
            raise SaslFailed("another authorization id", text)
        self.login = Login(name)
        return b""


class PlainClient:
    """One login as a user."""

    mechanism = PLAIN

    def __init__(self, name: str, password: str) -> None:
        self.complete = False
        self._name = name
        self._password = password

    def first(self, now_ms: int) -> bytes:
        return f"\0{self._name}\0{self._password}".encode()

    def respond(self, challenge: bytes, now_ms: int) -> bytes | None:
        if challenge:
            raise SaslFailed("the server answered PLAIN with a challenge")
        self.complete = True
        return None

    def __repr__(self) -> str:
        return f"<PlainClient {self._name}>"
