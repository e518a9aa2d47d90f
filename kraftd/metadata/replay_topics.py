"""Replay of topics and partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.messages.clear_elr_record import ClearElrRecord
from kraftd.messages.partition_change_record import PartitionChangeRecord
from kraftd.messages.partition_record import PartitionRecord
from kraftd.messages.remove_topic_record import RemoveTopicRecord
from kraftd.messages.topic_record import TopicRecord
from kraftd.metadata.errors import ReplayError
from kraftd.metadata.journal import ABSENT
from kraftd.metadata.state import RECOVERING, TOPIC_RESOURCE, PartitionState, TopicState, replica_directories
from kraftd.types import uuid_text

if TYPE_CHECKING:
    from kraftd.metadata.image import Image

_NO_ELR = PartitionChangeRecord(eligible_leader_replicas=(), last_known_elr=())


def add_topic(image: Image, record: TopicRecord) -> None:
    """A topic id never comes twice, nor a name while its topic lives."""
    if record.topic_id in image.topics:
        raise ReplayError(f"topic id {uuid_text(record.topic_id)} exists already")
    existing = image.topic_named(record.name)
    if existing is not None:
        raise ReplayError(f"topic {record.name} exists already as {uuid_text(existing.id)}")
    image.set_topic(record.topic_id, TopicState(record.topic_id, record.name, {}))


def remove_topic(image: Image, record: RemoveTopicRecord) -> None:
    """Its partitions and its configs go with it."""
    topic = image.topics.get(record.topic_id)
    if topic is None:
        raise ReplayError(f"no topic {uuid_text(record.topic_id)}")
    image.remove_partitions(topic)
    image.set_topic(topic.id, None)
    if (TOPIC_RESOURCE, topic.name) in image.configs:
        image.put(image.configs, (TOPIC_RESOURCE, topic.name), ABSENT)


def set_partition(image: Image, record: PartitionRecord) -> None:
    """A new partition, or the whole of an old one."""
    topic = image.topics.get(record.topic_id)
    if topic is None:
        raise ReplayError(f"no topic {uuid_text(record.topic_id)}")
    if record.partition_id < 0:
        raise ReplayError(f"partition {record.partition_id} of topic {topic.name}")
    replicas = image.sharing.one(record.replicas)
    try:
        directories = image.sharing.ids(replica_directories(record.directories, replicas))
    except ValueError as error:
        raise ReplayError(f"partition {record.partition_id} of topic {topic.name}: {error}") from None
    image.set_partition(
        topic,
        record.partition_id,
        PartitionState(
            replicas,
            directories,
            replicas if record.isr == replicas else image.sharing.one(record.isr),
            record.removing_replicas,
            record.adding_replicas,
            record.eligible_leader_replicas or (),
            record.last_known_elr or (),
            record.leader,
            record.leader_recovery_state,
            record.leader_epoch,
            record.partition_epoch,
        ),
    )


def change_partition(image: Image, record: PartitionChangeRecord) -> None:
    """See ``PartitionState.merged``."""
    topic = image.topics.get(record.topic_id)
    if topic is None:
        raise ReplayError(f"no topic {uuid_text(record.topic_id)}")
    before = topic.partitions.get(record.partition_id)
    if before is None:
        raise ReplayError(f"no partition {record.partition_id} of topic {topic.name}")
    # The record's tuples become the image's; equal ones that it already keeps take their place.
    if record.replicas is not None:
        record.replicas = image.sharing.one(record.replicas)
    if record.isr is not None:
        record.isr = before.replicas if record.isr == before.replicas else image.sharing.one(record.isr)
    if record.directories is not None:
        record.directories = image.sharing.ids(record.directories)
    try:
        after = before.merged(record)
    except ValueError as error:
        raise ReplayError(f"partition {record.partition_id} of topic {topic.name}: {error}") from None
    if record.leader_recovery_state == RECOVERING:
        image.unclean_elections += 1
    if before.elr and record.leader in before.elr:
        image.elections_from_elr += 1
    image.set_partition(topic, record.partition_id, after)


def clear_elr(image: Image, record: ClearElrRecord) -> None:
    """Empty both ELRs of one topic, or of all when the name is empty (KIP-966); the partition epoch
    moves with it.
    """
    name = record.topic_name
    topic = image.topic_named(name) if name else None
    if name and topic is None:
        raise ReplayError(f"no topic {name}")
    for topic_id, index in list(image.partitions_with_any_elr()):
        if topic is None or topic_id == topic.id:
            owner = image.topics[topic_id]
            old = owner.partitions[index]
            image.set_partition(owner, index, old.merged(_NO_ELR))
