"""Assembles the security of a daemon: TLS sources, SASL mechanisms with their secrets, the authorizer.

Everything is made before the daemon serves, so that an unusable file is refused at the start. What
authenticates by SASL is imported where it is configured.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from kraftd.config.client_login import client_login, new_nonce
from kraftd.config.security import (
    PYTHON_AUTHORIZERS,
    ClientSecurity,
    ListenerSecurity,
    SecurityConfig,
    TokenSettings,
    tls_with_changes,
)
from kraftd.named_tuple import NamedTuple
from kraftd.net.tls.source import TlsSource
from kraftd.net.token_source import TokenSource
from kraftd.runtime.clock import Clock
from kraftd.security.authorizer import Authorizer, StandardAuthorizer
from kraftd.security.authorizer_settings import CLASS_NAME
from kraftd.security.principal_mapping import PrincipalMapper
from kraftd.security.sasl.client_credentials import TokenGrant
from kraftd.security.sasl.mechanism import OAUTHBEARER, PLAIN, ClientExchange, ServerExchange
from kraftd.security.sasl.session import SaslRules

if TYPE_CHECKING:
    from kraftd.runtime.security.jwks import Jwks
    from kraftd.security.sasl.scram import Credentials

OTHER_CONTROLLERS = "other controllers"  # the peers of the node's own connections


class SecurityProblem(Exception):
    """The configured security cannot be set up; the text names the key and what to check."""


class ListenerGuard:
    """The security of one listener: TLS, the mapping of certificates' names, the rules of SASL."""

    def __init__(self, settings: ListenerSecurity, jwks: Jwks | None) -> None:
        self.settings = settings
        self.jwks = jwks
        try:
            self.tls = TlsSource(settings.tls) if settings.tls is not None else None
        except ValueError as error:
            raise SecurityProblem(f"listener.name.{settings.listener.lower()}.{error}") from None
        self.mapper = PrincipalMapper(settings.principal_mapping)
        self.rules: SaslRules | None = None  # once credentials are known

    def begin_serving(self, credentials: Credentials) -> None:
        """Make the rules of SASL with the node's credentials."""
        begin = {name: self._mechanism(name, credentials) for name in self.settings.mechanisms}
        self.rules = SaslRules(begin, self.settings.max_reauth_ms)

    def _mechanism(self, name: str, credentials: Credentials) -> Callable[[], ServerExchange]:
        if name == PLAIN:
            from kraftd.security.sasl.plain import PlainServer, plain_users

            users = plain_users(self.settings.jaas[PLAIN].options)
            return partial(PlainServer, users)
        if name == OAUTHBEARER:
            from kraftd.security.sasl.oauthbearer import OAuthBearerServer

            assert self.jwks is not None
            return partial(OAuthBearerServer, self.jwks.validate)
        from kraftd.security.sasl.scram import ScramServer

        return lambda: ScramServer(name, credentials, new_nonce())

    def __repr__(self) -> str:
        return f"<ListenerGuard of {self.settings.listener}, {self.tls!r}, {self.rules!r}>"


class OwnLogin(NamedTuple):
    """The TLS and the login of the node's own connections to other nodes; each None if not needed."""

    tls: TlsSource | None
    login: Callable[[], ClientExchange] | None


class TlsUse(NamedTuple):
    """A source of TLS contexts, with its purpose in words, and the listener whose keys it uses."""

    name: str
    listener: str
    source: TlsSource


class Security:
    """All security of a daemon. Raises SecurityProblem for unusable settings.

    `token_sources` are those of the node's own logins; `TokenRefresh` keeps them fresh.
    """

    def __init__(
        self, config: SecurityConfig, settings: Mapping[str, str], clock: Clock | None = None
    ) -> None:
        """`clock` is the node's."""
        self._clock = clock or Clock()
        self.notes: list[str] = []  # what is not ready yet
        self.listeners: dict[str, ListenerGuard] = {}
        for name, listener in config.listeners.items():
            jwks = self._read_keys(listener.tokens) if listener.tokens is not None else None
            self.listeners[name] = ListenerGuard(listener, jwks)
        self.token_sources: list[TokenSource] = []
        self.client_tls, self.login = self._own_login(config.client)
        self.at_brokers = {name: self._own_login(client) for name, client in config.brokers.items()}
        self.client_listener = next(iter(config.listeners), "")  # has the keys of the node's own connections
        self.authorizer = make_authorizer(config, settings)

    def _own_login(self, client: ClientSecurity) -> OwnLogin:
        """The login of the node's own connections. Raises SecurityProblem."""
        try:
            tls = TlsSource(client.tls) if client.tls is not None else None
        except ValueError as error:
            raise SecurityProblem(str(error)) from None
        granted = self._tokens(client.grant).text if client.grant is not None else None
        return OwnLogin(tls, client_login(client, granted))

    def _tokens(self, grant: TokenGrant) -> TokenSource:
        """The source of a grant's tokens, the same for logins that have the same grant."""
        for source in self.token_sources:
            if source.grant == grant:
                return source
        try:
            made = TokenSource(grant, self._clock.now_ms, self._clock.wall_ms, random.random)
        except ValueError as error:
            raise SecurityProblem(f"sasl.jaas.config, for the token endpoint: {error}") from None
        self.token_sources.append(made)
        return made

    def _read_keys(self, tokens: TokenSettings) -> Jwks:
        """The key set of a listener, read unless its endpoint is slow. Raises SecurityProblem."""
        from kraftd.runtime.security.jwks import Jwks

        try:
            jwks = Jwks(tokens)
            note = jwks.read_first()
        except ValueError as error:
            raise SecurityProblem(str(error)) from None
        if note is not None:
            self.notes.append(note)
        return jwks

    @property
    def tls_sources(self) -> list[TlsUse]:
        """Every source of TLS contexts."""
        found = [
            TlsUse(name, name, guard.tls) for name, guard in self.listeners.items() if guard.tls is not None
        ]
        if self.client_tls is not None:
            found.append(TlsUse(OTHER_CONTROLLERS, self.client_listener, self.client_tls))
        for name, login in self.at_brokers.items():
            if login.tls is not None:
                found.append(TlsUse(f"brokers at {name}", name, login.tls))
        return found

    def fault_of_stores(
        self, texts: Mapping[str, str], among_brokers: str, dynamic: Mapping[str, str]
    ) -> str | None:
        """Why a broker with the file's `texts` cannot use the stores of dynamic configs; None if it can.

        As in Kafka, those of the listener `among_brokers` must trust themselves. Reads files.
        """
        for name, guard in self.listeners.items():
            if guard.tls is None:
                continue
            settings, problems = tls_with_changes(name, texts, dynamic)
            is_among_brokers = name == among_brokers
            fault = problems[0] if problems else guard.tls.fault_of(settings, trusts_itself=is_among_brokers)
            if fault is not None:
                return f"listener {name}: {fault}"
        return None

    def certificate_expiries(self) -> dict[str, float]:
        """By listener, the expiry of the certificate in use, in seconds since 1970."""
        return {
            name: guard.tls.contexts.expires_at.timestamp()
            for name, guard in self.listeners.items()
            if guard.tls is not None and guard.tls.contexts.expires_at is not None
        }

    def __repr__(self) -> str:
        return f"<Security of {', '.join(self.listeners) or 'no listener'}, {self.authorizer!r}>"


def make_authorizer(config: SecurityConfig, settings: Mapping[str, str]) -> Authorizer | None:
    """The configured authorizer; an entry point is called with the settings of the file."""
    if not config.authorizer_class:
        return None
    if config.authorizer_class == CLASS_NAME:
        return StandardAuthorizer(config.authorizer)
    from importlib.metadata import entry_points

    name = config.authorizer_class.removeprefix(f"{PYTHON_AUTHORIZERS}:")
    known = entry_points(group=PYTHON_AUTHORIZERS)
    if name not in known.names:
        there = ", ".join(sorted(known.names)) or "none"
        raise SecurityProblem(
            f"authorizer.class.name={config.authorizer_class}: no entry point {name} in the group "
            f"{PYTHON_AUTHORIZERS}; there is {there}"
        )
    try:
        made: Authorizer = known[name].load()(dict(settings))
    except Exception as error:
        raise SecurityProblem(f"authorizer.class.name={config.authorizer_class}: {error!r}") from error
    return made
