"""The token by which this side logs in: fetched from the token endpoint, kept, and replaced in time.

`fetch` blocks, and only one thread may call it; `text` does not block, and any thread may.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from kraftd.net.tls.source import TlsSource
from kraftd.net.token_endpoint import post
from kraftd.security.client_credentials import (
    GrantRefused,
    Token,
    TokenGrant,
    read_answer,
    read_token,
    refresh_at_ms,
    retry_wait_ms,
)
from kraftd.security.sasl import SaslFailed


class TokenSource:
    """The token of one grant. Raises ValueError for TLS stores that cannot be used.

    `due_ms` is when to fetch next. `failure` is why the last attempt failed, empty if it succeeded.
    """

    def __init__(self, grant: TokenGrant, now_ms: Callable[[], int], share: Callable[[], float]) -> None:
        """`share` draws a number between 0 and 1, for the jitter."""
        self.grant = grant
        self.failure = ""
        self.due_ms = now_ms()
        self.expires_ms: int | None = None
        self.now_ms = now_ms
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
        now_ms = self.now_ms()
        self._token, self._failures, self.failure = token, 0, ""
        self.expires_ms = token.expires_ms
        self.due_ms = refresh_at_ms(token, now_ms, grant.refresh, self._share())
        return None

    def text(self) -> str:
        """The text of the current token. Raises SaslFailed if there is none.

        A token that has expired by this node's clock is returned nevertheless, unless fetching a new one has
        failed: the server's clock decides.
        """
        token = self._token
        if token is None or (self.failure and self.now_ms() >= token.expires_ms):
            raise SaslFailed(f"there is no token: {self.failure or 'none has been granted yet'}")
        return token.text

    def fetched_text(self) -> str:
        """The text of the current token, after fetching a new one if that is due, which blocks. Raises
        SaslFailed.
        """
        if self.now_ms() >= self.due_ms:
            self.fetch_with_retries()
        return self.text()

    def __repr__(self) -> str:
        return f"<TokenSource of {self.grant!r}, {self._token!r}>"
