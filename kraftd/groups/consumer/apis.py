"""What a group coordinator does for consumer groups, API by API."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from kraftd.acl import AclOperation
from kraftd.ground.pace import Slices, at_once
from kraftd.ground.refusal import Refusal
from kraftd.groups import topics as known
from kraftd.groups.call import Call
from kraftd.groups.consumer.describing import describe_consumer_groups
from kraftd.groups.consumer.fencing import leave
from kraftd.groups.consumer.gathering import Gathering, Join, gathering_of
from kraftd.groups.consumer.heartbeat import Heartbeat
from kraftd.groups.consumer.sessions import gone_at_last
from kraftd.groups.consumer.validation import check_heartbeat
from kraftd.groups.group_shards import GroupShards
from kraftd.groups.outcome import Outcome
from kraftd.groups.repeating import offer_again, repetition
from kraftd.groups.shard import ShardStatus
from kraftd.groups.state import ShardState
from kraftd.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from kraftd.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kraftd.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.message import Message


class ConsumerGroupApis:
    """The APIs of consumer groups, in the shards of a coordinator."""

    def __init__(self, shards: GroupShards) -> None:
        self.shards = shards

    def __repr__(self) -> str:
        return f"<ConsumerGroupApis{'' if self.is_served() else ', not served'}>"

    def is_served(self) -> bool:
        """Return whether the feature and the broker's configs allow consumer groups."""
        protocols = self.shards.config.group_coordinator_rebalance_protocols
        return self.shards.group_version >= 1 and any(name.lower() == "consumer" for name in protocols)

    def heartbeat(self, call: Call, request: ConsumerGroupHeartbeatRequest, now_ms: int) -> None:
        def refuse(error: ErrorCode, message: str | None = None) -> ConsumerGroupHeartbeatResponse:
            return ConsumerGroupHeartbeatResponse(error_code=error, error_message=message)

        shards = self.shards
        if not self.is_served():
            shards.respond(call, refuse(ErrorCode.UNSUPPORTED_VERSION))
            return
        if not shards.permit(call, AclOperation.READ, request.group_id, refuse):
            return
        if not all(
            known.may(call, AclOperation.DESCRIBE, name) for name in request.subscribed_topic_names or ()
        ):
            shards.respond(call, refuse(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
            return
        try:
            check_heartbeat(request, call.version, shards.config.group_consumer_assignors)
        except Refusal as error:
            shards.respond(call, refuse(error.code, error.message))
            return

        def write(act: Callable[[ShardState], Outcome], at_ms: int) -> None:
            def operation(state: ShardState) -> Outcome:
                try:
                    return act(state)
                except Refusal as error:
                    return Outcome(response=refuse(error.code, error.message))

            shards.write(call, request.group_id, at_ms, operation, refuse)

        step = partial(write, partial(self._step, call, request))
        gathering = self._gathering(request, now_ms)
        if gathering is None:
            step(now_ms)
        else:
            note = partial(write, lambda state: Heartbeat(state, call, request).note_only())
            gathering.add(Join(request, note, step, lambda error: shards.respond(call, refuse(error))))

    def _step(self, call: Call, request: ConsumerGroupHeartbeatRequest, state: ShardState) -> Outcome:
        """What a heartbeat writes, and its answer. Raises Refusal."""
        if request.member_epoch < 0:
            left = leave(state, request)
            return gone_at_last(state, request.group_id, (request.member_id,), left)
        beat = Heartbeat(state, call, request)
        outcome = beat.run()
        if beat.lasting is not None:
            again = repetition(state, beat.group, beat.lasting, request)
            offer_again(self.shards, call, request.group_id, state.now_ms, again)
        return outcome

    def _gathering(self, request: ConsumerGroupHeartbeatRequest, now_ms: int) -> Gathering | None:
        """Where a heartbeat waits for those of further members; None for almost all."""
        shard = self.shards.shards.get(self.shards.partition_for(request.group_id))
        if shard is None or shard.status is not ShardStatus.ACTIVE:
            return None
        shard.state.now_ms = now_ms
        return gathering_of(shard.state, shard.gatherings, request)

    def describe(self, call: Call, request: ConsumerGroupDescribeRequest, now_ms: int) -> None:
        self.shards.respond(call, at_once(self.describing(call, request, now_ms)))

    def describing(self, call: Call, request: ConsumerGroupDescribeRequest, now_ms: int) -> Slices[Message]:
        """The answer to ConsumerGroupDescribe, in slices."""
        return describe_consumer_groups(self.shards, self.is_served(), call, request, now_ms)
