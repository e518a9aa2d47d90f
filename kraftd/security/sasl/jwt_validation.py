"""Validates JSON web tokens with the keys of their issuer (RFC 7519, RFC 7517), as Kafka's
BrokerJwtValidator.

A token needs a signature by a public key of the set, `exp`, `iat` and a subject; issuer and audience where
they are configured. Tokens without a signature, or signed with a shared secret, are refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from kraftd.security.sasl.mechanism import Login

if TYPE_CHECKING:
    import jwt  # with the first key or token: it costs a third as much CPU as the start of a daemon

MAX_TOKEN_BYTES = 32_768
MAX_KEYS = 1000
MAX_SUBJECT_LENGTH = 1024
MIN_RSA_BITS = 2048
_JAVA_BLANKS = "".join(map(chr, range(33)))  # removed by String.trim; the rest makes a principal
KEY_TYPES = {"RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "OKP"}  # by how an algorithm's name begins
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
            self._keys: list[Mapping[str, Any]] = [
                key for key in data["keys"][:MAX_KEYS] if key.get("kty") in KEY_TYPES.values()
            ]
            self._named = {key["kid"]: key for key in self._keys if isinstance(key.get("kid"), str)}
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise ValueError("it is no JSON web key set") from None
        if not self._keys:
            raise ValueError("the JSON web key set holds no public key")
        self._made: dict[tuple[str | None, str], jwt.PyJWK] = {}

    def key(self, kid: str | None, algorithm: str) -> jwt.PyJWK:
        """The key of that id for an algorithm; without an id, the first that fits. Raises InvalidToken."""
        import jwt

        made = self._made.get((kid, algorithm))
        if made is None:
            if kid is None:
                known = next((one for one in self._keys if _fits(one, algorithm)), None)
            else:
                known = self._named.get(kid)
            if known is None:
                raise KeyMissing("it is signed with a key that is not in the set")
            if not _fits(known, algorithm):
                raise InvalidToken("its key is not for this algorithm")
            try:
                made = jwt.PyJWK(dict(known), algorithm)
            except jwt.PyJWTError:
                raise InvalidToken("its key is not for this algorithm") from None
            if known["kty"] == "RSA" and made.key.key_size < MIN_RSA_BITS:
                raise InvalidToken(f"its key has fewer than {MIN_RSA_BITS} bits")
            self._made[kid, algorithm] = made
        return made

    def __repr__(self) -> str:
        return f"<KeySet of {len(self._keys)} keys>"


def _fits(key: Mapping[str, Any], algorithm: str) -> bool:
    """Return whether a key is for signatures by an algorithm, as far as its fields say."""
    return (
        key.get("kty") == KEY_TYPES[algorithm[:2]]
        and key.get("alg", algorithm) == algorithm
        and key.get("use", "sig") == "sig"
    )


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
    if expires_ms is None or issued_ms is None or issued_ms < 0:
        raise InvalidToken("it has no exp or no iat")
    if now_ms - rules.clock_skew_ms >= expires_ms:
        raise InvalidToken("it has expired")
    not_before_ms = _time_ms(claims, "nbf")
    if claims.get("nbf") is not None and (
        not_before_ms is None or not_before_ms > now_ms + rules.clock_skew_ms
    ):
        raise InvalidToken("it is not valid yet")
    if expires_ms < max(issued_ms, not_before_ms or 0):
        raise InvalidToken("it expires before it begins")
    if rules.issuer is not None and claims.get("iss") != rules.issuer:
        raise InvalidToken("it is of another issuer")
    # A server that expects no audience refuses tokens with one, as in Kafka.
    audience = claims.get("aud")
    if (audience is not None or rules.audiences) and not _texts(audience) & set(rules.audiences):
        raise InvalidToken("it is for another audience")
    _check_scope(claims.get(rules.scope_claim))
    subject = claims.get(rules.subject_claim)
    name = subject.strip(_JAVA_BLANKS) if isinstance(subject, str) else ""
    if not name or len(name) > MAX_SUBJECT_LENGTH:
        raise InvalidToken(f"it has no {rules.subject_claim}")
    return Login(name, expires_ms=expires_ms)


def _check_scope(value: object) -> None:
    """Raises InvalidToken for a blank scope, or one that is named twice. A value that is no text is not a
    scope.
    """
    if isinstance(value, str | list):
        scopes = [value] if isinstance(value, str) else value
        texts = [one.strip(_JAVA_BLANKS) if isinstance(one, str) else "" for one in scopes]
        if not all(texts) or len(set(texts)) < len(texts):
            raise InvalidToken("its scope cannot be read")


def _time_ms(claims: Mapping[str, Any], name: str) -> int | None:
    value = claims.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e12:
        return None
    return int(value * 1000)


def _texts(value: object) -> set[str]:
    """A text, or those of a list; none of a list that holds anything else."""
    listed = value if isinstance(value, list) else [value]
    texts = [one for one in listed if isinstance(one, str)]
    return set(texts) if len(texts) == len(listed) else set()
