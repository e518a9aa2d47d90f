"""The addresses of the quorum's nodes: voters, registered controllers, registered brokers.

Connections from them have capacity of their own. Names are looked up in a thread, again every LOOK_UP_MS.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterable

from kraftd.controller_node.node import Node
from kraftd.ground.ticks import next_tick_ms
from kraftd.host.ports import Handle, Timer
from kraftd.security.acls.hosts import canonical_host

REFRESH_MS = 5_000
LOOK_UP_MS = 60_000


class PeerHosts:
    """Refreshes itself from the node's voters and its image until it is stopped."""

    def __init__(self, node: Node, loop: asyncio.AbstractEventLoop, timer: Timer) -> None:
        self._node = node
        self._loop = loop
        self._timer = timer
        self._addresses: frozenset[str] = frozenset()
        self._names: frozenset[str] = frozenset()  # of which those are
        self._look_up_ms = 0  # when they are looked up again
        self._alarm: Handle | None = timer.call_at(timer.now_ms(), self._refresh)

    def __contains__(self, host: str) -> bool:
        return host in self._addresses

    def stop(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _refresh(self) -> None:
        node, image, now_ms = self._node, self._node.image, self._timer.now_ms()
        nodes = [voter.listeners for voter in node.core.voters]
        nodes += [one.listeners for one in image.controllers.values()]
        nodes += [one.listeners for one in image.brokers.values()]
        names = frozenset(endpoint.host for endpoints in nodes for endpoint in endpoints)
        if names == self._names and now_ms < self._look_up_ms:
            self._plan()
            return
        self._names, self._look_up_ms = names, now_ms + LOOK_UP_MS
        self._loop.run_in_executor(None, _addresses_of_all, names).add_done_callback(self._end)

    def _end(self, done: asyncio.Future[frozenset[str]]) -> None:
        if self._alarm is None or done.cancelled():
            return
        if done.exception() is None:
            self._addresses = done.result()
        self._plan()

    def _plan(self) -> None:
        self._alarm = self._timer.call_at(next_tick_ms(self._timer.now_ms(), REFRESH_MS), self._refresh)

    def __repr__(self) -> str:
        return f"<PeerHosts {', '.join(sorted(self._addresses))}>"


def _addresses_of_all(names: Iterable[str]) -> frozenset[str]:
    return frozenset().union(*map(addresses_of, names))


def addresses_of(name: str) -> frozenset[str]:
    """The addresses of a host name, as connections show them; none of a name that cannot be looked up."""
    # As text, it would be encoded by the rules of international names, whose tables take long to load.
    host = name.encode() if name.isascii() else name
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return frozenset()
    return frozenset(canonical_host(str(one[4][0])) for one in found)
