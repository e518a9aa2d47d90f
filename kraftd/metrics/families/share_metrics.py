"""Kafka's metrics of share groups at the leaders of their partitions, and of the share coordinator (KIP-932).

A process without the broker role has no samples.
"""

from __future__ import annotations

from collections.abc import Callable

from kraftd.broker_node.share_groups.led_partitions import LedSharePartition
from kraftd.broker_node.share_groups.share_counts import GroupCounts
from kraftd.groups.share_state.coordinator import ShareCoordinator
from kraftd.histogram import Histogram
from kraftd.metrics.families.broker_metrics import of_broker, shards_by_status
from kraftd.metrics.families.family import NS_PER_MS, Bean, Family, ReadOne, Samples, Value
from kraftd.metrics.state.readings import Readings, broker_of
from kraftd.partition.share.states import ACCEPT, REJECT, RELEASE, RENEW

_PARTITIONS = Bean("kafka.server", "SharePartitionMetrics")
_GROUPS = Bean("kafka.server", "ShareGroupMetrics")
_SESSIONS = Bean("kafka.server", "ShareSessionCache")
_FETCHES = Bean("kafka.server", "DelayedShareFetchMetrics")
_COORDINATOR = Bean("kafka.server", "share-coordinator-metrics", named=False)
_TYPES = {ACCEPT: "Accept", RELEASE: "Release", REJECT: "Reject", RENEW: "Renew"}


def _of_partitions(
    kind: str, name: str, meaning: str, value: Callable[[LedSharePartition], Value], unit: int = 1
) -> Family:
    def samples(readings: Readings) -> Samples:
        broker = broker_of(readings)
        for led in () if broker is None else broker.coordinators.shares.partitions:
            yield (led.key.group_id, led.topic, str(led.key.partition)), value(led)

    return _PARTITIONS.family(kind, name, meaning, samples, ("group", "topic", "partition"), unit)


def _of_groups(name: str, meaning: str, value: Callable[[GroupCounts], Histogram], unit: int = 1) -> Family:
    def samples(readings: Readings) -> Samples:
        broker = broker_of(readings)
        found = {} if broker is None else broker.coordinators.shares.partitions.counts.by_group
        return [((group_id,), value(counts)) for group_id, counts in list(found.items())]

    return _GROUPS.family("summary", name, meaning, samples, ("group",), unit)


def _acknowledgements(readings: Readings) -> Samples:
    broker = broker_of(readings)
    if broker is None:
        return []
    counts = broker.coordinators.shares.partitions.counts.acknowledgements
    return [((name,), counts[type]) for type, name in _TYPES.items()]


# -- the share coordinator


def _coordinator(readings: Readings) -> ShareCoordinator | None:
    broker = broker_of(readings)
    return None if broker is None else broker.coordinators.share_states.coordinator


def _of_coordinator(read: Callable[[ShareCoordinator, int], float]) -> ReadOne:
    def read_one(readings: Readings) -> float | None:
        found = _coordinator(readings)
        return None if found is None else read(found, readings.wall_ms)

    return read_one


def _by_status(readings: Readings) -> Samples:
    found = _coordinator(readings)
    return [] if found is None else shards_by_status(found)


def _pruned(readings: Readings) -> Samples:
    found = _coordinator(readings)
    for shard in () if found is None else list(found.shards.values()):
        if shard.pruned_offset >= 0:
            yield ("__share_group_state", str(shard.partition)), shard.pruned_offset


FAMILIES: tuple[Family, ...] = (
    _of_partitions(
        "gauge",
        "InFlightMessageCount",
        "offsets of a share partition that are held, to be delivered again, or acknowledged",
        lambda led: led.share.in_flight_count,
    ),
    _of_partitions(
        "gauge",
        "InFlightBatchCount",
        "batches in which a share partition keeps the records in flight",
        lambda led: len(led.share.in_flight),
    ),
    _of_partitions(
        "counter",
        "AcquisitionLockTimeoutPerSec",
        "records of a share partition that no member acknowledged in time, since it was loaded",
        lambda led: led.share.expired_count,
    ),
    _of_partitions(
        "summary",
        "InFlightBatchMessageCount",
        "records of each batch that members got of a share partition, since it was loaded",
        lambda led: led.counts.batch_sizes,
    ),
    _of_partitions(
        "summary",
        "FetchLockTimeMs",
        "how long each fetch read for a share partition, while no other one did",
        lambda led: led.counts.read_times,
        NS_PER_MS,
    ),
    _of_partitions(
        "summary",
        "FetchLockRatio",
        "percent of the time since the fetch before that each fetch read for a share partition",
        lambda led: led.counts.read_ratios,
    ),
    _GROUPS.family(
        "counter",
        "RecordAcknowledgementsPerSec",
        "records that members acknowledged since the start, by type",
        _acknowledgements,
        ("ackType",),
    ),
    _GROUPS.histogram(
        "PartitionLoadTimeMs",
        "how long a share partition took to load what the share coordinator knows",
        of_broker(lambda b: b.coordinators.shares.partitions.counts.load_times),
    ),
    _of_groups(
        "RequestTopicPartitionsFetchRatio",
        "percent of the share partitions of each fetch that it could read",
        lambda counts: counts.fetch_ratios,
    ),
    _of_groups(
        "TopicPartitionsAcquireTimeMs",
        "how long each fetch waited until it could read a share partition",
        lambda counts: counts.acquire_times,
        NS_PER_MS,
    ),
    _SESSIONS.gauge(
        "ShareSessionsCount",
        "sessions of members of share groups",
        of_broker(lambda b: len(b.coordinators.shares.sessions)),
    ),
    _SESSIONS.gauge(
        "SharePartitionsCount",
        "partitions of the sessions of members of share groups",
        of_broker(lambda b: b.coordinators.shares.sessions.partition_count()),
    ),
    _SESSIONS.counter(
        "ShareSessionEvictionsPerSec",
        "sessions of members of share groups that ended with their connections",
        of_broker(lambda b: b.coordinators.shares.sessions.evicted_count),
    ),
    _FETCHES.counter(
        "ExpiresPerSec",
        "fetches of share groups that waited for as long as they may, since the start",
        of_broker(lambda b: b.coordinators.shares.fetches.expired_count),
    ),
    _COORDINATOR.family(
        "gauge", "num-partitions", "partitions of __share_group_state by state", _by_status, ("state",)
    ),
    _COORDINATOR.counter(
        "write-total",
        "writes of the state of share partitions since the start",
        _of_coordinator(lambda it, _: it.write_count),
    ),
    _COORDINATOR.gauge(
        "write-latency-avg",
        "average milliseconds until a write of the state of a share partition was kept; NaN without one",
        _of_coordinator(lambda it, now_ms: it.write_times.average(now_ms)),
    ),
    _COORDINATOR.gauge(
        "write-latency-max",
        "most milliseconds until a write of the state of a share partition was kept; NaN without one",
        _of_coordinator(lambda it, now_ms: it.write_times.maximum(now_ms)),
    ),
    _COORDINATOR.family(
        "gauge",
        "last-pruned-offset",
        "offset before which __share_group_state was last pruned; none before the first time",
        _pruned,
        ("topic", "partition"),
    ),
)
