"""ShareGroupDescribe in one shard, as of the high watermark."""

from __future__ import annotations

from kraftd.acl import AclOperation, AclResourceType
from kraftd.groups.call import Call
from kraftd.groups.share.assignor import SIMPLE
from kraftd.groups.share.group import ShareGroup
from kraftd.groups.share.member import ShareMember
from kraftd.groups.state import ShardState
from kraftd.messages.share_group_describe_response import Assignment, DescribedGroup, Member, TopicPartitions
from kraftd.wire.error_code import ErrorCode


def described_share_group(state: ShardState, group_id: str) -> DescribedGroup:
    """A share group with its members and what they have."""
    group = state.timeline.committed_value(state.groups, group_id)
    if not isinstance(group, ShareGroup):
        reason = "not found" if group is None else "is not a share group"
        return DescribedGroup(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} {reason}.", group_id)
    facts = group.committed_facts()
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state_name(),
        group_epoch=facts.epoch,
        assignment_epoch=facts.target_epoch,
        assignor_name=SIMPLE,
        members=[_member(state, member) for _, member in state.timeline.committed_items(group.members)],
    )


def visible_group(call: Call, group: DescribedGroup) -> DescribedGroup:
    """The group, or a refusal if it has topics that the caller may not describe."""
    names = {topic.topic_name for member in group.members for topic in member.assignment.topic_partitions}
    if all(call.allows(AclOperation.DESCRIBE, AclResourceType.TOPIC, name) for name in names):
        return group
    message = "The group has described topic(s) that the client is not authorized to describe."
    return DescribedGroup(ErrorCode.TOPIC_AUTHORIZATION_FAILED, message, group.group_id)


def _member(state: ShardState, member: ShareMember) -> Member:
    """A member; topics that are gone are left out."""
    rows = [
        TopicPartitions(topic_id, name, tuple(indexes))
        for topic_id, indexes in member.assigned.items()
        if (name := state.metadata.topic_name(topic_id)) is not None
    ]
    return Member(
        member.member_id,
        member.rack_id,
        member.epoch,
        member.client_id,
        member.client_host,
        tuple(sorted(member.topics)),
        Assignment(rows),
    )
