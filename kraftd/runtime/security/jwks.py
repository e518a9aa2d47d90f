"""The public keys of OAUTHBEARER's tokens, read from a file or fetched, and refreshed in time.

A token with an unknown key triggers another reading, at most one in MIN_REFRESH_MS. Keys are fetched in a
thread of their own, so that a slow endpoint delays nothing but its own keys.
"""

from __future__ import annotations

import threading
import time

from kraftd.config.security import TokenSettings, file_of_url
from kraftd.input_file import read_input_file
from kraftd.net.key_endpoint import MAX_ANSWER_BYTES, get
from kraftd.net.tls.source import TlsSource
from kraftd.security.sasl.jwt_validation import InvalidToken, KeyMissing, KeySet, validate
from kraftd.security.sasl.mechanism import Login

TIMEOUT_S = 10
START_WAIT_S = 2.0  # for the first keys; then the node starts without them
MIN_REFRESH_MS = 10_000


class Jwks:
    """The key set of one listener; its logins call `validate`."""

    def __init__(self, settings: TokenSettings) -> None:
        """Raises ValueError for stores of TLS that cannot be used."""
        self.settings = settings
        try:
            self._tls = TlsSource(settings.tls) if settings.tls is not None else None
        except ValueError as error:
            raise ValueError(f"sasl.jaas.config, for {settings.jwks_url}: {error}") from None
        self.key_missing = False  # since the last reading
        self._keys: KeySet | None = None
        self._read_ms = 0
        self._reading: threading.Thread | None = None
        self._problem: str | None = None  # of the last reading in a thread, until `poll` returns it

    def read_first(self) -> str | None:
        """Read the keys at the start. Returns why there are none yet, if the endpoint is slow; another thread
        goes on reading. Raises ValueError.
        """
        if self.settings.jwks_url.startswith("file:"):
            self.read()
            return None
        self.begin_reading()
        assert self._reading is not None
        self._reading.join(START_WAIT_S)
        if self._reading.is_alive():
            key = f"sasl.oauthbearer.jwks.endpoint.url={self.settings.jwks_url}"
            return f"{key}: no answer yet: tokens are refused until it answers"
        problem = self.poll()
        if problem is not None:
            raise ValueError(problem)
        return None

    def begin_reading(self) -> None:
        """Read the keys in a thread, unless one reads them already."""
        if self._reading is None or not self._reading.is_alive():
            self._reading = threading.Thread(target=self._read_noted, name="kraftd-jwks", daemon=True)
            self._reading.start()

    def poll(self) -> str | None:
        """The failure of a reading in a thread, once."""
        problem, self._problem = self._problem, None
        return problem

    def _read_noted(self) -> None:
        try:
            self.read()
        except ValueError as error:
            self._problem = str(error)

    def read(self) -> None:
        """Read or fetch the keys; may block for seconds. Raises ValueError, and then keeps the old keys."""
        url = self.settings.jwks_url
        self._read_ms = _now_ms()
        self.key_missing = False
        try:
            if url.startswith("file:"):
                data = read_input_file(file_of_url(url), MAX_ANSWER_BYTES)
            else:
                if self._tls is not None:
                    self._tls.poll()
                data = get(url, self._tls, TIMEOUT_S)
            self._keys = KeySet(data)
        except OSError as error:  # urllib's errors are of this class
            why = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
            raise ValueError(f"sasl.oauthbearer.jwks.endpoint.url={url}: cannot be read: {why}") from None
        except ValueError as error:
            raise ValueError(f"sasl.oauthbearer.jwks.endpoint.url={url}: {error}") from None

    @property
    def is_due(self) -> bool:
        """Return whether the keys should be read again."""
        age_ms = _now_ms() - self._read_ms
        return age_ms >= self.settings.refresh_ms or (
            (self.key_missing or self._keys is None) and age_ms >= MIN_REFRESH_MS
        )

    def validate(self, token: str, now_ms: int) -> Login:
        """The login that a token proves. Raises InvalidToken."""
        if self._keys is None:
            raise InvalidToken("no keys are known")
        try:
            return validate(token, self._keys, self.settings.rules, now_ms)
        except KeyMissing:
            self.key_missing = True
            raise

    def __repr__(self) -> str:
        return f"<Jwks of {self.settings.jwks_url}, {self._keys!r}>"


def _now_ms() -> int:
    return time.monotonic_ns() // 1_000_000
