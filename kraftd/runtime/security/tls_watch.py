"""Watches certificates and token keys for changes, every few seconds, in threads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from kraftd.config.security import tls_with_changes
from kraftd.net.tls.source import Renewal, TlsSource
from kraftd.runtime.security.assembly import Security

PERIOD_S = 2.0


class TlsWatch:
    """Reloads every store when its file changes, and every key set when it is due."""

    def __init__(
        self,
        security: Security,
        loop: asyncio.AbstractEventLoop,
        log: Any,
        settings: Mapping[str, str],
        dynamic: Callable[[], Mapping[str, str]],
    ) -> None:
        """`settings` are the file's texts; `dynamic` returns the node's current dynamic configs."""
        self.refused = 0  # renewals that were unusable
        self.renewed = 0
        self._loop = loop
        self._log = log
        self._sources = security.tls_sources
        self._settings = settings
        self._dynamic = dynamic
        self._changes: dict[str, str] = {}  # the dynamic configs at the last check
        self._jwks = [guard.jwks for guard in security.listeners.values() if guard.jwks is not None]
        self._timer: asyncio.TimerHandle | None = None
        if self._sources or self._jwks:
            self._arm()

    def stop(self) -> None:
        """Stop watching."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self) -> None:
        self._timer = self._loop.call_later(PERIOD_S, self._begin)

    def _begin(self) -> None:
        changes = dict(self._dynamic())
        done = self._loop.run_in_executor(None, self._find_changes, changes)
        done.add_done_callback(self._end)

    def _find_changes(self, changes: dict[str, str]) -> list[tuple[str, Renewal | str]]:
        """Find the changes; in a thread, because reading files may take long."""
        found: list[tuple[str, Renewal | str]] = []
        changed, self._changes = changes != self._changes, changes
        for name, listener, source in self._sources:
            renewal = self._configured(listener, source, changes) if changed else None
            if renewal is None:
                renewal = source.poll()
            if renewal is not None:
                found.append((name, renewal))
        for jwks in self._jwks:
            problem = jwks.poll()
            if problem is not None:
                found.append(("OAUTHBEARER", problem))
            if jwks.is_due:
                jwks.begin_reading()
        return found

    def _configured(self, listener: str, source: TlsSource, changes: dict[str, str]) -> Renewal | None:
        """One listener's source under the dynamic configs; None if they do not change it."""
        settings, problems = tls_with_changes(listener, self._settings, changes)
        if problems:
            return Renewal(source.contexts, "; ".join(problems))
        return None if settings == source.contexts.settings else source.change(settings)

    def _end(self, done: asyncio.Future[list[tuple[str, Renewal | str]]]) -> None:
        if done.cancelled() or self._timer is None:
            return
        self._arm()
        error = done.exception()
        if error is not None:
            self._log.error("certificates could not be checked", error=repr(error))
            return
        for name, what in done.result():
            if isinstance(what, str):
                self._log.warning("the keys of tokens were not renewed", error=what)
            elif what.problem is not None:
                self.refused += 1
                self._log.error("new certificates are not used", of=name, error=what.problem)
            else:
                self.renewed += 1
                expires_at = what.contexts.expires_at
                self._log.info("new certificates are used", of=name, expires_at=str(expires_at))

    def __repr__(self) -> str:
        return f"<TlsWatch {self.renewed} renewed, {self.refused} refused>"
