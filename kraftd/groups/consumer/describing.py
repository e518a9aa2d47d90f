"""ConsumerGroupDescribe in one shard, as of the high watermark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kraftd.acl import AclOperation, AclResourceType
from kraftd.groups.call import Call
from kraftd.groups.consumer.assignors.spec import NOTHING
from kraftd.groups.consumer.group import ConsumerGroup, preferred_assignor
from kraftd.groups.consumer.member import Member
from kraftd.groups.state import ShardState
from kraftd.messages.consumer_group_describe_response import Assignment, DescribedGroup, TopicPartitions
from kraftd.messages.consumer_group_describe_response import Member as DescribedMember
from kraftd.wire.error_code import ErrorCode

CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1


def described_consumer_group(state: ShardState, group_id: str) -> DescribedGroup:
    """A consumer group with its members, what they have and what they are to have."""
    group = state.timeline.committed_value(state.groups, group_id)
    if not isinstance(group, ConsumerGroup):
        reason = "not found" if group is None else "is not a consumer group"
        message = f"Group {group_id} {reason}."
        return DescribedGroup(ErrorCode.GROUP_ID_NOT_FOUND, message, group_id)
    facts = group.committed_facts()
    assignors = dict(state.timeline.committed_items(group.assignors))
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state_name(),
        group_epoch=facts.epoch,
        assignment_epoch=facts.target_epoch,
        assignor_name=preferred_assignor(assignors) or state.config.group_consumer_assignors[0],
        members=[
            _member(state, group, member) for _, member in state.timeline.committed_items(group.members)
        ],
    )


def refused_consumer_group(group_id: str, error: ErrorCode) -> DescribedGroup:
    return DescribedGroup(error, group_id=group_id)


def visible_group(call: Call, group: DescribedGroup) -> DescribedGroup:
    """The group, or a refusal if it has topics that the caller may not describe."""
    names = {
        topic.topic_name
        for member in group.members
        for assignment in (member.assignment, member.target_assignment)
        for topic in assignment.topic_partitions
    }
    if all(call.allows(AclOperation.DESCRIBE, AclResourceType.TOPIC, name) for name in names):
        return group
    message = "The group has described topic(s) that the client is not authorized to describe."
    return DescribedGroup(ErrorCode.TOPIC_AUTHORIZATION_FAILED, message, group.group_id)


def _member(state: ShardState, group: ConsumerGroup, member: Member) -> DescribedMember:
    target = state.timeline.committed_value(group.targets, member.member_id) or NOTHING
    has: dict[bytes, list[int]] = {}
    for partitions in (member.assigned, member.revoking):
        for topic_id, epochs in partitions.items():
            has.setdefault(topic_id, []).extend(epochs)
    return DescribedMember(
        member.member_id,
        member.instance_id,
        member.rack_id,
        member.epoch,
        member.client_id,
        member.client_host,
        tuple(sorted(member.topics)),
        member.regex,
        _assignment(state, has),
        _assignment(state, target),
        CONSUMER_MEMBER if member.classic is None else CLASSIC_MEMBER,
    )


def _assignment(state: ShardState, partitions: Mapping[bytes, Iterable[int]]) -> Assignment:
    """Partitions with the names of their topics; topics that are gone are left out."""
    names = {topic_id: state.metadata.topic_name(topic_id) for topic_id in partitions}
    return Assignment(
        [
            TopicPartitions(topic_id, name, tuple(partitions[topic_id]))
            for topic_id, name in names.items()
            if name is not None
        ]
    )
