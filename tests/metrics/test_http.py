"""The part of HTTP that a scrape needs: answers, refusals and timeouts."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from http import HTTPStatus

import pytest

from kraftd.metrics.serving import http
from kraftd.metrics.serving.http import TEXT, BadRequest, HttpConnections, Request, Response, parse_head
from kraftd.metrics.serving.known_hosts import with_known_hosts


async def echo(request: Request) -> Response:
    if request.path == "/fails":
        raise RuntimeError("as it should")
    await asyncio.sleep(0)
    return Response(HTTPStatus.OK, TEXT, f"{request.method} {request.path}\n".encode())


class Served:
    def __init__(self, port: int, connections: HttpConnections, failures: list[Exception]) -> None:
        self.port, self.connections, self.failures = port, connections, failures

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def ask(self, data: bytes) -> bytes:
        """Everything received until the other side closes."""
        reader, writer = await self.open()
        writer.write(data)
        answer = await reader.read()
        writer.close()
        return answer


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    loop = asyncio.get_running_loop()
    failures: list[Exception] = []
    connections = HttpConnections(loop, echo, failures.append)
    server = await loop.create_server(connections.factory, "127.0.0.1", 0)
    yield Served(server.sockets[0].getsockname()[1], connections, failures)
    server.close()
    connections.close()


def head(path: str = "/x", method: str = "GET", *headers: str) -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: h", *headers, "", ""]).encode()


async def test_a_get_is_answered_and_a_head_without_the_body(served: Served) -> None:
    answer = await served.ask(head("/x?name=1", "GET", "Connection: close"))
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert answer.endswith(b"\r\n\r\nGET /x\n")
    answer = await served.ask(head("/x", "HEAD", "Connection: close"))
    assert b"Content-Length: 8\r\n" in answer
    assert answer.endswith(b"\r\n\r\n")


async def test_requests_of_one_connection_are_answered_in_order_however_they_are_cut(served: Served) -> None:
    reader, writer = await served.open()
    data = head("/1") + head("/2") + head("/3", "GET", "Connection: close")
    for at in range(0, len(data), 7):
        writer.write(data[at : at + 7])
        await writer.drain()
    answers = await reader.read()
    assert [line for line in answers.split(b"\n") if line.startswith(b"GET")] == [
        b"GET /1",
        b"GET /2",
        b"GET /3",
    ]
    writer.close()


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"\xff\xfe\r\n\r\n", 400),
        (b"GET / HTTP/2.0\r\n\r\n", 505),
        (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\n\r\n", 405),
        (b"DELETE / HTTP/1.1\r\n\r\n", 405),
        (b"GET / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello", 413),
        (b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 413),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * http.HEAD_BYTES, 431),
    ],
)
async def test_an_invalid_request_is_refused_and_its_connection_closed(
    served: Served, data: bytes, status: int
) -> None:
    answer = await served.ask(data)
    assert answer.startswith(b"HTTP/1.1 %d " % status)
    assert b"Connection: close" in answer
    assert (b"Allow: GET, HEAD" in answer) == (status == 405)


async def test_an_unfinished_head_times_out(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "HEAD_S", 0.05)
    reader, writer = await served.open()
    writer.write(b"GET / HTTP/1.1\r\nHost: ")
    await ends(reader)
    writer.close()
    reader, writer = await served.open()
    await ends(reader)
    writer.close()


async def test_a_connection_without_a_further_request_ends(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "IDLE_S", 0.05)
    reader, writer = await served.open()
    writer.write(head())
    await reader.readuntil(b"GET /x\n")
    await ends(reader)
    writer.close()


async def ends(reader: asyncio.StreamReader) -> None:
    """Check that the other side closes without an answer."""
    try:
        assert await reader.read() == b""
    except ConnectionError:
        pass


async def test_a_connection_beyond_the_limit_displaces_the_one_idle_longest(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "MAX_CONNECTIONS", 3)
    silent, *kept = await served.open()
    readers = []
    for _ in range(2):
        reader, writer = await served.open()
        writer.write(head())
        assert (await reader.readuntil(b"GET /x\n")).startswith(b"HTTP/1.1 200")
        readers.append((reader, writer))
    assert (await served.ask(head("/y", "GET", "Connection: close"))).startswith(b"HTTP/1.1 200")
    await ends(silent)
    kept += await served.open()
    (used, writer), (unused, _) = readers
    writer.write(head())
    await used.readuntil(b"GET /x\n")
    kept += await served.open()
    await ends(unused)
    assert served.connections.displaced == 2
    writer.write(head("/x", "GET", "Connection: close"))
    assert (await used.read()).endswith(b"GET /x\n")


async def test_a_connection_whose_request_is_answered_is_displaced_last(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "MAX_CONNECTIONS", 2)
    answered = asyncio.Event()

    async def slow(request: Request) -> Response:
        await answered.wait()
        return await echo(request)

    served.connections.handle = slow
    reader, writer = await served.open()
    writer.write(head("/slow", "GET", "Connection: close"))
    while not served.connections.open or next(iter(served.connections.open)).is_idle:
        await asyncio.sleep(0)
    kept = [await served.open() for _ in range(5)]
    while served.connections.displaced < 4:
        await asyncio.sleep(0)
    answered.set()
    assert (await reader.read()).endswith(b"GET /slow\n")
    assert len(kept) == 5


async def test_a_peer_that_reads_no_answers_is_given_few_and_ends(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "SEND_S", 0.2)
    asked, ended = 0, asyncio.Event()

    async def large(request: Request) -> Response:
        nonlocal asked
        asked += 1
        return Response(HTTPStatus.OK, TEXT, b"x" * (1 << 20))

    class Noted(http.HttpConnection):
        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            ended.set()

    monkeypatch.setattr(http, "HttpConnection", Noted)
    served.connections.handle = large
    sock = socket.create_connection(("127.0.0.1", served.port))
    sock.sendall(head() * 400)
    await asyncio.wait_for(ended.wait(), 30)
    assert 0 < asked < 40  # what the system's buffers hold, and one answer
    sock.close()


async def test_requests_behind_an_answer_that_is_read_late_are_answered(served: Served) -> None:
    async def large(request: Request) -> Response:
        return Response(HTTPStatus.OK, TEXT, b"x" * (1 << 22) + request.path.encode())

    served.connections.handle = large
    reader, writer = await served.open()
    writer.write(head("/1") + head("/2") + head("/3", "GET", "Connection: close"))
    await asyncio.sleep(0.1)
    answers = await reader.read()
    assert [answers.count(path) for path in (b"x/1", b"x/2", b"x/3")] == [1, 1, 1]
    writer.close()


async def test_a_page_that_fails_is_reported_and_answered_with_500(served: Served) -> None:
    answer = await served.ask(head("/fails", "GET", "Connection: close"))
    assert answer.startswith(b"HTTP/1.1 500")
    assert [str(error) for error in served.failures] == ["as it should"]


async def test_a_client_of_kafkas_protocol_gets_an_http_answer_at_once(served: Served) -> None:
    async with asyncio.timeout(http.HEAD_S / 2):
        answer = await served.ask(b"\0\0\0\x0a\0\x12\0\0\0\0\0\1\xff\xff")
    assert answer.startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize(
    ("host", "path", "served"),
    [
        ("127.0.0.1:9100", "/", True),
        ("[::1]:9100", "/metrics", True),
        ("localhost:9100", "/", True),
        ("Kraftd-1.example.:9100", "/status.json", True),
        ("evil.example", "/status.json", False),
        ("127.0.0.1.evil.example:9100", "/", False),
        ("evil.example", "/healthz", True),
        ("evil.example", "/readyz", True),
        ("", "/metrics", True),
    ],
)
async def test_pages_are_served_by_known_names_only(host: str, path: str, served: bool) -> None:
    handle = with_known_hosts(echo, ["kraftd-1.example"])  # type: ignore[arg-type]
    answer = await handle(Request("GET", path, {"host": host} if host else {}, True))
    assert isinstance(answer, Response)
    assert answer.status == (HTTPStatus.OK if served else HTTPStatus.MISDIRECTED_REQUEST)
    assert served or b"kraftd.metrics.hosts" in answer.body


def test_keep_alive_follows_the_version_and_the_header() -> None:
    assert parse_head(b"GET / HTTP/1.1\r\nHost: h").keep_alive
    assert not parse_head(b"GET / HTTP/1.0").keep_alive
    assert parse_head(b"GET / HTTP/1.0\r\nConnection: keep-alive").keep_alive
    with pytest.raises(BadRequest):
        parse_head(b"GET  / HTTP/1.1")
