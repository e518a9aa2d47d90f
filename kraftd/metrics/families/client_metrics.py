"""Requests of ordinary clients by API, with the labels of a controller listener's; their sessions.

Without a client listener there are no samples.
"""

from __future__ import annotations

from collections.abc import Callable

from kraftd.fetch.session_cache import SessionCache
from kraftd.histogram import Histogram
from kraftd.metrics.families.family import NS_PER_MS, Family, Samples, own
from kraftd.metrics.families.request_metrics import api_name, error_samples, total_of, version_samples
from kraftd.metrics.state.readings import Readings
from kraftd.requests.stats import ApiStats


def _by_key(readings: Readings) -> dict[int, ApiStats]:
    clients = readings.clients
    return {} if clients is None else clients.boundary.stats.by_key


def _sessions(readings: Readings) -> SessionCache | None:
    clients = readings.clients
    return None if clients is None else clients.session_cache


def _histogram(name: str, meaning: str, of: Callable[[ApiStats], Histogram], unit: int) -> Family:
    def read(readings: Readings) -> Samples:
        return [((api_name(key),), of(stats)) for key, stats in sorted(_by_key(readings).items())]

    return Family(f"kraftd_client_{name}", "histogram", "", meaning, read, ("request",), unit)


FAMILIES: tuple[Family, ...] = (
    Family(
        "kraftd_client_requests",
        "counter",
        "",
        "requests of ordinary clients answered since the start",
        lambda r: version_samples(_by_key(r)),
        ("request", "version"),
    ),
    Family(
        "kraftd_client_request_errors",
        "counter",
        "",
        "errors in answers to ordinary clients since the start",
        lambda r: error_samples(_by_key(r)),
        ("request", "error"),
    ),
    _histogram(
        "request_total_time_ms",
        "time from the arrival of an ordinary client's request to its answer's departure",
        total_of,
        NS_PER_MS,
    ),
    _histogram(
        "request_local_time_ms",
        "total time of ordinary clients' requests that were answered at once",
        lambda stats: stats.at_once,
        NS_PER_MS,
    ),
    _histogram(
        "request_remote_time_ms",
        "total time of ordinary clients' requests that waited for a commit, records, the disk or a node",
        lambda stats: stats.parked,
        NS_PER_MS,
    ),
    _histogram("request_bytes", "sizes of ordinary clients' requests", lambda stats: stats.size_bytes, 1),
    own(
        "gauge",
        "client_fetch_sessions",
        "fetch sessions of ordinary clients in the cache",
        lambda r: None if (cache := _sessions(r)) is None else len(cache),
    ),
    own(
        "counter",
        "client_fetch_session_evictions",
        "fetch sessions evicted from the cache since the start",
        lambda r: None if (cache := _sessions(r)) is None else cache.evictions,
    ),
)
