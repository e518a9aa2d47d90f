"""The consequences of a partition's change: leader, ISR, ELR, epochs (KIP-232, KIP-455, KIP-704, KIP-966).

Every change of a partition becomes one PartitionChangeRecord here, in this order. A reassignment whose new
replicas are in sync is completed; the eligible leader replicas are computed; a leader is elected if the
current one cannot stay. The leader epoch grows if brokers must notice.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from msgspec import Struct

from kraftd.messages.partition_change_record import PartitionChangeRecord
from kraftd.metadata.state import (
    NO_LEADER,
    NO_LEADER_CHANGE,
    RECOVERING,
    RECOVERY_UNCHANGED,
    PartitionState,
)

Replicas = tuple[int, ...]


class Election(Enum):
    """The kind of leader to elect if one is needed."""

    PREFERRED = "preferred"  # the first replica, even if the current leader could stay
    ONLINE = "online"  # the current leader if it can stay, else any replica in sync
    UNCLEAN = "unclean"  # like ONLINE, and any live replica rather than none


class ChangeRules(Struct, frozen=True, gc=False):
    """The rules for changes of partitions, the same for all partitions of an operation.

    may_lead returns whether a broker may lead a replica in a directory; default_directory is where a broker
    puts a new replica.  The flags and the record version follow from the finalized features.
    """

    may_lead: Callable[[int, bytes], bool]
    default_directory: Callable[[int], bytes]
    elr: bool  # eligible.leader.replicas.version is at least 1
    directories: bool  # from metadata.version 3.7-IV2 on
    shrink_bumps_leader_epoch: bool  # before metadata.version 3.6-IV0 brokers needed that (KAFKA-15021)
    record_version: int


class Assignment(Struct, frozen=True, gc=False):
    """The replicas of a partition, and those being added and removed."""

    replicas: Replicas
    adding: Replicas = ()
    removing: Replicas = ()


def partition_change(
    rules: ChangeRules,
    topic_id: bytes,
    index: int,
    partition: PartitionState,
    min_isr: int,
    *,
    election: Election = Election.ONLINE,
    isr: Replicas | None = None,
    assignment: Assignment | None = None,
    recovery_state: int | None = None,
    directory: tuple[int, bytes] | None = None,
    unclean_shutdown: int = NO_LEADER,
) -> PartitionChangeRecord | None:
    """The record of the requested changes and their consequences; None if nothing changes.

    min_isr is the effective min.insync.replicas, at most the replication factor.  directory is (broker id,
    directory id): where a replica now lives. unclean_shutdown is a broker that may have lost unsynced
    records, so it leaves the ELR.
    """
    target_isr = partition.isr if isr is None else isr
    if assignment is not None or partition.adding_replicas or partition.removing_replicas:
        assignment, target_isr = _progressed(partition, assignment, target_isr)
    replicas = partition.replicas if assignment is None else assignment.replicas
    elr = partition.elr
    if rules.elr:
        elr = () if len(target_isr) >= min_isr else _eligible(partition, target_isr, unclean_shutdown)

    change = PartitionChangeRecord(index, topic_id)
    leader, unclean = _elect(rules, partition, election, replicas, target_isr, elr)
    if leader != partition.leader:
        change.leader = leader
        if leader in elr:
            target_isr = elr if len(elr) == 1 else (leader,)
            elr = tuple([replica for replica in elr if replica != leader])
        if unclean:
            # Records that only the others had are lost: the leader is alone in the ISR until it has
            # recovered.
            change.isr = (leader,)
            if partition.leader_recovery_state != RECOVERING:
                change.leader_recovery_state = RECOVERING
    elif replicas is not partition.replicas and not set(partition.replicas).issubset(replicas):
        change.leader = leader  # a replica was dropped: the grown leader epoch fences its fetches

    if change.isr is not None or not rules.elr:
        elr = ()
    if elr != partition.elr:
        change.eligible_leader_replicas = elr
    # Without ELR the last member stays in the ISR when it leaves, because it alone has all the data.
    if change.isr is None and (target_isr or rules.elr) and target_isr != partition.isr:
        change.isr = target_isr
    if rules.shrink_bumps_leader_epoch and change.leader == NO_LEADER_CHANGE and _shrinks(partition, change):
        change.leader = leader
    if rules.elr:
        _set_last_known_elr(change, partition)
    if assignment is not None:
        _set_assignment(change, partition, assignment)
    if rules.directories and replicas and (directory is not None or replicas is not partition.replicas):
        directories = _directories(rules, partition, replicas, directory)
        if directories != partition.directories:
            change.directories = directories
    if recovery_state is not None and recovery_state != partition.leader_recovery_state:
        change.leader_recovery_state = recovery_state
    return change if _changes_something(change) else None


def _progressed(
    partition: PartitionState, assignment: Assignment | None, isr: Replicas
) -> tuple[Assignment, Replicas]:
    """The target assignment and ISR, with a reassignment completed if that ISR allows it."""
    if assignment is None:
        assignment = Assignment(partition.replicas, partition.adding_replicas, partition.removing_replicas)
    if assignment.adding or assignment.removing:
        completed = completed_reassignment(assignment.replicas, assignment.adding, assignment.removing, isr)
        if completed is not None:
            return Assignment(completed[0]), completed[1]
    return assignment, isr


def _shrinks(partition: PartitionState, change: PartitionChangeRecord) -> bool:
    return change.isr is not None and not set(partition.isr).issubset(change.isr)


def _set_last_known_elr(change: PartitionChangeRecord, partition: PartitionState) -> None:
    """Remember the last leader while there is none: it may be elected again if ISR and ELR are both empty."""
    if change.leader == NO_LEADER:
        if not partition.last_known_elr:
            change.last_known_elr = (partition.leader,)
    elif change.leader >= 0 and partition.last_known_elr:
        change.last_known_elr = ()


def _set_assignment(change: PartitionChangeRecord, partition: PartitionState, assignment: Assignment) -> None:
    """Put what is new in the assignment into the change."""
    if assignment.replicas and assignment.replicas != partition.replicas:
        change.replicas = assignment.replicas
    if assignment.removing != partition.removing_replicas:
        change.removing_replicas = assignment.removing
    if assignment.adding != partition.adding_replicas:
        change.adding_replicas = assignment.adding


def _elect(
    rules: ChangeRules,
    partition: PartitionState,
    election: Election,
    replicas: Replicas,
    isr: Replicas,
    elr: Replicas,
) -> tuple[int, bool]:
    """The new leader (NO_LEADER if there can be none), and whether it may lack committed records."""
    in_sync = isr or elr  # the eligible ones count once no replica is in sync
    leader = partition.leader
    if election is Election.PREFERRED and replicas:
        preferred = replicas[0]
        if preferred in in_sync and _may_lead(rules, partition, preferred):
            return preferred, False
    if leader in in_sync and _may_lead(rules, partition, leader):
        return leader, False
    for replica in replicas:
        if replica in in_sync and _may_lead(rules, partition, replica):
            return replica, False
    if rules.elr and not in_sync and len(partition.last_known_elr) == 1:
        last_leader = partition.last_known_elr[0]
        if _may_lead(rules, partition, last_leader):
            return last_leader, True
    if election is Election.UNCLEAN:
        for replica in replicas:
            if _may_lead(rules, partition, replica):
                return replica, True
    return NO_LEADER, False


def _may_lead(rules: ChangeRules, partition: PartitionState, replica: int) -> bool:
    """Return whether a broker may lead with its existing replica."""
    return replica in partition.replicas and rules.may_lead(replica, partition.directory(replica))


def _eligible(partition: PartitionState, isr: Replicas, unclean_shutdown: int) -> Replicas:
    """The ELR below min.insync.replicas: replicas that were in sync or eligible, no longer are, and lost
    nothing.
    """
    eligible = {*partition.elr, *partition.isr}.difference(isr)
    eligible.discard(unclean_shutdown)
    if eligible == set(partition.elr):
        return partition.elr  # unchanged, in the order in which it was written
    return tuple(sorted(eligible))


def _directories(
    rules: ChangeRules, partition: PartitionState, replicas: Replicas, directory: tuple[int, bytes] | None
) -> tuple[bytes, ...]:
    places = dict(zip(partition.replicas, partition.directories, strict=False))
    if directory is not None:
        places[directory[0]] = directory[1]
    return tuple([places[r] if r in places else rules.default_directory(r) for r in replicas])


def _changes_something(change: PartitionChangeRecord) -> bool:
    return (
        change.leader != NO_LEADER_CHANGE
        or change.isr is not None
        or change.eligible_leader_replicas is not None
        or change.last_known_elr is not None
        or change.replicas is not None
        or change.removing_replicas is not None
        or change.adding_replicas is not None
        or change.directories is not None
        or change.leader_recovery_state != RECOVERY_UNCHANGED
    )


def completed_reassignment(
    replicas: Replicas, adding: Replicas, removing: Replicas, isr: Replicas
) -> tuple[Replicas, Replicas] | None:
    """The replicas and the ISR after a reassignment is complete; None while it has to wait (KIP-455).

    It waits until all added replicas and at least one that stays are in sync. If it removes more than it
    adds, it waits for all that stay, so that the ISR does not shrink needlessly.
    """
    staying = tuple([replica for replica in replicas if replica not in removing])
    in_sync = tuple([replica for replica in isr if replica not in removing])
    if removing and not (staying and in_sync):
        return None
    awaited = set(staying).union(adding) if len(adding) < len(removing) else adding
    if not set(awaited).issubset(in_sync):
        return None
    return staying, in_sync
