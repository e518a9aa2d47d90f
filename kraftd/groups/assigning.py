"""Targets of groups: when one may be computed, and how those of large groups are, in slices.

While the slices of a large group run, its members keep the last target, as they do within the interval of
assignments after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Any, Protocol

from kraftd.groups.consumer.assignors.spec import Assigned, AssignorFailed, Slices
from kraftd.groups.modern_group import ModernGroup
from kraftd.groups.outcome import Outcome
from kraftd.groups.records import CoordinatorRecord
from kraftd.groups.state import ShardState

AT_ONCE = 1000  # members and partitions: more are assigned in slices
RECORDS_A_SLICE = 100
ASSIGNING = "assigning"  # the kind of the deadline of the next slice


class Planned(Protocol):
    """What a target is computed of."""

    @property
    def group(self) -> ModernGroup[Any]: ...

    def compute(self) -> Slices[Assigned]:
        """The partitions of each member, slice by slice."""

    def records(self, assigned: Assigned, computed_ms: int) -> Iterator[CoordinatorRecord]:
        """The records of the targets that have changed; that of the epoch is the last."""


def may_assign(state: ShardState, group: ModernGroup[Any], interval_ms: int) -> bool:
    """Return whether a target may be computed: the last one is old enough, and none is under way."""
    if (ASSIGNING, group.group_id) in state.deadlines:
        return False
    since_ms = group.facts.target_ms
    return since_ms == 0 or interval_ms == 0 or state.now_ms >= since_ms + interval_ms


def is_large(state: ShardState, group: ModernGroup[Any]) -> bool:
    """Return whether there is more to assign than in one slice: members, and partitions of their topics."""
    ids = [state.metadata.topic_id(name) for name in group.topics]
    return len(group.members) + sum(state.metadata.partition_count(topic) for topic in ids if topic) > AT_ONCE


def assign_later(state: ShardState, group_id: str, plan: Callable[[], Planned]) -> None:
    """Compute a target in slices, from the next event loop callback on, of what the group is like then."""

    def begin() -> Outcome:
        planned = plan()
        return _run_slice(state, planned, planned.compute())

    state.deadlines.schedule((ASSIGNING, group_id), state.now_ms + 1, begin)


def _run_slice(state: ShardState, plan: Planned, slices: Slices[Assigned]) -> Outcome:
    group = plan.group
    if not _is_present(state, group):
        return Outcome()
    try:
        next(slices)
    except StopIteration as end:
        return _write_slice(state, plan, plan.records(end.value, state.now_ms))
    except AssignorFailed:
        return Outcome()  # the last target stays; a heartbeat begins another one
    _go_on(state, group, partial(_run_slice, state, plan, slices))
    return Outcome()


def _write_slice(state: ShardState, plan: Planned, records: Iterator[CoordinatorRecord]) -> Outcome:
    """Write some records; the last one, that of the epoch, makes all of them the target.

    Members that have left meanwhile get none. If the group is another one now, the rest is dropped: the epoch
    of the target stays below the group's, so another target will be computed.
    """
    group = plan.group
    if not _is_present(state, group):
        return Outcome()
    some = list(islice(records, RECORDS_A_SLICE))
    if len(some) == RECORDS_A_SLICE:
        _go_on(state, group, partial(_write_slice, state, plan, records))
    kept = [record for record in some if getattr(record.key, "member_id", None) in (None, *group.members)]
    return Outcome(kept, atomic=False)


def _is_present(state: ShardState, group: ModernGroup[Any]) -> bool:
    present: object = state.groups.get(group.group_id)
    return present is group


def _go_on(state: ShardState, group: ModernGroup[Any], action: partial[Outcome]) -> None:
    state.deadlines.schedule((ASSIGNING, group.group_id), state.now_ms + 1, action)
