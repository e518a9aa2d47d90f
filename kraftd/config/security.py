"""The security of a file: each listener's TLS and SASL, the node's own logins, and the authorizer.

A listener's own keys (``listener.name.<listener>.<key>``, or ``<mechanism>.<key>`` in place of a key for one
mechanism) override the plain ones, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath

from msgspec import Struct

from kraftd.config.findings import Findings
from kraftd.config.own_token import endpoint_tls, read_grant
from kraftd.config.security_keys import Keys, Settings, plain_text, tls_settings
from kraftd.config.settings import Setting
from kraftd.config.urls import is_https, is_protected
from kraftd.configdef.definition import broker_def
from kraftd.security.authorizer_settings import CLASS_NAME, AuthorizerSettings, parse_super_users
from kraftd.security.principal_mapping import PrincipalMapper
from kraftd.security.sasl.client_credentials import TokenGrant
from kraftd.security.sasl.jaas import OAUTHBEARER_MODULE, PLAIN_MODULE, SCRAM_MODULE, JaasEntry, parse_jaas
from kraftd.security.sasl.jwt_validation import TokenRules
from kraftd.security.sasl.mechanism import MECHANISMS, OAUTHBEARER, PLAIN, SCRAM_SHA_256, SCRAM_SHA_512
from kraftd.security.tls_settings import TlsSettings
from kraftd.types import Endpoint

SSL, SASL_PLAINTEXT, SASL_SSL = 1, 2, 3  # as in Endpoint.security_protocol
MAX_UNAUTHENTICATED_FRAME_BYTES = 65_536
PYTHON_AUTHORIZERS = "kraftd.authorizer"  # the group of entry points
MODULES = {
    PLAIN: PLAIN_MODULE,
    SCRAM_SHA_256: SCRAM_MODULE,
    SCRAM_SHA_512: SCRAM_MODULE,
    OAUTHBEARER: OAUTHBEARER_MODULE,
}
_VALIDATORS = (
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler",
    "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerValidatorCallbackHandler",
)
_LOGIN_HANDLERS = (
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler",
    "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerLoginCallbackHandler",
)
_CLIENT_HANDLERS = (
    "org.apache.kafka.common.security.authenticator.SaslClientCallbackHandler",
    "org.apache.kafka.common.security.oauthbearer.internals.OAuthBearerSaslClientCallbackHandler",
)
_PLAIN_HANDLER = "org.apache.kafka.common.security.plain.internals.PlainServerCallbackHandler"
_PRINCIPAL_BUILDER = "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"


class TokenSettings(Struct, frozen=True, kw_only=True):
    """The place of the keys of OAUTHBEARER's tokens, how it is trusted, and the required claims."""

    jwks_url: str
    tls: TlsSettings | None = None
    refresh_ms: int
    rules: TokenRules


class ListenerSecurity(Struct, frozen=True, kw_only=True):
    """One listener. `tls` is None without TLS, `mechanisms` empty without SASL."""

    listener: str
    tls: TlsSettings | None = None
    principal_mapping: str = "DEFAULT"
    mechanisms: tuple[str, ...] = ()
    jaas: dict[str, JaasEntry] = {}
    max_reauth_ms: dict[str, int] = {}
    tokens: TokenSettings | None = None
    max_unauthenticated_frame_bytes: int = MAX_UNAUTHENTICATED_FRAME_BYTES


class ClientSecurity(Struct, frozen=True, kw_only=True):
    """This side's authentication: TLS, and one SASL mechanism with its login module.

    OAUTHBEARER's token is in the file of `token_url`, or granted according to `grant`.
    """

    tls: TlsSettings | None = None
    mechanism: str = ""
    jaas: JaasEntry | None = None
    token_url: str = ""
    grant: TokenGrant | None = None


class SecurityConfig(Struct, frozen=True, kw_only=True):
    """All of it: listeners by name, the node's own requests, and the authorizer (None: all is allowed).

    `client` is for requests to other controllers, `brokers` for those to brokers, by the brokers' listener.
    A listener is in `brokers` only if this node can connect to it.
    """

    listeners: dict[str, ListenerSecurity] = {}
    client: ClientSecurity = ClientSecurity()
    brokers: dict[str, ClientSecurity] = {}
    authorizer_class: str = ""
    authorizer: AuthorizerSettings = AuthorizerSettings()


def read_security(
    settings: Settings,
    endpoints: Sequence[Endpoint],
    findings: Findings,
    brokers: Mapping[str, ClientSecurity] | None = None,
    *,
    quorum: Endpoint | None = None,
) -> SecurityConfig:
    """The security of a daemon with these listeners; problems go to the findings.

    `quorum` is the quorum's listener, whose keys configure the node's own logins: the first if not given.
    """
    listeners = {
        endpoint.listener: _listener(endpoint, settings, findings)
        for endpoint in endpoints
        if endpoint.security_protocol
    }
    for endpoint in endpoints:
        _check_principal_builder(Keys(settings, findings, endpoint.listener))
    plain = Keys(settings, findings)
    client = ClientSecurity()
    quorum = quorum or next(iter(endpoints), None)
    if quorum is not None and quorum.security_protocol:
        client = _own_logins(quorum, settings, findings)
    super_users = plain_text(settings, "super.users")
    allows_all = plain_text(settings, "allow.everyone.if.no.acl.found").strip().lower()
    class_name = plain.text("authorizer.class.name") or ""
    if class_name and class_name != CLASS_NAME and not class_name.startswith(f"{PYTHON_AUTHORIZERS}:"):
        why = (
            f"kraftd runs no Java classes; use {CLASS_NAME}, or {PYTHON_AUTHORIZERS}:<name> of a Python "
            f"entry point of the group {PYTHON_AUTHORIZERS}"
        )
        plain.refuse("authorizer.class.name", why)
    if allows_all not in ("", "true", "false"):
        plain.refuse("allow.everyone.if.no.acl.found", "must be true or false")
    return SecurityConfig(
        listeners=listeners,
        client=client,
        brokers=dict(brokers or {}),
        authorizer_class=class_name,
        authorizer=AuthorizerSettings(
            super_users=plain.tried("super.users", lambda: parse_super_users(super_users)) or frozenset(),
            allow_if_no_acl=allows_all == "true",
        ),
    )


def _check_principal_builder(keys: Keys) -> None:
    """Refuse another class than Kafka's own. In Kafka it also names the principals of PLAINTEXT listeners."""
    if (keys.text("principal.builder.class") or _PRINCIPAL_BUILDER) != _PRINCIPAL_BUILDER:
        keys.refuse("principal.builder.class", "kraftd runs no Java classes; remove the key")


def _check_server_handler(keys: Keys, mechanism: str) -> None:
    """Refuse a class that checks the users of PLAIN or SCRAM. Kafka reads it from the mechanism's own key."""
    key = "sasl.server.callback.handler.class"
    of_mechanism = (keys.found(key, mechanism) or "").endswith(f"{mechanism.lower()}.{key}")
    if of_mechanism and keys.text(key, mechanism) not in (None, _PLAIN_HANDLER):
        keys.refuse(key, "kraftd runs no Java classes; remove the key", mechanism)


def _listener(endpoint: Endpoint, settings: Settings, findings: Findings) -> ListenerSecurity:
    keys = Keys(settings, findings, endpoint.listener)
    protocol = endpoint.security_protocol
    tls = tls_settings(keys) if protocol in (SSL, SASL_SSL) else None
    if tls is not None and not tls.keystore.is_configured:
        keys.refuse("ssl.keystore.location", f"{endpoint.listener} is TLS and needs a key store")
    rules = str(keys.value("ssl.principal.mapping.rules"))
    keys.tried("ssl.principal.mapping.rules", lambda: PrincipalMapper(rules))
    security = ListenerSecurity(listener=endpoint.listener, tls=tls, principal_mapping=rules)
    if protocol not in (SASL_PLAINTEXT, SASL_SSL):
        return security
    mechanisms = tuple(keys.value("sasl.enabled.mechanisms"))
    for mechanism in mechanisms:
        if mechanism not in MECHANISMS:
            kerberos = " (Kerberos)" if mechanism == "GSSAPI" else ""
            why = f"kraftd does not offer {mechanism}{kerberos}; use {', '.join(MECHANISMS)}"
            keys.refuse("sasl.enabled.mechanisms", why)
    if not mechanisms:
        keys.refuse("sasl.enabled.mechanisms", "a SASL listener needs at least one")
    known = [mechanism for mechanism in mechanisms if mechanism in MECHANISMS]
    for mechanism in known:
        if mechanism != OAUTHBEARER:  # whose class is checked with the settings of its tokens
            _check_server_handler(keys, mechanism)
    entries = {mechanism: _jaas(keys, mechanism) for mechanism in known}
    return ListenerSecurity(
        listener=endpoint.listener,
        tls=tls,
        principal_mapping=rules,
        mechanisms=tuple(known),
        jaas={mechanism: entry for mechanism, entry in entries.items() if entry is not None},
        max_reauth_ms={mechanism: keys.value("connections.max.reauth.ms", mechanism) for mechanism in known},
        tokens=_tokens(keys, entries[OAUTHBEARER]) if OAUTHBEARER in known else None,
        max_unauthenticated_frame_bytes=min(
            keys.value("sasl.server.max.receive.size"), MAX_UNAUTHENTICATED_FRAME_BYTES
        ),
    )


def _own_logins(endpoint: Endpoint, settings: Settings, findings: Findings) -> ClientSecurity:
    """The node's login at other controllers, by the quorum's listener."""
    keys = Keys(settings, findings, endpoint.listener)
    tls = tls_settings(keys) if endpoint.security_protocol in (SSL, SASL_SSL) else None
    if endpoint.security_protocol == SSL:
        return ClientSecurity(tls=tls)
    return _client(keys, tls, "sasl.mechanism.controller.protocol", str)


def read_broker_login(settings: Settings, listener: str, protocol: int, findings: Findings) -> ClientSecurity:
    """The node's login at a listener of brokers, with the keys that another broker would use."""
    keys = Keys(settings, findings, listener)
    tls = tls_settings(keys) if protocol in (SSL, SASL_SSL) else None
    if protocol not in (SASL_PLAINTEXT, SASL_SSL):
        return ClientSecurity(tls=tls)
    return _client(keys, tls, "sasl.mechanism.inter.broker.protocol", str)


def read_client(settings: Settings, findings: Findings) -> ClientSecurity:
    """The security of a client's file (``--command-config``), with Kafka's keys of clients."""
    keys = Keys(settings, findings)
    protocol = plain_text(settings, "security.protocol").strip().upper() or "PLAINTEXT"
    if protocol not in ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"):
        findings.refuse("security.protocol", "must be PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL")
        return ClientSecurity()
    tls = tls_settings(keys) if protocol in ("SSL", "SASL_SSL") else None
    if not protocol.startswith("SASL"):
        return ClientSecurity(tls=tls)
    return _client(keys, tls, "sasl.mechanism", lambda _: plain_text(settings, "sasl.mechanism") or "GSSAPI")


def _client(
    keys: Keys, tls: TlsSettings | None, mechanism_key: str, mechanism_of: Callable[[object], str]
) -> ClientSecurity:
    from_definition = mechanism_key in broker_def()
    mechanism = mechanism_of(keys.value(mechanism_key) if from_definition else None).strip()
    if mechanism not in MECHANISMS:
        keys.refuse(mechanism_key, f"kraftd does not offer {mechanism}; use {', '.join(MECHANISMS)}")
        return ClientSecurity(tls=tls)
    if keys.text("sasl.client.callback.handler.class") not in (None, *_CLIENT_HANDLERS):
        keys.refuse("sasl.client.callback.handler.class", "kraftd runs no Java classes; remove the key")
    entry = _jaas(keys, mechanism, needed=True)
    options = entry.options if entry is not None else {}
    if entry is not None and mechanism != OAUTHBEARER:
        for option in ("username", "password"):
            if option not in options:
                why = f"{option} is missing: the node itself logs in by {mechanism}"
                keys.refuse("sasl.jaas.config", why, mechanism)
    if mechanism != OAUTHBEARER or entry is None:
        return ClientSecurity(tls=tls, mechanism=mechanism, jaas=entry)
    handler = keys.text("sasl.login.callback.handler.class", mechanism)
    if handler not in (None, *_LOGIN_HANDLERS):
        why = "kraftd runs no Java classes; remove the key"
        keys.refuse("sasl.login.callback.handler.class", why, mechanism)
    url = (keys.text("sasl.oauthbearer.token.endpoint.url", mechanism) or "").strip()
    grant = read_grant(keys, url, options)
    return ClientSecurity(tls=tls, mechanism=mechanism, jaas=entry, token_url=url, grant=grant)


def _jaas(keys: Keys, mechanism: str, *, needed: bool | None = None) -> JaasEntry | None:
    """The login module of a mechanism; a server that only checks needs one for PLAIN alone."""
    name = keys.found("sasl.jaas.config", mechanism)
    if name is None:
        if needed or (needed is None and mechanism == PLAIN):
            why = f"{mechanism} needs a login module: {MODULES[mechanism]} required …;"
            keys.refuse(f"{mechanism.lower()}.sasl.jaas.config", why)
        return None
    text = keys.value("sasl.jaas.config", mechanism)
    entry: JaasEntry | None = keys.tried("sasl.jaas.config", lambda: parse_jaas(str(text)), mechanism)
    if entry is not None and entry.module != MODULES[mechanism]:
        why = f"{entry.module} is not the login module of {mechanism}: write {MODULES[mechanism]}"
        keys.refuse("sasl.jaas.config", why, mechanism)
        return None
    return entry


def _tokens(keys: Keys, entry: JaasEntry | None) -> TokenSettings | None:
    """The settings by which OAUTHBEARER checks tokens."""
    if keys.text("sasl.server.callback.handler.class", OAUTHBEARER) not in (None, *_VALIDATORS):
        why = f"kraftd runs no Java classes; use {_VALIDATORS[0]}"
        keys.refuse("sasl.server.callback.handler.class", why, OAUTHBEARER)
    url = keys.text("sasl.oauthbearer.jwks.endpoint.url", OAUTHBEARER)
    if url is None or not (url.startswith("file:") or is_protected(url)):
        why = "OAUTHBEARER needs the keys of its tokens: file:/path, https://… or http://localhost…; tokens "
        keys.refuse(
            "sasl.oauthbearer.jwks.endpoint.url", why + "without a signature are not taken", OAUTHBEARER
        )
        return None
    return TokenSettings(
        jwks_url=url,
        tls=endpoint_tls(keys, entry.options if entry is not None else {}) if is_https(url) else None,
        refresh_ms=keys.value("sasl.oauthbearer.jwks.endpoint.refresh.ms", OAUTHBEARER),
        rules=TokenRules(
            subject_claim=str(keys.value("sasl.oauthbearer.sub.claim.name", OAUTHBEARER)),
            scope_claim=str(keys.value("sasl.oauthbearer.scope.claim.name", OAUTHBEARER)),
            issuer=keys.text("sasl.oauthbearer.expected.issuer", OAUTHBEARER),
            audiences=tuple(keys.value("sasl.oauthbearer.expected.audience", OAUTHBEARER) or ()),
            clock_skew_ms=1000 * int(keys.value("sasl.oauthbearer.clock.skew.seconds", OAUTHBEARER)),
        ),
    )


def file_of_url(url: str) -> PurePath:
    """The path of a ``file:`` URL."""
    return PurePath("/" + url.removeprefix("file:").lstrip("/"))


# The keys that a dynamic config of the node may change, as Kafka's SslConfigs.RECONFIGURABLE_CONFIGS.
RECONFIGURABLE = frozenset(
    f"ssl.{key}"
    for key in (
        *("keystore.type", "keystore.location", "keystore.password", "key.password", "keystore.key"),
        *("keystore.certificate.chain", "truststore.type", "truststore.location", "truststore.password"),
        "truststore.certificates",
    )
)


def tls_with_changes(
    listener: str, texts: Mapping[str, str], changes: Mapping[str, str]
) -> tuple[TlsSettings, list[str]]:
    """A listener's TLS settings: the file's texts, overridden by the node's dynamic configs; and their
    faults.
    """
    prefix = f"listener.name.{listener.lower()}."
    dynamic = {key: value for key, value in changes.items() if key.removeprefix(prefix) in RECONFIGURABLE}
    settings = {key: Setting(key, text, "dynamic config") for key, text in {**texts, **dynamic}.items()}
    findings = Findings(settings, {}, [])
    return tls_settings(Keys(settings, findings, listener)), findings.problems
