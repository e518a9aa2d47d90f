"""What a request of a member does to its consumer group, step by step: its records are collected in order."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from kraftd.ground.refusal import Refusal
from kraftd.groups.call import Call
from kraftd.groups.consumer.assignors.spec import Partitions
from kraftd.groups.consumer.divisions import Divided
from kraftd.groups.consumer.group import ConsumerGroup
from kraftd.groups.consumer.member import JOINING_EPOCH, Member, assignment_bytes
from kraftd.groups.consumer.patterns import RegexChange, change_of_regex
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
from kraftd.groups.consumer.sessions import await_revocation
from kraftd.groups.consumer.subscriptions import Subscription, topics_after
from kraftd.groups.records import CoordinatorRecord
from kraftd.groups.state import ShardState
from kraftd.messages.consumer_group_heartbeat_request import TopicPartitions
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.message import Message


class Changing:
    """A change of a group by a member. `records` are what it changes, in the order to be written.

    recorded: what the member has after its step, as its record says it.
    is_recounted: subscriptions were counted anew, with the member as it has become.
    """

    __slots__ = ("call", "group", "is_recounted", "recorded", "records", "state")

    def __init__(
        self, state: ShardState, call: Call, group: ConsumerGroup, records: list[CoordinatorRecord]
    ) -> None:
        self.state = state
        self.call = call
        self.group = group
        self.records = records
        self.recorded: Message | None = None
        self.is_recounted = False

    # The member

    def check_size(self, member_id: str) -> None:
        most = self.state.config.group_consumer_max_size
        if len(self.group.members) >= most and member_id not in self.group.members:
            reason = f"The consumer group has reached its maximum capacity of {most} members."
            raise Refusal(ErrorCode.GROUP_MAX_SIZE_REACHED, reason)

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

    def note(self, member: Member, updated: Member) -> RegexChange:
        """Write what the member says of itself, if that has changed. Raises Refusal."""
        if updated is not member and updated != member:
            self.records.append(subscription_record(self.group.group_id, updated))
        change = change_of_regex(self.state, self.call, self.group, member, updated)
        self.records += change.records
        return change

    # The group's epoch and target

    def raise_epoch(self, member: Member, updated: Member, must_raise: bool) -> int:
        """Raise the epoch if the subscription has changed, or what its topics are like; return it."""
        state, group = self.state, self.group
        facts = group.facts
        version = state.metadata.hashes_version()
        if not must_raise and (not group.needs_refresh(version) or group.group_id in state.hashing):
            return facts.epoch
        topics = topics_after(group, member, updated)
        metadata_hash = state.metadata_hash(topics)
        epoch = facts.epoch
        must_raise |= metadata_hash != facts.metadata_hash
        self.is_recounted = must_raise or group.has_expired()
        if must_raise:
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
            computed = new_target(self.state, group, epoch, member, updated, self.is_recounted)
        if computed is None:
            last_id = updated.member_id if updated.instance_id is None else holder_id or ""
            return group.facts.target_epoch, group.target(last_id)
        records, target = computed
        self.records += records
        return epoch, target

    # The member's next step

    def wait_for_less(self, member: Member) -> Member:
        """Leave a member what it has: no record can hold its target. Other members will take a part of it.

        Raises Refusal if it has nothing to be left.
        """
        if member.epoch == JOINING_EPOCH:
            raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, "The assignment is too large for a record.")
        return member

    def reconcile(
        self,
        member: Member,
        target_epoch: int,
        target: Partitions,
        has_new_subscription: bool,
        owned: Sequence[TopicPartitions] | None,
    ) -> Member:
        if not has_new_subscription and member.is_reconciled_to(target_epoch):
            return member
        if assignment_bytes(len(target), sum(map(len, target.values()))) >= self.state.max_batch_bytes:
            return self.wait_for_less(member)
        group = self.group
        subscription = Subscription(member, group.resolved, self.state.metadata)
        step = Reconciling(
            member, target_epoch, target, subscription, has_new_subscription, group.owners, owned
        )
        divided = self.call.divided
        if not isinstance(divided, Divided) or not divided.is_of(step):
            divided = None
        else:
            step = replace(step, division=divided.division)
        stepped = step.next()
        if stepped != member:
            group_id = group.group_id
            record = divided.record(group_id, stepped) if divided else current_record(group_id, stepped)
            self.records.append(record)
            self.recorded = record.value
            await_revocation(self.state, group.group_id, stepped)
        return stepped
