"""Limits on what peers can make this process hold: frame sizes, connections, requests, buffered bytes.

Each connection may hold a little without charge (`free_bytes`). Bytes of incomplete frames beyond it count
against one budget for all connections, and so do whole frames of more until they are answered. Over the
budget, connections wait (they are not read) until others are done. The one that has waited longest for its
bytes continues regardless. So a frame larger than the whole budget still gets through, and small requests of
others never wait.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping

import msgspec

IPV4_MAPPED = "::ffff:"  # before an IPv4 address that a socket of both families shows


class Limits(msgspec.Struct, frozen=True, gc=False):
    """Bounds of one daemon; the names in brackets are the configuration keys they come from."""

    max_frame_bytes: int = 104_857_600  # socket.request.max.bytes
    max_connections: int = 10_000  # max.connections, where it is lower
    openable_connections: int = 10_000  # what the process's files allow; no dynamic config exceeds it
    reserved_connections: int = 0  # of these, for nodes of the quorum alone
    max_connections_per_ip: int = 2_147_483_647  # max.connections.per.ip
    max_connections_per_ip_overrides: Mapping[str, int] = {}  # by the peer's address as text
    max_connections_by_listener: Mapping[str, int] = {}  # listener.name.<listener>.max.connections
    controller_listeners: frozenset[str] = frozenset()  # an address counts for itself at these
    listener_among_brokers: str = ""  # max_connections lets all in there; empty: clients have no other
    max_in_flight: int = 500  # queued.max.requests, a connection
    max_buffered_bytes: int = 67_108_864  # queued.max.request.bytes
    free_bytes: int = 65_536
    idle_ms: int = 600_000  # connections.max.idle.ms, negative for no limit
    max_early_bytes: int = 8_388_608  # answers of a connection that wait for one before them
    stall_ms: int = 10_000  # how long a holder of the budget may be silent while others wait

    frames_per_callback: int = 8  # frames of one connection handled before others run: clients pipeline 5
    frames_per_step: int = 8  # and before the check whether the peer reads its answers


class BufferBudget:
    """The bytes of incomplete frames by connection, and the connections that wait for budget."""

    def __init__(self, max_bytes: int, free_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.free_bytes = free_bytes
        self.held_bytes = 0
        self._held: dict[int, int] = {}  # connection id -> bytes; in order of first need
        self._waiting: dict[int, Callable[[], None]] = {}
        self._owners: dict[int, Hashable] = {}  # of the connections that hold bytes
        self._owned: Counter[Hashable] = Counter()  # bytes by owner

    def hold(
        self, connection_id: int, held_bytes: int, resume: Callable[[], None], owner: Hashable = None
    ) -> bool:
        """Note a connection's bytes; returns False if it must not be read until `resume` is called.

        Of one owner, connections after its first may hold half of the budget together: the rest is for
        others.
        """
        counted = held_bytes if held_bytes > self.free_bytes else 0
        before = self._held.pop(connection_id, 0) if not counted else self._held.get(connection_id, 0)
        self._count(connection_id, counted - before, owner)
        if counted:
            self._held[connection_id] = counted
        if counted > before and not self._has_room_for(connection_id):
            self._waiting[connection_id] = resume
            return False
        self._waiting.pop(connection_id, None)
        if counted < before:
            self._wake()
        return True

    def release(self, connection_id: int) -> None:
        """Release the bytes of a lost connection."""
        self._waiting.pop(connection_id, None)
        before = self._held.pop(connection_id, 0)
        if before:
            self._count(connection_id, -before, None)
            self._wake()

    def _count(self, connection_id: int, more_bytes: int, owner: Hashable) -> None:
        """Count bytes for the owner that the connection had with its first ones."""
        owner = self._owners.setdefault(connection_id, owner)
        self.held_bytes += more_bytes
        self._owned[owner] += more_bytes
        if connection_id not in self._held and more_bytes <= 0:
            del self._owners[connection_id]
        if not self._owned[owner]:
            del self._owned[owner]

    def _has_room_for(self, connection_id: int) -> bool:
        if self.held_bytes > self.max_bytes and next(iter(self._held)) != connection_id:
            return False
        owner = self._owners[connection_id]
        if owner is None or 2 * self._owned[owner] <= self.max_bytes:
            return True
        return connection_id == next(one for one in self._held if self._owners[one] == owner)

    def _wake(self) -> None:
        for connection_id in [one for one in self._waiting if self._has_room_for(one)]:
            resume = self._waiting.pop(connection_id, None)
            if resume is not None:
                resume()

    @property
    def blocking_id(self) -> int | None:
        """The connection that holds the budget while others wait, if any wait."""
        return next(iter(self._held), None) if self._waiting else None

    def __repr__(self) -> str:
        return (
            f"<BufferBudget {self.held_bytes} of {self.max_bytes} bytes, "
            f"{len(self._held)} hold, {len(self._waiting)} wait>"
        )
