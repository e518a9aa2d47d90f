"""Kafka's metrics of single partitions of a broker (kafka.cluster:type=Partition)."""

from __future__ import annotations

from collections.abc import Callable

from kraftd.broker_node.partitions.replicas import Hosted
from kraftd.metrics.families.broker_metrics import hosted_of
from kraftd.metrics.families.family import Bean, Family, Labels, Samples
from kraftd.metrics.state.readings import Readings
from kraftd.partition.partition import Partition

_PARTITION = Bean("kafka.cluster", "Partition")
_LABELS: Labels = ("topic", "partition")


def _of_hosted(name: str, meaning: str, value: Callable[[Hosted], int]) -> Family:
    def samples(readings: Readings) -> Samples:
        for hosted in hosted_of(readings):
            if hosted.partition is not None:
                yield (hosted.topic, str(hosted.index)), value(hosted)

    return _PARTITION.family("gauge", name, meaning, samples, _LABELS)


def _of_partitions(name: str, meaning: str, value: Callable[[Partition], int]) -> Family:
    return _of_hosted(name, meaning, lambda one: 0 if one.partition is None else value(one.partition))


FAMILIES: tuple[Family, ...] = (
    _of_hosted(
        "UnderReplicated",
        "1 for a led partition with fewer members of its ISR than ReplicasCount",
        lambda one: one.is_under_replicated,
    ),
    _of_partitions(
        "InSyncReplicasCount",
        "members of a led partition's ISR",
        lambda p: len(p.isr.committed) * p.is_leader,
    ),
    _of_hosted(
        "ReplicasCount",
        "replicas of a led partition, without those that are being added",
        lambda one: one.replication_factor * (one.partition is not None and one.partition.is_leader),
    ),
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
