"""The subset of HTTP/1.1 for a scrape and a page: GET and HEAD, with limits on everything, on the daemon's
loop.

A head has at most HEAD_BYTES and arrives within HEAD_S. Requests have no bodies. A peer must read its answer
within SEND_S. At most MAX_CONNECTIONS are open: one more takes the place of the one that was idle longest, so
that a probe is always answered. A bad request is answered and its connection closed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from http import HTTPStatus
from typing import cast

from kraftd.named_tuple import NamedTuple

HEAD_BYTES = 8 << 10
HEAD_S = 10.0
SEND_S = 30.0
IDLE_S = 120.0  # between two requests of a connection
MAX_CONNECTIONS = 64

TEXT = "text/plain; charset=utf-8"
_METHODS = ("GET", "HEAD")


class Request(NamedTuple):
    """The path without its query; names of headers in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    keep_alive: bool


class Response(NamedTuple):
    status: HTTPStatus
    content_type: str
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()


class Stream(NamedTuple):
    """An endless answer: each piece is sent when `pieces` yields it, until the peer disconnects."""

    content_type: str
    pieces: AsyncIterator[bytes]


class BadRequest(Exception):
    """The input is not a request that is served here; the status says why."""

    def __init__(self, status: HTTPStatus, text: str) -> None:
        super().__init__(text)
        self.status = status


Handler = Callable[[Request], Awaitable[Response | Stream]]


def parse_head(head: bytes) -> Request:
    """The head of a request, without the empty line that ends it. Raises BadRequest."""
    try:
        first, *lines = head.decode("ascii").split("\r\n")
        method, target, version = first.split(" ")
    except ValueError:
        raise BadRequest(HTTPStatus.BAD_REQUEST, "this is no HTTP request") from None
    if version not in ("HTTP/1.1", "HTTP/1.0"):
        raise BadRequest(HTTPStatus.HTTP_VERSION_NOT_SUPPORTED, "HTTP/1.1 and HTTP/1.0 are served")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name or name != name.strip():
            raise BadRequest(HTTPStatus.BAD_REQUEST, "a header has no name")
        headers[name.lower()] = value.strip()
    if headers.get("content-length", "0") != "0" or "transfer-encoding" in headers:
        raise BadRequest(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "no request has a body here")
    if method not in _METHODS:
        raise BadRequest(HTTPStatus.METHOD_NOT_ALLOWED, "only GET and HEAD are served")
    connection = headers.get("connection", "").lower()
    keep_alive = connection != "close" if version == "HTTP/1.1" else connection == "keep-alive"
    return Request(method, target.partition("?")[0], headers, keep_alive)


def encode(response: Response, *, body: bool, keep_alive: bool) -> bytes:
    """The whole answer; without its body for a HEAD."""
    status = response.status
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\n"
        f"Content-Type: {response.content_type}\r\n"
        f"Content-Length: {len(response.body)}\r\n"
        "Cache-Control: no-store\r\n"
        + "".join(f"{name}: {value}\r\n" for name, value in response.headers)
        + ("Allow: GET, HEAD\r\n" if status is HTTPStatus.METHOD_NOT_ALLOWED else "")
        + f"Connection: {'keep-alive' if keep_alive else 'close'}\r\n\r\n"
    )
    return head.encode("ascii") + (response.body if body else b"")


class HttpConnections:
    """All connections of one HTTP listener; `factory` is for the loop's `create_server`. `failed` gets the
    errors of handlers, whose requests are answered with status 500.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, handle: Handler, failed: Callable[[Exception], None]
    ) -> None:
        self.loop = loop
        self.handle = handle
        self.failed = failed
        self.open: dict[HttpConnection, None] = {}  # the one whose last request is oldest first
        self.displaced = 0

    def factory(self) -> HttpConnection:
        return HttpConnection(self)

    def begin_handshake(self, _listener: str, _host: str) -> bool:
        """Allow each TLS handshake: its listener limits them."""
        return True

    def end_handshake(self, _listener: str, _host: str) -> None:
        """Note the end of a handshake."""

    def admit(self, connection: HttpConnection) -> None:
        """Add a connection. At the limit, abort the one that was idle longest; the oldest if none is."""
        if len(self.open) >= MAX_CONNECTIONS:
            displaced = next((one for one in self.open if one.is_idle), next(iter(self.open)))
            self.displaced += 1
            del self.open[displaced]
            displaced.abort()
        self.open[connection] = None

    def used(self, connection: HttpConnection) -> None:
        """Note that a connection has answered a request."""
        if connection in self.open:
            del self.open[connection]
            self.open[connection] = None

    def close(self) -> None:
        for connection in list(self.open):
            connection.close()

    def __repr__(self) -> str:
        return f"<HttpConnections {len(self.open)} of {MAX_CONNECTIONS}>"


class HttpConnection(asyncio.Protocol):
    """One peer: a request, its answer, then the next."""

    def __init__(self, owner: HttpConnections) -> None:
        self._owner = owner
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._answering: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._writable = True

    # -- called by the loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._owner.admit(self)
        self._wait(HEAD_S)

    def data_received(self, data: bytes) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        may_go_on = self._answering is None and self._writable
        if not self._received and may_go_on:
            self._wait(HEAD_S)
        self._received += data
        if may_go_on:
            self._next()
        elif len(self._received) > HEAD_BYTES:
            self._transport.pause_reading()  # its requests outrun their answers

    def pause_writing(self) -> None:
        self._writable = False
        self._wait(SEND_S)

    def resume_writing(self) -> None:
        self._writable = True
        if self._answering is None and self._transport is not None and not self._transport.is_closing():
            self._go_on(self._transport)
        else:
            self._wait(IDLE_S)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._owner.open.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()
        if self._answering is not None:
            self._answering.cancel()

    # -- requests

    @property
    def is_idle(self) -> bool:
        """Return whether no request of the connection is being answered."""
        return self._answering is None

    def abort(self) -> None:
        """Close without sending what is left."""
        if self._transport is not None:
            self._transport.abort()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def _next(self) -> None:
        """Answer the next request, if all of its head is there."""
        end = self._received.find(b"\r\n\r\n", 0, HEAD_BYTES)
        if self._received and self._received[0] < ord("\n"):  # as frames of Kafka's protocol begin
            self._refuse(BadRequest(HTTPStatus.BAD_REQUEST, "this is an HTTP listener"))
            return
        if end < 0:
            if len(self._received) >= HEAD_BYTES:
                status = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
                self._refuse(BadRequest(status, f"a head has at most {HEAD_BYTES} bytes"))
            return
        head = bytes(self._received[:end])
        del self._received[: end + 4]
        try:
            request = parse_head(head)
        except BadRequest as error:
            self._refuse(error)
            return
        self._wait(SEND_S)
        self._answering = self._owner.loop.create_task(self._answer(request))

    async def _answer(self, request: Request) -> None:
        try:
            response = await self._owner.handle(request)
        except Exception as error:
            self._owner.failed(error)
            response = Response(HTTPStatus.INTERNAL_SERVER_ERROR, TEXT, b"this failed; the log says why\n")
        if isinstance(response, Stream):
            await self._stream(response, body=request.method == "GET")
            return
        self._answering = None
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        transport.write(encode(response, body=request.method == "GET", keep_alive=request.keep_alive))
        self._owner.used(self)
        if not request.keep_alive:
            transport.close()
            return
        if self._writable:
            self._go_on(transport)

    def _go_on(self, transport: asyncio.Transport) -> None:
        """Take the next request; not before the peer has read the answers to earlier ones."""
        self._wait(HEAD_S if self._received else IDLE_S)
        transport.resume_reading()
        if self._received:
            self._next()

    async def _stream(self, stream: Stream, *, body: bool) -> None:
        """Send pieces until the peer disconnects; a piece that a slow peer cannot take yet is skipped."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        head = (
            f"HTTP/1.1 200 OK\r\nContent-Type: {stream.content_type}\r\n"
            "Cache-Control: no-store\r\nConnection: close\r\n\r\n"
        )
        transport.write(head.encode("ascii"))
        if body:
            async for piece in stream.pieces:
                if self._transport is None or transport.is_closing():
                    return
                if self._writable:
                    transport.write(piece)
                    self._wait(IDLE_S)
        transport.close()

    def _refuse(self, error: BadRequest) -> None:
        assert self._transport is not None
        response = Response(error.status, TEXT, f"{error}\n".encode())
        self._transport.write(encode(response, body=True, keep_alive=False))
        self._transport.close()
        self._wait(SEND_S)

    def _wait(self, seconds: float) -> None:
        """Wait for the next event of the connection, at most that long."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._owner.loop.call_later(seconds, self._out_of_time)

    def _out_of_time(self) -> None:
        self.abort()

    def __repr__(self) -> str:
        state = "answering" if self._answering is not None else "waiting"
        return f"<HttpConnection {state}, {len(self._received)} bytes received>"
