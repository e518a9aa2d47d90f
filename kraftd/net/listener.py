"""The connections of a daemon: made, counted, refused over the limit, and closed when idle or stalled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from kraftd.net.connection import Connection, Handler
from kraftd.net.connection_limits import ConnectionLimits
from kraftd.net.limits import BufferBudget, Limits
from kraftd.net.turns import Turns

Address = tuple[bool, str]
"""Of a host, at the listeners of controllers or at all others: as in Kafka, either counts for itself."""


class Connections:
    """All connections of all listeners of one daemon, with common limits.

    `factory(listener)` is what the loop's `create_server` takes. `schedule` runs a function in a later
    callback of the loop. `is_known` returns whether a host is one of the quorum's nodes: the reserved
    connections are theirs.
    """

    def __init__(
        self,
        handler: Handler,
        limits: Limits,
        schedule: Callable[[Callable[[], None]], object],
        is_known: Callable[[str], bool] = lambda host: False,
        turns: Turns | None = None,
    ) -> None:
        self.limits = limits
        self.counts = ConnectionLimits(limits)
        self.budget = BufferBudget(limits.max_buffered_bytes, limits.free_bytes)
        self.refused = 0
        self.opened: Counter[str] = Counter()  # since the start, by listener
        self._handler = handler
        self._schedule = schedule
        self._turns = turns or Turns(schedule)
        self._is_known = is_known
        self._open: dict[int, Connection] = {}
        self._by_ip: Counter[Address] = Counter()
        self._by_listener: Counter[str] = Counter()
        self._shaking: Counter[Address] = Counter()  # handshakes under way
        self._shaking_count = 0
        self._next_id = 0
        self._seen_reads: dict[int, int] = {}
        self._refusal_logged = False

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[Connection]:
        return iter(list(self._open.values()))

    def factory(self, listener: str) -> Callable[[], Connection]:
        def make() -> Connection:
            self._next_id += 1
            return Connection(
                self._next_id,
                listener,
                self._handler,
                self.limits,
                self.budget,
                self._schedule,
                self._turns,
                self._admit,
                self._lost,
            )

        return make

    def begin_handshake(self, listener: str, host: str) -> bool:
        """Count a connection that begins its handshake; return whether the limits allow it."""
        address = self._address(listener, host)
        of_host = self._by_ip[address] + self._shaking[address]
        of_all = len(self._open) + self._shaking_count
        if of_all >= self._limit_of(listener, host) or of_host >= self.counts.of_address(host):
            self.refused += 1
            return False
        self._shaking[address] += 1
        self._shaking_count += 1
        return True

    def end_handshake(self, listener: str, host: str) -> None:
        """End a handshake; its connection, if any, is admitted like all others."""
        address = self._address(listener, host)
        self._shaking[address] -= 1
        self._shaking_count -= 1
        if not self._shaking[address]:
            del self._shaking[address]

    def _address(self, listener: str, host: str) -> Address:
        return listener in self.limits.controller_listeners, host

    def _limit_of(self, listener: str, host: str) -> int:
        """How many connections of all hosts may be open when this host opens one more at a listener.

        That among brokers has no limit but that of the process, as in Kafka.
        """
        if listener == self.limits.listener_among_brokers:
            return self.limits.openable_connections
        return self.counts.of_all() if self._is_known(host) else self.counts.for_strangers()

    def sweep(self, now_ms: int) -> list[Connection]:
        """Close connections that were idle too long, or that block others; to be called every few seconds."""
        closed = []
        self._refusal_logged = False
        blocking_id = self.budget.blocking_id
        for connection in list(self._open.values()):
            if self._seen_reads.get(connection.id) != connection.reads:
                self._seen_reads[connection.id] = connection.reads
                connection.last_read_ms = now_ms
                continue
            silent_ms = now_ms - connection.last_read_ms
            if connection.in_flight == 0 and 0 <= self.limits.idle_ms <= silent_ms:
                connection.close("idle")
            elif (
                connection.id == blocking_id
                and silent_ms >= self.limits.stall_ms
                and not connection.awaits_large_answers
            ):
                connection.close(f"a frame that others wait for got no byte for {silent_ms} ms")
            else:
                continue
            closed.append(connection)
        return closed + self._close_excess()

    def _close_excess(self) -> list[Connection]:
        """Close the connections that were silent longest, if more are open than are allowed in all: after a
        dynamic config, or beside those among brokers. None of nodes of the quorum, or among brokers.
        """
        excess = len(self._open) - self.counts.of_all()
        if excess <= 0:
            return []
        exempt = self.limits.listener_among_brokers
        strangers = [
            one for one in self._open.values() if one.listener != exempt and not self._is_known(one.peer[0])
        ]
        strangers.sort(key=lambda one: one.last_read_ms)
        for connection in strangers[:excess]:
            connection.close("more connections are open than max.connections allows")
        return strangers[:excess]

    def close_all(self, reason: str) -> None:
        for connection in list(self._open.values()):
            connection.close(reason)

    def _admit(self, connection: Connection) -> str | None:
        """The reason to refuse a new connection (empty: logged since the last sweep); None to accept it."""
        host, name = connection.peer[0], connection.listener
        address = self._address(name, host)
        if len(self._open) >= self._limit_of(name, host):
            limit = f"{len(self._open)} connections are open, the limit"
        elif self._by_ip[address] >= (most := self.counts.of_address(host)):
            limit = f"{host} has {self._by_ip[address]} connections, and may have {most}"
        elif (own := self.counts.of_listener(name)) is not None and self._by_listener[name] >= own:
            limit = f"{name} has {self._by_listener[name]} connections, and may have {own}"
        else:
            self._open[connection.id] = connection
            self.opened[name] += 1
            self._by_listener[name] += 1
            self._by_ip[address] += 1
            return None
        self.refused += 1
        if self._refusal_logged:
            return ""  # a flood of them must not flood the log
        self._refusal_logged = True
        return f"{limit} (refused so far: {self.refused})"

    def _lost(self, connection: Connection) -> None:
        if self._open.pop(connection.id, None) is not None:
            address = self._address(connection.listener, connection.peer[0])
            self._by_listener[connection.listener] -= 1
            self._by_ip[address] -= 1
            if not self._by_ip[address]:
                del self._by_ip[address]
            self._seen_reads.pop(connection.id, None)

    def __repr__(self) -> str:
        return f"<Connections {len(self._open)} of {self.counts.of_all()}, {self.refused} refused>"
