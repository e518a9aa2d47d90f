"""Records of a snapshot that count as changed: those modified or deleted since, each once (KIP-630)."""

from __future__ import annotations

import pytest

from kraftd.messages.client_quota_record import ClientQuotaRecord, EntityData
from kraftd.messages.config_record import ConfigRecord
from kraftd.messages.feature_level_record import FeatureLevelRecord
from kraftd.messages.fence_broker_record import FenceBrokerRecord
from kraftd.messages.partition_change_record import PartitionChangeRecord
from kraftd.messages.partition_record import PartitionRecord
from kraftd.messages.producer_ids_record import ProducerIdsRecord
from kraftd.messages.register_broker_record import RegisterBrokerRecord
from kraftd.messages.remove_topic_record import RemoveTopicRecord
from kraftd.messages.topic_record import TopicRecord
from kraftd.messages.unfence_broker_record import UnfenceBrokerRecord
from kraftd.metadata.image import Image
from kraftd.wire.message import Message

TOPIC, OTHER = b"t" * 16, b"o" * 16
USER = [EntityData("user", "alice")]


def partition(topic_id: bytes, index: int) -> PartitionRecord:
    return PartitionRecord(index, topic_id, (1, 2), (1, 2), leader=1)


@pytest.fixture
def image() -> Image:
    """The image of a snapshot: a broker, a topic of two partitions, two configs, a quota, a block of ids."""
    image = Image()
    apply(
        image,
        FeatureLevelRecord("metadata.version", 25),
        RegisterBrokerRecord(1, broker_epoch=5),
        TopicRecord("t", TOPIC),
        partition(TOPIC, 0),
        partition(TOPIC, 1),
        ConfigRecord(2, "t", "a", "1"),
        ConfigRecord(2, "t", "b", "1"),
        ClientQuotaRecord(USER, "consumer_byte_rate", 1.0, False),
        ProducerIdsRecord(1, 5, 1000),
    )
    image.mark()
    return image


def apply(image: Image, *messages: Message) -> None:
    for message in messages:
        image.apply(message, image.offset + 1, 1)


def test_nothing_has_changed_at_first(image: Image) -> None:
    assert image.changed_key_count == 0
    assert Image().changed_key_count == 0


def test_a_new_key_does_not_count(image: Image) -> None:
    apply(image, TopicRecord("o", OTHER), partition(OTHER, 0), partition(TOPIC, 2))
    apply(image, ConfigRecord(2, "t", "c", "1"), ConfigRecord(2, "o", "a", "1"))
    apply(image, ClientQuotaRecord(USER, "producer_byte_rate", 1.0, False))
    apply(image, RegisterBrokerRecord(2, broker_epoch=9), FeatureLevelRecord("group.version", 1))
    assert image.changed_key_count == 0


def test_a_new_key_counts_once_it_is_modified_or_deleted(image: Image) -> None:
    apply(image, TopicRecord("o", OTHER), partition(OTHER, 0))
    apply(image, PartitionChangeRecord(0, OTHER, isr=(1,)))
    assert image.changed_key_count == 1
    apply(image, RemoveTopicRecord(OTHER))
    assert image.changed_key_count == 2


def test_a_key_that_changes_repeatedly_counts_once(image: Image) -> None:
    for isr in ((1,), (1, 2), (2,)):
        apply(image, PartitionChangeRecord(0, TOPIC, isr=isr))
    apply(image, ConfigRecord(2, "t", "a", "2"), ConfigRecord(2, "t", "a", "3"))
    apply(image, UnfenceBrokerRecord(1, 5), FenceBrokerRecord(1, 5))
    apply(image, ProducerIdsRecord(1, 5, 2000), ProducerIdsRecord(1, 5, 3000))
    assert image.changed_key_count == 4


def test_only_the_changed_keys_of_a_resource_or_entity_count(image: Image) -> None:
    apply(image, ConfigRecord(2, "t", "a", None))
    assert image.changed_key_count == 1
    apply(image, ConfigRecord(2, "t", "b", "2"), ConfigRecord(2, "t", "c", "1"))
    assert image.changed_key_count == 2
    apply(image, ClientQuotaRecord(USER, "consumer_byte_rate", 0.0, True))
    assert image.changed_key_count == 3


def test_a_deleted_topic_counts_with_its_partitions_and_configs(image: Image) -> None:
    apply(image, RemoveTopicRecord(TOPIC))
    assert image.changed_key_count == 5
