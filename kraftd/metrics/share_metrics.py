"""Kafka's metrics of share groups at the leaders of their partitions (KIP-932).

A process without the broker role has no samples.
"""

from __future__ import annotations

from collections.abc import Callable

from kraftd.metrics.broker_metrics import broker_of
from kraftd.metrics.family import Bean, Family, Samples
from kraftd.metrics.readings import Readings
from kraftd.partition.share.share_partition import SharePartition
from kraftd.partition.share.states import ACCEPT, REJECT, RELEASE, RENEW

_PARTITIONS = Bean("kafka.server", "SharePartitionMetrics")
_GROUPS = Bean("kafka.server", "ShareGroupMetrics")
_TYPES = {ACCEPT: "Accept", RELEASE: "Release", REJECT: "Reject", RENEW: "Renew"}


def _of_partitions(kind: str, name: str, meaning: str, value: Callable[[SharePartition], int]) -> Family:
    def samples(readings: Readings) -> Samples:
        broker = broker_of(readings)
        for led in () if broker is None else broker.coordinators.shares.partitions:
            yield (led.key.group_id, led.topic, str(led.key.partition)), value(led.share)

    return _PARTITIONS.family(kind, name, meaning, samples, ("group", "topic", "partition"))


def _acknowledgements(readings: Readings) -> Samples:
    broker = broker_of(readings)
    if broker is None:
        return []
    counts = broker.coordinators.shares.partitions.acknowledgements
    return [((name,), counts[type]) for type, name in _TYPES.items()]


FAMILIES: tuple[Family, ...] = (
    _of_partitions(
        "gauge",
        "InFlightMessageCount",
        "offsets of a share partition that are held, to be delivered again, or acknowledged",
        lambda share: share.in_flight_count,
    ),
    _of_partitions(
        "gauge",
        "InFlightBatchCount",
        "batches in which a share partition keeps the records in flight",
        lambda share: len(share.in_flight),
    ),
    _of_partitions(
        "counter",
        "AcquisitionLockTimeoutPerSec",
        "records of a share partition that no member acknowledged in time, since it was loaded",
        lambda share: share.expired_count,
    ),
    _GROUPS.family(
        "counter",
        "RecordAcknowledgementsPerSec",
        "records that members acknowledged since the start, by type",
        _acknowledgements,
        ("ackType",),
    ),
)
