"""The token by which this side logs in: fetched from the token endpoint, kept, and replaced in time.

`fetch` blocks, and only one thread may call it; `text` does not block, and any thread may.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from kraftd.net.tls.source import TlsSource
from kraftd.net.token_endpoint import post
from kraftd.security.sasl.client_credentials import (
    GrantRefused,
    Token,
    TokenGrant,
    read_answer,
    read_token,
    refresh_at_ms,
    retry_wait_ms,
)
from kraftd.security.sasl.mechanism import SaslFailed

STEP_MS = 1_000  # of the wall clock


class TokenSource:
    """The token of one grant. Raises ValueError for TLS stores that cannot be used.

    `due_ms` is when to fetch next, by the monotonic clock `now_ms`. A token's own times are of the wall
    clock, `wall_ms`; if that is set, the next fetch is planned anew. `failure` is why the last attempt
    failed, empty if it succeeded.
    """

    def __init__(
        self,
        grant: TokenGrant,
        now_ms: Callable[[], int],
        wall_ms: Callable[[], int],
        share: Callable[[], float],
    ) -> None:
        """`share` draws a number between 0 and 1, for the jitter."""
        self.grant = grant
        self.failure = ""
        self.due_ms = now_ms()
        self.expires_ms: int | None = None
        self.now_ms = now_ms
        self._wall_ms = wall_ms
        self._ahead_ms = 0  # the wall clock of now_ms, when the next fetch was planned
        self._share = share
        self._tls = TlsSource(grant.tls) if grant.tls is not None else None
        self._token: Token | None = None
        self._failures = 0  # in a row

    def fetch(self) -> bool:
        """Request a token once, within the timeouts; return whether there is a new one."""
        return self._attempt() is None

    def fetch_with_retries(self) -> None:
        """Request a token until it is granted, refused for good, or `sasl.login.retry.backoff.max.ms` are
        over.
        """
        end_s = time.monotonic() + self.grant.retry_backoff_max_ms / 1000
        while (refused := self._attempt()) is not None:
            wait_s = retry_wait_ms(self.grant, self._failures, permanent=refused.permanent) / 1000
            if refused.permanent or time.monotonic() + wait_s >= end_s:
                return
            time.sleep(wait_s)

    def _attempt(self) -> GrantRefused | None:
        grant = self.grant
        try:
            if self._tls is not None:
                self._tls.poll()
            token = read_token(read_answer(*post(grant, self._tls), grant), grant.subject_claim)
        except GrantRefused as refused:
            self._failures += 1
            self.failure = f"the token endpoint {grant.url}: {refused}"
            wait_ms = retry_wait_ms(grant, self._failures, permanent=refused.permanent)
            self.due_ms = self.now_ms() + wait_ms
            return refused
        self._token, self._failures, self.failure = token, 0, ""
        self.expires_ms = token.expires_ms
        self._plan(token)
        return None

    def _plan(self, token: Token) -> None:
        now_ms, wall_ms = self.now_ms(), self._wall_ms()
        self._ahead_ms = wall_ms - now_ms
        self.due_ms = refresh_at_ms(token, wall_ms, self.grant.refresh, self._share()) - self._ahead_ms

    def wait_ms(self) -> int:
        """How long until the next fetch is due, 0 if it is."""
        token, ahead_ms = self._token, self._wall_ms() - self.now_ms()
        if token is not None and not self.failure and abs(ahead_ms - self._ahead_ms) >= STEP_MS:
            self._plan(token)
        return max(0, self.due_ms - self.now_ms())

    def text(self) -> str:
        """The text of the current token. Raises SaslFailed if there is none.

        A token that has expired by this node's clock is returned nevertheless, unless fetching a new one has
        failed: the server's clock decides.
        """
        token = self._token
        if token is None or (self.failure and self._wall_ms() >= token.expires_ms):
            raise SaslFailed(f"there is no token: {self.failure or 'none has been granted yet'}")
        return token.text

    def fetched_text(self) -> str:
        """The text of the current token, after fetching a new one if that is due, which blocks. Raises
        SaslFailed.
        """
        if self.wait_ms() == 0:
            self.fetch_with_retries()
        return self.text()

    def __repr__(self) -> str:
        return f"<TokenSource of {self.grant!r}, {self._token!r}>"
