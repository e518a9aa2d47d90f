"""Connections over TLS and SASL: a node's, and those of a client's file (``--command-config``)."""

from __future__ import annotations

import random
import ssl
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from kraftd.client.failures import Refused
from kraftd.config.client_login import client_login
from kraftd.config.errors import ConfigError
from kraftd.config.findings import Findings
from kraftd.config.load import BYTE_ORDER_MARK, hidden_by_byte_order_mark, read
from kraftd.config.providers import resolve
from kraftd.config.security import ClientSecurity, read_client
from kraftd.net.tls.contexts import TlsContexts
from kraftd.net.token_source import TokenSource
from kraftd.security.sasl.client_requests import ANSWERS, login_requests
from kraftd.security.sasl.mechanism import ClientExchange, SaslFailed
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.client.connection import Connection


def load_client_security(path: Path) -> ClientSecurity:
    """The security of a client's file. Raises ConfigError with all of its faults."""
    warnings: list[str] = []
    problems: list[str] = []
    settings = resolve({one.key: one for one in read(path, warnings)}, problems)
    problems += [
        hidden_by_byte_order_mark(one)
        for one in settings.values()
        if one.key.startswith(tuple(BYTE_ORDER_MARK + prefix for prefix in ("security.", "ssl.", "sasl.")))
    ]
    findings = Findings(settings, {}, warnings)
    findings.problems = problems
    security = read_client(settings, findings)
    if problems:
        raise ConfigError(problems)
    return security


class Secured:
    """The setup of connections over TLS and with a login; each is None if not needed."""

    def __init__(self, tls: ssl.SSLContext | None, login: Callable[[], ClientExchange] | None) -> None:
        self._tls = tls
        self._login = login

    def tls(self, host: str) -> ssl.SSLContext | None:
        """The context of a connection to a host, None for plaintext."""
        return self._tls

    async def authenticate(self, connection: Connection) -> None:
        """Log in, if a mechanism is configured. Raises Refused."""
        if self._login is None:
            return
        try:
            login = login_requests(self._login())
            request = next(login)
            while True:
                request = login.send(await connection.ask(request, ANSWERS[type(request)]))
        except StopIteration:
            return
        except SaslFailed as failure:
            text = f"{connection.address}: login: {failure}"
            raise Refused(text, ErrorCode.SASL_AUTHENTICATION_FAILED) from None

    def __repr__(self) -> str:
        return f"<Secured {'TLS' if self._tls else 'plaintext'}{', with a login' if self._login else ''}>"


def secured(security: ClientSecurity) -> Secured:
    """The setup of every connection of a command. Raises ConfigError for stores that cannot be used.

    A token is fetched when a connection first needs one, and when it is to be replaced: that blocks the loop.
    """
    try:
        tls = TlsContexts(security.tls).client if security.tls is not None else None
        grant = security.grant
        tokens = TokenSource(grant, _now_ms, _wall_ms, random.random) if grant is not None else None
    except ValueError as error:
        raise ConfigError([str(error)]) from None
    return Secured(tls, client_login(security, tokens.fetched_text if tokens is not None else None))


def _now_ms() -> int:
    return time.monotonic_ns() // 1_000_000


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000
