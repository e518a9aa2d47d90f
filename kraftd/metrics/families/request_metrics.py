"""Kafka's `kafka.network` metrics: requests by API, and the connections that they come over.

The last word of a name is Kafka's name of the API, like `CreateTopics`; an API has metrics after its first
request.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache

from kraftd.histogram import Histogram
from kraftd.metrics.families.family import NS_PER_MS, Bean, Family, Samples
from kraftd.metrics.state.readings import Readings, broker_of
from kraftd.requests.stats import ApiStats
from kraftd.wire.api import ApiKey, request_class
from kraftd.wire.error_code import ErrorCode

_REQUESTS = Bean("kafka.network", "RequestMetrics")
_SOCKETS = Bean("kafka.network", "SocketServer")
_CHANNEL = Bean("kafka.network", "RequestChannel")
_LISTENERS = Bean("kafka.server", "socket-server-metrics", named=False)
_HANDLERS = Bean("kafka.server", "KafkaRequestHandlerPool")
_ERROR_NAMES = {int(code): code.name for code in ErrorCode}


@cache
def api_name(key: int) -> str:
    return request_class(ApiKey(key)).__name__.removesuffix("Request")


def _by_key(readings: Readings) -> dict[int, ApiStats]:
    """The requests of the controller, and of the broker in the process if there is one."""
    by_key = readings.node.boundary.stats.by_key
    broker = broker_of(readings)
    if broker is None:
        return by_key
    of_broker = broker.boundary.stats.by_key
    return {
        key: _both(by_key[key], of_broker[key])
        if key in by_key and key in of_broker
        else by_key.get(key) or of_broker[key]
        for key in {*by_key, *of_broker}
    }


def _both(first: ApiStats, second: ApiStats) -> ApiStats:
    both = ApiStats()
    both.versions = dict(Counter(first.versions) + Counter(second.versions))
    both.errors = dict(Counter(first.errors) + Counter(second.errors))
    both.at_once = _sum(first.at_once, second.at_once)
    both.parked = _sum(first.parked, second.parked)
    both.size_bytes = _sum(first.size_bytes, second.size_bytes)
    return both


def _apis(readings: Readings) -> Iterator[tuple[str, ApiStats]]:
    by_key = _by_key(readings)
    return ((api_name(key), by_key[key]) for key in sorted(by_key))


def version_samples(by_key: Mapping[int, ApiStats]) -> Samples:
    """Requests by API and version."""
    return [
        ((api_name(key), str(version)), count)
        for key, stats in sorted(by_key.items())
        for version, count in sorted(stats.versions.items())
    ]


def error_samples(by_key: Mapping[int, ApiStats]) -> Samples:
    """Errors by API and code."""
    return [
        ((api_name(key), _ERROR_NAMES[code]), count)
        for key, stats in sorted(by_key.items())
        for code, count in sorted(stats.errors.items())
    ]


def total_of(stats: ApiStats) -> Histogram:
    """The times of all requests, answered at once or parked."""
    return _sum(stats.at_once, stats.parked)


def _total(readings: Readings) -> Samples:
    return [((name,), total_of(stats)) for name, stats in _apis(readings)]


def _sum(first: Histogram, second: Histogram) -> Histogram:
    both = Histogram(first.bounds)
    both.counts = [a + b for a, b in zip(first.counts, second.counts, strict=True)]
    both.total = first.total + second.total
    return both


def _open(readings: Readings) -> Counter[str]:
    """Open connections by listener, including every listener that ever had one."""
    counts = Counter(connection.listener for connection in readings.connections)
    counts.update(dict.fromkeys(readings.connections.opened, 0))
    return counts


def _open_by_listener(readings: Readings) -> Samples:
    return [((listener,), count) for listener, count in sorted(_open(readings).items())]


def _opened_by_listener(readings: Readings) -> Samples:
    return [((listener,), count) for listener, count in sorted(readings.connections.opened.items())]


def _closed_by_listener(readings: Readings) -> Samples:
    still = _open(readings)
    opened = readings.connections.opened
    return [((listener,), opened[listener] - count) for listener, count in sorted(still.items())]


FAMILIES: tuple[Family, ...] = (
    _REQUESTS.family(
        "counter",
        "RequestsPerSec",
        "requests answered since the start",
        lambda r: version_samples(_by_key(r)),
        ("request", "version"),
    ),
    _REQUESTS.family(
        "counter",
        "ErrorsPerSec",
        "errors in answers since the start; NONE is not counted",
        lambda r: error_samples(_by_key(r)),
        ("request", "error"),
    ),
    _REQUESTS.family(
        "histogram",
        "TotalTimeMs",
        "time from a request's arrival to its answer's departure",
        _total,
        ("request",),
        NS_PER_MS,
    ),
    _REQUESTS.family(
        "histogram",
        "LocalTimeMs",
        "total time of requests that were answered at once",
        lambda r: [((name,), stats.at_once) for name, stats in _apis(r)],
        ("request",),
        NS_PER_MS,
    ),
    _REQUESTS.family(
        "histogram",
        "RemoteTimeMs",
        "total time of requests that waited for a commit, records or the disk",
        lambda r: [((name,), stats.parked) for name, stats in _apis(r)],
        ("request",),
        NS_PER_MS,
    ),
    _REQUESTS.family(
        "histogram",
        "RequestBytes",
        "sizes of requests",
        lambda r: [((name,), stats.size_bytes) for name, stats in _apis(r)],
        ("request",),
    ),
    _SOCKETS.gauge(
        "NetworkProcessorAvgIdlePercent",
        "share of the last minute in which the event loop was idle, 0 to 1",
        lambda r: r.idle_ratio,
    ),
    _SOCKETS.gauge(
        "MemoryPoolUsed",
        "bytes held for incomplete frames",
        lambda r: r.connections.budget.held_bytes,
    ),
    _SOCKETS.gauge(
        "MemoryPoolAvailable",
        "bytes left for incomplete frames (queued.max.request.bytes)",
        lambda r: max(0, r.connections.budget.max_bytes - r.connections.budget.held_bytes),
    ),
    _HANDLERS.gauge(
        "ControllerRequestHandlerAvgIdlePercent",
        "share of the last minute in which the event loop was idle, 0 to 1",
        lambda r: r.idle_ratio,
    ),
    _HANDLERS.gauge(
        "RequestHandlerAvgIdlePercent",
        "share of the last minute in which the event loop was idle, 0 to 1",
        lambda r: r.idle_ratio,
    ),
    _CHANNEL.gauge(
        "RequestQueueSize",
        "requests that have arrived but were not yet handled",
        lambda r: sum(connection.waiting for connection in r.connections),
    ),
    _LISTENERS.family("gauge", "connection-count", "open connections", _open_by_listener, ("listener",)),
    _LISTENERS.family(
        "counter", "connection-creation-total", "connections accepted", _opened_by_listener, ("listener",)
    ),
    _LISTENERS.family(
        "counter", "connection-close-total", "connections closed", _closed_by_listener, ("listener",)
    ),
)
