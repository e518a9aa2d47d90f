"""The addresses of the quorum's nodes: voters, registered controllers, registered brokers.

Connections from them have capacity of their own. Names are looked up in a thread, again every LOOK_UP_S.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterable
from time import monotonic

from kraftd.controller_node.node import Node
from kraftd.security.acls.hosts import canonical_host
from kraftd.types import Endpoint

REFRESH_S = 5.0
LOOK_UP_S = 60.0


class PeerHosts:
    """Refreshes itself from the node's voters and its image until it is stopped."""

    def __init__(self, node: Node, loop: asyncio.AbstractEventLoop) -> None:
        self._node = node
        self._loop = loop
        self._addresses: frozenset[str] = frozenset()
        self._found: dict[str, tuple[float, frozenset[str]]] = {}  # by name: until when it holds
        self._timer: asyncio.TimerHandle | None = loop.call_later(0, self._begin)

    def __contains__(self, host: str) -> bool:
        return host in self._addresses

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _begin(self) -> None:
        node, image = self._node, self._node.image
        nodes = [voter.listeners for voter in node.core.voters]
        nodes += [one.listeners for one in image.controllers.values()]
        nodes += [one.listeners for one in image.brokers.values()]
        self._loop.run_in_executor(None, self._look_up, nodes).add_done_callback(self._end)

    def _look_up(self, nodes: Iterable[tuple[Endpoint, ...]]) -> frozenset[str]:
        names = {endpoint.host for endpoints in nodes for endpoint in endpoints}
        now_s = monotonic()
        for name in self._found.keys() - names:
            del self._found[name]
        for name in names:
            if name not in self._found or self._found[name][0] <= now_s:
                self._found[name] = (now_s + LOOK_UP_S, addresses_of(name))
        return frozenset().union(*(found for _, found in self._found.values()))

    def _end(self, done: asyncio.Future[frozenset[str]]) -> None:
        if self._timer is None or done.cancelled():
            return
        if done.exception() is None:
            self._addresses = done.result()
        self._timer = self._loop.call_later(REFRESH_S, self._begin)

    def __repr__(self) -> str:
        return f"<PeerHosts {', '.join(sorted(self._addresses))}>"


def addresses_of(name: str) -> frozenset[str]:
    """The addresses of a host name, as connections show them; none of a name that cannot be looked up."""
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return frozenset()
    return frozenset(canonical_host(str(one[4][0])) for one in found)
