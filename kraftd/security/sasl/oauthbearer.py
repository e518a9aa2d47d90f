"""SASL OAUTHBEARER (RFC 7628): a login by a signed JSON web token."""

from __future__ import annotations

import re
from collections.abc import Callable

from kraftd.security.sasl.jwt_validation import InvalidToken
from kraftd.security.sasl.mechanism import OAUTHBEARER, Login, SaslFailed

_PAIR = r"[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01"
_FIRST = re.compile(
    rf"n,(?:a=(?P<authzid>(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+))?,\x01(?P<pairs>(?:{_PAIR})*)\x01"
)
_AUTH = re.compile(r"(?P<scheme>\w+) +(?P<token>[-_~+/.a-zA-Z0-9]+=*)")
_ACKNOWLEDGED = b"\x01"
_REFUSED = '{"status":"invalid_token"}'

# The login of a token at a given time. Raises InvalidToken.
Validate = Callable[[str, int], Login]


class OAuthBearerServer:
    """One login by a token."""

    def __init__(self, validate: Validate) -> None:
        self.login: Login | None = None
        self.claimed = ""
        self._validate = validate
        self._refusal: str | None = None

    def respond(self, token: bytes, now_ms: int) -> bytes:
        if self._refusal is not None:
            # The client has read the reason, and now requests the failure of the login.
            raise SaslFailed(self._refusal, _REFUSED if token == _ACKNOWLEDGED else None)
        try:
            match = _FIRST.fullmatch(token.decode("ascii"))
        except UnicodeDecodeError:
            match = None
        if match is None:
            raise SaslFailed("malformed OAUTHBEARER message")
        pairs = dict(pair.split("=", 1) for pair in match["pairs"].split("\x01") if pair)
        auth = _AUTH.fullmatch(pairs.get("auth", ""))
        if auth is None or auth["scheme"].lower() != "bearer":
            raise SaslFailed("an OAUTHBEARER message without a bearer token")
        self.claimed = match["authzid"] or ""
        try:
            login = self._validate(auth["token"], now_ms)
        except InvalidToken as error:
            self._refusal = f"the token is not valid: {error}"
            return _REFUSED.encode()
        self.claimed = login.name
        if match["authzid"] not in (None, login.name):
            to_client = (
                f"Authentication failed: Client requested an authorization id ({match['authzid']}) that is "
                f"different from the token's principal name ({login.name})"
            )
            raise SaslFailed("another authorization id", to_client)
        self.login = login
        return b""


class OAuthBearerClient:
    """One login with this side's token."""

    mechanism = OAUTHBEARER

    def __init__(self, token: str) -> None:
        self.complete = False
        self._token = token

    def first(self, now_ms: int) -> bytes:
        return f"n,,\x01auth=Bearer {self._token}\x01\x01".encode()

    def respond(self, challenge: bytes, now_ms: int) -> bytes | None:
        if challenge:
            raise SaslFailed("the server refused the token")
        self.complete = True
        return None

    def __repr__(self) -> str:
        return f"<OAuthBearerClient{', complete' if self.complete else ''}>"
