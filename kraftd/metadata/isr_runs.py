"""Changed ISRs, many at a time: a broker that fails or returns changes the ISRs of most of its partitions.

A run is consecutive records that change nothing but ISRs. Such a change concerns no index. Equal partitions
that change in the same way become the same object again. Every other record is left to
``replay_topics.change_partition``, which handles all cases and errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from kraftd.messages.partition_change_record import PartitionChangeRecord
from kraftd.metadata import journal as j
from kraftd.metadata.state import NO_LEADER_CHANGE, RECOVERY_UNCHANGED
from kraftd.metadata.tables import Tables

MAX_KNOWN = 1 << 12


def change_run(
    tables: Tables,
    messages: Sequence[object],
    at: int,
    offset: int,
    entries: j.Entries | None,
    step: int = 1,
) -> int:
    """Make the changes of the run that begins with the message at a place; returns its number of messages,
    which may be 0.

    offset is that of the first message, and step from one to the next. The changes are journalled in entries,
    unless that is None.
    """
    topics, known, changes = tables.topics, tables.known_changes, tables.replica_changes
    topic = None
    topic_id = b""
    count = 0
    for record in islice(messages, at, None):
        if type(record) is not PartitionChangeRecord or not _is_plain(record):
            break
        if topic is None or record.topic_id != topic_id:
            topic_id = record.topic_id
            topic = topics.get(topic_id)
            if topic is None:
                break
            topic_id, partitions = topic.id, topic.partitions
        index, isr = record.partition_id, record.isr
        before = partitions.get(index)
        if before is None or isr is None:
            break
        found = known.get(id(before))
        if found is not None and (found[1] is isr or found[1] == isr):
            after = found[2]
        else:
            if before.hosts() is not before.replicas or not set(isr).issubset(before.replicas):
                break
            record.isr = before.replicas if isr == before.replicas else tables.shared_values.one(isr)
            after = before.merged(record)
            if len(known) >= MAX_KNOWN:
                known.clear()
            known[id(before)] = before, isr, after
        if entries is not None:
            entries.append((offset + count, j.FOLLOWING, topic, index, before))
        if changes is not None:
            changes.note(offset + count * step, topic_id, topic.name, index, before, after, entries is None)
        partitions[index] = after
        count += 1
    return count


def _is_plain(record: PartitionChangeRecord) -> bool:
    return (
        record.leader == NO_LEADER_CHANGE
        and record.replicas is None
        and record.removing_replicas is None
        and record.adding_replicas is None
        and record.leader_recovery_state == RECOVERY_UNCHANGED
        and record.directories is None
        and record.eligible_leader_replicas is None
        and record.last_known_elr is None
    )
