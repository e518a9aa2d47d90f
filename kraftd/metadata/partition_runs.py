"""New partitions, many at a time: creations, snapshots and most of a log consist of them.

A run is consecutive records of one topic's partitions. Each partition is new, led by its first replica, and
otherwise plain. Such a partition is in none of the sparse indexes, and a run enters the other indexes at
once. Every other record is left to ``replay_topics.set_partition``, which handles all cases and errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from kraftd.messages.partition_record import PartitionRecord
from kraftd.metadata import journal as j
from kraftd.metadata.partition_index import SHARED_INTS, SHARED_LIMIT
from kraftd.metadata.state import PartitionState, replica_directories
from kraftd.metadata.tables import Tables
from kraftd.types import DIRECTORY_MIGRATING


def add_run(
    tables: Tables,
    messages: Sequence[object],
    at: int,
    offset: int,
    entries: j.Entries | None,
    step: int = 1,
) -> int:
    """Add the run that begins with the message at a place; returns its number of messages, which may be 0.

    offset is that of the first message, and step from one to the next. The changes are journalled in entries,
    unless that is None.
    """
    first = messages[at]
    assert type(first) is PartitionRecord
    topic_id = first.topic_id
    topic = tables.topics.get(topic_id)
    if topic is None:
        return 0
    topic_id, partitions = topic.id, topic.partitions
    known = tables.known_partitions.by_replicas
    masks: dict[int, int] = {}
    led: dict[int, int] = {}
    count = 0
    changes = tables.replica_changes
    for record in islice(messages, at, None):
        if type(record) is not PartitionRecord or record.topic_id != topic_id:
            break
        state = known.get(record.replicas)
        if (
            state is None
            or record.directories != state.directories
            or record.partition_epoch != state.partition_epoch
            or record.leader_epoch != state.leader_epoch
            or record.isr != state.isr
            or record.leader != state.leader
            or record.leader_recovery_state != state.leader_recovery_state
            or record.removing_replicas
            or record.adding_replicas
            or record.eligible_leader_replicas
            or record.last_known_elr
        ):
            state = _plain_state(tables, record)
            if state is None:
                break
        index = record.partition_id
        if index < 0 or index in partitions:
            break
        if index < SHARED_LIMIT:
            index = SHARED_INTS[index]
        if entries is not None:
            entries.append((offset + count, j.FOLLOWING, topic, index, None))
        if changes is not None:
            changes.note(offset + count * step, topic_id, topic.name, index, None, state, entries is None)
        partitions[index] = state
        count += 1
        bit = 1 << index
        for replica in state.replicas:
            masks[replica] = masks.get(replica, 0) | bit
        leader = state.leader
        led[leader] = led.get(leader, 0) + 1
    tables.note_run(topic_id, count, masks, led)
    return count


def _plain_state(tables: Tables, record: PartitionRecord) -> PartitionState | None:
    """The plain state of a record, shared with equal partitions; None if it is not plain, or has an error."""
    replicas = record.replicas
    if (
        not replicas
        or record.leader != replicas[0]
        or record.leader < 0
        or record.removing_replicas
        or record.adding_replicas
        or record.eligible_leader_replicas
        or record.last_known_elr
    ):
        return None
    if record.isr != replicas and not set(record.isr).issubset(replicas):
        return None
    directories = record.directories
    if len(directories) != len(replicas) or DIRECTORY_MIGRATING in directories:
        try:
            directories = replica_directories(directories, replicas)
        except ValueError:
            return None
    if not tables.shared_values.keeps(directories[0]):  # the C engine has shared them already
        directories = tables.shared_values.ids(directories)
    state = PartitionState(
        replicas,
        directories,
        replicas if record.isr == replicas else record.isr,
        (),
        (),
        (),
        (),
        record.leader,
        record.leader_recovery_state,
        record.leader_epoch,
        record.partition_epoch,
    )
    tables.known_partitions.remember(state, tables.partition_count)
    return state
