"""Targets of groups: when one may be computed; in slices for large groups and by custom assignors.

While the slices run, its members keep the last target, as they do within the interval of
assignments after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Protocol

from msgspec.structs import replace

from kraftd.groups.consumer.assignors.spec import PARTITIONS_A_SLICE, Assigned, AssignorFailed, Waits
from kraftd.groups.modern_group import ModernGroup
from kraftd.groups.outcome import Outcome
from kraftd.groups.records import CoordinatorRecord, encode_value
from kraftd.groups.state import ShardState

AT_ONCE = 1000  # members and partitions: more are assigned in slices
FIRST_AT_ONCE = 5000  # partitions for the first member of a group
RECORDS_A_SLICE = 100
PARTITIONS_A_RECORD = 50  # more in a record cost as much as another record
RETRY_MS = 10_000  # after an assignor has failed
ASSIGNING = "assigning"  # the kind of the deadline of the next slice


class Planned(Protocol):
    """What a target is computed of."""

    @property
    def group(self) -> ModernGroup[Any]: ...

    def compute(self) -> Waits[Assigned]:
        """The partitions of each member, slice by slice."""

    def records(self, assigned: Assigned, computed_ms: int) -> Iterator[CoordinatorRecord]:
        """The records of the targets that have changed; that of the epoch is the last."""


def may_assign(state: ShardState, group: ModernGroup[Any], interval_ms: int) -> bool:
    """Return whether a target may be computed: the last one is old enough, and none is under way.

    One from the future is of a clock that was ahead, perhaps by hours: the group does not wait for that time.
    """
    if (ASSIGNING, group.group_id) in state.deadlines:
        return False
    since_ms = group.facts.target_ms
    return since_ms == 0 or not since_ms <= state.now_ms < since_ms + interval_ms


def is_large(state: ShardState, group: ModernGroup[Any]) -> bool:
    """Return whether there is more to assign than in one slice: members, and partitions of their topics."""
    least = len(group.members) + len(group.topics)  # most topics exist
    return least > AT_ONCE or len(group.members) + partition_count(state, group.topics) > AT_ONCE


def partition_count(state: ShardState, topics: Iterable[str]) -> int:
    """How many partitions some topics have."""
    ids = [state.metadata.topic_id(name) for name in topics]
    return sum(state.metadata.partition_count(topic_id) for topic_id in ids if topic_id)


def assign_later(state: ShardState, group_id: str, plan: Callable[[], Planned | None]) -> None:
    """Compute a target in slices, of what the group is like when they begin; None if it is to have none."""

    def begin() -> Outcome:
        planned = plan()
        if planned is not None:
            _go_on(state, planned.group, partial(_run_slice, state, planned, planned.compute()))
        return Outcome()

    state.deadlines.schedule((ASSIGNING, group_id), state.now_ms + 1, begin)


def _run_slice(state: ShardState, plan: Planned, slices: Waits[Assigned]) -> Outcome:
    group = plan.group
    if not _is_present(state, group):
        return Outcome()
    try:
        delay_ms = next(slices) or 1
    except StopIteration as end:
        records = _with_pauses(plan.records(end.value, state.now_ms))
        _go_on(state, group, partial(_write_slice, state, plan, records))
        return Outcome()
    except AssignorFailed:
        # The last target stays. Once that is over, a heartbeat begins another one.
        _go_on(state, group, Outcome, RETRY_MS)
        return Outcome()
    _go_on(state, group, partial(_run_slice, state, plan, slices), delay_ms)
    return Outcome()


def _with_pauses(records: Iterator[CoordinatorRecord]) -> Iterator[CoordinatorRecord | None]:
    """The records, and None for a pause: before one with very many partitions is encoded, and after it."""
    for record in records:
        if record.value is not None and _partition_count(record) > PARTITIONS_A_SLICE:
            yield None
            yield replace(record, encoded=encode_value(record.value, record.version))
            yield None
        else:
            yield record


def _write_slice(state: ShardState, plan: Planned, records: Iterator[CoordinatorRecord | None]) -> Outcome:
    """Write some records; the last one, that of the epoch, makes all of them the target.

    Members that have left meanwhile get none. If the group is another one now, the rest is dropped: the epoch
    of the target stays below the group's, so another target will be computed.
    """
    group = plan.group
    if not _is_present(state, group):
        return Outcome()
    some: list[CoordinatorRecord] = []
    left = RECORDS_A_SLICE
    for record in records:
        if record is None:
            left = 0
        else:
            some.append(record)
            left -= 1 + _partition_count(record) // PARTITIONS_A_RECORD
        if left <= 0:
            _go_on(state, group, partial(_write_slice, state, plan, records))
            break
    kept = [record for record in some if getattr(record.key, "member_id", None) in (None, *group.members)]
    return Outcome(kept, atomic=False)


def _partition_count(record: CoordinatorRecord) -> int:
    """How many partitions a target has; none are in the record of its epoch."""
    return sum(len(row.partitions) for row in getattr(record.value, "topic_partitions", ()))


def _is_present(state: ShardState, group: ModernGroup[Any]) -> bool:
    present: object = state.groups.get(group.group_id)
    return present is group


def _go_on(
    state: ShardState, group: ModernGroup[Any], action: Callable[[], Outcome], delay_ms: int = 1
) -> None:
    state.deadlines.schedule((ASSIGNING, group.group_id), state.now_ms + delay_ms, action)
