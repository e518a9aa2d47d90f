"""The node's own tokens while the daemon runs: a thread for each source fetches them before they expire.

A token endpoint that does not answer delays neither the event loop nor other threads. While there is no
token, logins fail with the reason, and the attempts go on.
"""

from __future__ import annotations

import threading
import time
from typing import Any

from kraftd.net.token_source import TokenSource

FIRST_ATTEMPT_S = 5.0
LOG_PERIOD_S = 60.0
LONGEST_WAIT_S = 10.0  # then the wall clock, by which tokens expire, is read again


class TokenRefresh:
    """Keeps sources fresh from `start` to `stop`."""

    def __init__(self, sources: list[TokenSource], log: Any) -> None:
        self._sources = sources
        self._log = log
        self._stopping = threading.Event()

    def start(self) -> None:
        """Fetch the first token of each source; go on without those that take longer than FIRST_ATTEMPT_S."""
        attempted = []
        for source in self._sources:
            tried = threading.Event()
            attempted.append(tried)
            name, arguments = "kraftd-token", (source, tried)
            threading.Thread(target=self._keep, args=arguments, name=name, daemon=True).start()
        end_s = time.monotonic() + FIRST_ATTEMPT_S
        for tried in attempted:
            tried.wait(max(0.0, end_s - time.monotonic()))

    def stop(self) -> None:
        """Fetch no more, without waiting for an attempt under way."""
        self._stopping.set()

    def _keep(self, source: TokenSource, tried: threading.Event) -> None:
        logged, logged_s = "", 0.0
        while not self._stopping.is_set():
            try:
                granted = source.fetch()
            except Exception as error:  # a defect, which must not end the attempts
                self._log.error("a token could not be fetched", error=repr(error))
                granted, source.due_ms = False, source.now_ms() + int(1000 * LOG_PERIOD_S)
            tried.set()
            now_s = time.monotonic()
            if granted:
                if logged:
                    self._log.info("a token was fetched again", by=source.grant.url)
                logged = ""
            elif source.failure and (source.failure != logged or now_s - logged_s >= LOG_PERIOD_S):
                logged, logged_s = source.failure, now_s
                self._log.warning("this node has no new token for its logins", why=logged)
            while (wait_ms := source.wait_ms()) > 0 and not self._stopping.is_set():
                self._stopping.wait(min(LONGEST_WAIT_S, wait_ms / 1000))

    def __repr__(self) -> str:
        return f"<TokenRefresh of {self._sources!r}>"
