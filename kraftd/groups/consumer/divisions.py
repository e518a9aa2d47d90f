"""Divisions of very many partitions, made in slices before the heartbeat that needs one.

The heartbeat uses a division if what it was made of is the same still; else it makes one at once. So it does
with the record of the step that follows.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import is_

from msgspec.structs import replace

from kraftd.ground.pace import Slices
from kraftd.ground.refusal import Refusal
from kraftd.groups.consumer.group import ConsumerGroup
from kraftd.groups.consumer.member import JOINING_EPOCH, Member, recorded_assignment, with_step
from kraftd.groups.consumer.reconciling import Division, Reconciling
from kraftd.groups.consumer.records import current_record
from kraftd.groups.consumer.subscriptions import Subscription
from kraftd.groups.records import CoordinatorRecord, encode_value
from kraftd.groups.state import ShardState
from kraftd.messages.consumer_group_current_member_assignment_value import (
    ConsumerGroupCurrentMemberAssignmentValue,
)
from kraftd.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest

ATTEMPTS = 5  # while other members of the group take steps


class Divided:
    """A division, with what it was made of, and the record of the member's step."""

    __slots__ = ("_encoded", "_inputs", "_step", "_stepped", "_value", "division")

    def __init__(self, reconciling: Reconciling) -> None:
        self._step = reconciling
        self._inputs = reconciling.inputs()
        self.division: Division | None = None
        self._stepped: Member | None = None
        self._value: ConsumerGroupCurrentMemberAssignmentValue | None = None
        self._encoded: bytes | None = None

    def __repr__(self) -> str:
        return f"<Divided {self._step.member!r}>"

    def make(self) -> Slices[None]:
        """Divide in slices, and make the value of the record that follows, and its bytes."""
        self.division = yield from self._step.divide()
        yield
        try:
            stepped = replace(self._step, division=self.division).next()
        except Refusal:
            return  # the heartbeat will be refused
        if stepped is not self._step.member:
            yield
            self._value = yield from recorded_assignment.begin(stepped)
            yield
            self._encoded = encode_value(self._value)
            self._stepped = stepped

    def record(self, group_id: str, stepped: Member) -> CoordinatorRecord:
        """The record of a member's step."""
        if self._stepped is not None and with_step(self._stepped, stepped) == self._stepped:
            return current_record(group_id, stepped, self._value, self._encoded)
        return current_record(group_id, stepped)

    def is_of(self, reconciling: Reconciling) -> bool:
        """Return whether the division is that of a member and its target, as they are now."""
        values, objects = reconciling.inputs()
        own_values, own_objects = self._inputs
        same_number = values == own_values and len(objects) == len(own_objects)
        return same_number and all(map(is_, objects, own_objects))


def large_step(state: ShardState, request: ConsumerGroupHeartbeatRequest) -> Reconciling | None:
    """The member with its target, if its next step is to be divided in slices; None for all others."""
    group = state.groups.get(request.group_id)
    if not isinstance(group, ConsumerGroup) or request.member_epoch < 0:
        return None
    holder = group.members.get(group.static_members.get(request.instance_id or "", ""))
    member = holder or group.members.get(request.member_id)
    is_successor = holder is not None and request.member_epoch == JOINING_EPOCH
    if member is None or (member.is_reconciled_to(group.facts.target_epoch) and not is_successor):
        return None
    names, regex = request.subscribed_topic_names, request.subscribed_topic_regex
    if names is not None or regex is not None:
        topics = member.topics if names is None else frozenset(names)
        member = replace(member, topics=topics, regex=member.regex if regex is None else regex)
    target = group.target(member.member_id)
    subscription = Subscription(member, group.resolved, state.metadata)
    owned = request.topic_partitions
    step = Reconciling(member, group.facts.target_epoch, target, subscription, False, group.owners, owned)
    return step if step.is_large() else None


def divide(next_step: Callable[[], Reconciling | None]) -> Slices[Divided | None]:
    """Divide in slices what a member is to have next, anew if that changes meanwhile."""
    for _ in range(ATTEMPTS):
        step = next_step()
        if step is None:
            break
        divided = Divided(step)
        yield from divided.make()
        yield  # the heartbeat, with its batch and its answer, takes as long as a slice
        step = next_step()
        if step is None or divided.is_of(step):
            return divided
    return None
