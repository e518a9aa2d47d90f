"""The keys of a login that requests a token of its own (OAUTHBEARER's grant by client credentials).

A key overrides the login module's option of the same meaning, as in Kafka, where the options are deprecated.
"""

from __future__ import annotations

from collections.abc import Mapping

from kraftd.config.findings import Findings
from kraftd.config.security_keys import Keys, tls_settings
from kraftd.config.settings import Setting
from kraftd.config.urls import is_https, is_protected
from kraftd.security.sasl.client_credentials import RefreshRules, TokenGrant
from kraftd.security.sasl.mechanism import OAUTHBEARER
from kraftd.security.tls_settings import TlsSettings

DEFAULT_TIMEOUT_MS = 10_000  # Kafka waits without a limit
_URL = "sasl.oauthbearer.token.endpoint.url"
_RETRIEVER = "sasl.oauthbearer.jwt.retriever.class"
_URL_ENCODES = "sasl.oauthbearer.header.urlencode"
_PACKAGE = "org.apache.kafka.common.security.oauthbearer."
_DEFAULT, _FILE, _CLIENT_CREDENTIALS, _JWT_BEARER = (
    f"{_PACKAGE}{name}JwtRetriever" for name in ("Default", "File", "ClientCredentials", "JwtBearer")
)
# Either makes Kafka send an assertion in place of the secret.
_ASSERTIONS = ("sasl.oauthbearer.assertion.file", "sasl.oauthbearer.assertion.claim.iss")
_RANGES = {
    "sasl.login.refresh.window.factor": (0.5, 1.0),
    "sasl.login.refresh.window.jitter": (0.0, 0.25),
    "sasl.login.refresh.min.period.seconds": (0, 900),
    "sasl.login.refresh.buffer.seconds": (0, 3600),
}


def read_grant(keys: Keys, url: str, options: Mapping[str, str]) -> TokenGrant | None:
    """The grant of a login by OAUTHBEARER; None where its token is in a file, or a problem was noted.

    `options` are those of the login module.
    """
    if not _agrees_with_retriever(keys, url) or url.startswith("file:"):
        return None
    if (why := _wrong_with(url)) is not None:
        keys.refuse(_URL, why, OAUTHBEARER)
        return None
    for key in _ASSERTIONS:
        if keys.text(key, OAUTHBEARER) is not None:
            why = "kraftd shows a token endpoint no assertion (private_key_jwt), but a client's id and secret"
            keys.refuse(key, why, OAUTHBEARER)
    client_id = _either(keys, "sasl.oauthbearer.client.credentials.client.id", options, "clientId")
    secret = _either(keys, "sasl.oauthbearer.client.credentials.client.secret", options, "clientSecret")
    return TokenGrant(
        url=url,
        client_id=client_id,
        client_secret=secret,
        scope=_either(keys, "sasl.oauthbearer.scope", options, "scope", required=False),
        url_encodes=_flag(keys, _URL_ENCODES),
        tls=endpoint_tls(keys, options) if is_https(url) else None,
        connect_timeout_ms=_timeout_ms(keys, "sasl.login.connect.timeout.ms"),
        read_timeout_ms=_timeout_ms(keys, "sasl.login.read.timeout.ms"),
        **_backoff(keys),
        refresh=_refresh(keys),
        subject_claim=str(keys.value("sasl.oauthbearer.sub.claim.name", OAUTHBEARER)),
    )


def _agrees_with_retriever(keys: Keys, url: str) -> bool:
    """Return whether kraftd replaces the configured class that gets tokens in Kafka, for such a URL."""
    retriever = keys.text(_RETRIEVER) or _DEFAULT
    why = ""
    if retriever == _JWT_BEARER:
        why = "kraftd has no grant by JWT bearer (RFC 7523), but the one by client credentials"
    elif retriever not in (_DEFAULT, _FILE, _CLIENT_CREDENTIALS):
        why = f"kraftd runs no Java classes; use {_DEFAULT}"
    elif retriever == _FILE and not url.startswith("file:"):
        why = f"{_URL} must be file:/path of a token then"
    elif retriever == _CLIENT_CREDENTIALS and url.startswith("file:"):
        why = f"{_URL} must be https://… of a token endpoint then"
    if why:
        keys.refuse(_RETRIEVER, why)
    return not why


def _wrong_with(url: str) -> str | None:
    """The reason not to send a secret to a URL; None if it may be sent."""
    if is_protected(url):
        return None
    return (
        "must be file:/path of a token, which is read at each login, or the token endpoint, https://… or "
        "http://localhost…: over plain HTTP any other host would be sent the client's secret in the clear"
    )


def _either(keys: Keys, key: str, options: Mapping[str, str], option: str, *, required: bool = True) -> str:
    """The text of a key, or else of the login module's option; a blank key is not replaced by it."""
    is_set = keys.found(key, OAUTHBEARER) is not None
    if is_set and option in options:
        keys.warn("sasl.jaas.config", f"its {option} has no effect, for {key} is set")
    text = keys.text(key, OAUTHBEARER) if is_set else options.get(option)
    if required and not (text or "").strip():
        if is_set:
            keys.refuse(key, "it is blank", OAUTHBEARER)
        else:
            why = f"set it, or {option} in sasl.jaas.config: a token endpoint asks for client id and secret"
            keys.refuse(key, why, OAUTHBEARER)
    return (text or "").strip()


def _flag(keys: Keys, key: str) -> bool:
    """A boolean that Kafka's definition of servers lacks."""
    text = keys.raw(key, OAUTHBEARER).strip().lower()
    if text not in ("", "true", "false"):
        keys.refuse(key, "must be true or false", OAUTHBEARER)
    return text == "true"


def _timeout_ms(keys: Keys, key: str) -> int:
    timeout_ms = keys.value(key, OAUTHBEARER)
    if timeout_ms is not None and timeout_ms < 0:
        keys.refuse(key, "must not be negative", OAUTHBEARER)
    return timeout_ms or DEFAULT_TIMEOUT_MS


def _backoff(keys: Keys) -> dict[str, int]:
    first, last = "sasl.login.retry.backoff.ms", "sasl.login.retry.backoff.max.ms"
    first_ms, last_ms = keys.value(first, OAUTHBEARER), keys.value(last, OAUTHBEARER)
    if not 0 <= first_ms <= last_ms:
        keys.refuse(first, f"must be between 0 and {last}={last_ms}", OAUTHBEARER)
        return {}
    return {"retry_backoff_ms": first_ms, "retry_backoff_max_ms": last_ms}


def _refresh(keys: Keys) -> RefreshRules:
    found = {key: keys.value(key) for key in _RANGES}
    for key, (low, high) in _RANGES.items():
        if not low <= found[key] <= high:
            keys.refuse(key, f"must be between {low} and {high}")
    factor, jitter, period_s, buffer_s = found.values()
    return RefreshRules(
        window_factor=factor,
        window_jitter=jitter,
        min_period_ms=1000 * period_s,
        buffer_ms=1000 * buffer_s,
    )


def endpoint_tls(keys: Keys, options: Mapping[str, str]) -> TlsSettings:
    """The TLS settings by which an endpoint of the identity provider is trusted.

    By the login module's ``ssl.*`` options, or else by the system's authorities.
    """
    where = "an option of sasl.jaas.config"
    settings = {name: Setting(name, text, where) for name, text in options.items() if name.startswith("ssl.")}
    findings = Findings(settings, {}, [])
    made = tls_settings(Keys(settings, findings))
    for problem in findings.problems:
        keys.refuse("sasl.jaas.config", problem, OAUTHBEARER)
    return made
