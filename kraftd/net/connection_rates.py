"""New connections a second: Kafka's quotas of a daemon, of single listeners, and of single addresses.

A quota is a rate over the last samples, each of one second. A connection that exceeds it waits as long as the
rate needs to fall to the quota, at most one second.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence

from kraftd.security.hosts import canonical_host

Entity = tuple[tuple[str, str | None], ...]

ADDRESS_QUOTA = "connection_creation_rate"
RATE = "max.connection.creation.rate"
UNLIMITED = 2_147_483_647
WINDOW_MS = 1_000  # quota.window.size.seconds
SAMPLES = 11  # quota.window.num
LONGEST_MS = WINDOW_MS


class ConnectionRate:
    """The connections of the last samples."""

    __slots__ = ("_samples", "_sum")

    def __init__(self) -> None:
        self._samples: deque[list[int]] = deque()  # [start, count, last]
        self._sum = 0

    def record(self, quota: float, now_ms: int) -> int:
        """Count one more connection; return the milliseconds that it must wait."""
        self._expire(now_ms)
        samples = self._samples
        if not samples or now_ms - samples[-1][0] >= WINDOW_MS:
            samples.append([now_ms, 0, now_ms])
        samples[-1][1] += 1
        samples[-1][2] = now_ms
        self._sum += 1
        elapsed_ms = now_ms - samples[0][0]
        # A short history counts as one of all samples but the current, so that a start may be quick.
        elapsed_ms += max(0, SAMPLES - 1 - elapsed_ms // WINDOW_MS) * WINDOW_MS
        rate = self._sum * 1000 / elapsed_ms
        if rate <= quota:
            return 0
        return min(LONGEST_MS, round((rate - quota) / quota * elapsed_ms)) if quota > 0 else LONGEST_MS

    def take_back(self) -> None:
        """Count the last connection no more: it was not accepted."""
        if self._samples:
            self._samples[-1][1] -= 1
            self._sum -= 1

    def is_over(self, now_ms: int) -> bool:
        """Return whether nothing is left to count."""
        self._expire(now_ms)
        return not self._samples

    def _expire(self, now_ms: int) -> None:
        samples = self._samples
        while samples and now_ms - samples[0][2] >= SAMPLES * WINDOW_MS:
            self._sum -= samples.popleft()[1]

    def __repr__(self) -> str:
        return f"<ConnectionRate {self._sum} in {len(self._samples)} samples>"


class ConnectionRates:
    """The rates of one daemon. `of_address` returns the quota of an address, None without one. `dynamic`
    returns dynamic configs, the first ones first, which override those given here.

    Nodes of the quorum (`known`) have the same quotas, counted for themselves: strangers use none of theirs.
    """

    def __init__(
        self,
        quota: int = UNLIMITED,
        by_listener: Mapping[str, int] | None = None,
        of_address: Callable[[str], float | None] = lambda host: None,
        dynamic: Callable[[], Sequence[Mapping[str, str]]] = tuple,
    ) -> None:
        self.of_address = of_address
        self.dynamic = dynamic
        self._quota = quota
        self._by_listener = dict(by_listener or {})
        self._rates: dict[tuple[str, bool], ConnectionRate] = {}  # by listener, "" for all
        self._addresses: dict[str, ConnectionRate] = {}

    def accept(self, listener: str, now_ms: int, *, known: bool = False) -> int:
        """Count a connection of a listener; return the milliseconds that it, and all behind it, must wait."""
        wait_ms = 0
        for name in ("", listener):
            quota = self._quota_of(name)
            if quota < UNLIMITED:
                rate = self._rates.setdefault((name, known), ConnectionRate())
                wait_ms = max(wait_ms, rate.record(quota, now_ms))
        return wait_ms

    def _quota_of(self, listener: str) -> int:
        """The quota of a listener; of all together for an empty name."""
        key = f"listener.name.{listener.lower()}.{RATE}" if listener else RATE
        for configs in self.dynamic():
            if key in configs:
                try:
                    return max(0, int(configs[key]))
                except ValueError:
                    break  # only what was set before its type was known
        return self._by_listener.get(listener, UNLIMITED) if listener else self._quota

    def accept_from(self, host: str, listener: str, now_ms: int, *, known: bool = False) -> int:
        """Count a connection of an address. Over its quota, count it nowhere, and return the milliseconds
        after which it is to be closed.
        """
        quota = self.of_address(host)
        if quota is None:
            return 0
        rate = self._addresses.setdefault(host, ConnectionRate())
        wait_ms = rate.record(quota, now_ms)
        if wait_ms:
            rate.take_back()
            for name in ("", listener):
                if (name, known) in self._rates:
                    self._rates[name, known].take_back()
        return wait_ms

    def sweep(self, now_ms: int) -> None:
        """Forget addresses that have opened no connection lately."""
        for host in [host for host, rate in self._addresses.items() if rate.is_over(now_ms)]:
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
