"""ConsumerGroupDescribe in one shard, as of the high watermark."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kraftd.acl import AclOperation
from kraftd.ground.pace import ROW_US, Pace, Slices
from kraftd.ground.refusal import Refusal
from kraftd.groups.call import Call
from kraftd.groups.consumer.assignors.spec import NOTHING, Partitions
from kraftd.groups.consumer.group import ConsumerGroup, preferred_assignor
from kraftd.groups.consumer.member import Member
from kraftd.groups.group_shards import GroupShards
from kraftd.groups.state import ShardState
from kraftd.groups.topics import TOPICS_HIDDEN, may_describe_all
from kraftd.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from kraftd.messages.consumer_group_describe_response import (
    Assignment,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    TopicPartitions,
)
from kraftd.messages.consumer_group_describe_response import Member as DescribedMember
from kraftd.wire.error_code import ErrorCode

CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1


MEMBER_US = 10  # of work
TOPICS_A_SLICE = 2000


def describe_consumer_groups(
    shards: GroupShards, is_served: bool, call: Call, request: ConsumerGroupDescribeRequest, now_ms: int
) -> Slices[ConsumerGroupDescribeResponse]:
    """The answer to ConsumerGroupDescribe, in slices: groups may have very many members."""
    refused: list[DescribedGroup] = []
    rows: list[DescribedGroup] = []
    for group_id in request.group_ids:
        if not is_served:
            rows.append(DescribedGroup(ErrorCode.UNSUPPORTED_VERSION, group_id=group_id))
        elif not shards.may(call, AclOperation.DESCRIBE, group_id):
            refused.append(DescribedGroup(ErrorCode.GROUP_AUTHORIZATION_FAILED, group_id=group_id))
        elif not group_id:
            rows.append(DescribedGroup(ErrorCode.INVALID_GROUP_ID, group_id=group_id))
        else:
            try:
                state = shards.shard_of(group_id, now_ms).state
                rows.append((yield from described_consumer_group(state, call, group_id)))
            except Refusal as error:
                rows.append(DescribedGroup(error.code, group_id=group_id))
    return ConsumerGroupDescribeResponse(groups=refused + rows)


def described_consumer_group(state: ShardState, call: Call, group_id: str) -> Slices[DescribedGroup]:
    """A consumer group with its members, what they have and what they are to have.

    Or a refusal, also if it has topics that the caller may not describe.
    """
    group = state.timeline.committed_value(state.groups, group_id)
    if not isinstance(group, ConsumerGroup):
        reason = "not found" if group is None else "is not a consumer group"
        message = f"Group {group_id} {reason}."
        return DescribedGroup(ErrorCode.GROUP_ID_NOT_FOUND, message, group_id)
    facts = group.committed_facts()
    assignors = dict(state.timeline.committed_items(group.assignors))
    row = DescribedGroup(
        group_id=group_id,
        group_state=group.state_name(),
        group_epoch=facts.epoch,
        assignment_epoch=facts.target_epoch,
        assignor_name=preferred_assignor(assignors) or state.config.group_consumer_assignors[0],
    )
    # All as of now, whatever changes between the slices.
    members = [
        (member, state.timeline.committed_value(group.targets, member_id) or NOTHING)
        for member_id, member in state.timeline.committed_items(group.members)
    ]
    names: dict[bytes, str | None] = {}
    pace = Pace()
    for member, target in members:
        yield from _name_topics(state, names, member, target)
        row.members.append(_member(names, member, target))
        count = sum(map(len, (*target.values(), *member.assigned.values())))
        if pace.spent(MEMBER_US + count * ROW_US):
            yield
    if not (yield from may_describe_all(call, filter(None, names.values()), pace)):
        return DescribedGroup(ErrorCode.TOPIC_AUTHORIZATION_FAILED, TOPICS_HIDDEN, group_id)
    return row


def _name_topics(
    state: ShardState, names: dict[bytes, str | None], member: Member, target: Partitions
) -> Slices[None]:
    """Look up the names of a member's topics; None is that of one that is gone."""
    for number, topic_id in enumerate((*target, *member.assigned, *member.revoking), 1):
        if topic_id not in names:
            names[topic_id] = state.metadata.topic_name(topic_id)
        if number % TOPICS_A_SLICE == 0:
            yield


def _member(names: Mapping[bytes, str | None], member: Member, target: Partitions) -> DescribedMember:
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
        _assignment(names, has),
        _assignment(names, target),
        CONSUMER_MEMBER if member.classic is None else CLASSIC_MEMBER,
    )


def _assignment(names: Mapping[bytes, str | None], partitions: Mapping[bytes, Collection[int]]) -> Assignment:
    """Partitions with the names of their topics; topics that are gone are left out."""
    return Assignment(
        [
            TopicPartitions(topic_id, name, tuple(indexes))
            for topic_id, indexes in partitions.items()
            if (name := names[topic_id]) is not None
        ]
    )
