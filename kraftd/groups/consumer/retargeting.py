"""When a new target is computed: at once for most groups, in slices for large ones.

While the slices of a large group run, its members keep the last target, as they do within
`consumer.assignment.interval.ms` of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice

from kraftd.groups.consumer.assignors import ASSIGNORS, UNIFORM
from kraftd.groups.consumer.assignors.spec import NOTHING, Assigned, Partitions, Slices, finish
from kraftd.groups.consumer.group import ConsumerGroup, preferred_assignor
from kraftd.groups.consumer.member import Member
from kraftd.groups.consumer.settings import assignment_interval_ms
from kraftd.groups.consumer.subscriptions import is_homogeneous, regexes_after, topics_after
from kraftd.groups.consumer.target import Plan
from kraftd.groups.outcome import Outcome
from kraftd.groups.records import CoordinatorRecord
from kraftd.groups.state import ShardState

AT_ONCE = 1000  # members and partitions: more are assigned in slices
RECORDS_A_SLICE = 100
ASSIGNING = "assigning"  # the kind of the deadline of the next slice


def new_target(
    state: ShardState,
    group: ConsumerGroup,
    epoch: int,
    member: Member,
    updated: Member,
) -> tuple[list[CoordinatorRecord], Partitions] | None:
    """The records of a new target, and what it has for a member that was changed; None if it is not due."""
    if not is_due(state, group):
        return None
    if size_of(state, group) > AT_ONCE:
        assign_later(state, group)
        return None
    holder_id = group.static_members.get(updated.instance_id or "")
    replaced_id = None if holder_id == updated.member_id else holder_id
    is_there = updated.member_id in group.members or holder_id is not None
    homogeneous = is_homogeneous(
        regexes_after(group, member, updated),
        topics_after(group, member, updated),
        len(group.members) + (not is_there),
    )
    name = assignor_of(state, preferred_assignor(group.assignors, member.assignor, updated.assignor))
    plan = Plan(group, epoch, name, homogeneous, state.metadata, updated, replaced_id)
    assigned = finish(plan.compute())
    return plan.records(assigned, state.now_ms), assigned.get(updated.member_id, NOTHING)


def assignor_of(state: ShardState, preferred: str | None) -> str:
    """The assignor that most members prefer, else the broker's first; uniform if that is not there."""
    first = state.config.group_consumer_assignors[0]
    return next((name for name in (preferred, first) if name in ASSIGNORS), UNIFORM)


def is_due(state: ShardState, group: ConsumerGroup) -> bool:
    """Return whether a target may be computed: the last one is old enough, and none is under way."""
    if (ASSIGNING, group.group_id) in state.deadlines:
        return False
    interval_ms = assignment_interval_ms(state.config, state.metadata.group_configs(group.group_id))
    since_ms = group.facts.target_ms
    return since_ms == 0 or interval_ms == 0 or state.now_ms >= since_ms + interval_ms


def size_of(state: ShardState, group: ConsumerGroup) -> int:
    """About how much there is to assign: the members, and the partitions of their topics."""
    ids = [state.metadata.topic_id(name) for name in group.topics]
    return len(group.members) + sum(state.metadata.partition_count(topic) for topic in ids if topic)


def assign_later(state: ShardState, group: ConsumerGroup) -> None:
    """Compute a target in slices, from the next event loop callback on."""
    state.deadlines.schedule((ASSIGNING, group.group_id), state.now_ms + 1, partial(begin, state, group))


def begin(state: ShardState, group: ConsumerGroup) -> Outcome:
    """Begin with the group as it is now."""
    homogeneous = is_homogeneous(group.regexes, group.topics, len(group.members))
    name = assignor_of(state, preferred_assignor(group.assignors))
    plan = Plan(group, group.facts.epoch, name, homogeneous, state.metadata)
    return run_slice(state, plan, plan.compute())


def run_slice(state: ShardState, plan: Plan, slices: Slices[Assigned]) -> Outcome:
    group = plan.group
    if state.groups.get(group.group_id) is not group:
        return Outcome()
    try:
        next(slices)
    except StopIteration as end:
        records = plan.records(end.value, state.now_ms)
        return write_slice(state, plan, iter(records))
    _go_on(state, group, partial(run_slice, state, plan, slices))
    return Outcome()


def write_slice(state: ShardState, plan: Plan, records: Iterator[CoordinatorRecord]) -> Outcome:
    """Write some records; the last one, that of the epoch, makes all of them the target.

    Members that have left meanwhile get none. If the group is another one now, the rest is dropped: the epoch
    of the target stays below the group's, so another target will be computed.
    """
    group = plan.group
    if state.groups.get(group.group_id) is not group:
        return Outcome()
    some = list(islice(records, RECORDS_A_SLICE))
    if len(some) == RECORDS_A_SLICE:
        _go_on(state, group, partial(write_slice, state, plan, records))
    kept = [record for record in some if getattr(record.key, "member_id", None) in (None, *group.members)]
    return Outcome(kept, atomic=False)


def _go_on(state: ShardState, group: ConsumerGroup, action: partial[Outcome]) -> None:
    state.deadlines.schedule((ASSIGNING, group.group_id), state.now_ms + 1, action)
