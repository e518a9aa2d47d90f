"""A classic group with members becomes a consumer group."""

from __future__ import annotations

from kraftd.ground.refusal import Refusal
from kraftd.groups.classic.answers import answer_join, answer_sync, join_refused
from kraftd.groups.classic.group import ClassicGroup
from kraftd.groups.classic.member import ClassicMember
from kraftd.groups.consumer.group import ConsumerGroup
from kraftd.groups.consumer.member import Member
from kraftd.groups.consumer.records import (
    current_record,
    epoch_record,
    subscription_record,
    target_epoch_record,
    target_record,
)
from kraftd.groups.consumer.sessions import watch_session
from kraftd.groups.migration.embedded import MalformedBytes, assignment_of, subscription_of
from kraftd.groups.migration.policy import allows_upgrade
from kraftd.groups.records import CoordinatorRecord
from kraftd.groups.state import ShardState
from kraftd.groups.timeline import Timeline
from kraftd.messages.consumer_group_member_metadata_value import ClassicMemberMetadata, ClassicProtocol
from kraftd.messages.sync_group_response import SyncGroupResponse
from kraftd.wire.error_code import ErrorCode

FINAL = 1 << 62  # beyond every offset: what is changed before it is not taken back


def upgraded(state: ShardState, classic: ClassicGroup) -> tuple[ConsumerGroup, list[CoordinatorRecord]]:
    """The consumer group that a classic one becomes, and the records that make it so. Raises Refusal.

    Members keep what they were assigned. Those that wait in a rebalance have to join again.
    """
    check_upgrade(state, classic)
    for waiting in list(classic.members.values()):
        refusal = join_refused(ErrorCode.REBALANCE_IN_PROGRESS, waiting.member_id)
        answer_join(state, classic, waiting, refusal)
        answer_sync(state, waiting, SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
    group = built_of(state, classic)
    group_id, facts = group.group_id, group.facts
    members = [group.members[member_id] for member_id in group.member_ids()]
    records = [
        *classic.tombstones(),
        *(subscription_record(group_id, member) for member in members),
        epoch_record(group_id, facts.epoch, facts.metadata_hash),
        *(target_record(group_id, one.member_id, group.target(one.member_id)) for one in members),
        target_epoch_record(group_id, facts.target_epoch, facts.target_ms),
        *(current_record(group_id, member) for member in members),
    ]
    for member in members:
        assert member.classic is not None
        watch_session(state, group_id, member.member_id, member.classic.session_timeout_ms)
    return group, records


def check_upgrade(state: ShardState, classic: ClassicGroup) -> None:
    reason = None
    if not allows_upgrade(state.config):
        reason = "online upgrade is disabled"
    elif not classic.is_of_consumers():
        reason = "the group does not use the consumer embedded protocol"
    elif len(classic.members) > state.config.group_consumer_max_size:
        reason = "the group size exceeds the consumer group maximum size"
    if reason is not None:
        raise refusal_of(classic, f" because {reason}")


def refusal_of(classic: ClassicGroup, reason: str) -> Refusal:
    message = f"Cannot upgrade classic group {classic.group_id} to consumer group{reason}."
    return Refusal(ErrorCode.GROUP_ID_NOT_FOUND, message)


def built_of(state: ShardState, classic: ClassicGroup) -> ConsumerGroup:
    """The consumer group, beside the shard's state. Raises Refusal."""
    if classic.protocol_name is None and classic.members:
        raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)  # as in Kafka, before the first generation
    timeline = Timeline()
    timeline.committed = FINAL
    group = ConsumerGroup(classic.group_id, timeline)
    try:
        for member in classic.members.values():
            put_member(state, classic, member, classic.protocol_name or "", group)
    except MalformedBytes:
        raise refusal_of(classic, " because the embedded consumer protocol is malformed") from None
    group.set_facts(
        epoch=classic.generation,
        target_epoch=classic.generation,
        metadata_hash=state.metadata_hash(group.topics),
    )
    return group


def put_member(
    state: ShardState, classic: ClassicGroup, member: ClassicMember, protocol: str, group: ConsumerGroup
) -> None:
    """Add a member with what it says, and with what it was assigned. Raises Refusal or MalformedBytes.

    As in Kafka, a partition of two members is an unknown error. So is a member that joins the next generation
    without the protocol of this one.
    """
    assigned: dict[bytes, tuple[int, ...]] = {}
    if member.assignment:
        assignment = assignment_of(member.assignment)
        if assignment.user_data:
            raise refusal_of(
                classic,
                " because an unsupported custom assignor is in use. Please refer to the documentation or "
                "switch to a default assignor before re-attempting the upgrade",
            )
        for row in assignment.assigned_partitions:
            topic_id = state.metadata.topic_id(row.topic)
            if topic_id is not None:
                assigned[topic_id] = row.partitions
    metadata = member.metadata(protocol)
    if metadata is None:
        raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)
    subscription = subscription_of(metadata)
    if any(group.owners.owner(topic_id, index) for topic_id, some in assigned.items() for index in some):
        raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)
    epoch = classic.generation
    group.set_target(
        member.member_id, {topic_id: frozenset(indexes) for topic_id, indexes in assigned.items()}
    )
    group.put(
        Member(
            member.member_id,
            epoch=epoch,
            previous_epoch=epoch,
            instance_id=member.instance_id,
            rack_id=subscription.rack_id or None,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            client_id=member.client_id,
            client_host=member.client_host,
            topics=frozenset(subscription.topics),
            assigned={topic_id: dict.fromkeys(indexes, epoch) for topic_id, indexes in assigned.items()},
            classic=ClassicMemberMetadata(
                member.session_timeout_ms, [ClassicProtocol(name, data) for name, data in member.protocols]
            ),
        )
    )
