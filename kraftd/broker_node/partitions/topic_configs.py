"""The configs of topics as partitions and their logs read them: of the topic, of this broker, of all brokers,
of the file, or Kafka's default. A change takes effect with the next look.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TypeVar

from kraftd.configdef.definition import Value, broker_def, topic_def
from kraftd.configdef.node import NodeConfig
from kraftd.controller.configs.resources import CLUSTER, ResourceType
from kraftd.controller.configs.values import Items, items, resolve
from kraftd.controller.context import Context
from kraftd.log.data.settings import DataLogSettings
from kraftd.metadata.throttled import FOLLOWERS, LEADERS, Throttled, replicas_key, throttled
from kraftd.named_tuple import NamedTuple
from kraftd.partition.config import PRODUCERS_CODEC, PartitionConfig
from kraftd.wire.compression import CODEC_NAMES

_TOPIC, _CLUSTER_KEY = int(ResourceType.TOPIC), (int(ResourceType.BROKER), CLUSTER)
_NOTHING: Mapping[str, str] = {}
_LEVELS = {"gzip": "compression.gzip.level", "lz4": "compression.lz4.level", "zstd": "compression.zstd.level"}


class TopicConfig(NamedTuple):
    """What a topic's configs say: to the partition, to its log, and to replication. Equal configs share one
    object.
    """

    partition: PartitionConfig
    log: DataLogSettings
    throttled_leaders: Throttled = Throttled()
    throttled_followers: Throttled = Throttled()


class TopicConfigs:
    """Resolves the configs of topics; looks up a topic's again only where one of the layers has changed."""

    def __init__(self, static: NodeConfig, node_id: int, context: Context) -> None:
        self._static = static
        self.node_id = node_id
        self._node_key = int(ResourceType.BROKER), str(node_id)
        self._context = context
        self._known: dict[
            str, tuple[Mapping[str, str], Mapping[str, str], Mapping[str, str], TopicConfig]
        ] = {}

    def of(self, topic: str) -> TopicConfig:
        """The configs of a topic."""
        get = self._context.image.configs.get  # as `Image.config` does: every Produce asks
        own = get((_TOPIC, topic), _NOTHING)
        node, cluster = get(self._node_key, _NOTHING), get(_CLUSTER_KEY, _NOTHING)
        known = self._known.get(topic)
        # A change of a resource's configs replaces its mapping.
        if known is not None and known[0] is own and known[1] is cluster and known[2] is node:
            return known[3]
        found = _resolved(self._static, items(node), items(cluster), items(own))
        self._known[topic] = own, cluster, node, found
        return found

    def of_broker(self) -> tuple[Mapping[str, str], Mapping[str, str]]:
        """The dynamic configs of this broker, and of all brokers."""
        configs = self._context.image.configs
        return configs.get(self._node_key, _NOTHING), configs.get(_CLUSTER_KEY, _NOTHING)

    def forget(self, topic: str) -> None:
        """Forget a topic that is gone."""
        self._known.pop(topic, None)

    def __repr__(self) -> str:
        return f"<TopicConfigs of {len(self._known)} topics>"


T = TypeVar("T")


@lru_cache(maxsize=1024)
def _resolved(static: NodeConfig, node: Items, cluster: Items, own: Items) -> TopicConfig:
    layers = dict(own), dict(node), dict(cluster), static
    texts = {name: resolve(key, *layers)[0] for name, key in topic_def().items()}
    definition = topic_def()
    values = dict(definition.defaults())
    values |= {name: definition[name].parse_stored(text) for name, text in texts.items() if text is not None}

    def number(name: str) -> int:
        value = values[name]
        assert isinstance(value, int)
        return value

    def of_server(name: str) -> int:
        """A number, or a truth, of the server that may be changed dynamically."""
        dynamic = next((one[name] for one in layers[1:3] if name in one), None)
        value = static.value(name) if dynamic is None else broker_def()[name].parse(dynamic)
        assert isinstance(value, int)
        return value

    policy = _strings(values["cleanup.policy"])
    codec = str(values["compression.type"])
    is_compacted, max_lag_ms = "compact" in policy, number("max.compaction.lag.ms")
    segment_ms = number("segment.ms")
    level = values.get(_LEVELS.get(codec, ""))
    return TopicConfig(
        PartitionConfig(
            is_compacted=is_compacted,
            is_deleted="delete" in policy,
            max_message_bytes=number("max.message.bytes"),
            segment_bytes=number("segment.bytes"),
            sets_append_time=values["message.timestamp.type"] == "LogAppendTime",
            timestamp_before_max_ms=number("message.timestamp.before.max.ms"),
            timestamp_after_max_ms=number("message.timestamp.after.max.ms"),
            compression=_codec_number(codec),
            compression_level=level if isinstance(level, int) else None,
            min_insync_replicas=number("min.insync.replicas"),
            replica_lag_time_max_ms=static.integer("replica.lag.time.max.ms"),
            producer_id_expiration_ms=of_server("producer.id.expiration.ms"),
            transaction_max_timeout_ms=static.integer("transaction.max.timeout.ms"),
            verifies_transactions=bool(of_server("transaction.partition.verification.enable")),
        ),
        DataLogSettings(
            segment_bytes=number("segment.bytes"),
            segment_ms=min(segment_ms, max_lag_ms) if is_compacted else segment_ms,
            segment_jitter_ms=number("segment.jitter.ms"),
            segment_index_bytes=number("segment.index.bytes"),
            index_interval_bytes=number("index.interval.bytes"),
            flush_messages=number("flush.messages"),
            flush_ms=number("flush.ms"),
            retention_bytes=number("retention.bytes"),
            retention_ms=number("retention.ms"),
            file_delete_delay_ms=number("file.delete.delay.ms"),
            deletes="delete" in policy,
            compacts=is_compacted,
            delete_retention_ms=number("delete.retention.ms"),
            min_cleanable_dirty_ratio=_ratio(values["min.cleanable.dirty.ratio"]),
            min_compaction_lag_ms=number("min.compaction.lag.ms"),
            max_compaction_lag_ms=max_lag_ms,
        ),
        throttled(_strings(values[replicas_key(LEADERS)])),
        throttled(_strings(values[replicas_key(FOLLOWERS)])),
    )


def _codec_number(name: str) -> int:
    if name == "producer":
        return PRODUCERS_CODEC
    return 0 if name == "uncompressed" else CODEC_NAMES.index(name)


def _ratio(value: Value) -> float:
    assert isinstance(value, int | float)
    return float(value)


def _strings(value: Value) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list | tuple) else (str(value),)
