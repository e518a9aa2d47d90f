"""JoinGroup of a member with the classic protocol to a consumer group that has members."""

from __future__ import annotations

from functools import partial
from typing import Any

from msgspec.structs import replace

from kraftd.ground.refusal import Refusal
from kraftd.groups.call import Call
from kraftd.groups.consumer.changing import Changing
from kraftd.groups.consumer.fencing import held_by
from kraftd.groups.consumer.group import PROTOCOL_TYPE, ConsumerGroup
from kraftd.groups.consumer.member import Member
from kraftd.groups.consumer.sessions import await_sync, watch_session
from kraftd.groups.migration.downgrade import becomes_classic_by, downgrade
from kraftd.groups.migration.embedded import MalformedBytes, subscription_of
from kraftd.groups.migration.policy import allows_classic_members
from kraftd.groups.outcome import Outcome
from kraftd.groups.state import ShardState
from kraftd.messages.consumer_group_heartbeat_request import TopicPartitions
from kraftd.messages.consumer_group_member_metadata_value import ClassicMemberMetadata, ClassicProtocol
from kraftd.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kraftd.messages.join_group_request import JoinGroupRequest
from kraftd.messages.join_group_response import JoinGroupResponse
from kraftd.wire.error_code import ErrorCode

KNOWN_MEMBER_ID_REQUIRED_VERSION = 4  # KIP-394


class ClassicJoining(Changing):
    """One JoinGroup. It is answered once its records are committed, and never waits for other members."""

    __slots__ = ("protocols", "request")

    def __init__(
        self,
        state: ShardState,
        call: Call,
        group: ConsumerGroup,
        request: JoinGroupRequest,
        protocols: list[tuple[str, bytes]],
    ) -> None:
        super().__init__(state, call, group, [])
        self.request = request
        self.protocols = protocols

    def run(self) -> Outcome:
        """The records and the answer. Raises Refusal."""
        request, group = self.request, self.group
        if not allows_classic_members(self.state.config):
            raise Refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        is_unknown = not request.member_id
        member_id = request.member_id or self.state.new_uuid()
        self.check_size(member_id)
        if not self.is_supported():
            raise Refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        is_dynamic = request.group_instance_id is None
        if is_unknown and is_dynamic and self.call.version >= KNOWN_MEMBER_ID_REQUIRED_VERSION:
            response = JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id)
            return Outcome(response=response)
        member = self.find_member(member_id, is_unknown)
        holder = None if is_dynamic else group.static_member(request.group_instance_id or "")
        subscription = self.subscription()
        updated = self.as_requested(member, subscription)
        has_other_names = updated.topics != member.topics
        is_new = self.note(member, updated).is_changed or has_other_names
        epoch = self.raise_epoch(member, updated, is_new)
        owned = self.owned(subscription)
        if becomes_classic_by(self.state, group, holder):
            return self.downgrade(updated, epoch, is_new, owned)
        target_epoch, target = self.target_of(member, updated, epoch)
        stepped = self.reconcile(updated, target_epoch, target, is_new, owned)
        after = partial(joined, self.state, group.group_id, stepped.member_id, request)
        return Outcome(self.records, self.answer(stepped), after=after)

    def is_supported(self) -> bool:
        """Return whether all classic members know one of the member's protocols."""
        if self.request.protocol_type != PROTOCOL_TYPE:
            return False
        classic = [member.classic for member in self.group.members.values() if member.classic is not None]
        known = [{protocol.name for protocol in one.supported_protocols} for one in classic]
        return any(all(name in names for names in known) for name, _ in self.protocols)

    def find_member(self, member_id: str, is_unknown: bool) -> Member:
        """The member as it was. Raises Refusal."""
        group, instance_id = self.group, self.request.group_instance_id
        if instance_id is None:
            return group.members.get(member_id) or Member(member_id)
        if not is_unknown:
            return held_by(group, instance_id, member_id)
        holder = group.static_member(instance_id)
        if holder is None:
            return group.members.get(member_id) or Member(member_id)
        return self.replace_static(holder, member_id)

    def subscription(self) -> ConsumerProtocolSubscription:
        try:
            return subscription_of(self.protocols[0][1])
        except MalformedBytes:
            raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR) from None

    def owned(self, subscription: ConsumerProtocolSubscription) -> list[TopicPartitions]:
        """The partitions that the member says it has, of topics that exist."""
        found = [(self.state.metadata.topic_id(row.topic), row) for row in subscription.owned_partitions]
        return [TopicPartitions(topic_id, row.partitions) for topic_id, row in found if topic_id is not None]

    def as_requested(self, member: Member, subscription: ConsumerProtocolSubscription) -> Member:
        """The member with what the request says of it."""
        request = self.request
        changes: dict[str, Any] = {}
        if request.group_instance_id is not None:
            changes["instance_id"] = request.group_instance_id
        if subscription.rack_id:
            changes["rack_id"] = subscription.rack_id
        if request.rebalance_timeout_ms != -1:
            changes["rebalance_timeout_ms"] = request.rebalance_timeout_ms
        return replace(
            member,
            topics=frozenset(subscription.topics),
            regex="",
            client_id=self.call.client_id,
            client_host=self.call.client_host,
            classic=ClassicMemberMetadata(
                request.session_timeout_ms, [ClassicProtocol(name, data) for name, data in self.protocols]
            ),
            **changes,
        )

    def downgrade(self, member: Member, epoch: int, is_new: bool, owned: list[TopicPartitions]) -> Outcome:
        """With this member all are classic. A target that is not up to date needs another rebalance."""
        group = self.group
        must_rebalance = group.facts.target_epoch < epoch
        if not must_rebalance:
            holder_id = group.static_members.get(member.instance_id or "", "")
            target = group.target(holder_id)
            member = self.reconcile(member, group.facts.target_epoch, target, is_new, owned)
        return downgrade(
            self.state,
            group,
            (),
            self.answer(member),
            joining=member,
            before=self.records,
            must_rebalance=must_rebalance,
        )

    def answer(self, member: Member) -> JoinGroupResponse:
        return JoinGroupResponse(
            generation_id=member.epoch,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=self.protocols[0][0],
            member_id=member.member_id,
        )


def joined(
    state: ShardState, group_id: str, member_id: str, request: JoinGroupRequest, error: ErrorCode | None
) -> None:
    """The member's records are committed: it lives, and SyncGroup is to follow."""
    if error is None:
        watch_session(state, group_id, member_id, request.session_timeout_ms)
        await_sync(state, group_id, member_id, request.rebalance_timeout_ms)
