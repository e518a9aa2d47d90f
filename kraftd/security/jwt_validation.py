"""Validates JSON web tokens with the keys of their issuer (RFC 7519, RFC 7517), as Kafka's
BrokerJwtValidator.

A token needs a signature by a public key of the set, `exp`, `iat` and a subject; issuer and audience where
they are configured. Tokens without a signature, or signed with a shared secret, are refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from kraftd.security.sasl import Login

if TYPE_CHECKING:
    import jwt  # with the first key or token: it takes a third as much CPU as the start of a daemon

MAX_TOKEN_BYTES = 32_768
MAX_KEYS = 1000
MAX_SUBJECT_LENGTH = 1024
PUBLIC_KEY_ALGORITHMS = frozenset(
    ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
)


class InvalidToken(Exception):
    """The token is invalid; the text says why and repeats no part of it."""


class KeyMissing(InvalidToken):
    """The token names a key that the set does not have; a newer set may."""


class TokenRules(msgspec.Struct, frozen=True, kw_only=True):
    """The required claims of a token: the keys ``sasl.oauthbearer.*`` of a listener."""

    subject_claim: str = "sub"
    scope_claim: str = "scope"
    issuer: str | None = None
    audiences: tuple[str, ...] = ()
    clock_skew_ms: int = 30_000


class KeySet:
    """The public keys of an issuer, by key id."""

    def __init__(self, text: str | bytes) -> None:
        """Raises ValueError for input that is no JSON web key set, or has no usable key."""
        try:
            data = json.loads(text)
            keys = data["keys"]
            self._keys: dict[str | None, Mapping[str, Any]] = {
                key.get("kid"): key for key in keys[:MAX_KEYS] if key.get("kty") in ("RSA", "EC", "OKP")
            }
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise ValueError("it is no JSON web key set") from None
        if not self._keys:
            raise ValueError("the JSON web key set holds no public key")
        self._made: dict[tuple[str | None, str], jwt.PyJWK] = {}

    def key(self, kid: str | None, algorithm: str) -> jwt.PyJWK:
        """The key of that id for an algorithm. Raises InvalidToken."""
        import jwt

        made = self._made.get((kid, algorithm))
        if made is None:
            known = self._keys.get(kid)
            if known is None:
                raise KeyMissing("it is signed with a key that is not in the set")
            if known.get("alg", algorithm) != algorithm or known.get("use", "sig") != "sig":
                raise InvalidToken("its key is not for this algorithm")
            try:
                made = jwt.PyJWK(dict(known), algorithm)
            except jwt.PyJWTError:
                raise InvalidToken("its key is not for this algorithm") from None
            self._made[kid, algorithm] = made
        return made

    def __repr__(self) -> str:
        return f"<KeySet of {len(self._keys)} keys>"


def validate(token: str, keys: KeySet, rules: TokenRules, now_ms: int) -> Login:
    """The login of a token, valid until the token expires. Raises InvalidToken."""
    import jwt

    if len(token) > MAX_TOKEN_BYTES:
        raise InvalidToken(f"it has more than {MAX_TOKEN_BYTES} bytes")
    try:
        header = jwt.get_unverified_header(token)
        algorithm, kid = header.get("alg"), header.get("kid")
        if algorithm not in PUBLIC_KEY_ALGORITHMS:
            raise InvalidToken("it is not signed with a public key's algorithm")
        claims = jwt.decode(
            token,
            keys.key(kid, algorithm),
            algorithms=[algorithm],
            # Times are compared below, by the caller's clock.
            options={
                "verify_exp": False,
                "verify_iat": False,
                "verify_nbf": False,
                "verify_aud": False,
                "verify_iss": False,
                "verify_sub": False,
            },
        )
    except (jwt.PyJWTError, ValueError, TypeError, RecursionError, OverflowError):
        raise InvalidToken("its signature or its form is not valid") from None
    return _login(claims, rules, now_ms)


def _login(claims: Mapping[str, Any], rules: TokenRules, now_ms: int) -> Login:
    expires_ms, issued_ms = _time_ms(claims, "exp"), _time_ms(claims, "iat")
    if expires_ms is None or issued_ms is None:
        raise InvalidToken("it has no exp or no iat")
    if now_ms - rules.clock_skew_ms >= expires_ms:
        raise InvalidToken("it has expired")
    not_before_ms = _time_ms(claims, "nbf")
    if not_before_ms is not None and not_before_ms > now_ms + rules.clock_skew_ms:
        raise InvalidToken("it is not valid yet")
    if rules.issuer is not None and claims.get("iss") != rules.issuer:
        raise InvalidToken("it is of another issuer")
    if rules.audiences and not set(_texts(claims.get("aud"))) & set(rules.audiences):
        raise InvalidToken("it is for another audience")
    if not set(_texts(claims.get(rules.scope_claim, ""))) and rules.scope_claim in claims:
        raise InvalidToken("its scope cannot be read")
    subject = claims.get(rules.subject_claim)
    if not isinstance(subject, str) or not subject.strip() or len(subject) > MAX_SUBJECT_LENGTH:
        raise InvalidToken(f"it has no {rules.subject_claim}")
    return Login(subject.strip(), expires_ms=expires_ms)


def _time_ms(claims: Mapping[str, Any], name: str) -> int | None:
    value = claims.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e12:
        return None
    return int(value * 1000)


def _texts(value: object) -> Iterable[str]:
    if isinstance(value, str):
        return [value]
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []
