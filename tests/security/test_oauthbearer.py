"""SASL OAUTHBEARER and its tokens."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from msgspec import structs

from kraftd.config.security import TokenSettings
from kraftd.net.key_endpoint import get
from kraftd.runtime.security import jwks
from kraftd.runtime.security.jwks import Jwks
from kraftd.security.sasl.jwt_validation import InvalidToken, KeyMissing, KeySet, TokenRules, validate
from kraftd.security.sasl.mechanism import Login, SaslFailed
from kraftd.security.sasl.oauthbearer import OAuthBearerClient, OAuthBearerServer
from kraftd.security.tls_settings import StoreSettings, TlsSettings
from testkit.certificates import Authority
from testkit.identity_provider import IdentityProvider

NOW_MS = 1_700_000_000_000
CLAIMS = {"sub": "alice", "exp": NOW_MS // 1000 + 60, "iat": NOW_MS // 1000, "iss": "me", "aud": ["kafka"]}
RULES = TokenRules(issuer="me", audiences=("kafka",))


@cache
def private_key(kid: str) -> Any:
    if kid.startswith("rsa"):
        return rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return ec.generate_private_key(ec.SECP256R1())


@cache
def keys() -> KeySet:
    public_keys = []
    for kid, kind in (("rsa", jwt.algorithms.RSAAlgorithm), ("ec", jwt.algorithms.ECAlgorithm)):
        public_keys.append({**kind.to_jwk(private_key(kid).public_key(), as_dict=True), "kid": kid})
    return KeySet(json.dumps({"keys": [*public_keys, {"kty": "oct", "k": "c2VjcmV0", "kid": "oct"}]}))


def token(claims: Mapping[str, Any], kid: str = "rsa", algorithm: str = "RS256") -> str:
    return jwt.encode(dict(claims), private_key(kid), algorithm, headers={"kid": kid})


def check(text: str) -> Login:
    return validate(text, keys(), RULES, NOW_MS)


def test_a_signed_token_logs_its_subject_in_until_it_expires() -> None:
    for kid, algorithm in (("rsa", "RS256"), ("rsa", "PS512"), ("ec", "ES256")):
        login = check(token(CLAIMS, kid, algorithm))
        assert (login.name, login.expires_ms) == ("alice", NOW_MS + 60_000)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"exp": NOW_MS // 1000 - 31}, "expired"),
        ({"exp": None}, "no exp"),
        ({"iat": None}, "no iat"),
        ({"nbf": NOW_MS // 1000 + 31}, "not valid yet"),
        ({"nbf": "x"}, "not valid yet"),
        ({"iat": NOW_MS // 1000 + 61}, "before it begins"),
        ({"iss": "another"}, "issuer"),
        ({"aud": "another"}, "audience"),
        ({"sub": " "}, "no sub"),
        ({"sub": 7}, "no sub"),
        ({"exp": 1e300}, "no exp"),
    ],
)
def test_an_invalid_claim_is_refused(changed: dict[str, Any], why: str) -> None:
    claims = {key: value for key, value in {**CLAIMS, **changed}.items() if value is not None}
    with pytest.raises(InvalidToken, match=why):
        check(token(claims))


def test_tokens_without_a_public_keys_signature_are_refused() -> None:
    public = keys().key("rsa", "RS256").key.public_numbers()
    forged = [
        jwt.encode(dict(CLAIMS), "", "none", headers={"kid": "rsa"}),
        jwt.encode(dict(CLAIMS), str(public.n) * 2, "HS256", headers={"kid": "rsa"}),
        jwt.encode(dict(CLAIMS), "secret" * 10, "HS256", headers={"kid": "oct"}),
        token(CLAIMS, "rsa-of-another").replace("rsa-of-another", "rsa"),
        token(CLAIMS)[:-8] + "AAAAAAAA",
        "a.b.c",
        "",
        "." * 100,
        "x" * 40_000,
    ]
    for text in forged:
        with pytest.raises(InvalidToken):
            check(text)


def test_a_token_with_an_audience_is_refused_if_the_server_expects_none() -> None:
    rules = TokenRules(issuer="me")
    with pytest.raises(InvalidToken, match="audience"):
        validate(token(CLAIMS), keys(), rules, NOW_MS)
    without = {key: value for key, value in CLAIMS.items() if key != "aud"}
    assert validate(token(without), keys(), rules, NOW_MS).name == "alice"


def test_a_token_without_a_key_id_is_checked_with_the_first_matching_key() -> None:
    for kid, algorithm in (("rsa", "RS256"), ("ec", "ES256")):
        text = jwt.encode(CLAIMS, private_key(kid), algorithm)
        assert check(text).name == "alice"


def test_a_subject_keeps_blanks_that_java_keeps() -> None:
    assert check(token({**CLAIMS, "sub": " alice\u00a0"})).name == "alice\u00a0"


def test_an_unknown_key_is_distinguished_from_an_invalid_token() -> None:
    with pytest.raises(KeyMissing):
        check(token(CLAIMS, "rsa-new"))


def test_an_invalid_key_set_is_refused() -> None:
    for text in ("", "[]", '{"keys": 7}', '{"keys": []}', '{"keys": [{"kty": "oct"}]}', "[" * 100_000):
        with pytest.raises(ValueError, match="key"):
            KeySet(text)


def server() -> OAuthBearerServer:
    return OAuthBearerServer(lambda text, now_ms: validate(text, keys(), RULES, now_ms))


def test_a_bearer_token_logs_in() -> None:
    one, client = server(), OAuthBearerClient(token(CLAIMS))
    assert client.respond(one.respond(client.first(NOW_MS), NOW_MS), NOW_MS) is None
    assert one.login is not None
    assert one.login.name == "alice"
    one = server()
    one.respond(client.first(NOW_MS).replace(b"n,,", b"n,a=alice,"), NOW_MS)
    assert one.login is not None


def test_an_invalid_token_is_reported_first_and_refused_when_acknowledged() -> None:
    one = server()
    assert one.respond(OAuthBearerClient("a.b.c").first(NOW_MS), NOW_MS) == b'{"status":"invalid_token"}'
    with pytest.raises(SaslFailed) as failed:
        one.respond(b"\x01", NOW_MS)
    assert failed.value.to_client == '{"status":"invalid_token"}'
    assert one.login is None


def test_malformed_messages_and_foreign_authorization_ids_fail() -> None:
    good = OAuthBearerClient(token(CLAIMS)).first(NOW_MS)
    for message in (
        b"",
        b"\xff",
        b"n,,\x01\x01",
        b"n,,\x01auth=Basic abc\x01\x01",
        good[:-1],
        good.replace(b"n,,", b"n,a=bob,"),
    ):
        with pytest.raises(SaslFailed):
            server().respond(message, NOW_MS)


class SlowEndpoint:
    """Answers a GET with a byte every 50 ms, or never; or redirects it."""

    def __init__(self, head: bytes = b"") -> None:
        self.head = head
        self.asked = threading.Event()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}/keys"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                sock, _ = self._listening.accept()
                with sock, suppress(OSError):
                    sock.recv(4096)
                    self.asked.set()
                    if self.head.startswith(b"HTTP/1.1 3"):
                        sock.sendall(self.head)
                        continue
                    for at in range(200):
                        sock.sendall(self.head[at : at + 1] or b"x")
                        time.sleep(0.05)

    def close(self) -> None:
        self._listening.close()


@pytest.mark.parametrize("head", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\n\r\n{"])
def test_an_endpoint_that_drips_its_answer_is_given_up(head: bytes) -> None:
    endpoint = SlowEndpoint(head)
    with pytest.raises(TimeoutError, match=r"within 0\.3 s"):
        get(endpoint.url, None, 0.3)
    endpoint.close()


def test_a_slow_endpoint_holds_up_neither_start_nor_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jwks, "START_WAIT_S", 0.05)
    endpoint = SlowEndpoint()
    keys_of = Jwks(TokenSettings(jwks_url=endpoint.url, refresh_ms=1, rules=TokenRules()))
    note = keys_of.read_first()
    assert note is not None and endpoint.url in note and "no answer yet" in note
    assert endpoint.asked.wait(10)
    keys_of.begin_reading()  # returns at once
    assert sum(one.name == "kraftd-jwks" for one in threading.enumerate()) == 1
    with pytest.raises(InvalidToken, match="no keys"):
        keys_of.validate("a.b.c", 0)
    endpoint.close()


def test_an_endpoint_that_refuses_is_reported_at_the_start() -> None:
    with socket.create_server(("127.0.0.1", 0)) as bound:
        url = f"http://127.0.0.1:{bound.getsockname()[1]}/keys"
    with pytest.raises(ValueError, match=r"cannot be read: .*refused"):
        Jwks(TokenSettings(jwks_url=url, refresh_ms=1, rules=TokenRules())).read_first()


@pytest.mark.parametrize(
    "target", ["http://localhost:{port}/other", "https://127.0.0.1:{port}/keys", "http://127.0.0.1:1/"]
)
def test_keys_are_fetched_from_the_configured_origin_only(target: str) -> None:
    endpoint = SlowEndpoint()
    location = target.format(port=endpoint.url.split(":")[2].split("/")[0])
    endpoint.head = f"HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n".encode()
    with pytest.raises(OSError, match="which is not followed"):
        get(endpoint.url, None, 5)
    endpoint.close()


def test_keys_over_tls_are_fetched_from_no_plain_and_no_other_endpoint() -> None:
    authority = Authority()
    trusting = TlsSettings(truststore=StoreSettings(type="PEM", certificates=authority.pem))
    with (
        IdentityProvider({}) as plain,
        IdentityProvider({}, authority=authority) as other,
        IdentityProvider({}, authority=authority) as provider,
    ):
        settings = TokenSettings(jwks_url=provider.jwks_url, refresh_ms=1, rules=TokenRules(), tls=trusting)
        for target in (plain.jwks_url, other.jwks_url):
            provider.moved_to = target
            with pytest.raises(ValueError, match=f"a redirect to {target}, which is not followed"):
                Jwks(settings).read()
        provider.moved_to = f"{provider.address}/moved"
        Jwks(settings).read()


def test_keys_are_fetched_over_tls_from_a_trusted_endpoint() -> None:
    authority = Authority()
    trusting = TlsSettings(truststore=StoreSettings(type="PEM", certificates=authority.pem))
    with IdentityProvider({}, authority=authority) as provider:
        settings = TokenSettings(jwks_url=provider.jwks_url, refresh_ms=1, rules=TokenRules(), tls=trusting)
        fetched = Jwks(settings)
        fetched.read()
        assert fetched.validate(provider.token("alice"), time.time_ns() // 1_000_000).name == "alice"
        with pytest.raises(ValueError, match="certificate"):
            Jwks(structs.replace(settings, tls=TlsSettings())).read()
    unusable = TlsSettings(truststore=StoreSettings(type="PEM", location="/absent.pem"))
    with pytest.raises(ValueError, match=r"sasl\.jaas\.config, .*/absent\.pem: cannot be read"):
        Jwks(structs.replace(settings, tls=unusable))
