"""Sentences about partitions: leaders, in-sync replicas, reassignments, eligible leader replicas."""

from __future__ import annotations

from typing import Any

from kraftd.history.event import Meaning
from kraftd.history.names import brokers, ids
from kraftd.messages.partition_change_record import PartitionChangeRecord
from kraftd.messages.partition_record import PartitionRecord
from kraftd.metadata.image import Image
from kraftd.metadata.state import NO_LEADER, NO_LEADER_CHANGE, RECOVERING, PartitionState
from kraftd.types import DIRECTORY_LOST, DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED, uuid_text

Clause = tuple[str, str]  # the kind of event, and its words about the partition

_DIRECTORIES = {
    DIRECTORY_MIGRATING: "an unknown directory",
    DIRECTORY_UNASSIGNED: "a directory that is not assigned yet",
    DIRECTORY_LOST: "a directory that is lost",
}


def topic_name(image: Image, topic_id: bytes) -> str:
    """The name of a topic, or its id if the image does not have it."""
    topic = image.topics.get(topic_id)
    return uuid_text(topic_id) if topic is None else topic.name


def partition_added(image: Image, record: PartitionRecord) -> Meaning:
    topic, index = topic_name(image, record.topic_id), record.partition_id
    led = f"leader {record.leader}" if record.leader >= 0 else "no leader"
    replaced = image.partition(record.topic_id, index) is not None
    kind, verb = ("partition-replaced", "replaced") if replaced else ("partition-added", "added")
    text = f"{topic}-{index}: {verb} on {brokers(record.replicas)}, {led}, ISR {ids(record.isr)}"
    return Meaning(kind, text, "partition", f"{topic}-{index}", topic, index, fields(record))


def partition_changed(image: Image, record: PartitionChangeRecord) -> Meaning:
    """The event of a change; its first clause determines the kind."""
    topic, index = topic_name(image, record.topic_id), record.partition_id
    name = f"{topic}-{index}"
    before = image.partition(record.topic_id, index)
    if before is None:
        return Meaning(
            "partition-changed", f"{name}: changed, and not known here", "partition", name, topic, index
        )
    after = before.merged(record)
    clauses = [
        *_leader(record, before, after),
        *_reassignment(before, after),
        *_isr(before, after),
        *_directories(before, after),
        *_elr(before, after),
    ] or [("partition-changed", f"partition epoch raised to {after.partition_epoch}")]
    text = f"{name}: {'; '.join(clause for _, clause in clauses)}"
    details = {**fields(after), "kinds": [kind for kind, _ in clauses], "before": fields(before)}
    return Meaning(clauses[0][0], text, "partition", name, topic, index, details)


def fields(state: PartitionState | PartitionRecord) -> dict[str, Any]:
    """The fields of a partition for scripts."""
    return {
        "leader": state.leader,
        "leader_epoch": state.leader_epoch,
        "partition_epoch": state.partition_epoch,
        "replicas": list(state.replicas),
        "isr": list(state.isr),
    }


def _leader(record: PartitionChangeRecord, before: PartitionState, after: PartitionState) -> list[Clause]:
    if record.leader == NO_LEADER_CHANGE:
        return []
    epoch = f"leader epoch {after.leader_epoch}"
    if record.leader_recovery_state == RECOVERING:
        return [
            (
                "unclean-election",
                f"broker {after.leader} was elected uncleanly ({epoch}): records may be lost",
            )
        ]
    if after.leader == NO_LEADER:
        if before.leader == NO_LEADER:
            return [("leader-epoch-raised", f"still without a leader ({epoch})")]
        return [("leader-lost", f"lost its leader, broker {before.leader} ({epoch})")]
    if before.leader == NO_LEADER:
        return [("leader-elected", f"has a leader again, broker {after.leader} ({epoch})")]
    if before.leader == after.leader:
        return [
            (
                "leader-epoch-raised",
                f"leader epoch raised to {after.leader_epoch}, leader still {after.leader}",
            )
        ]
    moved = f"leader moved from broker {before.leader} to broker {after.leader} ({epoch})"
    return [("leader-moved", moved)]


def _reassignment(before: PartitionState, after: PartitionState) -> list[Clause]:
    if after.is_reassigning:
        if (before.adding_replicas, before.removing_replicas) == (
            after.adding_replicas,
            after.removing_replicas,
        ):
            return []
        parts = [
            f"{verb} {brokers(replicas)}"
            for verb, replicas in (("adding", after.adding_replicas), ("removing", after.removing_replicas))
            if replicas
        ]
        return [("reassignment-started", f"reassignment started: {', '.join(parts)}")]
    if before.is_reassigning:
        completed = set(before.removing_replicas).isdisjoint(after.replicas) and set(
            before.adding_replicas
        ).issubset(after.replicas)
        end = "completed" if completed else "cancelled"
        return [(f"reassignment-{end}", f"reassignment {end}: replicas are {ids(after.replicas)}")]
    if before.replicas != after.replicas:
        return [
            ("replicas-changed", f"replicas changed from {ids(before.replicas)} to {ids(after.replicas)}")
        ]
    return []


def _isr(before: PartitionState, after: PartitionState) -> list[Clause]:
    if set(before.isr) == set(after.isr):
        return []
    left = [one for one in before.isr if one not in after.isr]
    joined = [one for one in after.isr if one not in before.isr]
    now = f"{ids(before.isr)} to {ids(after.isr)}"
    if not joined:
        return [("isr-shrank", f"ISR shrank from {now}")]
    if not left:
        return [("isr-grew", f"ISR grew from {now}")]
    return [("isr-changed", f"ISR changed from {now}")]


def _directories(before: PartitionState, after: PartitionState) -> list[Clause]:
    was = dict(zip(before.replicas, before.directories, strict=True))
    moved = [
        f"replica {replica} is in {_DIRECTORIES.get(directory, f'directory {uuid_text(directory)}')}"
        for replica, directory in zip(after.replicas, after.directories, strict=True)
        if replica in was and was[replica] != directory
    ]
    return [("directories-changed", ", ".join(moved))] if moved else []


def _elr(before: PartitionState, after: PartitionState) -> list[Clause]:
    clauses = []
    if before.elr != after.elr:
        clauses.append(
            ("elr-changed", f"eligible leader replicas are {ids(after.elr)} (were {ids(before.elr)})")
        )
    if before.last_known_elr != after.last_known_elr:
        clauses.append(("elr-changed", f"last known leader candidates are {ids(after.last_known_elr)}"))
    return clauses
