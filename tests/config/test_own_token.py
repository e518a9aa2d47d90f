"""The client credentials grant of the node's own token, configured by Kafka's keys or options."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftd.client.secured import load_client_security
from kraftd.config import ConfigError, DaemonConfig, load
from kraftd.security.sasl.client_credentials import RefreshRules, TokenGrant

KAFKAS = "org.apache.kafka.common.security.oauthbearer"
URL = "sasl.oauthbearer.token.endpoint.url"
CREDENTIALS = "sasl.oauthbearer.client.credentials.client"
BASE = f"""process.roles=controller
node.id=7
listeners=CONTROLLER://127.0.0.1:9093
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers=127.0.0.1:9093
listener.security.protocol.map=CONTROLLER:SASL_PLAINTEXT
sasl.enabled.mechanisms=OAUTHBEARER
sasl.mechanism.controller.protocol=OAUTHBEARER
sasl.oauthbearer.jwks.endpoint.url=file:/keys.json
{URL}=https://idp/token
listener.name.controller.oauthbearer.sasl.login.callback.handler.class={KAFKAS}.OAuthBearerLoginCallbackHandler
"""
JAAS = f"listener.name.controller.oauthbearer.sasl.jaas.config={KAFKAS}.OAuthBearerLoginModule required"
BY_KEYS = (f"{CREDENTIALS}.id=node", f"{CREDENTIALS}.secret= hush ", f"{JAAS};")


def loaded(home: Path, *lines: str) -> DaemonConfig:
    path = home / "controller.properties"
    path.write_text(BASE + "\n".join(lines) + "\n")
    return load(path)


def grant(home: Path, *lines: str) -> TokenGrant:
    token_grant = loaded(home, *lines).security.client.grant
    assert token_grant is not None
    return token_grant


def test_a_grant_is_made_of_kafkas_keys_and_their_defaults(tmp_path: Path) -> None:
    token_grant = grant(tmp_path, *BY_KEYS)
    assert (token_grant.url, token_grant.client_id, token_grant.client_secret, token_grant.scope) == (
        "https://idp/token",
        "node",
        "hush",
        "",
    )
    assert token_grant.tls is not None and not token_grant.tls.truststore.is_configured
    assert (token_grant.connect_timeout_ms, token_grant.read_timeout_ms) == (10_000, 10_000)
    assert (token_grant.retry_backoff_ms, token_grant.retry_backoff_max_ms) == (100, 10_000)
    assert (token_grant.url_encodes, token_grant.subject_claim, token_grant.refresh) == (
        False,
        "sub",
        RefreshRules(),
    )
    of_listener = grant(
        tmp_path,
        *BY_KEYS,
        f"listener.name.controller.oauthbearer.{CREDENTIALS}.id=other",
        "sasl.oauthbearer.scope=kafka",
        "sasl.oauthbearer.header.urlencode=true",
        "sasl.login.connect.timeout.ms=1",
        "sasl.login.read.timeout.ms=2",
        "sasl.login.retry.backoff.ms=3",
        "sasl.login.retry.backoff.max.ms=4",
        "sasl.login.refresh.window.factor=0.5",
        "sasl.login.refresh.window.jitter=0.25",
        "sasl.login.refresh.min.period.seconds=1",
        "sasl.login.refresh.buffer.seconds=2",
    )
    assert of_listener == TokenGrant(
        url="https://idp/token",
        client_id="other",
        client_secret="hush",
        scope="kafka",
        url_encodes=True,
        tls=token_grant.tls,
        connect_timeout_ms=1,
        read_timeout_ms=2,
        retry_backoff_ms=3,
        retry_backoff_max_ms=4,
        refresh=RefreshRules(window_factor=0.5, window_jitter=0.25, min_period_ms=1000, buffer_ms=2000),
    )


def test_options_of_the_login_module_are_used_if_no_key_is_set(tmp_path: Path) -> None:
    options = 'clientId="old" clientSecret="hush" scope="s" ssl.truststore.type="PEM"'
    options += ' ssl.truststore.location="/ca.pem"'
    token_grant = grant(tmp_path, f"{JAAS} {options};")
    assert (token_grant.client_id, token_grant.client_secret, token_grant.scope) == ("old", "hush", "s")
    assert token_grant.tls is not None and token_grant.tls.truststore.location == "/ca.pem"
    config = loaded(tmp_path, f"{JAAS} {options};", f"{CREDENTIALS}.id=new")
    assert config.security.client.grant is not None
    assert config.security.client.grant.client_id == "new"
    assert [one for one in config.warnings if "its clientId has no effect" in one]
    assert "hush" not in "".join(config.warnings) + repr(config.security)


def test_plain_http_is_accepted_for_this_host_only(tmp_path: Path) -> None:
    for url in ("http://localhost:8080/token", "http://127.0.0.1/token", "http://[::1]:80/token"):
        assert grant(tmp_path, *BY_KEYS, f"{URL}={url}").tls is None
    for url in (
        "http://idp/token",
        "http://localhost.idp/t",
        "https://",
        "ftp://idp",
        "https://a:b@idp/",
        "",
    ):
        with pytest.raises(ConfigError, match="must be file:/path of a token"):
            loaded(tmp_path, *BY_KEYS, f"{URL}={url}")


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([f"{JAAS};"], f"{CREDENTIALS}.id (not set): set it, or clientId in sasl.jaas.config"),
        ([f'{JAAS} clientId="a";'], "set it, or clientSecret in sasl.jaas.config"),
        ([f'{JAAS} clientSecret="hush";', f"{CREDENTIALS}.id="], "it is blank"),
        ([*BY_KEYS, "sasl.oauthbearer.assertion.file=/a.jwt"], "kraftd shows a token endpoint no assertion"),
        ([*BY_KEYS, "sasl.oauthbearer.assertion.claim.iss=i"], "kraftd shows a token endpoint no assertion"),
        (
            [*BY_KEYS, f"sasl.oauthbearer.jwt.retriever.class={KAFKAS}.JwtBearerJwtRetriever"],
            "kraftd has no grant by JWT bearer (RFC 7523)",
        ),
        (
            [*BY_KEYS, f"sasl.oauthbearer.jwt.retriever.class={KAFKAS}.FileJwtRetriever"],
            f"{URL} must be file:/path",
        ),
        ([*BY_KEYS, "sasl.oauthbearer.jwt.retriever.class=a.B"], "kraftd runs no Java classes"),
        ([*BY_KEYS, "sasl.oauthbearer.header.urlencode=perhaps"], "true or false"),
        ([*BY_KEYS, "sasl.login.connect.timeout.ms=-1"], "must not be negative"),
        ([*BY_KEYS, "sasl.login.retry.backoff.ms=10001"], "must be between 0 and"),
        ([*BY_KEYS, "sasl.login.refresh.window.factor=0.1"], "must be between 0.5 and 1.0"),
        ([*BY_KEYS[:2], f'{JAAS} ssl.engine.factory.class="a.B";'], "kraftd runs no Java classes"),
    ],
)
def test_an_invalid_grant_is_refused(tmp_path: Path, lines: list[str], message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        loaded(tmp_path, *lines)
    text = "\n".join(refused.value.problems)
    assert message in text
    assert "hush" not in text


def test_a_clients_file_has_the_same_keys(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\n"
        f"sasl.jaas.config={KAFKAS}.OAuthBearerLoginModule required;\n"
        f"{URL}=https://idp/token\n{CREDENTIALS}.id=a\n{CREDENTIALS}.secret=b\n"
    )
    token_grant = load_client_security(path).grant
    assert token_grant is not None
    assert (token_grant.client_id, token_grant.client_secret) == ("a", "b")


@pytest.mark.parametrize(
    "url", ["http://localhost.evil/keys", "http://127.0.0.1.evil/keys", "https:", "ftp://h/k"]
)
def test_an_insecure_or_invalid_url_of_token_keys_is_refused(tmp_path: Path, url: str) -> None:
    path = tmp_path / "controller.properties"
    path.write_text(BASE.replace("file:/keys.json", url) + "\n".join(BY_KEYS) + "\n")
    with pytest.raises(ConfigError, match=r"sasl\.oauthbearer\.jwks\.endpoint\.url"):
        load(path)


def test_keys_of_tokens_are_fetched_with_the_login_modules_truststore(tmp_path: Path) -> None:
    options = 'ssl.truststore.type="PEM" ssl.truststore.location="/idp-ca.pem"'
    url = "sasl.oauthbearer.jwks.endpoint.url=https://idp/keys"
    lines = (*BY_KEYS[:-1], f"{JAAS} {options};", url)
    tokens = loaded(tmp_path, *lines).security.listeners["CONTROLLER"].tokens
    assert tokens is not None and tokens.tls is not None
    assert tokens.tls.truststore.location == "/idp-ca.pem"
    by_file = loaded(tmp_path, *lines[:-1]).security.listeners["CONTROLLER"].tokens
    assert by_file is not None and by_file.tls is None
