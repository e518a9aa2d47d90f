"""Accepts the connections of a listener: when the rates allow it, and with TLS after a handshake in the pool.

It accepts them itself, because an asyncio server knows no rates, keeps its first TLS context, and computes on
the event loop. Until a connection has its protocol, it counts against the limits like any other.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from kraftd.net.limits import IPV4_MAPPED
from kraftd.net.tls.source import TlsSource
from kraftd.runtime.connections.admission import Accepted, Admission
from kraftd.runtime.connections.handshake_pool import HandshakePool, Pending

MAX_ACCEPTS_PER_CALLBACK = 32
PAUSE_S = 1.0  # after a failed accept: the process may have too many open files


class Handshakes(Protocol):
    """Counts connections in their handshakes, by listener and address."""

    def begin_handshake(self, listener: str, host: str) -> bool:
        """Count one more; return whether the limits allow it."""

    def end_handshake(self, listener: str, host: str) -> None:
        """Count one less."""


class Acceptor:
    """Accepts on a bound socket until it is closed. `failed` gets the failed handshakes.

    Without `tls` there is no handshake. With `max_handshakes`, one more takes the place of the oldest.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        sock: socket.socket,
        make: Callable[[], object],
        connections: Handshakes,
        tls: TlsSource | None,
        timeout_ms: int,
        failed: Callable[[tuple[str, int], str], None],
        max_handshakes: int | None = None,
        pool: HandshakePool | None = None,
        listener: str = "",
        admission: Admission | None = None,
    ) -> None:
        self._loop = loop
        self._sock = sock
        self._make = make
        self._connections = connections
        self._tls = tls
        self._timeout_ms = timeout_ms
        self._failed = failed
        self._max_handshakes = max_handshakes
        self._pool = pool or HandshakePool(loop)
        self._open: dict[Pending, None] = {}  # the oldest first
        self._listener = listener
        self._admission = admission
        self._tasks: set[asyncio.Task[Any]] = set()
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
        """Accept nothing more, and abort the handshakes under way."""
        self.close()
        for pending in list(self._open):
            self._pool.drop(pending)

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
            peer = (address[0].removeprefix(IPV4_MAPPED), address[1])
            if not self._connections.begin_handshake(self._listener, peer[0]):
                sock.close()
                continue
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._admission is None:
                self._go_on(sock, peer)
            else:
                accepted = Accepted(
                    peer[0], partial(self._go_on, sock, peer), partial(self._refuse, sock, peer)
                )
                self._admission.accept(self._listener, accepted)

    def _refuse(self, sock: socket.socket, peer: tuple[str, int]) -> None:
        sock.close()
        self._connections.end_handshake(self._listener, peer[0])

    def _go_on(self, sock: socket.socket, peer: tuple[str, int]) -> None:
        if self._closed:
            self._refuse(sock, peer)
            return
        if self._tls is None:
            task = self._loop.create_task(self._connect(sock, peer))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            return
        if self._max_handshakes is not None and len(self._open) >= self._max_handshakes:
            self._pool.drop(next(iter(self._open)))
        timeout_s = self._timeout_ms / 1000
        pending = Pending(sock, peer, self._tls, self._make, timeout_s, self._failed, self._ended)
        self._open[pending] = None
        self._pool.add(pending)

    async def _connect(self, sock: socket.socket, peer: tuple[str, int]) -> None:
        """Connect a socket without TLS to its protocol."""
        try:
            await self._loop.connect_accepted_socket(self._make, sock)  # type: ignore[type-var]
        except OSError:
            sock.close()
        finally:
            self._connections.end_handshake(self._listener, peer[0])

    def _ended(self, pending: Pending) -> None:
        self._open.pop(pending, None)
        self._connections.end_handshake(self._listener, pending.host)

    def _resume(self) -> None:
        self._pause = None
        if not self._closed:
            self._loop.add_reader(self._sock.fileno(), self._accept)

    def __repr__(self) -> str:
        return f"<Acceptor {self._listener}, {len(self._open)} handshakes>"
