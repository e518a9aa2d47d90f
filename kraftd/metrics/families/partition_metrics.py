"""Kafka's metrics of single partitions of a broker (kafka.cluster:type=Partition)."""

from __future__ import annotations

from collections.abc import Callable

from kraftd.metrics.families.broker_metrics import hosted_of
from kraftd.metrics.families.family import Bean, Family, Labels, Samples
from kraftd.metrics.state.readings import Readings
from kraftd.partition.partition import Partition

_PARTITION = Bean("kafka.cluster", "Partition")
_LABELS: Labels = ("topic", "partition")


def _of_partitions(name: str, meaning: str, value: Callable[[Partition], int]) -> Family:
    def samples(readings: Readings) -> Samples:
        for hosted in hosted_of(readings):
            if hosted.partition is not None:
                yield (hosted.topic, str(hosted.index)), value(hosted.partition)

    return _PARTITION.family("gauge", name, meaning, samples, _LABELS)


FAMILIES: tuple[Family, ...] = (
    _of_partitions(
        "UnderReplicated",
        "1 for a led partition with a replica outside the ISR",
        lambda p: p.is_under_replicated,
    ),
    _of_partitions(
        "InSyncReplicasCount",
        "members of a led partition's ISR",
        lambda p: len(p.isr.committed) * p.is_leader,
    ),
    _of_partitions("ReplicasCount", "replicas of a led partition", lambda p: len(p.replicas) * p.is_leader),
    _of_partitions(
        "UnderMinIsr",
        "1 for a led partition with an ISR below min.insync.replicas",
        lambda p: p.is_under_min_isr,
    ),
    _of_partitions(
        "AtMinIsr",
        "1 for a led partition with an ISR of exactly min.insync.replicas",
        lambda p: p.is_at_min_isr,
    ),
    _of_partitions(
        "LastStableOffsetLag",
        "records between the last stable offset and the high watermark",
        lambda p: p.high_watermark - p.last_stable_offset,
    ),
)
