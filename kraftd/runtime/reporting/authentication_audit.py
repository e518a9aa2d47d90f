"""The audit of authentications, good and failed: mechanism, principal and address, in limited numbers."""

from __future__ import annotations

from collections.abc import Callable

from kraftd.net.connection import Connection
from kraftd.requests.effects import AuditLine

MAX_LINES_PER_PERIOD = 200  # of each kind
TLS = "TLS"  # the mechanism of a peer that its certificate alone authenticates
SUCCEEDED, FAILED = "authentication succeeded", "authentication failed"


class AuthenticationAudit:
    """Passes events to `write`. A flood of failures does not hide what succeeded."""

    def __init__(self, write: Callable[[AuditLine], None]) -> None:
        self._write = write
        self._left = dict.fromkeys((SUCCEEDED, FAILED), MAX_LINES_PER_PERIOD)

    def succeeded(self, connection: Connection, mechanism: str, principal: str) -> None:
        """Note a peer that is authenticated now, or once more."""
        self._note(SUCCEEDED, connection.listener, connection.host, mechanism, principal)

    def failed(self, connection: Connection, mechanism: str, principal: str, reason: str) -> None:
        """Note a peer that failed; `principal` is what it claimed to be, empty if it did not."""
        self._note(FAILED, connection.listener, connection.host, mechanism, principal, reason)

    def handshake_failed(self, listener: str, host: str, reason: str) -> None:
        """Note a peer whose TLS handshake failed."""
        self._note(FAILED, listener, host, TLS, "", reason)

    def end_period(self) -> int:
        """Begin a new period; returns how many events the last one omitted."""
        omitted = sum(max(0, -left) for left in self._left.values())
        self._left = dict.fromkeys(self._left, MAX_LINES_PER_PERIOD)
        return omitted

    def _note(
        self, event: str, listener: str, host: str, mechanism: str, principal: str, reason: str = ""
    ) -> None:
        self._left[event] -= 1
        if self._left[event] < 0:
            return
        fields = {"principal": principal, "mechanism": mechanism, "host": host, "listener": listener}
        if reason:
            fields["reason"] = reason
        self._write(AuditLine(event, -1, fields))

    def __repr__(self) -> str:
        return f"<AuthenticationAudit {self._left[SUCCEEDED]} and {self._left[FAILED]} lines left>"
