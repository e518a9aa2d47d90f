"""TLS handshakes are computed beside the event loop, in bounded number, and known hosts come first."""

from __future__ import annotations

import asyncio
import gc
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any
from weakref import WeakSet

import pytest

from kraftd.net.limits import Limits
from kraftd.net.listener import Connections
from kraftd.net.tls.contexts import TlsContexts
from kraftd.net.tls.handshake import ServerHandshake
from kraftd.runtime.connections import handshake_pool
from kraftd.runtime.connections.handshake_pool import HandshakePool, Pending
from kraftd.security.tls_settings import StoreSettings, TlsSettings
from testkit.certificates import Authority

AUTHORITY = Authority()
NODE = AUTHORITY.issue("CN=node")
KEYSTORE = StoreSettings(type="PEM", key=NODE.key_pem, certificates=NODE.chain_pem)
CONTEXTS = TlsContexts(
    TlsSettings(keystore=KEYSTORE, truststore=StoreSettings(type="PEM", certificates=AUTHORITY.pem))
)


class SlowTls:
    """A server whose handshakes compute for a while, and never finish."""

    def __init__(self, seconds: float = 0) -> None:
        self.seconds = seconds
        self.begun: list[float] = []

    @property
    def server(self) -> Any:
        return self

    def wrap_bio(self, *_: object, **__: object) -> Any:
        self.begun.append(time.monotonic())
        return self

    def do_handshake(self) -> None:
        time.sleep(self.seconds)
        raise ssl.SSLWantReadError


class Scene:
    """Connections in their handshakes; what became of them, by host."""

    def __init__(self, tls: Any, make: Callable[[], object] = asyncio.Protocol, **limits: int) -> None:
        loop = asyncio.get_running_loop()
        self.pool = HandshakePool(loop, lambda host: host == "peer", **limits)
        self.tls, self.make = tls, make
        self.failed: list[str] = []
        self.ended: list[str] = []
        self.peers: list[socket.socket] = []

    def connect(
        self,
        host: str,
        data: bytes = b"hello",
        timeout_s: float = 10,
        pair: Callable[[], tuple[socket.socket, socket.socket]] = socket.socketpair,
    ) -> socket.socket:
        ours, theirs = pair()
        ours.setblocking(False)
        theirs.sendall(data)
        self.peers.append(theirs)
        pending = Pending(
            ours,
            (host, 1),
            self.tls,
            self.make,
            timeout_s,
            lambda peer, reason: self.failed.append(f"{peer[0]}: {reason}"),
            lambda one: self.ended.append(one.host),
        )
        self.pool.add(pending)
        return theirs


@contextmanager
def scene(tls: Any, **more: Any) -> Iterator[Scene]:
    made = Scene(tls, **more)
    try:
        yield made
    finally:
        made.pool.stop()
        for peer in made.peers:
            peer.close()


def tcp_pair() -> tuple[socket.socket, socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        theirs = socket.create_connection(server.getsockname())
        return server.accept()[0], theirs


def client_hello() -> bytes:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with suppress(ssl.SSLWantReadError):
        CONTEXTS.client.wrap_bio(incoming, outgoing, server_hostname="localhost").do_handshake()
    return outgoing.read()


async def until(condition: Callable[[], object]) -> None:
    for _ in range(500):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("not within 5 s")


async def test_the_loop_runs_while_a_handshake_computes() -> None:
    with scene(SlowTls(0.5)) as made:
        made.connect("a")
        await until(lambda: made.tls.begun)
        assert time.monotonic() - made.tls.begun[0] < 0.3  # the loop is here while the thread computes


async def test_places_are_limited_by_address_and_in_all_and_known_hosts_have_their_own() -> None:
    with scene(SlowTls(), max_at_once=3, max_of_address=2) as made:
        for host in "aaabbc":
            made.connect(host)
        await until(lambda: len(made.tls.begun) == 3)
        for _ in range(5):
            made.connect("peer")
        await until(lambda: len(made.tls.begun) == 5)
        await asyncio.sleep(0.05)
        assert len(made.tls.begun) == 5  # two of them of the known host
        assert not made.failed


async def test_a_known_host_goes_before_strangers_that_wait() -> None:
    with scene(SlowTls(0.05)) as made:
        made.pool._threads.count = 1
        for _ in range(20):
            made.connect("a")
        await asyncio.sleep(0.02)
        peer = made.connect("peer")
        peer.shutdown(socket.SHUT_WR)  # ends with its second turn
        await until(lambda: "peer" in made.ended)
        assert len(made.tls.begun) < 8


async def test_a_flood_from_a_known_address_leaves_strangers_every_second_turn() -> None:
    with scene(SlowTls(0.02), max_of_address=50) as made:
        made.pool._threads.count = 1
        for _ in range(40):
            made.connect("peer")
        await asyncio.sleep(0.01)
        stranger = made.connect("a")
        stranger.shutdown(socket.SHUT_WR)
        await until(lambda: "a" in made.ended)
        assert len(made.tls.begun) < 8


@pytest.mark.parametrize("host", ["a", "peer"])
async def test_a_silent_peer_loses_its_place_to_one_that_waits(
    monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    monkeypatch.setattr(handshake_pool, "STALL_S", 0.05)
    monkeypatch.setattr(handshake_pool, "SWEEP_S", 0.02)
    with scene(SlowTls(), max_of_address=1) as made:
        made.connect(host)
        await until(lambda: made.tls.begun)
        await asyncio.sleep(0.2)
        assert not made.failed  # no other waited
        made.connect(host)
        await until(lambda: len(made.tls.begun) == 2)
        assert made.failed == [f"{host}: it was silent for 0 s while others waited"]


async def test_a_place_is_taken_when_the_first_record_has_arrived_whole() -> None:
    hello = client_hello()
    with scene(SlowTls(), max_of_address=1) as made:
        for count in (1, 4, 5, 6, len(hello) - 1):
            made.connect("a", hello[:count], pair=tcp_pair)
        in_parts = made.connect("a", hello[:3], pair=tcp_pair)
        await asyncio.sleep(0.1)
        assert not made.tls.begun
        in_parts.sendall(hello[3:])
        await until(lambda: made.tls.begun)
        in_parts.sendall(b"x")  # one byte wakes a handshake that has begun
        in_parts.shutdown(socket.SHUT_WR)
        await until(lambda: made.ended == ["a"])


async def test_a_record_that_claims_more_than_tls_allows_is_waited_for_no_longer() -> None:
    with scene(CONTEXTS) as made:
        made.connect("a", b"\x16\x03\x01\xff\xff" + bytes(16_384), pair=tcp_pair)
        await until(lambda: made.ended)
        assert made.failed == ["a: PACKET_LENGTH_TOO_LONG"]


async def test_a_handshake_has_limited_time_even_when_nothing_was_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(handshake_pool, "SWEEP_S", 0.02)
    with scene(SlowTls()) as made:
        made.connect("a", b"", timeout_s=0.05)
        await until(lambda: made.failed)
        assert made.failed == ["a: it took longer than 50 ms"]
        assert made.ended == ["a"] and not made.tls.begun and not len(made.pool)


async def test_waves_of_half_open_handshakes_leave_no_object_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither those whose time is up, nor those whose peers have left, begun or not."""
    ahead_s = 0.0
    kept: WeakSet[object] = WeakSet()

    def begin(tls: TlsContexts) -> ServerHandshake:
        handshake = ServerHandshake(tls)
        kept.add(handshake)
        return handshake

    def is_forgotten() -> bool:
        gc.collect()
        return not kept

    monkeypatch.setattr(handshake_pool, "SWEEP_S", 0.02)
    monkeypatch.setattr(handshake_pool, "monotonic", lambda: time.monotonic() + ahead_s)
    monkeypatch.setattr(handshake_pool, "ServerHandshake", begin)
    openings = b"", b"\x16\x03\x01\x02\x00\x01\x00", client_hello()
    with scene(CONTEXTS, max_of_address=5) as made:
        for wave in range(3):
            peers = [made.connect(f"host-{at % 4}", openings[at % 3], timeout_s=60) for at in range(30)]
            kept.update(made.pool._all)
            await until(lambda: len(made.pool._unknown.places) >= 10)
            assert len(kept) >= 30 + 10
            for peer in peers[:: 1 + wave]:
                peer.close()
            ahead_s += 61
            await until(lambda wave=wave: len(made.ended) == 30 * (wave + 1))
            await until(is_forgotten)
        queue = made.pool._unknown
        assert not (len(made.pool) or queue.places or queue._of_host or queue._begun)


async def test_a_refused_handshake_names_its_reason_and_a_peer_that_leaves_is_no_failure() -> None:
    with scene(CONTEXTS) as made:
        made.connect("a", b"GET / HTTP/1.1\r\n\r\n")
        made.connect("b", b"").close()
        await until(lambda: len(made.ended) == 2)
        assert made.failed == ["a: HTTP_REQUEST"]


class Echo(asyncio.Protocol):
    """Sends back what it gets."""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.transport.writelines([data])
        if data.endswith(b"."):
            self.transport.close()


async def test_after_the_handshake_bytes_pass_in_both_directions_until_the_end() -> None:
    text = bytes(range(1, 200)) * 5_000 + b"."

    def talk(sock: socket.socket) -> bytes:
        sock.setblocking(True)
        sock.settimeout(10)
        received = b""
        with CONTEXTS.client.wrap_socket(sock, server_hostname="localhost") as client:
            for start in range(0, len(text), 50_000):
                client.sendall(text[start : start + 50_000])
                while len(received) < min(start + 50_000, len(text)):
                    received += client.recv(65_536)
            assert client.recv(1) == b""
        return received

    with scene(CONTEXTS, make=Echo) as made:
        peer = made.connect("a", b"")
        assert await asyncio.to_thread(talk, peer) == text
        assert made.ended == ["a"] and not made.failed


def test_a_share_of_the_connections_is_reserved_for_known_hosts() -> None:
    limits = Limits(max_connections=4, reserved_connections=2)
    connections = Connections(None, limits, lambda function: None, lambda host: host == "peer")  # type: ignore[arg-type]
    assert [connections.begin_handshake("L", "a") for _ in range(3)] == [True, True, False]
    assert [connections.begin_handshake("L", "peer") for _ in range(3)] == [True, True, False]
