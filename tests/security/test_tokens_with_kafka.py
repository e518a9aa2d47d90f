"""Tokens and key sets, compared with Kafka's BrokerJwtValidator (java/SecurityTextOracle.java)."""

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

from kraftd.security.sasl.jwt_validation import InvalidToken, KeySet, TokenRules, validate
from tests.security.oracle import ask_java
from tests.security.test_texts_with_kafka import ORACLE, encoded

pytestmark = pytest.mark.kafka

LONG, SHORT = (rsa.generate_private_key(public_exponent=65537, key_size=size) for size in (2048, 1024))
P256, P384 = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP384R1())


def public(key: Any, **more: str) -> dict[str, Any]:
    kind = RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else ECAlgorithm
    return {**kind.to_jwk(key.public_key(), as_dict=True), **more}


def signed(claims: Mapping[str, Any], key: Any = LONG, algorithm: str = "RS256", **header: Any) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureKeyLengthWarning)
        return jwt.encode(dict(claims), key, algorithm, headers=header)


# Kafka uses a key even for an algorithm other than the key's own.
STRICTER = "for another algorithm"
A = (public(LONG, kid="a"),)
Case = tuple[tuple[dict[str, Any], ...], str, str]


def cases_at(now_s: int) -> dict[str, Case]:
    """The cases as of one moment: each has a key set, a token and the expected audience."""
    good = {"sub": "alice", "iss": "issuer", "iat": now_s, "exp": now_s + 600}

    def with_claims(**changed: Any) -> str:
        return signed({**good, **changed}, kid="a")

    return {
        "named key": (A, signed(good, kid="a"), ""),
        "no key named": (A, signed(good), ""),
        "no key named, of two": ((public(P256, kid="b"), *A), signed(good), ""),
        "no key named, the other": (
            (public(P256, kid="b"), *A),
            signed(good, key=P256, algorithm="ES256"),
            "",
        ),
        "key without a name": ((public(LONG),), signed(good), ""),
        "named key, none has a name": ((public(LONG),), signed(good, kid="a"), ""),
        "other name": (A, signed(good, kid="b"), ""),
        "for encryption": ((public(LONG, kid="a", use="enc"),), signed(good, kid="a"), ""),
        "no key named, one for encryption": ((public(SHORT, use="enc"), *A), signed(good), ""),
        STRICTER: ((public(LONG, kid="a", alg="RS512"),), signed(good, kid="a"), ""),
        "short key": ((public(SHORT, kid="a"),), signed(good, key=SHORT, kid="a"), ""),
        "other curve": ((public(P384, kid="a"),), signed(good, key=P256, algorithm="ES256", kid="a"), ""),
        "no signature": (A, signed(good, key="", algorithm="none", kid="a"), ""),
        "unknown critical header": (A, signed(good, kid="a", crit=["x"], x=1), ""),
        "audience that is asked for": (A, with_claims(aud=["x", "kafka"]), "kafka"),
        "another audience": (A, with_claims(aud="x"), "kafka"),
        "no audience": (A, signed(good, kid="a"), "kafka"),
        "an audience where none is asked for": (A, with_claims(aud="x"), ""),
        "no audience where none is asked for": (A, with_claims(aud=[]), ""),
        "expired": (A, with_claims(exp=now_s - 60), ""),
        "expired within the skew": (A, with_claims(iat=now_s - 600, exp=now_s - 5), ""),
        "expires before it is issued": (A, with_claims(iat=now_s + 900), ""),
        "expires before it is valid": (A, with_claims(nbf=now_s + 20, exp=now_s + 10), ""),
        "not valid yet": (A, with_claims(nbf=now_s + 300), ""),
        "nbf that is no time": (A, with_claims(nbf="x"), ""),
        "issued later": (A, with_claims(iat=now_s + 300), ""),
        "another issuer": (A, with_claims(iss="x"), ""),
        "blank subject": (A, with_claims(sub=" "), ""),
        "subject with blanks": (A, with_claims(sub=" a b "), ""),
        "subject with another blank": (A, with_claims(sub="a\u00a0"), ""),
        "subject that is a number": (A, with_claims(sub=7), ""),
        "audiences, one a number": (A, with_claims(aud=["kafka", 7]), "kafka"),
        "exp that is a text": (A, with_claims(exp="x"), ""),
        "exp with a fraction": (A, with_claims(exp=now_s + 600.5), ""),
        "iat before 1970": (A, with_claims(iat=-5), ""),
        "scope": (A, with_claims(scope="a b"), ""),
        "scopes": (A, with_claims(scope=["a", "b"]), ""),
        "a scope twice": (A, with_claims(scope=["a", "a"]), ""),
        "a blank scope": (A, with_claims(scope=""), ""),
        "scopes, one blank": (A, with_claims(scope=["a", ""]), ""),
        "scope that is a number": (A, with_claims(scope=7), ""),
    }


@cache  # one start of the program for all tokens, so that one clock time holds for all
def both_results() -> dict[str, tuple[str, str]]:
    """By case, kraftd's principal and Kafka's; "!" for none."""
    cases = cases_at(int(time.time()))
    lines = [
        f"jwt {encoded(json.dumps({'keys': keys}))} {encoded(token)} {encoded(audience)}"
        for keys, token, audience in cases.values()
    ]
    ours = map(logged_in, cases.values())
    return dict(zip(cases, zip(ours, ask_java(ORACLE, lines).splitlines(), strict=True), strict=True))


def logged_in(case: Case) -> str:
    keys, token, audience = case
    rules = TokenRules(issuer="issuer", audiences=(audience,) if audience else ())
    try:
        key_set = KeySet(json.dumps({"keys": keys}))
        return encoded(validate(token, key_set, rules, time.time_ns() // 1_000_000).name)
    except (InvalidToken, ValueError):
        return "!"


@pytest.mark.parametrize("name", cases_at(0))
def test_each_token_gives_the_same_principal_as_in_kafka(name: str) -> None:
    ours, theirs = both_results()[name]
    if name == STRICTER:
        assert ours == "!" != theirs
    else:
        assert ours == theirs
