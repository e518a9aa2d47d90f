"""Tokens from a token endpoint on loopback: over HTTP and TLS, while it fails and after it recovers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kraftd.net.token_endpoint import read_answer_bytes
from kraftd.net.token_source import TokenSource
from kraftd.security.sasl.client_credentials import MAX_ANSWER_BYTES, RELOGIN_MS, TokenGrant
from kraftd.security.sasl.jwt_validation import KeySet, TokenRules, validate
from kraftd.security.sasl.mechanism import SaslFailed
from kraftd.security.tls_settings import StoreSettings, TlsSettings
from testkit.certificates import Authority
from testkit.identity_provider import IdentityProvider

AUTHORITY = Authority()


class Now:
    """A clock that the test sets, and a source of tokens that uses it."""

    def __init__(self, provider: IdentityProvider, secret: str = "secret", **more: object) -> None:
        self.ms = time.time_ns() // 1_000_000  # the wall clock
        self.ahead_ms = 0  # of the monotonic one
        grant = TokenGrant(
            url=provider.token_url,
            client_id="node",
            client_secret=secret,
            **more,  # type: ignore[arg-type]
        )
        self.source = TokenSource(grant, lambda: self.ms - self.ahead_ms, lambda: self.ms, lambda: 0.0)


@pytest.fixture
def provider() -> Iterator[IdentityProvider]:
    with IdentityProvider({"node": "secret"}) as running:
        yield running


def test_servers_accept_a_granted_token(provider: IdentityProvider) -> None:
    now = Now(provider, scope="kafka")
    assert now.source.fetch()
    login = validate(now.source.text(), KeySet(provider.jwks), TokenRules(issuer="issuer"), now.ms)
    assert login.name == "node"
    ((headers, body),) = provider.requests
    assert body == "grant_type=client_credentials&scope=kafka"
    assert headers["accept"] == "application/json"
    assert headers["content-type"] == "application/x-www-form-urlencoded"
    assert headers["cache-control"] == "no-cache"


def test_a_token_is_kept_until_it_is_due(provider: IdentityProvider) -> None:
    now = Now(provider)
    first = now.source.fetched_text()
    assert now.source.fetched_text() == first
    assert len(provider.requests) == 1
    now.ms = now.source.due_ms
    now.source.fetched_text()
    assert len(provider.requests) == 2


def test_a_step_of_the_wall_clock_plans_the_next_token_anew(provider: IdentityProvider) -> None:
    now = Now(provider)
    now.source.fetched_text()
    hour_ms = 3_600_000
    waits_ms = now.source.wait_ms()
    now.ms -= hour_ms  # the wall clock alone goes back: the token lives longer
    now.ahead_ms -= hour_ms
    assert now.source.wait_ms() > waits_ms
    now.ms += 25 * hour_ms  # and then it has expired, though no time has passed
    now.ahead_ms += 25 * hour_ms
    assert now.source.wait_ms() == RELOGIN_MS


def test_a_wrong_secret_is_reported_with_the_endpoints_error_and_not_shown(
    provider: IdentityProvider,
) -> None:
    source = Now(provider, "wr0ng").source
    with pytest.raises(SaslFailed, match="status 401: invalid_client: wrong credentials") as failed:
        source.fetched_text()
    assert len(provider.requests) == 1  # Kafka does not repeat the request either
    assert provider.token_url in str(failed.value)
    assert "wr0ng" not in str(failed.value) + repr(source) + source.failure


def test_an_unreachable_endpoint_is_tried_again(provider: IdentityProvider) -> None:
    now = Now(provider)
    provider.stop()
    assert not now.source.fetch()
    assert now.source.due_ms == now.ms + 100
    with pytest.raises(SaslFailed, match="it does not answer: Connection refused"):
        now.source.text()
    assert not now.source.fetch()
    assert now.source.due_ms == now.ms + 200
    provider.start()
    assert now.source.fetch()
    assert now.source.text()


def test_the_last_token_serves_until_it_expires(provider: IdentityProvider) -> None:
    now = Now(provider)
    assert now.source.fetch()
    provider.answer = 503, b""
    now.ms = now.source.due_ms
    assert not now.source.fetch()
    assert now.source.text()
    assert now.source.expires_ms is not None
    now.ms = now.source.expires_ms
    with pytest.raises(SaslFailed, match="status 503"):
        now.source.text()


def test_no_redirect_is_followed(provider: IdentityProvider) -> None:
    for status in (302, 307):
        provider.answer = status, b""
        with pytest.raises(SaslFailed, match=f"status {status}, a redirect, which is not followed"):
            Now(provider, retry_backoff_max_ms=0).source.fetched_text()


def test_at_most_a_mebibyte_of_an_answer_is_read(provider: IdentityProvider) -> None:
    provider.answer = 200, b" " * 3_000_000
    with pytest.raises(SaslFailed, match="more than 1048576 bytes"):
        Now(provider, retry_backoff_max_ms=0).source.fetched_text()

    class Endless:
        def read1(self, size: int) -> bytes:
            return b" " * size

    assert len(read_answer_bytes(Endless(), limit_s=1)) == MAX_ANSWER_BYTES + 1


def test_over_tls_the_endpoint_must_be_trusted() -> None:
    trusting = TlsSettings(truststore=StoreSettings(type="PEM", certificates=AUTHORITY.pem))
    with IdentityProvider({"node": "secret"}, authority=AUTHORITY) as provider:
        assert Now(provider, tls=trusting).source.fetched_text()
        with pytest.raises(SaslFailed, match=r"it does not answer: .*certificate"):
            Now(provider, tls=TlsSettings(), retry_backoff_max_ms=0).source.fetched_text()
        assert len(provider.requests) == 1


def test_a_new_truststore_is_used_at_the_next_attempt(tmp_path: Path) -> None:
    trust = Authority("CN=Old").write_pem(tmp_path / "idp-ca.pem")
    trusting = TlsSettings(truststore=StoreSettings(type="PEM", location=str(trust)))
    with IdentityProvider({"node": "secret"}, authority=AUTHORITY) as provider:
        source = Now(provider, tls=trusting).source
        assert not source.fetch()
        AUTHORITY.write_pem(trust)
        assert source.fetch()
        trust.write_text("no certificate")  # the last readable truststore stays in use
        assert source.fetch()
