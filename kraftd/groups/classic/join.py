"""JoinGroup: a member joins a classic group, or asks for a rebalance."""

from __future__ import annotations

from functools import partial

from kraftd.ground.refusal import Refusal
from kraftd.groups.call import Call
from kraftd.groups.classic.answers import (
    UNKNOWN_MEMBER_ID,
    answer_join,
    answer_sync,
    join_refused,
    joined,
)
from kraftd.groups.classic.group import ClassicGroup
from kraftd.groups.classic.member import ClassicMember, Protocols
from kraftd.groups.classic.rebalance import (
    NOTHING,
    complete_if_all_joined,
    heard,
    prepare,
    rebalance_or_complete,
    watch,
)
from kraftd.groups.classic.states import COMPLETING_REBALANCE, DEAD, EMPTY, PREPARING_REBALANCE, STABLE
from kraftd.groups.config import NEW_MEMBER_JOIN_TIMEOUT_MS
from kraftd.groups.consumer.group import ConsumerGroup
from kraftd.groups.errors import answer_to_failed_append
from kraftd.groups.migration.classic_join import ClassicJoining
from kraftd.groups.outcome import Outcome
from kraftd.groups.records import CoordinatorRecord
from kraftd.groups.state import ShardState
from kraftd.messages.join_group_request import JoinGroupRequest
from kraftd.messages.join_group_response import JoinGroupResponse
from kraftd.messages.sync_group_response import SyncGroupResponse
from kraftd.wire.error_code import ErrorCode

KNOWN_MEMBER_ID_REQUIRED_VERSION = 4  # KIP-394
SKIP_ASSIGNMENT_VERSION = 9  # KIP-814


class Joining:
    """One JoinGroup in the shard of its group."""

    __slots__ = ("call", "protocols", "request", "state")

    def __init__(self, state: ShardState, call: Call, request: JoinGroupRequest) -> None:
        self.state = state
        self.call = call
        self.request = request
        self.protocols = protocols_of(request)

    def refuse(self, error: ErrorCode, member_id: str) -> Outcome:
        self.state.respond(self.call, join_refused(error, member_id))
        return NOTHING

    def run(self) -> Outcome:
        """Answer at once, or keep the call with the member until the rebalance ends."""
        state, request = self.state, self.request
        is_unknown = request.member_id == UNKNOWN_MEMBER_ID
        present = state.groups.get(request.group_id)
        tombstones: list[CoordinatorRecord] = []
        if isinstance(present, ConsumerGroup) and not present.is_empty():
            return self.join_consumer_group(present)
        if isinstance(present, ConsumerGroup):
            if not is_unknown:
                return self.refuse(ErrorCode.UNKNOWN_MEMBER_ID, request.member_id)
            tombstones = present.tombstones()  # it becomes a classic group
            state.timeline.remove(state.groups, request.group_id)
            present = None
        if present is not None and not isinstance(present, ClassicGroup):
            return self.refuse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, UNKNOWN_MEMBER_ID)
        if present is None and not is_unknown:
            return self.refuse(ErrorCode.UNKNOWN_MEMBER_ID, request.member_id)
        group = present or state.new_classic_group(request.group_id)
        if not self.is_accepted(group):
            group.remove(request.member_id)
            state.counts.refused_members += 1
            outcome = self.refuse(ErrorCode.GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID)
        elif is_unknown:
            outcome = self.join_new(group)
        else:
            outcome = self.join_existing(group)
        if present is None and not outcome.records:
            after = partial(self.refuse_if_failed, group)
            return Outcome([*tombstones, group.empty_record()], replayed=False, after=after)
        if tombstones:
            outcome.records = [*tombstones, *outcome.records]
        return outcome

    def join_consumer_group(self, group: ConsumerGroup) -> Outcome:
        """A member with the classic protocol joins a consumer group."""
        try:
            return ClassicJoining(self.state, self.call, group, self.request, self.protocols).run()
        except Refusal as error:
            return self.refuse(error.code, UNKNOWN_MEMBER_ID)

    def refuse_if_failed(self, group: ClassicGroup, error: ErrorCode | None) -> None:
        """The record of a new group was not written, or not in time; if taken back, the group is gone."""
        if error is not None:
            if self.state.groups.get(group.group_id) is not group:
                group.release()
            self.state.respond(self.call, JoinGroupResponse(error_code=answer_to_failed_append(error)))

    def is_accepted(self, group: ClassicGroup) -> bool:
        """Return whether `group.max.size`, and the memory for members, leave room for the member."""
        if not self.state.memory.has_room(sum(len(name) + len(data) for name, data in self.protocols)):
            return False
        most = self.state.config.group_max_size
        member = group.members.get(self.request.member_id)
        if group.state is PREPARING_REBALANCE:
            return (member is not None and member.awaiting_join is not None) or group.joining_count < most
        if group.state in (EMPTY, DEAD):
            return True
        return member is not None or len(group.members) < most

    def fits(self, group: ClassicGroup) -> bool:
        """Return whether the group works with one of the member's protocols."""
        return group.supports(self.request.protocol_type, {name for name, _ in self.protocols})

    # A member without id

    def join_new(self, group: ClassicGroup) -> Outcome:
        request, state = self.request, self.state
        if group.state is DEAD:
            return self.refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE, UNKNOWN_MEMBER_ID)
        if not self.fits(group):
            return self.refuse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, UNKNOWN_MEMBER_ID)
        instance_id = request.group_instance_id
        prefix = self.call.client_id if instance_id is None else instance_id
        member_id = f"{prefix}-{state.new_uuid()}"
        if instance_id is not None:
            old_id = group.static_members.get(instance_id)
            return self.add(group, member_id) if old_id is None else self.replace(group, old_id, member_id)
        if self.call.version < KNOWN_MEMBER_ID_REQUIRED_VERSION:
            return self.add(group, member_id)
        group.expect(member_id)
        watch(state, group.group_id, member_id, request.session_timeout_ms)
        return self.refuse(ErrorCode.MEMBER_ID_REQUIRED, member_id)

    def add(self, group: ClassicGroup, member_id: str) -> Outcome:
        """Add a member that waits for the rebalance that it causes."""
        request = self.request
        member = ClassicMember(
            member_id,
            request.group_instance_id,
            self.call.client_id,
            self.call.client_host,
            request.rebalance_timeout_ms,
            request.session_timeout_ms,
            request.protocol_type,
            self.protocols,
        )
        member.is_new = True
        if group.state is PREPARING_REBALANCE and group.previous_state is EMPTY:
            group.has_new_members = True
        member.awaiting_join = self.call
        group.add(member)
        watch(self.state, group.group_id, member_id, NEW_MEMBER_JOIN_TIMEOUT_MS)
        return rebalance_or_complete(self.state, group)

    # A member that has an id

    def join_existing(self, group: ClassicGroup) -> Outcome:
        request, member_id = self.request, self.request.member_id
        if group.state is DEAD:
            return self.refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE, member_id)
        if not self.fits(group):
            return self.refuse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, member_id)
        if member_id in group.pending_join:
            if request.group_instance_id is not None:
                raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)  # Kafka gives a static member no such id
            return self.add(group, member_id)
        try:
            group.check_member(member_id, request.group_instance_id)
        except Refusal as error:
            return self.refuse(error.code, member_id)
        member = group.members[member_id]
        is_same = member.protocols == self.protocols
        if group.state is PREPARING_REBALANCE:
            return self.rejoin(group, member)
        if group.state is COMPLETING_REBALANCE and is_same:
            self.state.respond(self.call, joined(group, member_id))
            return NOTHING
        if group.state is STABLE and is_same and not group.is_leader(member_id):
            self.state.respond(self.call, joined(group, member_id, with_members=False))
            return NOTHING
        if group.state in (COMPLETING_REBALANCE, STABLE):
            return self.rejoin(group, member)
        return self.refuse(ErrorCode.UNKNOWN_MEMBER_ID, member_id)

    def rejoin(self, group: ClassicGroup, member: ClassicMember) -> Outcome:
        """Take over what the member says now, and let it wait for the rebalance."""
        self.update(group, member)
        return rebalance_or_complete(self.state, group)

    def update(self, group: ClassicGroup, member: ClassicMember) -> None:
        request = self.request
        group.update(member, self.protocols, request.rebalance_timeout_ms, request.session_timeout_ms)
        if member.awaiting_join is None:
            group.joining_count += 1
        member.awaiting_join = self.call

    # A static member that starts anew

    def replace(self, group: ClassicGroup, old_id: str, new_id: str) -> Outcome:
        """Give a static member its successor's id; if nothing else changes, without a rebalance (KIP-345)."""
        state, instance_id = self.state, self.request.group_instance_id
        assert instance_id is not None
        leader_before = group.leader_id
        fence(state, group, old_id)
        member = group.replace_static(instance_id, old_id, new_id)
        heard(state, group, member)
        before = (member.protocols, member.rebalance_timeout_ms, member.session_timeout_ms)
        self.update(group, member)
        if group.state is STABLE:
            if group.protocol_name != group.elected_protocol():
                return rebalance_or_complete(state, group)
            after = partial(self.end_replacement, group, member, old_id, before, leader_before)
            return Outcome([group.record()], replayed=False, after=after)
        if group.state is COMPLETING_REBALANCE:
            return prepare(state, group)
        return complete_if_all_joined(state, group)

    def end_replacement(
        self,
        group: ClassicGroup,
        member: ClassicMember,
        old_id: str,
        before: tuple[Protocols, int, int],
        leader_before: str | None,
        error: ErrorCode | None,
    ) -> None:
        """Answer the successor; if its record could not be written, the old member is back."""
        state, new_id = self.state, member.member_id
        instance_id = member.instance_id
        if error is not None and instance_id is not None and group.members.get(new_id) is member:
            group.update(member, *before)
            if member.awaiting_join is not None:
                member.awaiting_join = None
                group.joining_count -= 1
            heard(state, group, group.replace_static(instance_id, new_id, old_id))
            answer = joined(group, UNKNOWN_MEMBER_ID, with_members=False)
            answer.leader = leader_before or ""
            answer.error_code = answer_to_failed_append(error)
            state.respond(self.call, answer)
        elif error is not None:
            state.respond(self.call, join_refused(answer_to_failed_append(error), UNKNOWN_MEMBER_ID))
        elif self.call.version >= SKIP_ASSIGNMENT_VERSION:
            answer = joined(group, new_id)
            answer.skip_assignment = group.is_leader(new_id)
            answer_join(state, group, member, answer)
        else:
            # The answer names the leader of before: a member that led must not believe that it does, because
            # it would assign anew what is assigned.
            answer = joined(group, new_id, with_members=False)
            answer.leader = leader_before or ""
            answer_join(state, group, member, answer)


def fence(state: ShardState, group: ClassicGroup, member_id: str) -> None:
    """Answer the requests in which a static member waits whose instance id another one has taken."""
    member = group.members[member_id]
    answer_join(state, group, member, join_refused(ErrorCode.FENCED_INSTANCE_ID, member_id))
    answer_sync(state, member, SyncGroupResponse(error_code=ErrorCode.FENCED_INSTANCE_ID))


def protocols_of(request: JoinGroupRequest) -> Protocols:
    """The member's protocols; of several with one name, the first."""
    named: dict[str, bytes] = {}
    for protocol in request.protocols:
        named.setdefault(protocol.name, protocol.metadata)
    return list(named.items())
