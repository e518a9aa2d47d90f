"""ShareGroupDescribe in one shard, as of the high watermark."""

from __future__ import annotations

from collections.abc import Mapping

from kraftd.ground.pace import ROW_US, Pace, Slices
from kraftd.groups.call import Call
from kraftd.groups.consumer.describing import MEMBER_US
from kraftd.groups.share.assignor import SIMPLE
from kraftd.groups.share.group import ShareGroup
from kraftd.groups.share.member import ShareMember
from kraftd.groups.state import ShardState
from kraftd.groups.topics import TOPICS_HIDDEN, may_describe_all
from kraftd.messages.share_group_describe_response import Assignment, DescribedGroup, Member, TopicPartitions
from kraftd.wire.error_code import ErrorCode


def described_share_group(state: ShardState, call: Call, group_id: str) -> Slices[DescribedGroup]:
    """A share group with its members and what they have.

    Or a refusal, also if it has topics that the caller may not describe.
    """
    group = state.timeline.committed_value(state.groups, group_id)
    if not isinstance(group, ShareGroup):
        reason = "not found" if group is None else "is not a share group"
        return DescribedGroup(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} {reason}.", group_id)
    facts = group.committed_facts()
    row = DescribedGroup(
        group_id=group_id,
        group_state=group.state_name(),
        group_epoch=facts.epoch,
        assignment_epoch=facts.target_epoch,
        assignor_name=SIMPLE,
    )
    members = [member for _, member in state.timeline.committed_items(group.members)]
    names: dict[bytes, str | None] = {}
    pace = Pace()
    for member in members:
        for topic_id in member.assigned:
            if topic_id not in names:
                names[topic_id] = state.metadata.topic_name(topic_id)
        row.members.append(_member(names, member))
        if pace.spent(MEMBER_US + ROW_US * sum(map(len, member.assigned.values()))):
            yield
    if not (yield from may_describe_all(call, filter(None, names.values()), pace)):
        return DescribedGroup(ErrorCode.TOPIC_AUTHORIZATION_FAILED, TOPICS_HIDDEN, group_id)
    return row


def _member(names: Mapping[bytes, str | None], member: ShareMember) -> Member:
    """A member; topics that are gone are left out."""
    rows = [
        TopicPartitions(topic_id, name, tuple(indexes))
        for topic_id, indexes in member.assigned.items()
        if (name := names[topic_id]) is not None
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
