"""Probes addresses for their protocol: Kafka's first, then TLS, HTTP, or PLAINTEXT after TLS.

A kraftd node logs no line for one such probe.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import ssl
import time
from collections.abc import Iterable

from kraftd.cli.doctor.judge_peers import Answer
from kraftd.cli.quorum.leader import CONTROLLERS
from kraftd.client.connection import CLOSED, Connection, Plaintext, default_setup
from kraftd.client.failures import NO_CONNECTION, ClientFailure
from kraftd.messages.api_versions_request import ApiVersionsRequest
from kraftd.messages.api_versions_response import ApiVersionsResponse
from kraftd.messages.describe_cluster_request import DescribeClusterRequest
from kraftd.messages.describe_cluster_response import DescribeClusterResponse
from kraftd.types import address_text

Address = tuple[str, int]
WANTS_LOGIN = "it wants a login by SASL, and was asked without one"
HTTP_PROBE = b"GET / HTTP/1.0\r\n\r\n"
TLS_ALERT, TLS_HANDSHAKE = b"\x15", b"\x16"  # types of a TLS record


async def probe_all(addresses: Iterable[Address], timeout_s: float) -> list[Answer]:
    """Probe all addresses at once."""
    return list(await asyncio.gather(*(probe(address, timeout_s) for address in addresses)))


async def probe(address: Address, timeout_s: float, *, is_own: bool = False) -> Answer:
    """What an address answers; a failure is an answer too. With `is_own`, a node that closes the connection
    is not asked for its protocol: that is known.
    """
    at = address_text(address)
    began_s = time.perf_counter()
    try:
        async with await Connection.open(*address, timeout_s, client_id="kraftd-cli") as connection:
            elapsed_ms = (time.perf_counter() - began_s) * 1000
            try:
                versions = await connection.ask(ApiVersionsRequest("kraftd", "1"), ApiVersionsResponse)
            except ClientFailure as failure:
                if CLOSED not in str(failure):
                    raise
                return Answer(at, WANTS_LOGIN, "SASL")  # before a login, versions are answered once
            cluster_id = await _cluster_id(connection)
            return Answer(at, "", "", frozenset(connection.versions), versions, cluster_id, elapsed_ms)
    except ClientFailure as failure:
        text = str(failure).removeprefix(f"{at}: ")
        closed = text.startswith(CLOSED)
        if closed and is_own:
            return Answer(at, text, "")
        listens = text != NO_CONNECTION and await _listens(address, timeout_s)
        return Answer(at, text, await _speaks(address, timeout_s, closed) if listens else "", listens=listens)


async def _cluster_id(connection: Connection) -> str | None:
    """The cluster's id in a controller's answer; None without one."""
    request = DescribeClusterRequest(endpoint_type=CONTROLLERS)
    try:
        answer = await connection.ask(request, DescribeClusterResponse)
    except ClientFailure:
        return None
    return answer.cluster_id if answer.error_code == 0 else None


async def _listens(address: Address, timeout_s: float) -> bool:
    try:
        async with asyncio.timeout(timeout_s):
            _, writer = await asyncio.open_connection(*address)
    except (OSError, TimeoutError, ValueError):
        return False
    writer.close()
    return True


async def _speaks(address: Address, timeout_s: float, closed: bool) -> str:
    """The protocol of a listener that did not answer as expected; "" where none is recognized.

    An HTTP server would have answered the first request: one that `closed` the connection is none.
    """
    part_s = min(timeout_s, 2.0)
    if default_setup.get() is not None:
        with contextlib.suppress(ClientFailure):
            async with await Connection.open(*address, part_s, Plaintext(), "kraftd-cli"):
                return "PLAINTEXT"
    if await _first_answer(address, part_s, _client_hello(), 1) in (TLS_ALERT, TLS_HANDSHAKE):
        return "TLS"
    if closed:
        return ""
    return "HTTP" if await _first_answer(address, part_s, HTTP_PROBE, 5) == b"HTTP/" else ""


def _client_hello() -> bytes:
    """The first message of a TLS client. The first byte of the answer tells whether the peer speaks TLS.

    A handshake that is broken off there is no failure in the peer's log, as one without a certificate is.
    """
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    sent = ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), sent).do_handshake()
    return sent.read()


async def _first_answer(address: Address, timeout_s: float, sent: bytes, size: int) -> bytes:
    """The first bytes that an address answers; empty without an answer in time."""
    with contextlib.suppress(OSError, TimeoutError, ValueError):
        async with asyncio.timeout(timeout_s):
            reader, writer = await asyncio.open_connection(*address)
            try:
                writer.write(sent)
                return await reader.read(size)
            finally:
                writer.close()
    return b""


async def resolve(host: str) -> str | None:
    """The resolver's error for a host; None if it has an address."""
    try:
        await asyncio.get_running_loop().getaddrinfo(host, None)
    except OSError as error:
        return error.strerror or str(error)
    except UnicodeError:
        return "it is no host name"
    return None


def bind_refusal(host: str, port: int) -> str | None:
    """The system's refusal to bind an address; None if it could be bound. The socket is closed at once."""
    try:
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, kind, protocol, _, address in found[:1]:
            with socket.socket(family, kind, protocol) as sock:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                sock.bind(address)
    except OSError as error:
        return os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
    except UnicodeError:
        return "it is no host name"
    return None
