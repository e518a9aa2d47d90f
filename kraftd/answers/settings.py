"""The settings of a client node."""

from __future__ import annotations

from kraftd.fetch.session_cache import CacheLimits
from kraftd.named_tuple import NamedTuple
from kraftd.types import Endpoint


class ClientSettings(NamedTuple):
    """`endpoints` are the advertised addresses of this node's client listeners, by name.

    `broker_listener` is the brokers' listener whose endpoints clients get; None is the client's own listener.
    """

    endpoints: dict[str, Endpoint]
    broker_listener: str | None = None
    session_limits: CacheLimits = CacheLimits()
    fetch_max_bytes: int = 57_671_680  # Kafka's fetch.max.bytes
    unstable_versions: bool = False  # of APIs: unstable.api.versions.enable
    serves_metadata_topic: bool = True  # else it is as unknown as at Apache Kafka's brokers
    stands_in_for_brokers: bool = True  # else an answer names no node while every broker is fenced
    request_timeout_ms: int = 30_000  # until a request that is passed on is given up
    described_partitions: int = 2_000  # in an answer at most: Kafka's max.request.partition.size.limit
