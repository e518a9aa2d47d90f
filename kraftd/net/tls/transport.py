"""The transport of a connection whose TLS handshake is done: encrypts and decrypts over a plain transport.

To the loop it is a protocol of that plain transport; to a connection it is a transport. It holds no buffer
between two calls but OpenSSL's own.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from typing import Any

from kraftd.net.tls.handshake import ServerHandshake

RECORD_BYTES = 16_384  # the most that one TLS record holds
PIECE_BYTES = 262_144  # encrypted at once: OpenSSL's buffer keeps the largest size that it ever had


class TlsTransport:
    """Serves `protocol`, which gets this transport once the plain one is connected."""

    def __init__(self, handshake: ServerHandshake, protocol: Any) -> None:
        assert handshake.connection is not None
        self._tls = handshake.connection
        self._incoming, self._outgoing = handshake.incoming, handshake.outgoing
        self._protocol = protocol
        self._raw: Any = None
        self._closing = False
        self._error: Exception | None = None

    # -- called by the loop

    def connection_made(self, raw: Any) -> None:
        self._raw = raw
        self._protocol.connection_made(self)
        self._read()  # what came with the last bytes of the handshake

    def data_received(self, data: bytes) -> None:
        self._incoming.write(data)
        self._read()

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        self._protocol.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._closing = True
        self._protocol.connection_lost(exc or self._error)

    # -- called by the protocol

    def write(self, data: Any) -> None:
        self.writelines((data,))

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        if self._closing:
            return
        tls, outgoing, raw = self._tls, self._outgoing, self._raw
        try:
            for data in list_of_data:
                if len(data) <= PIECE_BYTES:
                    if data:
                        tls.write(data)
                    continue
                view = memoryview(data)
                for start in range(0, len(view), PIECE_BYTES):
                    tls.write(view[start : start + PIECE_BYTES])
                    raw.write(outgoing.read())
        except (ssl.SSLError, OSError) as error:
            self._fail(error)
            return
        if outgoing.pending:
            raw.write(outgoing.read())

    def pause_reading(self) -> None:
        self._raw.pause_reading()

    def resume_reading(self) -> None:
        self._raw.resume_reading()

    def is_closing(self) -> bool:
        return self._closing or self._raw is None or bool(self._raw.is_closing())

    def close(self) -> None:
        """Close after sending what was written, and the word that nothing follows."""
        if self._closing:
            return
        self._closing = True
        try:
            self._tls.unwrap()
        except (ssl.SSLError, OSError):
            pass  # the peer's own word is not waited for
        if self._outgoing.pending:
            self._raw.write(self._outgoing.read())
        self._raw.close()

    def abort(self) -> None:
        self._closing = True
        self._raw.abort()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._tls if name == "ssl_object" else self._raw.get_extra_info(name, default)

    # -- reading

    def _read(self) -> None:
        """Pass on what has arrived, in one piece."""
        tls, incoming = self._tls, self._incoming
        pieces: list[bytes] = []
        ended = False
        try:
            while incoming.pending or tls.pending():
                piece = tls.read(RECORD_BYTES)
                if not piece:
                    ended = True
                    break
                pieces.append(piece)
        except ssl.SSLWantReadError:
            if self._outgoing.pending:  # an answer of TLS itself, to a new key of the peer
                self._raw.write(self._outgoing.read())
        except ssl.SSLZeroReturnError:
            ended = True
        except (ssl.SSLError, OSError) as error:
            self._pass_on(pieces)
            self._fail(error)
            return
        self._pass_on(pieces)
        if ended and not self._closing:
            self._protocol.eof_received()
            self.close()

    def _pass_on(self, pieces: list[bytes]) -> None:
        if pieces and not self._closing:
            self._protocol.data_received(pieces[0] if len(pieces) == 1 else b"".join(pieces))

    def _fail(self, error: Exception) -> None:
        """End a connection that has broken TLS, after the alert."""
        if self._closing:
            return
        self._closing = True
        self._error = error
        if self._outgoing.pending:
            self._raw.write(self._outgoing.read())
        self._raw.close()

    def __repr__(self) -> str:
        return f"<TlsTransport {self._tls.version()} over {self._raw!r}>"
