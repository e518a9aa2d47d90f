"""When a new target is computed: at once for most groups, in slices for large ones and by custom assignors.

While the slices run, the members keep the last target, as they do within `consumer.assignment.interval.ms` of
it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from kraftd.groups.assigning import (
    FIRST_AT_ONCE,
    assign_later,
    is_large,
    may_assign,
    partition_count,
)
from kraftd.groups.consumer.assignors import ASSIGNORS, UNIFORM
from kraftd.groups.consumer.assignors.custom import Custom
from kraftd.groups.consumer.assignors.spec import NOTHING, Assignor, Partitions, finish
from kraftd.groups.consumer.group import ConsumerGroup, preferred_assignor
from kraftd.groups.consumer.member import Member, assignment_bytes
from kraftd.groups.consumer.owners import MANY
from kraftd.groups.consumer.settings import assignment_interval_ms
from kraftd.groups.consumer.subscriptions import regexes_after, topics_after
from kraftd.groups.consumer.target import Plan
from kraftd.groups.modern_group import is_homogeneous
from kraftd.groups.records import CoordinatorRecord
from kraftd.groups.state import ShardState
from kraftd.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest


def new_target(
    state: ShardState,
    group: ConsumerGroup,
    epoch: int,
    member: Member,
    updated: Member,
    is_recounted: bool,
) -> tuple[list[CoordinatorRecord], Partitions] | None:
    """The records of a new target, and what it has for a member that was changed; None if it is not due.

    is_recounted: if not, Kafka's subscription type is that of before the change: a member that joins with no
    subscription may get a part in the target, of which it takes nothing.
    """
    if not is_due(state, group):
        return None
    assignor = assignor_of(state, preferred_assignor(group.assignors, member.assignor, updated.assignor))
    is_new_and_large = not group.members and has_many(state, topics_after(group, member, updated))
    if is_large(state, group) or is_new_and_large or isinstance(assignor, Custom):
        assign_later(state, group.group_id, partial(begin, state, group.group_id))
        return None
    holder_id = group.static_members.get(updated.instance_id or "")
    replaced_id = None if holder_id == updated.member_id else holder_id
    if is_recounted:
        is_there = updated.member_id in group.members or holder_id is not None
        count = len(group.members) + (not is_there)
        regexes, topics = regexes_after(group, member, updated), topics_after(group, member, updated)
        homogeneous = is_homogeneous(regexes, topics, count)
    else:
        homogeneous = group.is_homogeneous()
    plan = Plan(group, epoch, assignor, homogeneous, state.metadata, updated, replaced_id)
    assigned = finish(plan.compute())
    return list(plan.records(assigned, state.now_ms)), assigned.get(updated.member_id, NOTHING)


def begin_apart(state: ShardState, group: ConsumerGroup) -> None:
    """Begin a target, if it is one that heartbeats leave to slices or to a custom assignor."""
    assignor = assignor_of(state, preferred_assignor(group.assignors))
    if is_large(state, group) or isinstance(assignor, Custom):
        assign_later(state, group.group_id, partial(begin, state, group.group_id))


def by_custom_assignor(state: ShardState, request: ConsumerGroupHeartbeatRequest) -> bool:
    """Return whether a group of this member alone gets its target so."""
    return isinstance(assignor_of(state, request.server_assignor), Custom)


def has_large_parts(state: ShardState, group: ConsumerGroup) -> bool:
    """Return whether a member's part is so large that its step is made in slices, before a heartbeat."""
    return partition_count(state, group.topics) // max(1, len(group.members)) > MANY


def has_many(state: ShardState, topics: Iterable[str]) -> bool:
    """Return whether a first member would get more partitions than in one step."""
    return partition_count(state, topics) > FIRST_AT_ONCE


def assignor_of(state: ShardState, preferred: str | None) -> Assignor:
    """The assignor that most members prefer, else the broker's first; uniform if that is not there."""
    known, first = state.config.assignors, state.config.group_consumer_assignors[0]
    return known.get(preferred or first) or known.get(first) or ASSIGNORS[UNIFORM]


def is_due(state: ShardState, group: ConsumerGroup) -> bool:
    """Return whether a target may be computed: the last one is old enough, and none is under way."""
    interval_ms = assignment_interval_ms(state.config, state.metadata, group.group_id)
    return may_assign(state, group, interval_ms)


def begin(state: ShardState, group_id: str) -> Plan | None:
    """What a target is computed of in slices: the group as it is now.

    None if there is none any more, or if a record cannot hold what each member would get: more are awaited.
    """
    group = state.groups.get(group_id)
    if not isinstance(group, ConsumerGroup) or not group.members:
        return None
    for_each = partition_count(state, group.topics) // len(group.members)
    if assignment_bytes(min(for_each, len(group.topics)), for_each) >= state.max_batch_bytes:
        return None
    homogeneous = group.is_homogeneous()
    assignor = assignor_of(state, preferred_assignor(group.assignors))
    return Plan(group, group.facts.epoch, assignor, homogeneous, state.metadata)
