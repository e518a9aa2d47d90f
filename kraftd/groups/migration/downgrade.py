"""A consumer group whose remaining members are all classic becomes a classic group."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import Any

from kraftd.ground.refusal import Refusal
from kraftd.groups.classic.group import CONSUMER_PROTOCOL_TYPE, ClassicGroup
from kraftd.groups.classic.member import ClassicMember
from kraftd.groups.classic.rebalance import heard, prepare
from kraftd.groups.classic.states import STABLE
from kraftd.groups.consumer.group import ConsumerGroup
from kraftd.groups.consumer.member import Member
from kraftd.groups.consumer.records import group_tombstones
from kraftd.groups.migration.embedded import MalformedBytes, encoded_assignment, version_of
from kraftd.groups.migration.policy import allows_downgrade
from kraftd.groups.outcome import Outcome
from kraftd.groups.records import CoordinatorRecord
from kraftd.groups.state import ShardState
from kraftd.wire.error_code import ErrorCode


def becomes_classic(state: ShardState, group: ConsumerGroup, leaving: Collection[Member]) -> bool:
    """Return whether the group becomes classic when these members leave."""
    gone = {member.member_id for member in leaving}
    left = [member for member in group.members.values() if member.member_id not in gone]
    return (
        bool(left)
        and all(member.classic is not None for member in left)
        and allows_downgrade(state.config)
        and len(left) <= state.config.group_max_size
    )


def becomes_classic_by(state: ShardState, group: ConsumerGroup, replaced: Member | None) -> bool:
    """Return whether the group becomes classic when a classic member takes the place of a static one."""
    if replaced is None or replaced.classic is not None:
        return False
    others = [member for member in group.members.values() if member is not replaced]
    return (
        all(member.classic is not None for member in others)
        and allows_downgrade(state.config)
        and len(group.members) <= state.config.group_max_size
    )


def downgrade(
    state: ShardState,
    group: ConsumerGroup,
    leaving: Collection[Member],
    response: Any = None,
    *,
    joining: Member | None = None,
    before: Collection[CoordinatorRecord] = (),
    must_rebalance: bool = True,
) -> Outcome:
    """Make the group classic, with the target as assignment; the state changes at once. Raises Refusal.

    joining: the member that takes the place of a static one, by the records `before`.
    """
    replaced = None if joining is None else group.static_member(joining.instance_id or "")
    try:
        classic = classic_of(state, group, leaving, joining, replaced)
    except MalformedBytes as problem:
        message = f"Cannot downgrade the classic group {group.group_id}: {problem}."
        raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND, message) from None
    records = [*before, *all_tombstones(group, replaced, joining), classic.record()]
    state.timeline.put(state.groups, group.group_id, classic)
    for member in classic.members.values():
        heard(state, classic, member)
    if must_rebalance:
        records += prepare(state, classic).records
    return Outcome(records, response, replayed=False, after=partial(release_if_failed, classic))


def release_if_failed(classic: ClassicGroup, error: ErrorCode | None) -> None:
    if error is not None:
        classic.release()


def all_tombstones(
    group: ConsumerGroup, replaced: Member | None, joining: Member | None
) -> list[CoordinatorRecord]:
    """Remove the group with all members; of a replaced one, the successor."""
    member_ids = group.member_ids()
    if replaced is not None and joining is not None:
        member_ids[member_ids.index(replaced.member_id)] = joining.member_id
    return group_tombstones(group.group_id, group.resolved, member_ids)


def classic_of(
    state: ShardState,
    group: ConsumerGroup,
    leaving: Collection[Member],
    joining: Member | None,
    replaced: Member | None,
) -> ClassicGroup:
    """The classic group, in the generation of the group's epoch. Raises Refusal or MalformedBytes.

    As in Kafka, a member whose former instance id another one takes cannot be replaced.
    """
    if replaced is not None and joining is not None and replaced.instance_id != joining.instance_id:
        raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)
    classic = ClassicGroup(group.group_id, STABLE, state.now_ms, state.memory)
    classic.generation = group.facts.epoch
    gone = {member.member_id for member in leaving}
    if replaced is not None:
        gone.add(replaced.member_id)
    stay = [group.members[name] for name in group.member_ids() if name not in gone]
    for member in stay if joining is None else [*stay, joining]:
        classic.add(classic_member(member))
    classic.protocol_type = CONSUMER_PROTOCOL_TYPE
    classic.protocol_name = classic.elected_protocol()
    classic.subscribed_topics = classic.compute_subscribed_topics()
    for one in classic.members.values():
        of = replaced if joining is not None and one.member_id == joining.member_id else None
        target = group.target(one.member_id if of is None else of.member_id)
        version = version_of(one.metadata(classic.protocol_name) or b"")
        one.assignment = encoded_assignment(target, state.metadata, version)
    return classic


def classic_member(member: Member) -> ClassicMember:
    assert member.classic is not None
    return ClassicMember(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        member.rebalance_timeout_ms,
        member.classic.session_timeout_ms,
        CONSUMER_PROTOCOL_TYPE,
        [(protocol.name, protocol.metadata) for protocol in member.classic.supported_protocols],
    )
