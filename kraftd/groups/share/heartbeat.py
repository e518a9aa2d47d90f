"""ShareGroupHeartbeat of a member that is there or joins, in the shard of its group.

1. The member is added or changed. If its subscription or its topics are others now, or if partitions were
   initialized that the target lacks, the group's epoch rises.
2. If the group's epoch is above that of the target, a new target is computed.
3. The member gets its target: nothing has to be given up before, as members share partitions.
4. The share coordinator is asked to begin what the group has not read before.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from msgspec.structs import replace

from kraftd.ground.refusal import Refusal
from kraftd.groups.assigning import assign_later, is_large, may_assign
from kraftd.groups.call import Call
from kraftd.groups.consumer.assignors.spec import NOTHING, Partitions, finish
from kraftd.groups.consumer.member import MemberState
from kraftd.groups.consumer.validation import is_blank
from kraftd.groups.modern_group import Subscribers, is_homogeneous, names_after
from kraftd.groups.outcome import Outcome
from kraftd.groups.records import CoordinatorRecord
from kraftd.groups.share.group import ShareGroup, found_group
from kraftd.groups.share.member import JOINING_EPOCH, ShareMember
from kraftd.groups.share.records import current_record, epoch_record, state_record, subscription_record
from kraftd.groups.share.sessions import heard
from kraftd.groups.share.settings import assignment_interval_ms, heartbeat_interval_ms, retry_interval_ms
from kraftd.groups.share.state_partitions import Topics, initializing, uninitialized
from kraftd.groups.share.target import SharePlan
from kraftd.groups.state import ShardState
from kraftd.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from kraftd.messages.share_group_heartbeat_response import (
    Assignment,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)
from kraftd.wire.error_code import ErrorCode


class ShareHeartbeat:
    """One heartbeat. Afterwards, `begun` are the partitions that the share coordinator is to begin, in the
    group's epoch.
    """

    __slots__ = ("begun", "call", "epoch", "group", "records", "request", "state")

    def __init__(self, state: ShardState, call: Call, request: ShareGroupHeartbeatRequest) -> None:
        self.state = state
        self.call = call
        self.request = request
        self.records: list[CoordinatorRecord] = []
        self.group = found_group(state.groups, state.timeline, request.group_id, may_make=self.is_joining)
        self.epoch = self.group.facts.epoch
        self.begun: Topics = {}

    @property
    def is_joining(self) -> bool:
        return self.request.member_epoch == JOINING_EPOCH

    def run(self) -> Outcome:
        """The records and the answer. Raises Refusal."""
        group, request = self.group, self.request
        self.check_size()
        member = group.members.get(request.member_id) if self.is_joining else group.member(request.member_id)
        member = member or ShareMember(request.member_id)
        self.check_epoch(member)
        updated = self.as_requested(member)
        if updated != member:
            self.records.append(subscription_record(group.group_id, updated))
        topics, must_raise = self.raise_epoch(member, updated)
        target_epoch, target = self.target_of(updated, topics)
        stepped = self.reconcile(updated, target_epoch, target, must_raise)
        heard(self.state, group.group_id, stepped.member_id)
        self.begin_state(topics)
        return Outcome(self.records, self.answer(member, stepped))

    # The member

    def check_size(self) -> None:
        most = self.state.config.group_share_max_size
        if len(self.group.members) >= most and self.request.member_id not in self.group.members:
            reason = f"The share group has reached its maximum capacity of {most} members."
            raise Refusal(ErrorCode.GROUP_MAX_SIZE_REACHED, reason)

    def check_epoch(self, member: ShareMember) -> None:
        """Fence a member with an epoch that it was not told; the one before is that of a lost answer."""
        received = self.request.member_epoch
        if received in (JOINING_EPOCH, member.epoch):
            return
        how, why = "greater", ""
        if received < member.epoch:
            if received == member.previous_epoch:
                return
            how = "smaller"
            why = f", and it does not match the previous member epoch ({member.previous_epoch})"
        raise Refusal(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The share group member has a {how} member epoch ({received}) than the one known by the group "
            f"coordinator ({member.epoch}){why}. The member must abandon all its partitions and rejoin.",
        )

    def as_requested(self, member: ShareMember) -> ShareMember:
        """The member with what the request says of it; what is null stays as it was."""
        request = self.request
        names = request.subscribed_topic_names
        return replace(
            member,
            rack_id=member.rack_id if request.rack_id is None else request.rack_id,
            topics=member.topics if names is None else frozenset(names),
            client_id=self.call.client_id,
            client_host=self.call.client_host,
        )

    # The group's epoch and target

    def raise_epoch(
        self, member: ShareMember, updated: ShareMember
    ) -> tuple[Mapping[str, Subscribers], bool]:
        """Raise the epoch if the subscription has changed, or what its topics are like.

        Return the topics, and whether it rises.
        """
        state, group = self.state, self.group
        facts = group.facts
        must_raise = updated.topics != member.topics
        if facts.target_epoch >= facts.epoch:
            must_raise |= is_assignment_pending(group)
        version = state.metadata.hashes_version()
        if not must_raise and (not group.needs_refresh(version) or group.group_id in state.hashing):
            return group.topics, False
        topics = names_after(group.topics, member, updated)
        metadata_hash = state.metadata_hash(topics)
        must_raise |= metadata_hash != facts.metadata_hash
        if must_raise:
            self.epoch += 1
            self.records.append(epoch_record(group.group_id, self.epoch, metadata_hash))
            state.counts.share_rebalances += 1
        group.refreshed(version, self.epoch)
        return topics, must_raise

    def target_of(self, updated: ShareMember, topics: Mapping[str, Subscribers]) -> tuple[int, Partitions]:
        """The epoch of the target and what it has for the member; a new one if it is to be computed now."""
        state, group = self.state, self.group
        last = group.facts.target_epoch, group.target(updated.member_id)
        interval_ms = assignment_interval_ms(state.config, state.metadata, group.group_id)
        if group.facts.target_epoch >= self.epoch or not may_assign(state, group, interval_ms):
            return last
        if is_large(state, group):
            assign_later(state, group.group_id, partial(plan_of, state, group))
            return last
        homogeneous = is_homogeneous({}, topics, len({*group.members, updated.member_id}))
        plan = SharePlan(group, self.epoch, homogeneous, state.metadata, updated)
        assigned = finish(plan.compute())
        self.records += plan.records(assigned, state.now_ms)
        return self.epoch, assigned.get(updated.member_id, NOTHING)

    def reconcile(
        self, member: ShareMember, target_epoch: int, target: Partitions, has_new_subscription: bool
    ) -> ShareMember:
        """The member with what its target has of its topics."""
        if member.is_reconciled_to(target_epoch) and not has_new_subscription:
            return member
        stepped = replace(member, assigned=self.subscribed(member, target))
        if target_epoch != member.epoch:
            stepped = replace(
                stepped, state=MemberState.STABLE, epoch=target_epoch, previous_epoch=member.epoch
            )
        if stepped != member:
            self.records.append(current_record(self.group.group_id, stepped))
        return stepped

    def subscribed(self, member: ShareMember, target: Partitions) -> Partitions:
        topic_ids = {self.state.metadata.topic_id(name) for name in member.topics}
        return {topic_id: indexes for topic_id, indexes in target.items() if topic_id in topic_ids}

    # The share coordinator

    def begin_state(self, topics: Mapping[str, Subscribers]) -> None:
        """Note the partitions that the share coordinator is to begin."""
        state, known = self.state, self.group.known()
        retry_ms = retry_interval_ms(state.config)
        self.begun = uninitialized(known, topics, state.metadata, state.now_ms, retry_ms)
        if self.begun:
            record = state_record(self.group.group_id, initializing(known, self.begun), state.metadata)
            self.records.append(record)

    def answer(self, before: ShareMember, member: ShareMember) -> ShareGroupHeartbeatResponse:
        """The answer; it has the assignment if that has changed, or if the request tells everything."""
        request = self.request
        own: Mapping[str, str] = self.state.metadata.group_configs(request.group_id)
        is_full = self.is_joining or request.subscribed_topic_names is not None
        assignment = None
        if is_full or before.assigned != member.assigned:
            rows = [TopicPartitions(topic_id, tuple(has)) for topic_id, has in member.assigned.items()]
            assignment = Assignment(rows)
        return ShareGroupHeartbeatResponse(
            member_id=member.member_id,
            member_epoch=member.epoch,
            heartbeat_interval_ms=heartbeat_interval_ms(self.state.config, own),
            assignment=assignment,
        )


def check_heartbeat(request: ShareGroupHeartbeatRequest) -> None:
    """Raise Refusal if the request is not valid, whatever its group is like."""
    _require(not is_blank(request.member_id), "MemberId can't be empty.")
    _require(not is_blank(request.group_id), "GroupId can't be empty.")
    _require(not is_blank(request.rack_id), "RackId can't be empty.")
    if request.member_epoch == JOINING_EPOCH:
        _require(request.subscribed_topic_names, "SubscribedTopicNames must be set in first request.")
    else:
        _require(request.member_epoch >= -1, "MemberEpoch is invalid.")


def _require(condition: object, message: str) -> None:
    if not condition:
        raise Refusal(ErrorCode.INVALID_REQUEST, message)


def is_assignment_pending(group: ShareGroup) -> bool:
    """Return whether partitions of the group's topics are initialized that are not assigned."""
    topics = {
        topic_id: one.indexes
        for topic_id, one in group.known().initialized.items()
        if one.name in group.topics
    }
    if not topics:
        return False
    assigned: dict[bytes, set[int]] = {}
    for target in group.targets.values():
        for topic_id, indexes in target.items():
            assigned.setdefault(topic_id, set()).update(indexes)
    return any(assigned.get(topic_id) != indexes for topic_id, indexes in topics.items())


def plan_of(state: ShardState, group: ShareGroup) -> SharePlan:
    """What a target is computed of in slices: the group as it is now."""
    homogeneous = is_homogeneous({}, group.topics, len(group.members))
    return SharePlan(group, group.facts.epoch, homogeneous, state.metadata)
