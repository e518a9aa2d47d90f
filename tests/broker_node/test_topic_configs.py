"""What a broker's topics are configured with."""

from __future__ import annotations

from types import SimpleNamespace

from kraftd.broker_node.partitions.topic_configs import TopicConfigs
from kraftd.configdef.node import NodeConfig
from kraftd.messages.config_record import ConfigRecord
from kraftd.metadata.image import Image


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
