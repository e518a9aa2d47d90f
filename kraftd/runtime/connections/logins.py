"""Connections of secured listeners: authenticates their peers by TLS or SASL before any request is served.

`requests/login.py` has the steps of a login; this module its timers, its delayed failures, and its log lines.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from kraftd.net.connection import Connection
from kraftd.requests.effects import AuditLine
from kraftd.requests.login import ConnectionLogin, End, Fail, Fault, PassOn, Reply
from kraftd.requests.repeats import Repeats
from kraftd.runtime.clock import Clock
from kraftd.runtime.connections.peer_certificates import PeerCertificates
from kraftd.runtime.reporting.authentication_audit import TLS, AuthenticationAudit
from kraftd.runtime.reporting.limited_log import LimitedLog
from kraftd.runtime.security.assembly import ListenerGuard, Security
from kraftd.security.acls.hosts import canonical_host
from kraftd.security.principal_mapping import NoMatchingRule
from kraftd.security.principals import ANONYMOUS, USER, Principal
from kraftd.wire.primitives import Buffer

# OpenSSL's reasons for a first message that is not TLS.
WITHOUT_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST")

# Passes on frames of a connection: connection, first slot, frames, principal.
Serve = Callable[[Connection, int, list[memoryview], Principal], None]


class Logins:
    """Passes requests from the connections of a daemon to the node, after their peers are authenticated."""

    def __init__(
        self,
        security: Security,
        serve: Serve,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        log: Any,
        *,
        timeout_ms: int,
        failure_delay_ms: int,
        audit: Callable[[AuditLine], None] = lambda _: None,
    ) -> None:
        self.security = security
        self.succeeded: Counter[str] = Counter()  # by listener
        self.failed: Counter[str] = Counter()
        self.expired: Counter[str] = Counter()
        self.limited_log = LimitedLog(log)
        self.audit = AuthenticationAudit(audit)
        self._log = log
        self._serve = serve
        self._loop = loop
        self._clock = clock
        self._timeout_ms = timeout_ms
        self._failure_delay_ms = failure_delay_ms
        self._timers: dict[int, asyncio.TimerHandle] = {}
        self._certificates = PeerCertificates(security)
        self._looks = Repeats()  # attempts without TLS or login, by address
        self._failing: set[int] = set()  # connections whose failure is answered after its delay

    def admitted(self, connection: Connection) -> None:
        """Begin a connection: TLS alone authenticates its peer; with SASL it must log in within a
        time limit.
        """
        guard = self.security.listeners.get(connection.listener)
        if guard is None:
            connection.principal = ANONYMOUS
        elif guard.rules is None:
            self._know_by_certificate(connection, guard)
        else:
            connection.login = ConnectionLogin(guard.rules)
            connection.limit_frames(guard.settings.max_unauthenticated_frame_bytes)
            delay_s = self._timeout_ms / 1000
            self._timers[connection.id] = self._loop.call_later(delay_s, self._out_of_time, connection)

    def lost(self, connection: Connection) -> None:
        """Forget a lost connection."""
        self._failing.discard(connection.id)
        self._certificates.forget(connection.id)
        self._cancel_timer(connection)

    def _cancel_timer(self, connection: Connection) -> None:
        timer = self._timers.pop(connection.id, None)
        if timer is not None:
            timer.cancel()

    def frames_received(self, connection: Connection, first_slot: int, frames: list[memoryview]) -> None:
        """Serve the requests of an authenticated peer, or continue its login."""
        login: ConnectionLogin | None = connection.login
        if login is None:
            self._serve(connection, first_slot, frames, connection.principal)
            return
        if connection.id in self._failing:
            return  # a further frame must not shorten the delay
        now_ms = self._clock.now_ms()
        if not login.needs_login(frames, now_ms):
            assert login.session.principal is not None
            self._serve(connection, first_slot, frames, login.session.principal)
            return
        for slot, frame in enumerate(frames, first_slot):
            outcome = login.take(frame, now_ms, self._clock.wall_ms())
            kind = type(outcome)
            if kind is PassOn:
                principal = login.session.principal if login.session.authenticated else None
                self._serve(connection, slot, [frame], principal or ANONYMOUS)
            elif isinstance(outcome, Reply):
                connection.answer(slot, outcome.parts)
                connection.flush()
                if login.session.authenticated:
                    self._authenticated(connection)
            elif isinstance(outcome, Fail):
                self._fail(connection, slot, outcome.parts, outcome.reason)
                return
            elif isinstance(outcome, Fault):
                error = outcome.error
                self._log.error(
                    "a login failed because of an internal error", error=repr(error), exc_info=error
                )
                self._fail(connection, slot, outcome.parts, "an internal error of this node")
                return
            elif isinstance(outcome, End):
                (self.expired if login.session.authenticated else self.failed)[connection.listener] += 1
                if not login.has_begun and self._is_first_look(connection.host):
                    connection.close("")
                    return
                self._warn(connection, "connection closed", outcome.reason)
                connection.close("")
                return

    def end_revoked(self, connections: Iterable[Connection]) -> None:
        """Close connections whose user, token, session or certificate is no longer valid; to be called every
        few seconds.
        """
        now_ms, wall_ms = self._clock.now_ms(), self._clock.wall_ms()
        self._certificates.look()
        for connection in list(connections):
            login: ConnectionLogin | None = connection.login
            why = None if login is None else login.session.why_over(now_ms, wall_ms)
            if login is None:
                why = self._certificates.why_over(connection.id, wall_ms)
            if why is not None and not connection.closing:
                self.expired[connection.listener] += 1
                self._warn(connection, "connection closed", why)
                connection.close("")

    def counts(self) -> dict[str, tuple[int, int, int]]:
        """By listener, how many logins succeeded, failed, and expired."""
        return {
            name: (self.succeeded[name], self.failed[name], self.expired[name])
            for name in self.security.listeners
        }

    def _know_by_certificate(self, connection: Connection, guard: ListenerGuard) -> None:
        certificate = connection.peer_certificate()
        if certificate is None:
            connection.principal = ANONYMOUS
            return
        try:
            subject = self._certificates.add(connection.id, connection.listener, certificate)
            name = guard.mapper.name(subject)
        except (NoMatchingRule, ValueError) as error:
            self.failed[connection.listener] += 1
            self.audit.failed(connection, TLS, "", str(error))
            self._warn(connection, "connection closed", str(error))
            connection.principal = ANONYMOUS
            connection.close("")
            return
        connection.principal = Principal(USER, name)
        connection.owner = (connection.principal, connection.host)
        self.succeeded[connection.listener] += 1
        self.audit.succeeded(connection, TLS, str(connection.principal))

    def _authenticated(self, connection: Connection) -> None:
        self._cancel_timer(connection)
        self.succeeded[connection.listener] += 1
        session = connection.login.session
        connection.owner = (session.principal, connection.host)
        self.audit.succeeded(connection, session.mechanism, str(session.principal))
        connection.limit_frames(1 << 62)

    def _fail(self, connection: Connection, slot: int, parts: list[Buffer], reason: str) -> None:
        """Send the failure of a login after a delay, so that guessing is slow; nothing is read meanwhile, and
        frames that have arrived are ignored.
        """
        self._failing.add(connection.id)
        self.failed[connection.listener] += 1
        session = connection.login.session
        claimed = f"{USER}:{session.claimed}" if session.claimed else ""
        self.audit.failed(connection, session.mechanism, claimed, reason)
        self._warn(connection, "login failed", reason)
        connection.stop_reading()

        def answer_and_close() -> None:
            self._timers.pop(connection.id, None)
            if parts:
                connection.answer(slot, parts)
            connection.close("")

        self._cancel_timer(connection)
        self._timers[connection.id] = self._loop.call_later(self._failure_delay_ms / 1000, answer_and_close)

    def _out_of_time(self, connection: Connection) -> None:
        self._timers.pop(connection.id, None)
        self.failed[connection.listener] += 1
        self._warn(connection, "connection closed", f"not authenticated within {self._timeout_ms} ms")
        connection.close("")

    def handshake_failed(self, listener: str, peer: tuple[str, int], reason: str) -> None:
        """Handle a failed TLS handshake."""
        self.failed[listener] += 1
        host = canonical_host(peer[0])
        self.audit.handshake_failed(listener, host, reason)
        if reason in WITHOUT_TLS and self._is_first_look(host):
            return
        self.limited_log.warn(
            "TLS handshake failed", peer=f"{peer[0]}:{peer[1]}", listener=listener, reason=reason
        )

    def _is_first_look(self, host: str) -> bool:
        """Count an attempt without TLS or login; return whether it is the only one from an address lately.

        That one has no line in the log: a tool may have looked what is spoken here. A client tries again.
        """
        return self._looks.due(host, self._clock.now_ms() * 1_000_000) == 1

    def _warn(self, connection: Connection, text: str, reason: str) -> None:
        peer = f"{connection.peer[0]}:{connection.peer[1]}"
        self.limited_log.warn(text, peer=peer, listener=connection.listener, reason=reason)

    def __repr__(self) -> str:
        return f"<Logins {sum(self.succeeded.values())} succeeded, {sum(self.failed.values())} failed>"
