"""OAuth's grant of a token by client credentials (RFC 6749, 4.4): request and answer.

    headers, body = request(grant)                # to be POSTed to grant.url
    token = read_token(read_answer(status, data, grant), grant.subject_claim)
    at_ms = refresh_at_ms(token, now_ms, grant.refresh, share)

Sends nothing and reads no clock: `net/token_endpoint.py` does. Nothing here shows the secret or a token.
"""

from __future__ import annotations

import base64
import json
import re
from typing import Any
from urllib.parse import quote_plus

from msgspec import Struct

from kraftd.security.sasl.jwt_validation import MAX_TOKEN_BYTES
from kraftd.security.tls_settings import TlsSettings

MAX_ANSWER_BYTES = 1 << 20
MAX_ERROR_LENGTH = 300
RELOGIN_MS = 10_000  # after a permanent refusal, as Kafka's refreshing login waits
MIN_WAIT_MS = 100
_GRANTED = (200, 201)
# The statuses after which Kafka does not repeat the request at once.
_PERMANENT = frozenset((400, 401, 402, 403, 404, 405, 406, 407, 409, 410, 411, 412, 413, 414, 415, 501, 505))
_TOKEN = re.compile(r"[-_~+/.a-zA-Z0-9]+=*")  # the valid characters in an OAUTHBEARER message (RFC 7628)
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\U00010000-\U0010ffff]+")


class RefreshRules(Struct, frozen=True, kw_only=True):
    """When a token is replaced: the keys ``sasl.login.refresh.*``."""

    window_factor: float = 0.8
    window_jitter: float = 0.05
    min_period_ms: int = 60_000
    buffer_ms: int = 300_000


class TokenGrant(Struct, frozen=True, kw_only=True):
    """The token endpoint, and the client for which tokens are requested. `tls` is None for plain HTTP."""

    url: str
    client_id: str
    client_secret: str
    scope: str = ""
    url_encodes: bool = False
    tls: TlsSettings | None = None
    connect_timeout_ms: int = 10_000
    read_timeout_ms: int = 10_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 10_000
    refresh: RefreshRules = RefreshRules()
    subject_claim: str = "sub"

    def __repr__(self) -> str:
        return f"<TokenGrant of {self.client_id} by {self.url}>"


class GrantRefused(Exception):
    """There is no token. The text says why and has no secret; `permanent` is true if a repetition would
    hardly help.
    """

    def __init__(self, reason: str, *, permanent: bool = False) -> None:
        super().__init__(reason)
        self.permanent = permanent


class Token:
    """One token. Times are those of its claims, in milliseconds; `issued_ms` is None where it has no iat."""

    __slots__ = ("expires_ms", "issued_ms", "text")

    def __init__(self, text: str, expires_ms: int, issued_ms: int | None = None) -> None:
        self.text = text
        self.expires_ms = expires_ms
        self.issued_ms = issued_ms

    def __repr__(self) -> str:
        return f"<Token until {self.expires_ms} ms>"


def request(grant: TokenGrant) -> tuple[dict[str, str], bytes]:
    """The headers and the body of a POST that asks for a token."""
    client_id, secret, scope = grant.client_id, grant.client_secret, grant.scope
    if grant.url_encodes:
        client_id, secret, scope = _form_encoded(client_id), _form_encoded(secret), _form_encoded(scope)
    credentials = base64.b64encode(f"{client_id}:{secret}".encode()).decode()
    headers = {
        "Accept": "application/json",
        "Authorization": f"Basic {credentials}",
        "Cache-Control": "no-cache",
        "Content-Type": "application/x-www-form-urlencoded",
    }
    body = "grant_type=client_credentials" + (f"&scope={scope}" if scope else "")
    return headers, body.encode()


def _form_encoded(text: str) -> str:
    """A text as Java's URLEncoder encodes it, which keeps `*` but not `~`."""
    return quote_plus(text, safe="*").replace("~", "%7E")


def read_answer(status: int, data: bytes, grant: TokenGrant) -> str:
    """The token in an answer. Raises GrantRefused."""
    if len(data) > MAX_ANSWER_BYTES:
        raise GrantRefused(f"its answer has more than {MAX_ANSWER_BYTES} bytes")
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        found = None
    answer: dict[str, Any] = found if isinstance(found, dict) else {}
    if status not in _GRANTED:
        redirects = ", a redirect, which is not followed" if 300 <= status < 400 else ""
        failures = [_shown(answer[key], grant) for key in ("error", "error_description") if answer.get(key)]
        text = ": ".join([f"it answers with status {status}{redirects}", *failures])
        raise GrantRefused(text, permanent=status in _PERMANENT)
    for key in ("access_token", "id_token"):
        token = answer.get(key)
        if isinstance(token, str) and token.strip():
            return token.strip()
    raise GrantRefused("its answer holds no access_token")


def _shown(value: object, grant: TokenGrant) -> str:
    """A server's text of an error, cut to one short line; it may repeat parts of the request."""
    text = _UNPRINTABLE.sub(" ", str(value))
    for secret in (grant.client_secret, _form_encoded(grant.client_secret)):
        text = text.replace(secret, "[hidden]")
    return text[:MAX_ERROR_LENGTH]


def read_token(text: str, subject_claim: str = "sub") -> Token:
    """A token with the times of its claims; servers check its signature. Raises GrantRefused."""
    parts = text.split(".")
    if len(text) > MAX_TOKEN_BYTES or len(parts) != 3 or _TOKEN.fullmatch(text) is None:
        raise GrantRefused("what it grants is no JSON web token")
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        expires, issued, subject = claims["exp"], claims.get("iat"), claims.get(subject_claim)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise GrantRefused("the token that it grants has no exp, or cannot be read") from None
    if not _is_time(expires) or not (issued is None or _is_time(issued)):
        raise GrantRefused("the token that it grants has an exp or iat that is no time")
    if not isinstance(subject, str) or not subject.strip():
        raise GrantRefused(f"the token that it grants has no {subject_claim}")
    return Token(text, int(expires) * 1000, None if issued is None else int(issued) * 1000)


def _is_time(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e12


def refresh_at_ms(token: Token, now_ms: int, rules: RefreshRules, share: float) -> int:
    """When to replace a token, as Kafka's refreshing login does; `share` of the jitter is 0 to 1."""
    expires_ms = token.expires_ms
    if now_ms >= expires_ms:
        return now_ms + RELOGIN_MS
    factor = rules.window_factor + rules.window_jitter * share
    if now_ms + rules.min_period_ms + rules.buffer_ms > expires_ms:
        return now_ms + int((expires_ms - now_ms) * factor)
    begin_ms = now_ms if token.issued_ms is None else token.issued_ms
    proposed_ms = begin_ms + int((expires_ms - begin_ms) * factor)
    return max(min(proposed_ms, expires_ms - rules.buffer_ms), now_ms + rules.min_period_ms)


def retry_wait_ms(grant: TokenGrant, failures: int, *, permanent: bool) -> int:
    """How long to wait after a number of failures in a row, of which the last is permanent or not."""
    if permanent:
        return RELOGIN_MS
    return max(MIN_WAIT_MS, min(grant.retry_backoff_ms << min(failures - 1, 20), grant.retry_backoff_max_ms))
