"""A TLS listener: each connection's handshake uses the current context, in limited time.

It accepts connections itself, because an asyncio server keeps its first context. During its handshake a
connection counts against the limits like any other, and needs little memory.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Protocol

from kraftd.net.tls.source import TlsSource

MAX_ACCEPTS_PER_CALLBACK = 32
PAUSE_S = 1.0  # after a failed accept: the process may have too many open files


class Handshakes(Protocol):
    """Counts connections in their handshakes, by address."""

    def begin_handshake(self, host: str) -> bool:
        """Count one more; return whether the limits allow it."""

    def end_handshake(self, host: str) -> None:
        """Count one less."""


class TlsListener:
    """Accepts on a bound socket until it is closed. `failed` gets the failed handshakes.

    With `max_handshakes`, one more takes the place of the oldest.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        sock: socket.socket,
        make: Callable[[], object],
        connections: Handshakes,
        tls: TlsSource,
        timeout_ms: int,
        failed: Callable[[tuple[str, int], str], None],
        max_handshakes: int | None = None,
    ) -> None:
        self._loop = loop
        self._sock = sock
        self._make = make
        self._connections = connections
        self._tls = tls
        self._timeout_ms = timeout_ms
        self._failed = failed
        self._max_handshakes = max_handshakes
        self._tasks: dict[asyncio.Task[None], None] = {}  # the oldest first
        self._pause: asyncio.TimerHandle | None = None
        self._closed = False
        sock.setblocking(False)
        loop.add_reader(sock.fileno(), self._accept)

    def close(self) -> None:
        """Accept nothing more; existing connections stay."""
        if not self._closed:
            self._closed = True
            self._loop.remove_reader(self._sock.fileno())
            if self._pause is not None:
                self._pause.cancel()

    def abort(self) -> None:
        """Close it, and abort the handshakes under way."""
        self.close()
        for task in list(self._tasks):
            task.cancel()

    def _accept(self) -> None:
        for _ in range(MAX_ACCEPTS_PER_CALLBACK):
            try:
                sock, address = self._sock.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError:
                self._loop.remove_reader(self._sock.fileno())
                self._pause = self._loop.call_later(PAUSE_S, self._resume)
                return
            if not self._connections.begin_handshake(address[0]):
                sock.close()
                continue
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._max_handshakes is not None and len(self._tasks) >= self._max_handshakes:
                oldest = next(iter(self._tasks))
                del self._tasks[oldest]
                oldest.cancel()
            task = self._loop.create_task(self._shake_hands(sock, (address[0], address[1])))
            self._tasks[task] = None
            task.add_done_callback(lambda done: self._tasks.pop(done, None))

    def _resume(self) -> None:
        self._pause = None
        if not self._closed:
            self._loop.add_reader(self._sock.fileno(), self._accept)

    async def _shake_hands(self, sock: socket.socket, peer: tuple[str, int]) -> None:
        try:
            # The connection gets its transport, and is admitted, after the handshake.
            await self._loop.connect_accepted_socket(
                self._make,  # type: ignore[type-var]
                sock,
                ssl=self._tls.server,
                ssl_handshake_timeout=self._timeout_ms / 1000,
            )
        except ConnectionResetError:
            pass  # the peer left, without a refusal: it may only have looked whether TLS is spoken here
        except (OSError, EOFError, ValueError) as error:
            self._failed(peer, _text(error))
        finally:
            self._connections.end_handshake(peer[0])

    def __repr__(self) -> str:
        return f"<TlsListener, {len(self._tasks)} handshakes>"


def _text(error: Exception) -> str:
    """The reason of a failed handshake, in OpenSSL's words if it has any."""
    reason = getattr(error, "verify_message", "") or getattr(error, "reason", "") or ""
    return str(reason) or str(error) or type(error).__name__
