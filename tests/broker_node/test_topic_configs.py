"""What a broker's topics are configured with."""

from __future__ import annotations

from types import SimpleNamespace

from kraftd.broker_node.partitions.topic_configs import TopicConfigs
from kraftd.configdef.node import NodeConfig
from kraftd.messages.config_record import ConfigRecord
from kraftd.metadata.image import Image
from kraftd.partition.config import PRODUCERS_CODEC


def test_numbers_and_lists_that_only_an_older_release_accepts_count() -> None:
    """Controllers of Kafka 3.9 accept segments of 14 bytes, later ones of 1 MiB (KIP-1030)."""
    image = Image()
    stored = {
        "segment.bytes": "60000",
        "cleanup.policy": "compact,compact",
        "compression.type": "lzo",
        "retention.ms": "soon",
        "message.downconversion.enable": "true",  # no key of today's
    }
    for key, value in stored.items():
        image.apply(ConfigRecord(2, "t", key, value), 0, 0)
    found = TopicConfigs(NodeConfig({}), 1, SimpleNamespace(image=image)).of("t")
    assert found.log.segment_bytes == found.partition.segment_bytes == 60_000
    assert found.partition.is_compacted and not found.partition.is_deleted
    assert found.partition.compression == PRODUCERS_CODEC
    assert found.log.retention_ms == 604_800_000


def test_dynamic_configs_of_brokers_change_how_producers_are_kept() -> None:
    image = Image()
    static = NodeConfig({"producer.id.expiration.ms": "5000"})
    configs = TopicConfigs(static, 1, SimpleNamespace(image=image))

    def producers() -> tuple[int, bool]:
        found = configs.of("t").partition
        return found.producer_id_expiration_ms, found.verifies_transactions

    def set_config(broker: str, key: str, value: str) -> None:
        image.apply(ConfigRecord(4, broker, key, value), 0, 0)

    assert producers() == (5_000, True)
    set_config("", "producer.id.expiration.ms", "7000")
    set_config("", "transaction.partition.verification.enable", "false")
    assert producers() == (7_000, False)
    set_config("1", "producer.id.expiration.ms", "9000")
    assert producers()[0] == 9_000
