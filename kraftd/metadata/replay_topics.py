"""Replay of topics and partitions."""

from __future__ import annotations

from kraftd.messages.clear_elr_record import ClearElrRecord
from kraftd.messages.partition_change_record import PartitionChangeRecord
from kraftd.messages.partition_record import PartitionRecord
from kraftd.messages.remove_topic_record import RemoveTopicRecord
from kraftd.messages.topic_record import TopicRecord
from kraftd.metadata.errors import ReplayError
from kraftd.metadata.journal import ABSENT
from kraftd.metadata.state import RECOVERING, TOPIC_RESOURCE, PartitionState, TopicState, replica_directories
from kraftd.metadata.tables import Tables
from kraftd.types import uuid_text

_NO_ELR = PartitionChangeRecord(eligible_leader_replicas=(), last_known_elr=())


def add_topic(tables: Tables, record: TopicRecord) -> None:
    """Add a topic. Its id must be new, and its name not in use."""
    if record.topic_id in tables.topics:
        raise ReplayError(f"topic id {uuid_text(record.topic_id)} exists already")
    existing = tables.topic_named(record.name)
    if existing is not None:
        raise ReplayError(f"topic {record.name} exists already as {uuid_text(existing.id)}")
    tables.set_topic(record.topic_id, TopicState(record.topic_id, record.name, {}))


def remove_topic(tables: Tables, record: RemoveTopicRecord) -> None:
    """Remove a topic with its partitions and configs."""
    topic = tables.topics.get(record.topic_id)
    if topic is None:
        raise ReplayError(f"no topic {uuid_text(record.topic_id)}")
    tables.remove_partitions(topic)
    tables.set_topic(topic.id, None)
    if (TOPIC_RESOURCE, topic.name) in tables.configs:
        tables.put(tables.configs, (TOPIC_RESOURCE, topic.name), ABSENT)


def set_partition(tables: Tables, record: PartitionRecord) -> None:
    """Add a partition, or replace an existing one as a whole."""
    topic = tables.topics.get(record.topic_id)
    if topic is None:
        raise ReplayError(f"no topic {uuid_text(record.topic_id)}")
    if record.partition_id < 0:
        raise ReplayError(f"partition {record.partition_id} of topic {topic.name}")
    replicas = tables.shared_values.one(record.replicas)
    try:
        directories = tables.shared_values.ids(replica_directories(record.directories, replicas))
    except ValueError as error:
        raise ReplayError(f"partition {record.partition_id} of topic {topic.name}: {error}") from None
    tables.set_partition(
        topic,
        record.partition_id,
        PartitionState(
            replicas,
            directories,
            replicas if record.isr == replicas else tables.shared_values.one(record.isr),
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


def change_partition(tables: Tables, record: PartitionChangeRecord) -> None:
    """See ``PartitionState.merged``."""
    topic = tables.topics.get(record.topic_id)
    if topic is None:
        raise ReplayError(f"no topic {uuid_text(record.topic_id)}")
    before = topic.partitions.get(record.partition_id)
    if before is None:
        raise ReplayError(f"no partition {record.partition_id} of topic {topic.name}")
    # The image keeps the record's tuples, unless it already has equal ones.
    if record.replicas is not None:
        record.replicas = tables.shared_values.one(record.replicas)
    if record.isr is not None:
        record.isr = (
            before.replicas if record.isr == before.replicas else tables.shared_values.one(record.isr)
        )
    if record.directories is not None:
        record.directories = tables.shared_values.ids(record.directories)
    try:
        after = before.merged(record)
    except ValueError as error:
        raise ReplayError(f"partition {record.partition_id} of topic {topic.name}: {error}") from None
    if record.leader_recovery_state == RECOVERING:
        tables.unclean_elections += 1
    if before.elr and record.leader in before.elr:
        tables.elections_from_elr += 1
    tables.set_partition(topic, record.partition_id, after)


def clear_elr(tables: Tables, record: ClearElrRecord) -> None:
    """Empty both ELRs of one topic, or of all if the name is empty (KIP-966). Each change raises the
    partition epoch.
    """
    name = record.topic_name
    topic = tables.topic_named(name) if name else None
    if name and topic is None:
        raise ReplayError(f"no topic {name}")
    for topic_id, index in list(tables.partitions_with_any_elr()):
        if topic is None or topic_id == topic.id:
            owner = tables.topics[topic_id]
            old = owner.partitions[index]
            tables.set_partition(owner, index, old.merged(_NO_ELR))
