"""ConsumerGroupHeartbeat of a member that is there or joins, in the shard of its group.

1. The member is added or changed. If its subscription or its topics are others now, the group's epoch rises.
2. If the group's epoch is above that of the target, a new target is computed.
3. The member takes its next step towards the target, which the answer tells if it has changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from kraftd.ground.refusal import Refusal
from kraftd.groups.call import Call
from kraftd.groups.classic.group import ClassicGroup
from kraftd.groups.consumer.changing import Changing
from kraftd.groups.consumer.fencing import held_by
from kraftd.groups.consumer.group import ConsumerGroup
from kraftd.groups.consumer.member import JOINING_EPOCH, STATIC_LEAVING_EPOCH, Epochs, Member
from kraftd.groups.consumer.owners import MANY
from kraftd.groups.consumer.sessions import heard
from kraftd.groups.consumer.settings import heartbeat_interval_ms
from kraftd.groups.migration.upgrade import upgraded
from kraftd.groups.outcome import Outcome
from kraftd.groups.records import CoordinatorRecord
from kraftd.groups.state import ShardState
from kraftd.messages.consumer_group_current_member_assignment_value import (
    ConsumerGroupCurrentMemberAssignmentValue,
)
from kraftd.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest, TopicPartitions
from kraftd.messages.consumer_group_heartbeat_response import Assignment, ConsumerGroupHeartbeatResponse
from kraftd.messages.consumer_group_heartbeat_response import TopicPartitions as AssignedPartitions
from kraftd.wire.error_code import ErrorCode


class Heartbeat(Changing):
    """One heartbeat. lasting: the member, if all is as it was and the answer tells no assignment."""

    __slots__ = ("lasting", "request")

    def __init__(self, state: ShardState, call: Call, request: ConsumerGroupHeartbeatRequest) -> None:
        self.request = request
        self.lasting: Member | None = None
        super().__init__(state, call, *found_group(state, request))

    @property
    def is_joining(self) -> bool:
        return self.request.member_epoch == JOINING_EPOCH

    def run(self) -> Outcome:
        """The records and the answer. Raises Refusal."""
        member, updated, epoch, is_new = self.enter()
        target_epoch, target = self.target_of(member, updated, epoch)
        owned = self.request.topic_partitions
        stepped = self.reconcile(updated, target_epoch, target, is_new, owned)
        heard(self.state, self.group.group_id, stepped.member_id)
        answer = self.answer(member, stepped)
        if not self.records and answer.assignment is None and member.epoch == self.request.member_epoch:
            self.lasting = member
        return Outcome(self.records, answer)

    def note_only(self) -> Outcome:
        """The records of a member that joins, without a step and an answer: it waits. Raises Refusal."""
        _, updated, _, _ = self.enter()
        heard(self.state, self.group.group_id, updated.member_id)
        return Outcome(self.records)

    def enter(self) -> tuple[Member, Member, int, bool]:
        """The member as it was and is now, the group's epoch, and whether its subscription is another."""
        member_id = self.request.member_id or self.state.new_uuid()
        self.check_size(member_id)
        member = self.find_member(member_id)
        updated = self.as_requested(member)
        has_other_names = updated.topics != member.topics
        regex = self.note(member, updated)
        epoch = self.raise_epoch(member, updated, has_other_names or regex.is_resolved)
        return member, updated, epoch, has_other_names or regex.is_changed

    # The member

    def find_member(self, member_id: str) -> Member:
        """The member as it was; a new one is not subscribed to anything yet."""
        instance_id = self.request.instance_id
        if instance_id is not None:
            return self.find_static(member_id, instance_id)
        if self.is_joining:
            return self.group.members.get(member_id) or Member(member_id)
        member = self.group.member(member_id)
        self.check_epoch(member)
        return member

    def find_static(self, member_id: str, instance_id: str) -> Member:
        if not self.is_joining:
            member = held_by(self.group, instance_id, member_id)
            self.check_epoch(member)
            return member
        holder = self.group.static_member(instance_id)
        if holder is None:
            return self.group.members.get(member_id) or Member(member_id)
        if holder.classic is None and holder.epoch != STATIC_LEAVING_EPOCH:
            raise Refusal(
                ErrorCode.UNRELEASED_INSTANCE_ID,
                f"Static member {member_id} with instance id {instance_id} cannot join the group because the "
                f"instance id is owned by {holder.member_id} member.",
            )
        return self.replace_static(holder, member_id)

    def check_epoch(self, member: Member) -> None:
        """Fence a member with an epoch that it was not told; the one before is that of a lost answer."""
        received = self.request.member_epoch
        if received > member.epoch:
            raise fenced("greater", received, member)
        if received < member.epoch:
            is_former = received == member.previous_epoch
            if not (is_former and is_part(self.request.topic_partitions, member.assigned)):
                raise fenced("smaller", received, member)

    def as_requested(self, member: Member) -> Member:
        """The member with what the request says of it; what is null stays as it was."""
        request = self.request
        changes: dict[str, Any] = {
            "instance_id": request.instance_id,
            "rack_id": request.rack_id,
            "assignor": request.server_assignor,
            "regex": request.subscribed_topic_regex,
        }
        changes = {name: value for name, value in changes.items() if value is not None}
        if request.rebalance_timeout_ms != -1:
            changes["rebalance_timeout_ms"] = request.rebalance_timeout_ms
        if request.subscribed_topic_names is not None:
            changes["topics"] = frozenset(request.subscribed_topic_names)
        if member.classic is not None:
            changes["classic"] = None  # it has changed its protocol
        if changes or (member.client_id, member.client_host) != (self.call.client_id, self.call.client_host):
            return replace(
                member, client_id=self.call.client_id, client_host=self.call.client_host, **changes
            )
        return member

    def answer(self, before: Member, member: Member) -> ConsumerGroupHeartbeatResponse:
        """The answer; it has the assignment if that has changed, or if the request tells everything."""
        request = self.request
        own: Mapping[str, str] = self.state.metadata.group_configs(request.group_id)
        has_subscription = (
            request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
        )
        is_full = (
            request.rebalance_timeout_ms != -1 and has_subscription and request.topic_partitions is not None
        )
        assignment = None
        if self.is_joining or is_full or before.assigned != member.assigned:
            assignment = Assignment(self.assigned(member))
        return ConsumerGroupHeartbeatResponse(
            member_id=member.member_id,
            member_epoch=member.epoch,
            heartbeat_interval_ms=heartbeat_interval_ms(self.state.config, own),
            assignment=assignment,
        )

    def assigned(self, member: Member) -> list[AssignedPartitions]:
        """What the member has, of its new record if there is one."""
        recorded = self.recorded
        if isinstance(recorded, ConsumerGroupCurrentMemberAssignmentValue):
            return [AssignedPartitions(row.topic_id, row.partitions) for row in recorded.assigned_partitions]
        return [AssignedPartitions(topic_id, tuple(had)) for topic_id, had in member.assigned.items()]


def has_many(response: ConsumerGroupHeartbeatResponse) -> bool:
    """Return whether an answer has so many partitions that their encoding is a step of its own."""
    assignment = response.assignment
    if assignment is None:
        return False
    return sum(len(topic.partitions) for topic in assignment.topic_partitions) > MANY


def found_group(
    state: ShardState, request: ConsumerGroupHeartbeatRequest
) -> tuple[ConsumerGroup, list[CoordinatorRecord]]:
    """The group, and the records that make it one if it was classic. A joining member makes a missing group.

    Raises Refusal.
    """
    group_id = request.group_id
    is_joining = request.member_epoch == JOINING_EPOCH
    present = state.groups.get(group_id)
    if isinstance(present, ConsumerGroup):
        return present, []
    if present is None and not is_joining:
        raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {group_id} not found.")
    if present is None:
        return ConsumerGroup(group_id, state.timeline), []
    if not is_joining or not isinstance(present, ClassicGroup):
        raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")
    if present.is_empty():
        return ConsumerGroup(group_id, state.timeline), present.tombstones()
    return upgraded(state, present)


def fenced(how: str, received: int, member: Member) -> Refusal:
    """The refusal of an epoch that the member cannot have."""
    return Refusal(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {how} member epoch ({received}) than the one known by the group "
        f"coordinator ({member.epoch}). The member must abandon all its partitions and rejoin.",
    )


def is_part(owned: list[TopicPartitions] | None, assigned: Epochs) -> bool:
    """Return whether a member reports nothing but what it was assigned; it must report something."""
    if owned is None:
        return False
    return all(
        topic.topic_id in assigned and assigned[topic.topic_id].keys() >= set(topic.partitions)
        for topic in owned
    )
