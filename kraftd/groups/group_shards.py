"""A broker's partitions of ``__consumer_offsets``, and how a request of a group gets into its shard."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from msgspec.structs import replace

from kraftd.acl import AclOperation, AclResourceType
from kraftd.ground.pace import Slices
from kraftd.ground.refusal import Refusal
from kraftd.groups.batches import NO_PRODUCER, Producer
from kraftd.groups.call import Call, Metadata
from kraftd.groups.classic.memory import MemberMemory
from kraftd.groups.config import GroupConfig
from kraftd.groups.consumer.assignors.spec import Assignor
from kraftd.groups.consumer.divisions import Divided, divide, large_step
from kraftd.groups.consumer.group import ConsumerGroup
from kraftd.groups.consumer.reconciling import Reconciling
from kraftd.groups.errors import answer_to_failed_append
from kraftd.groups.group_shard import GroupShard
from kraftd.groups.outcome import Outcome
from kraftd.groups.shard import Answer, Refuse, ShardStatus
from kraftd.groups.shards import Shards
from kraftd.groups.share.group import ShareGroup
from kraftd.groups.state import FEW_TOPICS, Counts, ShardState
from kraftd.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kraftd.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.message import Message


class GroupShards(Shards[GroupShard]):
    """All shards of groups. `new_uuid` makes the random part of member ids."""

    def __init__(self, config: GroupConfig, topics: Metadata, new_uuid: Callable[[], str]) -> None:
        super().__init__(config.offsets_topic_num_partitions)
        self.config = config
        self.topics = topics
        self.new_uuid = new_uuid
        self.counts = Counts()
        self.memory = MemberMemory(config.members_max_bytes)
        self.group_version = 1  # the finalized level; 0 has no consumer groups

    def new_shard(self, partition: int, leader_epoch: int) -> GroupShard:
        state = ShardState(self.config, self.respond, self.new_uuid, self.counts, self.memory, self.topics)
        return GroupShard(partition, leader_epoch, state, self.effects)

    def use_assignors(self, assignors: Mapping[str, Assignor]) -> None:
        """Offer these to consumer groups, the first as default, instead of Kafka's two.

        Call it before a shard is loaded.
        """
        self.config = replace(self.config, assignors=assignors, group_consumer_assignors=list(assignors))

    # Before a request

    def hash_first(self, request: Message) -> Slices[None] | None:
        """The hash of a group's very many topics, which a heartbeat will ask for; None if it needs none.

        The group's other heartbeats do not compare its topics meanwhile.
        """
        if not isinstance(request, ConsumerGroupHeartbeatRequest | ShareGroupHeartbeatRequest):
            return None
        shard = self.shards.get(self.partition_for(request.group_id))
        state = None if shard is None else shard.state
        group = None if state is None else state.groups.get(request.group_id)
        if (
            state is None
            or not isinstance(group, ConsumerGroup | ShareGroup)
            or len(group.topics) <= FEW_TOPICS
        ):
            return None
        if not group.needs_refresh(self.topics.hashes_version()) or group.group_id in state.hashing:
            return None
        names = frozenset(group.topics)
        return _hash_first(state, group.group_id, names) if state.lacks_hash(names) else None

    def divide_first(self, call: Call, request: Message) -> Slices[Divided | None] | None:
        """What is to be done in slices before a heartbeat, for `Call.divided`; None for almost all."""
        if self.large_step(call, request) is None:
            return None
        return divide(lambda: self.large_step(call, request))

    def large_step(self, call: Call, request: Message) -> Reconciling | None:
        """The next step of a member with very many partitions; None for other requests."""
        if not isinstance(request, ConsumerGroupHeartbeatRequest):
            return None
        shard = self.shards.get(self.partition_for(request.group_id))
        if shard is None or shard.status is not ShardStatus.ACTIVE:
            return None
        if not self.may(call, AclOperation.READ, request.group_id):
            return None
        return large_step(shard.state, request)

    # Writing

    def write(
        self,
        call: Call,
        group_id: str,
        now_ms: int,
        operation: Callable[[ShardState], Outcome],
        refuse: Refuse,
        allow_empty_id: bool = False,
        producer: Producer = NO_PRODUCER,
        answer: Answer | None = None,
    ) -> None:
        """Perform an operation in the shard of its group, with errors as a client is answered them.

        answer: takes the response, or the refusal, once its records are committed; without it the call is
        answered.
        """
        take = answer or partial(self.respond, call)

        def refuse_mapped(error: ErrorCode) -> Any:
            return refuse(answer_to_failed_append(error))

        if not group_id and not allow_empty_id:
            take(refuse(ErrorCode.INVALID_GROUP_ID))
            return
        try:
            shard = self.shard_of(group_id, now_ms)
        except Refusal as error:
            take(refuse(error.code))
            return
        shard.write(partial(operation, shard.state), take, refuse_mapped, producer)

    def may(self, call: Call, operation: AclOperation, group_id: str) -> bool:
        """Return whether the caller may do this to a group."""
        return call.allows(operation, AclResourceType.GROUP, group_id)

    def permit(self, call: Call, operation: AclOperation, group_id: str, refuse: Refuse) -> bool:
        """Answer a call that may not do this to a group.

        Return whether it may.
        """
        if call.allows(operation, AclResourceType.GROUP, group_id):
            return True
        self.respond(call, refuse(ErrorCode.GROUP_AUTHORIZATION_FAILED))
        return False


def _hash_first(state: ShardState, group_id: str, names: frozenset[str]) -> Slices[None]:
    state.hashing.add(group_id)
    try:
        yield from state.hash_in_slices(names)
    finally:
        state.hashing.discard(group_id)
