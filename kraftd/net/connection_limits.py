"""How many connections may be open: in all, of a listener, of an address; by dynamic configs first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from kraftd.net.limits import IPV4_MAPPED, Limits

ALL = "max.connections"
OF_ADDRESS = "max.connections.per.ip"
OVERRIDES = "max.connections.per.ip.overrides"


class ConnectionLimits:
    """The limits of one daemon as they hold now. `dynamic` returns dynamic configs, the first ones first.

    A value that is no number changes nothing: the controllers refuse it, but for what older ones wrote.
    """

    def __init__(self, limits: Limits, dynamic: Callable[[], Sequence[Mapping[str, str]]] = tuple) -> None:
        self.dynamic = dynamic
        self._limits = limits

    def of_all(self) -> int:
        """The most connections of all listeners: never more than the files that the process may open."""
        found = self._number(ALL)
        return (
            self._limits.max_connections if found is None else min(found, self._limits.openable_connections)
        )

    def for_strangers(self) -> int:
        """The same without those that are reserved for nodes of the quorum."""
        limits, most = self._limits, self.of_all()
        return most - limits.reserved_connections * most // max(1, limits.max_connections)

    def of_listener(self, listener: str) -> int | None:
        """The most connections of one listener; None without a limit of its own."""
        found = self._number(f"listener.name.{listener.lower()}.{ALL}")
        return self._limits.max_connections_by_listener.get(listener) if found is None else found

    def of_address(self, host: str) -> int:
        """The most connections from one address."""
        for configs in self.dynamic():
            if OVERRIDES in configs:
                found = _by_address(configs[OVERRIDES]).get(host)
                break
        else:
            found = self._limits.max_connections_per_ip_overrides.get(host)
        if found is None:
            found = self._number(OF_ADDRESS)
        return self._limits.max_connections_per_ip if found is None else found

    def _number(self, key: str) -> int | None:
        for configs in self.dynamic():
            if key in configs:
                try:
                    return max(0, int(configs[key]))
                except ValueError:
                    break
        return None

    def __repr__(self) -> str:
        return f"<ConnectionLimits {self.of_all()} in all>"


@lru_cache(maxsize=16)
def _by_address(text: str) -> Mapping[str, int]:
    """The limits of `address:limit,…`, IPv6 addresses in brackets or without."""
    found = {}
    for entry in text.split(","):
        host, _, limit = entry.strip().rpartition(":")
        if limit.strip().isdecimal():
            found[host.strip().strip("[]").removeprefix(IPV4_MAPPED)] = int(limit)
    return found
