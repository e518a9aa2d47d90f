"""New connections a second: Kafka's quotas of a daemon, of single listeners, and of single addresses.

A quota is a rate over the last samples, each of one second or what the file says. A connection that exceeds
it waits as long as the rate needs to fall to the quota, at most the time of one sample.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kraftd.ground.windowed_rate import SAMPLE_COUNT, WINDOW_MS, WindowedRate
from kraftd.security.acls.hosts import canonical_host

Entity = tuple[tuple[str, str | None], ...]

ADDRESS_QUOTA = "connection_creation_rate"
RATE = "max.connection.creation.rate"
UNLIMITED = 2_147_483_647


class ConnectionRates:
    """The rates of one daemon. `of_address` returns the quota of an address, None without one. `dynamic`
    returns dynamic configs, the first ones first, which override those given here.

    As in Kafka, the listener `among_brokers`, given if clients have other ones, is not counted with all
    others: it has their quota for itself.

    Nodes of the quorum (`known`) have the same quotas, counted for themselves: strangers use none of theirs.
    """

    def __init__(
        self,
        quota: int = UNLIMITED,
        by_listener: Mapping[str, int] | None = None,
        of_address: Callable[[str], float | None] = lambda host: None,
        dynamic: Callable[[], Sequence[Mapping[str, str]]] = tuple,
        among_brokers: str = "",
        window_ms: int = WINDOW_MS,
        sample_count: int = SAMPLE_COUNT,
    ) -> None:
        self.of_address = of_address
        self.dynamic = dynamic
        self._quota = quota
        self._by_listener = dict(by_listener or {})
        self._among_brokers = among_brokers
        self._window_ms, self._sample_count = window_ms, sample_count
        self._rates: dict[tuple[str, bool], WindowedRate] = {}  # by listener, "" for all others
        self._addresses: dict[str, WindowedRate] = {}

    def accept(self, listener: str, now_ms: int, *, known: bool = False) -> int:
        """Count a connection of a listener; return the milliseconds that it, and all behind it, must wait."""
        wait_ms = 0
        for name, quota in self._quotas(listener):
            if quota < UNLIMITED:
                rate = self._rates.setdefault((name, known), self._rate())
                wait_ms = max(wait_ms, self._count(rate, quota, now_ms))
        return wait_ms

    def _quotas(self, listener: str) -> tuple[tuple[str, int], ...]:
        """What counts a connection of a listener, and the quota of each."""
        of_all = self._value(RATE, self._quota)
        if listener == self._among_brokers:
            return ((listener, self._of_listener(listener, of_all)),)
        return ("", of_all), (listener, self._of_listener(listener, UNLIMITED))

    def _of_listener(self, listener: str, default: int) -> int:
        key = f"listener.name.{listener.lower()}.{RATE}"
        return self._value(key, self._by_listener.get(listener, default))

    def _value(self, key: str, default: int) -> int:
        """A dynamic config; the default without one."""
        for configs in self.dynamic():
            if key in configs:
                try:
                    return max(0, int(configs[key]))
                except ValueError:
                    break  # only what was set before its type was known
        return default

    def accept_from(self, host: str, listener: str, now_ms: int, *, known: bool = False) -> int:
        """Count a connection of an address. Over its quota, count it nowhere, and return the milliseconds
        after which it is to be closed.
        """
        quota = self.of_address(host)
        if quota is None:
            return 0
        rate = self._addresses.setdefault(host, self._rate())
        wait_ms = self._count(rate, quota, now_ms)
        if wait_ms:
            rate.record(-1, now_ms)
            for name, _ in self._quotas(listener):
                if (name, known) in self._rates:
                    self._rates[name, known].record(-1, now_ms)
        return wait_ms

    def _rate(self) -> WindowedRate:
        return WindowedRate(self._window_ms, self._sample_count)

    def _count(self, rate: WindowedRate, quota: float, now_ms: int) -> int:
        """Count one more connection; return the milliseconds that it must wait."""
        rate.record(1, now_ms)
        return min(self._window_ms, rate.excess_ms(quota, now_ms))

    def sweep(self, now_ms: int) -> None:
        """Forget addresses that have opened no connection lately."""
        for host in [host for host, rate in self._addresses.items() if rate.is_empty(now_ms)]:
            del self._addresses[host]

    def __repr__(self) -> str:
        return (
            f"<ConnectionRates {self._quota} a second, {self._by_listener}, {len(self._addresses)} addresses>"
        )


def address_quota(quotas: Mapping[Entity, Mapping[str, float]], host: str) -> float | None:
    """The quota of an address among client quotas: its own, else the default; None without one."""
    if not quotas:
        return None
    for name in (host, canonical_host(host), None):
        found = quotas.get((("ip", name),))
        if found is not None and ADDRESS_QUOTA in found:
            return found[ADDRESS_QUOTA]
    return None
