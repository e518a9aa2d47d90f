"""A server's TLS handshake in memory: bytes in, bytes out, so that a thread can do its cryptography.

OpenSSL releases Python's global lock while it computes. One thread at a time may use a handshake.
"""

from __future__ import annotations

import ssl

from kraftd.named_tuple import NamedTuple
from kraftd.net.tls.source import TlsSource

MAX_BYTES = 262_144  # that a peer may send before it has finished


class Advance(NamedTuple):
    """The result of a step: bytes for the peer, and whether the handshake is over. `failure` says why it
    failed.
    """

    to_peer: bytes
    finished: bool
    failure: str = ""


class ServerHandshake:
    """One peer's handshake with the context that is current at its first step."""

    def __init__(self, tls: TlsSource) -> None:
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.connection: ssl.SSLObject | None = None
        self._tls = tls
        self._received_bytes = 0

    def advance(self, data: bytes) -> Advance:
        """Continue with bytes of the peer: milliseconds of cryptography, for a thread."""
        self._received_bytes += len(data)
        if self._received_bytes > MAX_BYTES:
            return Advance(b"", finished=True, failure=f"more than {MAX_BYTES} bytes of handshake")
        self.incoming.write(data)
        try:
            if self.connection is None:
                self.connection = self._tls.server.wrap_bio(self.incoming, self.outgoing, server_side=True)
            self.connection.do_handshake()
        except ssl.SSLWantReadError:
            return Advance(self.outgoing.read(), finished=False)
        except (OSError, ValueError) as error:  # with the alert that tells the peer
            return Advance(self.outgoing.read(), finished=True, failure=_text(error))
        return Advance(self.outgoing.read(), finished=True)

    def __repr__(self) -> str:
        return f"<ServerHandshake, {self._received_bytes} bytes received>"


def _text(error: Exception) -> str:
    """The reason of a failed handshake, in OpenSSL's words if it has any."""
    reason = getattr(error, "verify_message", "") or getattr(error, "reason", "") or ""
    return str(reason) or str(error) or type(error).__name__
