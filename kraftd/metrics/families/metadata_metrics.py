"""Kafka's metrics of the metadata: what was loaded, features, snapshots, the log and the disk under it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Protocol

from kraftd.metadata.features import supported_features
from kraftd.metadata.metadata_version import KRAFT_VERSION
from kraftd.metrics.families.broker_metrics import hosted_of
from kraftd.metrics.families.controller_metrics import ignored_static_voters, last_committed_offset
from kraftd.metrics.families.family import Bean, Family, Read, ReadOne, Samples
from kraftd.metrics.state.readings import Readings, broker_of
from kraftd.types import METADATA_PARTITION, METADATA_TOPIC

_LOADER = Bean("kafka.server", "MetadataLoader")
_EMITTER = Bean("kafka.server", "SnapshotEmitter")
_NODE = Bean("kafka.server", "node-metrics", named=False)
_BROKER = Bean("kafka.server", "broker-metadata-metrics", named=False)
_SERVER = Bean("kafka.server", "ControllerServer")
_LOG = Bean("kafka.log", "Log")
_FLUSH = Bean("kafka.log", "LogFlushStats")
_PARTITION = (METADATA_TOPIC, str(METADATA_PARTITION))
_PARTITION_LABELS = ("topic", "partition")


class SizedLog(Protocol):
    """The numbers of any log."""

    @property
    def log_start(self) -> int: ...
    @property
    def log_end(self) -> int: ...
    @property
    def size_bytes(self) -> int: ...
    @property
    def segment_count(self) -> int: ...


def camel_case(feature: str) -> str:
    """`metadata.version` as Kafka's tag has it: metadataVersion."""
    first, *rest = feature.split(".")
    return first + "".join(word.capitalize() for word in rest)


def _of_logs(value: Callable[[SizedLog], int]) -> Read:
    """A number of the metadata log, and of each log of a broker in the process."""

    def samples(readings: Readings) -> Samples:
        yield _PARTITION, value(readings.storage.log)
        for hosted in hosted_of(readings):
            if hosted.log is not None:
                yield (hosted.topic, str(hosted.index)), value(hosted.log)

    return samples


def _retained_percent(readings: Readings) -> Samples:
    """How full a log is of its retention.bytes; 0 without any, and of the metadata log."""
    yield _PARTITION, 0
    for hosted in hosted_of(readings):
        if hosted.log is not None and hosted.config is not None:
            most_bytes = hosted.config.log.retention_bytes
            percent = hosted.log.size_bytes * 100 // most_bytes if most_bytes > 0 else 0
            yield (hosted.topic, str(hosted.index)), percent


def _of_broker(value: Callable[[Readings], int]) -> ReadOne:
    """A number of the metadata in a process with the broker role."""
    return lambda readings: None if broker_of(readings) is None else value(readings)


def _finalized(readings: Readings) -> Samples:
    levels = {
        **readings.node.following.finalized_features.levels,
        KRAFT_VERSION: readings.node.core.kraft_version,
    }
    return [((camel_case(name),), level) for name, level in sorted(levels.items())]


@cache
def _supported(unstable: bool) -> tuple[tuple[str, int, int], ...]:
    features = supported_features(unstable=unstable)
    return tuple((name.replace(".", "-"), low, high) for name, (low, high) in sorted(features.items()))


def _lowest(readings: Readings) -> Samples:
    found = _supported(readings.node.context.settings.unstable_feature_versions_enable)
    return [((name,), low) for name, low, _ in found]


def _highest(readings: Readings) -> Samples:
    found = _supported(readings.node.context.settings.unstable_feature_versions_enable)
    return [((name,), high) for name, _, high in found]


FAMILIES: tuple[Family, ...] = (
    _LOADER.gauge(
        "CurrentMetadataVersion",
        "finalized level of metadata.version",
        lambda r: r.node.following.finalized_features.metadata_version,
    ),
    _LOADER.gauge(
        "CurrentControllerId",
        "id of the active controller, -1 while it is unknown",
        lambda r: r.raft.current_leader,
    ),
    _LOADER.gauge(
        "HandleLoadSnapshotCount",
        "snapshots loaded into the image since the start",
        lambda r: r.node.following.load_progress.snapshots,
    ),
    _LOADER.family("gauge", "FinalizedLevel", "finalized level of a feature", _finalized, ("featureName",)),
    _LOADER.gauge(
        "AvgIdleRatio",
        "share of the last minute in which the event loop was idle, 0 to 1",
        lambda r: r.idle_ratio,
    ),
    _EMITTER.gauge(
        "LatestSnapshotGeneratedBytes",
        "bytes of the latest snapshot that this process made, 0 before the first",
        lambda r: r.snapshots.made_bytes,
    ),
    _EMITTER.gauge(
        "LatestSnapshotGeneratedAgeMs",
        "milliseconds since this process made its latest snapshot; before the first, since its start",
        lambda r: r.now_ms - r.snapshots.made_ms,
    ),
    _NODE.family(
        "gauge",
        "minimum-supported-level",
        "lowest level of a feature that this node supports",
        _lowest,
        ("feature_name",),
    ),
    _NODE.family(
        "gauge",
        "maximum-supported-level",
        "highest level of a feature that this node supports",
        _highest,
        ("feature_name",),
    ),
    _SERVER.family(
        "gauge",
        "ClusterId",
        "1; the label is the cluster id",
        lambda r: [((r.node.identity.cluster_id,), 1)],
        ("cluster_id",),
    ),
    _SERVER.counter(
        "linux-disk-read-bytes",
        "bytes that the kernel read from disks for this process",
        lambda r: None if r.disk_bytes is None else r.disk_bytes[0],
    ),
    _SERVER.counter(
        "linux-disk-write-bytes",
        "bytes that the kernel wrote to disks for this process",
        lambda r: None if r.disk_bytes is None else r.disk_bytes[1],
    ),
    _LOG.family(
        "gauge",
        "Size",
        "bytes of the log's segments",
        _of_logs(lambda log: log.size_bytes),
        _PARTITION_LABELS,
    ),
    _LOG.family(
        "gauge",
        "NumLogSegments",
        "number of the log's segments",
        _of_logs(lambda log: log.segment_count),
        _PARTITION_LABELS,
    ),
    _LOG.family(
        "gauge",
        "RetentionSizeInPercent",
        "size of the log in percent of retention.bytes; 0 without a limit",
        _retained_percent,
        _PARTITION_LABELS,
    ),
    _LOG.family(
        "gauge",
        "LogStartOffset",
        "first offset of the log",
        _of_logs(lambda log: log.log_start),
        _PARTITION_LABELS,
    ),
    _LOG.family(
        "gauge",
        "LogEndOffset",
        "offset of the next record of the log",
        _of_logs(lambda log: log.log_end),
        _PARTITION_LABELS,
    ),
    _FLUSH.histogram("LogFlushRateAndTimeMs", "how long each sync of the log took", lambda r: r.syncs),
)

BROKER_FAMILIES: tuple[Family, ...] = (
    _BROKER.gauge(
        "last-applied-record-offset",
        "offset of the last committed record of the metadata in the broker's image",
        _of_broker(last_committed_offset),
    ),
    _BROKER.gauge(
        "last-applied-record-timestamp",
        "when the last record that the broker has applied was appended, milliseconds since 1970",
        _of_broker(lambda r: r.node.following.load_progress.timestamp_ms),
    ),
    _BROKER.gauge(
        "last-applied-record-lag-ms",
        "milliseconds since the last record of the metadata that the broker has applied was appended",
        _of_broker(lambda r: r.wall_ms - r.node.following.load_progress.timestamp_ms),
    ),
    _BROKER.gauge(
        "metadata-load-error-count",
        "always 0, because a broker that cannot read a record of the metadata ends",
        _of_broker(lambda r: 0),
    ),
    _BROKER.gauge(
        "metadata-apply-error-count",
        "always 0, because a broker that cannot follow a change of the metadata ends",
        _of_broker(lambda r: 0),
    ),
    _BROKER.gauge(
        "ignored-static-voters",
        "1 if controller.quorum.voters is set in the broker's file, but the log overrides it; else 0",
        _of_broker(ignored_static_voters),
    ),
)
