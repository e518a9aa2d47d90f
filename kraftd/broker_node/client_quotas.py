"""The quotas of a broker's clients: bytes produced and consumed, and time on the event loop (KIP-13, KIP-55,
KIP-124).

A client over a quota gets its answer at once, with the time that it is to wait. Its connection is muted for
that long (KIP-219). Over the quota of consumed bytes the answer carries no records. The rates are of this
broker alone, as in Kafka. A changed quota counts from the next request on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kraftd.configdef.node import NodeConfig
from kraftd.controller.context import Context
from kraftd.controller.quotas.entities import CONSUMER_RATE, PRODUCER_RATE, REQUEST_PERCENTAGE
from kraftd.controller.quotas.limits import Limited, limit_of
from kraftd.fetch.sessions import replica_of
from kraftd.ground.windowed_rate import WindowedRate
from kraftd.messages.fetch_response import FetchResponse
from kraftd.messages.share_fetch_response import ShareFetchResponse
from kraftd.requests.call import Call
from kraftd.wire.api import ApiKey
from kraftd.wire.primitives import Buffer

AnyFetchResponse = FetchResponse | ShareFetchResponse

MAX_RATES = 10_000  # above it, the first one is forgotten
ANSWER_BYTES, TOPIC_BYTES, PARTITION_BYTES = 16, 18, 39  # of an answer to a fetch, beside its records
PERCENT_PER_NS = 100 / 1_000_000_000  # of a second


class ClientQuotas:
    """The rates of clients that have a quota in the image."""

    def __init__(self, context: Context, static: NodeConfig, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._context = context
        self._window_ms = 1_000 * static.integer("quota.window.size.seconds")
        self._sample_count = static.integer("quota.window.num")
        self._rates: dict[tuple[str, Limited], WindowedRate] = {}
        self._handled: list[WindowedRate] = []  # of the requests of this step
        self.throttled_count = 0  # answers, since the start

    def __repr__(self) -> str:
        return f"<ClientQuotas, {len(self._rates)} rates, {self.throttled_count} answers throttled>"

    @property
    def are_set(self) -> bool:
        """Return whether there is any quota."""
        return bool(self._context.image.quotas)

    def begin(self, call: Call) -> None:
        """A request is about to be handled: it has to wait if those before it have taken too much time."""
        if not self._context.image.quotas:
            return  # the most usual case first
        found = None if is_exempt(call) else self._find(REQUEST_PERCENTAGE, call)
        if found is not None:
            rate, limit = found
            self._throttle(call, min(self._window_ms, rate.excess_ms(limit, self._now_ms())))
            self._handled.append(rate)

    def took(self, elapsed_ns: int) -> None:
        """The requests of the last step have held the event loop for so long."""
        if not self._handled:
            return
        handled, self._handled = self._handled, []
        for rate in handled:
            rate.record(elapsed_ns * PERCENT_PER_NS / len(handled), self._now_ms())

    def produced(self, call: Call) -> None:
        """Charge a Produce that is about to be answered."""
        if not self._context.image.quotas:
            return
        found = self._find(PRODUCER_RATE, call)
        if found is not None:
            rate, limit = found
            rate.record(call.size_bytes, self._now_ms())
            self._throttle(call, rate.excess_ms(limit, self._now_ms()))

    def most_fetched_bytes(self, call: Call) -> int | None:
        """The most bytes that a consumer may get at once without a wait; None without a quota."""
        if not self._context.image.quotas or is_exempt(call):
            return None
        found = self._find(CONSUMER_RATE, call)
        if found is None:
            return None
        return int(found[1] * (self._sample_count - 1) * self._window_ms / 1000)

    def consumed(self, call: Call, answer: AnyFetchResponse, records: Sequence[Buffer]) -> bool:
        """Charge an answer with records; return whether it goes without them, which then cost nothing."""
        found = None if is_exempt(call) else self._find(CONSUMER_RATE, call)
        if found is None:
            return call.mute_ms > 0
        rate, limit = found
        size_bytes = ANSWER_BYTES + sum(map(len, records))
        size_bytes += sum(TOPIC_BYTES + PARTITION_BYTES * len(one.partitions) for one in answer.responses)
        rate.record(size_bytes, self._now_ms())
        self._throttle(call, rate.excess_ms(limit, self._now_ms()))
        if call.mute_ms:
            rate.record(-size_bytes, self._now_ms())
        return call.mute_ms > 0

    def _find(self, key: str, call: Call) -> tuple[WindowedRate, float] | None:
        """The rate and the quota of a client; None without a quota."""
        quotas = self._context.image.quotas
        found = limit_of(quotas, key, call.principal.name, call.client_id) if quotas else None
        if found is None:
            return None
        limited, limit = found
        return self._rate(key, limited), limit

    def _rate(self, key: str, limited: Limited) -> WindowedRate:
        rate = self._rates.get((key, limited))
        if rate is None:
            if len(self._rates) >= MAX_RATES:
                del self._rates[next(iter(self._rates))]
            rate = self._rates[key, limited] = WindowedRate(self._window_ms, self._sample_count)
        return rate

    def _throttle(self, call: Call, throttle_ms: int) -> None:
        if throttle_ms:
            self.throttled_count += not call.mute_ms
            call.mute_ms = max(call.mute_ms, throttle_ms)


def is_exempt(call: Call) -> bool:
    """Return whether a request counts for no quota of its client: one among brokers, or without an answer."""
    if call.key == ApiKey.FETCH:
        return bool(replica_of(call.message, call.version).replica_id >= 0)
    return call.key == ApiKey.WRITE_TXN_MARKERS or call.is_one_way
