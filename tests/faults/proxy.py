"""A userspace network between controllers on loopback, whose every direction can be cut, slowed or reset.

Other nodes reach a node through its door. The client id of their first request (`raft-client-N`, or
`broker-N` and more) names the caller. Traffic between two nodes, on connections of either, uses two one-way
links. A cut link holds sent bytes, as TCP does when packets are lost: they arrive late, after the cut.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from testkit.node import Controller
from testkit.process import HOST, free_port

Link = tuple[int, int]  # from node, to node
OTHERS = -1  # any client that is no replica of the quorum
_CHUNK_BYTES = 1 << 16
_LARGE_BYTES, _FROM_END_BYTES = 150, 30  # of pieces that are damaged
_NO_LINGER = struct.pack("ii", 1, 0)  # close() sends a reset


@dataclass
class Rule:
    """The treatment of the bytes of one direction."""

    delay_s: float = 0
    bytes_per_s: float = 0  # 0: no limit
    passing: asyncio.Event = field(default_factory=asyncio.Event)
    held_key: int = -1  # of an API whose requests wait
    held: list[bytes] = field(default_factory=list)  # the requests that wait
    resets: bool = False  # each connection with such a request
    let_go: asyncio.Event = field(default_factory=asyncio.Event)
    damages: bool = False  # records on their way
    piece_count: int = 0

    def __post_init__(self) -> None:
        self.passing.set()

    def damaged(self, piece: bytes) -> bytes:
        """A piece as it arrives over a link that damages."""
        if len(piece) < _LARGE_BYTES:
            return piece
        self.piece_count += 1
        if self.piece_count % 3:
            return piece
        at = len(piece) - _FROM_END_BYTES
        return piece[:at] + bytes([piece[at] ^ 1]) + piece[at + 1 :]


class Proxy:
    """All doors, which one separate thread serves. Other threads may call any method."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._rules: dict[Link, Rule] = {}
        self._open: dict[Link, set[_Passage]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._servers: dict[int, asyncio.Server] = {}
        self._thread = threading.Thread(target=self._loop.run_forever, name="fault-proxy", daemon=True)
        self._thread.start()

    def __repr__(self) -> str:
        cut = [link for link, rule in self._rules.items() if not rule.passing.is_set()]
        return f"<Proxy doors {sorted(self._servers)} cut {cut}>"

    # -- doors

    def door(self, node_id: int, port: int, at: int | None = None) -> int:
        """Open the door to a node that listens on `port`; return its own port. An older door stays open."""
        own = at or free_port()

        async def open_door() -> None:
            async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                await self._serve(node_id, port, reader, writer)

            self._servers[own] = await asyncio.start_server(serve, HOST, own)

        self._run(open_door())
        return own

    def guard(self, controller: Controller) -> None:
        """Let others reach a controller, which has not started yet, through a door at its address."""
        behind = free_port()
        self.door(controller.node_id, behind, at=controller.port)
        controller.properties["listeners"] = f"CONTROLLER://{HOST}:{behind}"
        controller.properties["advertised.listeners"] = f"CONTROLLER://{controller.address}"
        controller.write_properties()

    def close(self) -> None:
        async def end() -> None:
            for server in self._servers.values():
                server.close()
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)

        self._run(end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    # -- faults

    def cut(self, *links: Link) -> None:
        """Hold all bytes on these links until `heal`; they arrive then."""
        self._now(lambda: [self._rule(link).passing.clear() for link in links])

    def part(self, node_id: int, *others: int) -> None:
        """Cut both ways between a node and each of the others."""
        self.cut(*[link for other in others for link in ((node_id, other), (other, node_id))])

    def slow(self, *links: Link, delay_s: float = 0, bytes_per_s: float = 0) -> None:
        """Delay every piece on these links, or limit their rate."""

        def change() -> None:
            for link in links:
                self._rule(link).delay_s, self._rule(link).bytes_per_s = delay_s, bytes_per_s

        self._now(change)

    def hold(self, link: Link, api_key: int, *, resets: bool = False) -> list[bytes]:
        """Hold each request of this API on a link until `heal`. Returns a list that gets these frames.

        With `resets` it resets their connections, so that no later request waits behind them: they arrive
        only if the test sends them. It recognizes a request that begins a piece, as each one does of a
        connection with one in flight.
        """

        def change() -> list[bytes]:
            rule = self._rule(link)
            rule.held_key, rule.held, rule.resets = api_key, [], resets
            rule.let_go.clear()
            return rule.held

        return self._now(change)  # type: ignore[no-any-return]

    def damage(self, *links: Link) -> None:
        """Flip a bit near the end of every third large piece until `heal`: of a fetch's answer, in a record
        or in a field of its batch that the checksum covers.
        """

        def change() -> None:
            for link in links:
                self._rule(link).damages = True

        self._now(change)

    def reset(self, *links: Link) -> int:
        """Reset all connections of these links at both ends; return how many."""

        def reset() -> int:
            found = {one for link in links for one in self._open.get(link, ())}
            for passage in found:
                passage.reset()
            return len(found)

        return self._now(reset)

    def heal(self) -> None:
        """Remove all faults."""

        def restore() -> None:
            for rule in self._rules.values():
                rule.delay_s = rule.bytes_per_s = 0
                rule.passing.set()
                rule.held_key, rule.damages = -1, False
                rule.let_go.set()

        self._now(restore)

    @property
    def damaged_count(self) -> int:
        """How many pieces were damaged."""
        return sum(rule.piece_count // 3 for rule in self._rules.values())

    # -- for the loop's thread

    def _rule(self, link: Link) -> Rule:
        return self._rules.setdefault(link, Rule())

    async def _serve(
        self, node_id: int, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        onward: asyncio.StreamWriter | None = None
        try:
            head = await _first_frame(reader)
            caller = _caller(head)
            back, onward = await asyncio.open_connection(HOST, port)
            passage = _Passage((writer, onward))
            links = (caller, node_id), (node_id, caller)
            for link in links:
                self._open.setdefault(link, set()).add(passage)
            try:
                await asyncio.gather(
                    self._pump(links[0], reader, onward, head), self._pump(links[1], back, writer, b"")
                )
            finally:
                for link in links:
                    self._open[link].discard(passage)
        except (OSError, asyncio.IncompleteReadError):
            _Passage((writer,) if onward is None else (writer, onward)).reset()
        finally:
            for one in (writer, onward):
                if one is not None:
                    one.close()

    async def _pump(
        self, link: Link, source: asyncio.StreamReader, target: asyncio.StreamWriter, chunk: bytes
    ) -> None:
        rule = self._rule(link)
        while True:
            if chunk:
                if rule.delay_s:
                    await asyncio.sleep(rule.delay_s)
                if rule.bytes_per_s:
                    await asyncio.sleep(len(chunk) / rule.bytes_per_s)
                await rule.passing.wait()
                if int.from_bytes(chunk[4:6], "big") == rule.held_key:
                    rule.held.append(chunk)
                    if rule.resets:
                        raise ConnectionResetError("a held request ends its connection")
                    await rule.let_go.wait()
                target.write(rule.damaged(chunk) if rule.damages else chunk)
                await target.drain()
            chunk = await source.read(_CHUNK_BYTES)
            if not chunk:
                await rule.passing.wait()  # the end of the stream is forwarded too
                target.close()
                return

    def _now(self, change: Callable[[], Any]) -> Any:
        async def do() -> Any:
            return change()

        return self._run(do())

    def _run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(30)


class _Passage:
    """The two ends of one connection through a door."""

    def __init__(self, writers: tuple[asyncio.StreamWriter, ...]) -> None:
        self._writers = writers

    def reset(self) -> None:
        for writer in self._writers:
            connection: socket.socket | None = writer.get_extra_info("socket")
            if connection is not None:
                with suppress(OSError):
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
            writer.transport.abort()


async def _first_frame(reader: asyncio.StreamReader) -> bytes:
    size = await reader.readexactly(4)
    return size + await reader.readexactly(int.from_bytes(size, "big"))


def _caller(frame: bytes) -> int:
    """The node that sent a request: its header has key, version, correlation id, then the client id."""
    length = int.from_bytes(frame[12:14], "big", signed=True)
    client_id = frame[14 : 14 + max(length, 0)].decode(errors="replace")
    if client_id.startswith("broker-"):
        number = client_id.split("-")[1]
    else:
        number = client_id.removeprefix("raft-client-")
    return int(number) if number.isdecimal() else OTHERS
