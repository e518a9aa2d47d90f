"""Sentences about topics: created with their partitions, deleted, their ELR cleared."""

from __future__ import annotations

from collections.abc import Sequence

from kraftd.history.event import Meaning
from kraftd.history.names import count
from kraftd.history.partitions import topic_name
from kraftd.messages.clear_elr_record import ClearElrRecord
from kraftd.messages.config_record import ConfigRecord
from kraftd.messages.partition_record import PartitionRecord
from kraftd.messages.remove_topic_record import RemoveTopicRecord
from kraftd.messages.topic_record import TopicRecord
from kraftd.metadata.image import Image
from kraftd.metadata.state import TOPIC_RESOURCE
from kraftd.types import uuid_text


def creation_length(messages: Sequence[object], at: int) -> int:
    """How many messages from the TopicRecord on create its topic: it, and the partitions and configs that
    directly follow.
    """
    topic = messages[at]
    assert isinstance(topic, TopicRecord)
    end = at + 1
    while end < len(messages):
        message = messages[end]
        of_topic = (isinstance(message, PartitionRecord) and message.topic_id == topic.topic_id) or (
            isinstance(message, ConfigRecord)
            and message.resource_type == TOPIC_RESOURCE
            and message.resource_name == topic.name
        )
        if not of_topic:
            break
        end += 1
    return end - at


def topic_created(messages: Sequence[object]) -> Meaning:
    """One sentence for a topic's record with the partitions and configs that follow it."""
    topic = messages[0]
    assert isinstance(topic, TopicRecord)
    partitions = [one for one in messages[1:] if isinstance(one, PartitionRecord)]
    configs = {one.name: one.value for one in messages[1:] if isinstance(one, ConfigRecord)}
    factors = sorted({len(one.replicas) for one in partitions})
    text = f"topic {topic.name} created"
    if partitions:
        text += f" with {count(len(partitions), 'partition')}"
        text += f", replication factor {' to '.join(map(str, dict.fromkeys((factors[0], factors[-1]))))}"
    if configs:
        text += f", {', '.join(f'{name}={value}' for name, value in configs.items())}"
    details = {
        "topic_id": uuid_text(topic.topic_id),
        "partitions": len(partitions),
        "replication_factor": factors[-1] if factors else 0,
        **({"configs": configs} if configs else {}),
    }
    return Meaning("topic-created", text, "topic", topic.name, topic.name, None, details)


def topic_deleted(image: Image, record: RemoveTopicRecord) -> Meaning:
    name, topic = topic_name(image, record.topic_id), image.topics.get(record.topic_id)
    partitions = len(topic.partitions) if topic is not None else 0
    text = f"topic {name} deleted ({count(partitions, 'partition')})"
    details = {"topic_id": uuid_text(record.topic_id), "partitions": partitions}
    return Meaning("topic-deleted", text, "topic", name, name, None, details)


def elr_cleared(image: Image, record: ClearElrRecord) -> Meaning:
    name = record.topic_name
    text = f"eligible leader replicas of {f'topic {name}' if name else 'all topics'} cleared"
    return Meaning("elr-cleared", text, "topic" if name else "cluster", name, name or None)
