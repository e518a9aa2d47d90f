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
from kraftd.groups.consumer.assignors.spec import Partitions
from kraftd.groups.consumer.fencing import await_revocation, heard, held_by
from kraftd.groups.consumer.group import ConsumerGroup
from kraftd.groups.consumer.member import (
    JOINING_EPOCH,
    STATIC_LEAVING_EPOCH,
    Epochs,
    Member,
)
from kraftd.groups.consumer.patterns import change_of_regex
from kraftd.groups.consumer.reconciling import Reconciling
from kraftd.groups.consumer.records import (
    current_record,
    epoch_record,
    member_tombstones,
    partition_metadata_tombstone,
    subscription_record,
    target_record,
)
from kraftd.groups.consumer.retargeting import new_target
from kraftd.groups.consumer.settings import heartbeat_interval_ms
from kraftd.groups.consumer.subscriptions import topics_after
from kraftd.groups.consumer.target import SubscribedTopics
from kraftd.groups.outcome import Outcome
from kraftd.groups.records import CoordinatorRecord
from kraftd.groups.state import ShardState
from kraftd.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest, TopicPartitions
from kraftd.messages.consumer_group_heartbeat_response import Assignment, ConsumerGroupHeartbeatResponse
from kraftd.messages.consumer_group_heartbeat_response import TopicPartitions as AssignedPartitions
from kraftd.wire.error_code import ErrorCode


class Heartbeat:
    """One heartbeat. `records` are what it changes, in the order in which they are to be written."""

    __slots__ = ("call", "group", "records", "request", "state")

    def __init__(self, state: ShardState, call: Call, request: ConsumerGroupHeartbeatRequest) -> None:
        self.state = state
        self.call = call
        self.request = request
        self.records: list[CoordinatorRecord] = []
        self.group = self.find_group()

    @property
    def is_joining(self) -> bool:
        return self.request.member_epoch == JOINING_EPOCH

    def run(self) -> Outcome:
        """The records and the answer. Raises Refusal."""
        group = self.group
        member_id = self.request.member_id or self.state.new_uuid()
        self.check_size(member_id)
        member = self.find_member(member_id)
        updated = self.as_requested(member)
        if updated is not member and updated != member:
            self.records.append(subscription_record(group.group_id, updated))
        has_other_names = updated.topics != member.topics
        regex = change_of_regex(self.state, self.call, group, member, updated)
        self.records += regex.records
        epoch = self.raise_epoch(member, updated, has_other_names or regex.is_resolved)
        target_epoch, target = self.target_of(member, updated, epoch)
        stepped = self.reconcile(updated, target_epoch, target, has_other_names or regex.is_changed)
        heard(self.state, group.group_id, stepped.member_id)
        return Outcome(self.records, self.answer(member, stepped))

    # The group and the member

    def find_group(self) -> ConsumerGroup:
        """The group, which a joining member makes if it is not there. An empty classic group becomes it."""
        group_id = self.request.group_id
        present = self.state.groups.get(group_id)
        if isinstance(present, ConsumerGroup):
            return present
        if present is None and not self.is_joining:
            raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {group_id} not found.")
        if present is not None:
            if not self.is_joining or not isinstance(present, ClassicGroup):
                reason = f"Group {group_id} is not a consumer group."
                raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND, reason)
            if not present.is_empty():
                reason = (
                    f"Cannot upgrade classic group {group_id} to consumer group because online upgrade is"
                )
                raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"{reason} disabled.")
            self.records += present.tombstones()
        return ConsumerGroup(group_id, self.state.timeline)

    def check_size(self, member_id: str) -> None:
        most = self.state.config.group_consumer_max_size
        if len(self.group.members) >= most and member_id not in self.group.members:
            reason = f"The consumer group has reached its maximum capacity of {most} members."
            raise Refusal(ErrorCode.GROUP_MAX_SIZE_REACHED, reason)

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
        if holder.epoch != STATIC_LEAVING_EPOCH:
            raise Refusal(
                ErrorCode.UNRELEASED_INSTANCE_ID,
                f"Static member {member_id} with instance id {instance_id} cannot join the group because the "
                f"instance id is owned by {holder.member_id} member.",
            )
        return self.replace_static(holder, member_id)

    def replace_static(self, holder: Member, member_id: str) -> Member:
        """Give the place of a static member that was away to its successor with another member id."""
        group = self.group
        successor = replace(holder, member_id=member_id, epoch=JOINING_EPOCH, previous_epoch=JOINING_EPOCH)
        self.records += [
            *member_tombstones(group.group_id, holder.member_id),
            subscription_record(group.group_id, successor),
            target_record(group.group_id, member_id, group.target(holder.member_id)),
            current_record(group.group_id, successor),
        ]
        return successor

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
        if changes or (member.client_id, member.client_host) != (self.call.client_id, self.call.client_host):
            return replace(
                member, client_id=self.call.client_id, client_host=self.call.client_host, **changes
            )
        return member

    # The group's epoch and target

    def raise_epoch(self, member: Member, updated: Member, must_raise: bool) -> int:
        """Raise the epoch if the subscription has changed, or what its topics are like; return it."""
        state, group = self.state, self.group
        facts = group.facts
        version = state.metadata.version()
        if not must_raise and not group.needs_refresh(version):
            return facts.epoch
        topics = topics_after(group, member, updated)
        metadata_hash = state.metadata_hash(topics)
        epoch = facts.epoch
        if must_raise or metadata_hash != facts.metadata_hash:
            epoch += 1
            self.records.append(epoch_record(group.group_id, epoch, metadata_hash))
            state.counts.consumer_rebalances += 1
        group.refreshed(version, epoch)
        if facts.has_partition_metadata:
            self.records.append(partition_metadata_tombstone(group.group_id))
        return epoch

    def target_of(self, member: Member, updated: Member, epoch: int) -> tuple[int, Partitions]:
        """The epoch of the target and what it has for the member; a new one if it is to be computed now."""
        group = self.group
        holder_id = group.static_members.get(updated.instance_id or "")
        computed = None
        if group.facts.target_epoch < epoch:
            computed = new_target(self.state, group, epoch, member, updated)
        if computed is None:
            last_id = updated.member_id if updated.instance_id is None else holder_id or ""
            return group.facts.target_epoch, group.target(last_id)
        records, target = computed
        self.records += records
        return epoch, target

    # The member's next step

    def reconcile(
        self, member: Member, target_epoch: int, target: Partitions, has_new_subscription: bool
    ) -> Member:
        if not has_new_subscription and member.is_reconciled_to(target_epoch):
            return member
        group = self.group
        stepped = Reconciling(
            member,
            target_epoch,
            target,
            SubscribedTopics(group.resolved, self.state.metadata).of(member),
            has_new_subscription,
            group.owners,
            self.request.topic_partitions,
        ).next()
        if stepped != member:
            self.records.append(current_record(group.group_id, stepped))
            await_revocation(self.state, group.group_id, stepped)
        return stepped

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
            assignment = Assignment(
                [AssignedPartitions(topic_id, tuple(had)) for topic_id, had in member.assigned.items()]
            )
        return ConsumerGroupHeartbeatResponse(
            member_id=member.member_id,
            member_epoch=member.epoch,
            heartbeat_interval_ms=heartbeat_interval_ms(self.state.config, own),
            assignment=assignment,
        )


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
    return all(index in assigned.get(topic.topic_id, {}) for topic in owned for index in topic.partitions)
