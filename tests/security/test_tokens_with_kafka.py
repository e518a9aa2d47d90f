"""Tokens and key sets, good and bad, beside Kafka's BrokerJwtValidator (java/SecurityTextOracle.java)."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Mapping
from functools import cache
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm
from jwt.warnings import InsecureKeyLengthWarning

from kraftd.security.jwt_validation import InvalidToken, KeySet, TokenRules, validate
from tests.security.oracle import ask_java
from tests.security.test_texts_with_kafka import ORACLE, encoded

pytestmark = pytest.mark.kafka

NOW_S = int(time.time())
CLAIMS = {"sub": "alice", "iss": "issuer", "iat": NOW_S, "exp": NOW_S + 600}
LONG, SHORT = (rsa.generate_private_key(public_exponent=65537, key_size=size) for size in (2048, 1024))
P256, P384 = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP384R1())


def public(key: Any, **more: str) -> dict[str, Any]:
    kind = RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else ECAlgorithm
    return {**kind.to_jwk(key.public_key(), as_dict=True), **more}


def signed(
    claims: Mapping[str, Any] = CLAIMS, key: Any = LONG, algorithm: str = "RS256", **header: Any
) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureKeyLengthWarning)
        return jwt.encode(dict(claims), key, algorithm, headers=header)


def with_claims(**changed: Any) -> str:
    return signed({**CLAIMS, **changed}, kid="a")


# Kafka takes a key for an algorithm that it says it is not for.
STRICTER = "for another algorithm"
A = (public(LONG, kid="a"),)
CASES: dict[str, tuple[tuple[dict[str, Any], ...], str, str]] = {
    "named key": (A, signed(kid="a"), ""),
    "no key named": (A, signed(), ""),
    "no key named, of two": ((public(P256, kid="b"), *A), signed(), ""),
    "no key named, the other": ((public(P256, kid="b"), *A), signed(key=P256, algorithm="ES256"), ""),
    "key without a name": ((public(LONG),), signed(), ""),
    "named key, none has a name": ((public(LONG),), signed(kid="a"), ""),
    "other name": (A, signed(kid="b"), ""),
    "for encryption": ((public(LONG, kid="a", use="enc"),), signed(kid="a"), ""),
    "no key named, one for encryption": ((public(SHORT, use="enc"), *A), signed(), ""),
    STRICTER: ((public(LONG, kid="a", alg="RS512"),), signed(kid="a"), ""),
    "short key": ((public(SHORT, kid="a"),), signed(key=SHORT, kid="a"), ""),
    "other curve": ((public(P384, kid="a"),), signed(key=P256, algorithm="ES256", kid="a"), ""),
    "no signature": (A, signed(key="", algorithm="none", kid="a"), ""),
    "unknown critical header": (A, signed(kid="a", crit=["x"], x=1), ""),
    "audience that is asked for": (A, with_claims(aud=["x", "kafka"]), "kafka"),
    "another audience": (A, with_claims(aud="x"), "kafka"),
    "no audience": (A, signed(kid="a"), "kafka"),
    "an audience where none is asked for": (A, with_claims(aud="x"), ""),
    "no audience where none is asked for": (A, with_claims(aud=[]), ""),
    "expired": (A, with_claims(exp=NOW_S - 60), ""),
    "expired within the skew": (A, with_claims(iat=NOW_S - 600, exp=NOW_S - 5), ""),
    "expires before it is issued": (A, with_claims(iat=NOW_S + 900), ""),
    "expires before it is valid": (A, with_claims(nbf=NOW_S + 20, exp=NOW_S + 10), ""),
    "not valid yet": (A, with_claims(nbf=NOW_S + 300), ""),
    "nbf that is no time": (A, with_claims(nbf="x"), ""),
    "issued later": (A, with_claims(iat=NOW_S + 300), ""),
    "another issuer": (A, with_claims(iss="x"), ""),
    "blank subject": (A, with_claims(sub=" "), ""),
    "subject with blanks": (A, with_claims(sub=" a b "), ""),
    "subject with another blank": (A, with_claims(sub="a\u00a0"), ""),
    "subject that is a number": (A, with_claims(sub=7), ""),
    "audiences, one a number": (A, with_claims(aud=["kafka", 7]), "kafka"),
    "exp that is a text": (A, with_claims(exp="x"), ""),
    "exp with a fraction": (A, with_claims(exp=NOW_S + 600.5), ""),
    "iat before 1970": (A, with_claims(iat=-5), ""),
    "scope": (A, with_claims(scope="a b"), ""),
    "scopes": (A, with_claims(scope=["a", "b"]), ""),
    "a scope twice": (A, with_claims(scope=["a", "a"]), ""),
    "a blank scope": (A, with_claims(scope=""), ""),
    "scopes, one blank": (A, with_claims(scope=["a", ""]), ""),
    "scope that is a number": (A, with_claims(scope=7), ""),
}


@cache  # the program starts once
def told() -> dict[str, str]:
    lines = [
        f"jwt {encoded(json.dumps({'keys': keys}))} {encoded(token)} {encoded(audience)}"
        for keys, token, audience in CASES.values()
    ]
    return dict(zip(CASES, ask_java(ORACLE, lines).splitlines(), strict=True))


@pytest.mark.parametrize("name", CASES)
def test_tokens_log_in_whom_they_log_in_at_kafkas(name: str) -> None:
    keys, token, audience = CASES[name]
    rules = TokenRules(issuer="issuer", audiences=(audience,) if audience else ())
    try:
        key_set = KeySet(json.dumps({"keys": keys}))
        ours = encoded(validate(token, key_set, rules, time.time_ns() // 1_000_000).name)
    except (InvalidToken, ValueError):
        ours = "!"
    if name == STRICTER:
        assert ours == "!" != told()[name]
    else:
        assert ours == told()[name]
