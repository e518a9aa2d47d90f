"""The group coordinator of a broker: its partitions of ``__consumer_offsets``, and the requests for them.

`handle` takes a request, `step` an event, and `flush` appends what both have written. All return effects.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from kraftd.acl import AclOperation, AclResourceType
from kraftd.ground.effect import Effect
from kraftd.ground.event import Event
from kraftd.ground.pace import Slices, at_once
from kraftd.ground.refusal import Refusal
from kraftd.groups import topics as known
from kraftd.groups.answers import (
    fetch_response,
    in_version,
    refused_commit,
    refused_deletion,
    refused_description,
    refused_fetch,
    refused_heartbeat,
    refused_leave,
    refused_transactional_commit,
)
from kraftd.groups.batches import Producer
from kraftd.groups.call import Call, Metadata
from kraftd.groups.classic.join import Joining
from kraftd.groups.classic.membership import described, heartbeat, leave, sync
from kraftd.groups.config import GroupConfig
from kraftd.groups.consumer.apis import ConsumerGroupApis
from kraftd.groups.errors import answer_to_failed_append
from kraftd.groups.events import TopicsDeleted
from kraftd.groups.gathered import Gathered
from kraftd.groups.group_shard import GroupShard
from kraftd.groups.group_shards import GroupShards
from kraftd.groups.listing import listed_groups
from kraftd.groups.offsets.commit import commit, commit_in_transaction, delete_offsets
from kraftd.groups.offsets.fetch import fetch_offsets
from kraftd.groups.offsets.removal import delete_groups
from kraftd.groups.offsets.repeated_commit import RepeatedCommit, may_repeat
from kraftd.groups.outcome import Outcome
from kraftd.groups.repeating import offer_again, repetition_of_classic
from kraftd.groups.shard import Answer, Refuse, ShardStatus
from kraftd.groups.share.apis import ShareGroupApis
from kraftd.groups.share.deleting import Errors, forget_groups, has_share_groups
from kraftd.groups.share.effects import LatestOffsetsFound, ShareCoordinatorsAnswered
from kraftd.groups.state import ShardState
from kraftd.messages.alter_share_group_offsets_request import AlterShareGroupOffsetsRequest
from kraftd.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from kraftd.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kraftd.messages.delete_groups_request import DeleteGroupsRequest
from kraftd.messages.delete_groups_response import DeletableGroupResult, DeleteGroupsResponse
from kraftd.messages.delete_share_group_offsets_request import DeleteShareGroupOffsetsRequest
from kraftd.messages.describe_groups_request import DescribeGroupsRequest
from kraftd.messages.describe_groups_response import DescribeGroupsResponse
from kraftd.messages.describe_share_group_offsets_request import DescribeShareGroupOffsetsRequest
from kraftd.messages.heartbeat_request import HeartbeatRequest
from kraftd.messages.join_group_request import JoinGroupRequest
from kraftd.messages.join_group_response import JoinGroupResponse
from kraftd.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from kraftd.messages.list_groups_request import ListGroupsRequest
from kraftd.messages.list_groups_response import ListGroupsResponse
from kraftd.messages.offset_commit_request import OffsetCommitRequest
from kraftd.messages.offset_commit_response import OffsetCommitResponse
from kraftd.messages.offset_delete_request import OffsetDeleteRequest
from kraftd.messages.offset_delete_response import OffsetDeleteResponse
from kraftd.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kraftd.messages.offset_fetch_response import OffsetFetchResponseGroup
from kraftd.messages.share_group_describe_request import ShareGroupDescribeRequest
from kraftd.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from kraftd.messages.sync_group_request import SyncGroupRequest
from kraftd.messages.sync_group_response import SyncGroupResponse
from kraftd.messages.txn_offset_commit_request import TxnOffsetCommitRequest
from kraftd.messages.txn_offset_commit_response import TxnOffsetCommitResponse
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.message import Message

SYNC_PROTOCOL_VERSION = 5  # of SyncGroup: it names the protocol (KIP-559)


class GroupCoordinator(GroupShards):
    """What a broker does for groups, API by API.

    `consumer` has the APIs of consumer groups, `share` those of share groups.
    """

    def __init__(self, config: GroupConfig, topics: Metadata, new_uuid: Callable[[], str]) -> None:
        super().__init__(config, topics, new_uuid)
        self.consumer = ConsumerGroupApis(self)
        self.share = ShareGroupApis(self)

    def in_version(self, response: Message, version: int) -> Message:
        return in_version(response, version)

    def step(self, event: Event, now_ms: int) -> list[Effect]:
        """Take an event."""
        if isinstance(event, TopicsDeleted):
            topic_ids = frozenset(event.topics.values())
            for shard in self.active(now_ms):
                shard.write(partial(shard.remove_topics, event.topics))
                shard.write(partial(shard.remove_state_of_topics, topic_ids))
        elif isinstance(event, ShareCoordinatorsAnswered | LatestOffsetsFound):
            self.share.asking.answered(event, now_ms)
        return super().step(event, now_ms)

    def handle(self, call: Call, request: Message, now_ms: int) -> list[Effect]:
        """Take a request; its answer comes at once or later, as Respond with the call's token."""
        HANDLERS[type(request)](self, call, request, now_ms)
        return self.take_effects()

    def end_transaction(
        self,
        partition: int,
        producer: Producer,
        coordinator_epoch: int,
        is_commit: bool,
        transaction_version: int,
        answer: Callable[[ErrorCode], None],
        now_ms: int,
    ) -> list[Effect]:
        """Write the marker of a transaction's end into a partition; producer is its id and epoch."""
        shard = self.shards.get(partition)
        if shard is None or shard.status is not ShardStatus.ACTIVE:
            is_loading = shard is not None and shard.status is ShardStatus.LOADING
            answer(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if is_loading else ErrorCode.NOT_COORDINATOR)
        else:
            shard.state.now_ms = now_ms
            shard.end_transaction(producer, coordinator_epoch, is_commit, transaction_version, answer)
        return self.take_effects()

    # Members

    def join_group(self, call: Call, request: JoinGroupRequest, now_ms: int) -> None:
        def refuse(error: ErrorCode, member_id: str = "") -> JoinGroupResponse:
            return JoinGroupResponse(error_code=error, member_id=member_id)

        if not self.permit(call, AclOperation.READ, request.group_id, refuse):
            return
        if call.version == 0:
            request.rebalance_timeout_ms = request.session_timeout_ms
        config = self.config
        if not request.group_id:
            self.respond(call, refuse(ErrorCode.INVALID_GROUP_ID, request.member_id))
        elif not (
            config.group_min_session_timeout_ms
            <= request.session_timeout_ms
            <= config.group_max_session_timeout_ms
        ):
            self.respond(call, refuse(ErrorCode.INVALID_SESSION_TIMEOUT, request.member_id))
        else:
            self.write(
                call, request.group_id, now_ms, lambda state: Joining(state, call, request).run(), refuse
            )

    def sync_group(self, call: Call, request: SyncGroupRequest, now_ms: int) -> None:
        def refuse(error: ErrorCode) -> SyncGroupResponse:
            return SyncGroupResponse(error_code=error)

        names_protocol = request.protocol_type is not None and request.protocol_name is not None
        if call.version >= SYNC_PROTOCOL_VERSION and not names_protocol:
            self.respond(call, refuse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
        elif self.permit(call, AclOperation.READ, request.group_id, refuse):
            self.write(call, request.group_id, now_ms, lambda state: sync(state, call, request), refuse)

    def heartbeat(self, call: Call, request: HeartbeatRequest, now_ms: int) -> None:
        def operation(state: ShardState) -> Outcome:
            response = heartbeat(state, request)
            member = request.group_id, request.member_id, request.group_instance_id
            offer_again(self, call, request.group_id, now_ms, repetition_of_classic(state, *member))
            return Outcome(response=response)

        if self.permit(call, AclOperation.READ, request.group_id, refused_heartbeat):
            self.write(call, request.group_id, now_ms, operation, refused_heartbeat)

    def leave_group(self, call: Call, request: LeaveGroupRequest, now_ms: int) -> None:
        if call.version < 3:
            request.members = [MemberIdentity(request.member_id)]
        refuse = partial(refused_leave, request)
        if self.permit(call, AclOperation.READ, request.group_id, refuse):
            self.write(call, request.group_id, now_ms, lambda state: leave(state, request), refuse)

    # Offsets

    def offset_commit(self, call: Call, request: OffsetCommitRequest, now_ms: int) -> None:
        refuse_all = partial(refused_commit, request)
        if not self.permit(call, AclOperation.READ, request.group_id, refuse_all):
            return
        part, answered = known.known_commit(self.topics, call, request)
        if not part.topics:
            self.respond(call, OffsetCommitResponse(topics=answered))
            return

        def operation(state: ShardState) -> Outcome:
            outcome = commit(state, part, call.version)
            if answered:
                outcome.response = known.merge_commit(answered, outcome.response, call.version)
            elif may_repeat(part, call.version, len(outcome.records)):
                call.varied = RepeatedCommit(self, part, call.version)
            return outcome

        def refuse(error: ErrorCode) -> Message:
            return known.merge_commit(answered, refused_commit(part, error), call.version)

        self.write(call, request.group_id, now_ms, operation, refuse, allow_empty_id=True)

    def sets_back(self, request: OffsetCommitRequest) -> bool:
        """Return whether a commit of no member has an offset before the one that its group has."""
        if request.member_id or request.generation_id_or_member_epoch >= 0:
            return False
        shard = self.shards.get(self.partition_for(request.group_id))
        offsets = {} if shard is None else shard.state.offsets.of_group(request.group_id)
        if not offsets:
            return False
        for topic in request.topics:
            name = topic.name or self.topics.topic_name(topic.topic_id) or ""
            for row in topic.partitions:
                before = offsets.get((name, row.partition_index))
                if before is not None and row.committed_offset < before.offset:
                    return True
        return False

    def txn_offset_commit(self, call: Call, request: TxnOffsetCommitRequest, now_ms: int) -> None:
        """The caller has asked the transaction's coordinator (KIP-890), and has set the call's guard."""
        refuse_all = partial(refused_transactional_commit, request)
        if not self.permit(call, AclOperation.READ, request.group_id, refuse_all):
            return
        part, answered = known.known_transactional_commit(self.topics, call, request)
        if not part.topics:
            self.respond(call, TxnOffsetCommitResponse(topics=answered))
            return

        def operation(state: ShardState) -> Outcome:
            outcome = commit_in_transaction(state, part, call.version)
            assert isinstance(outcome.response, TxnOffsetCommitResponse)
            outcome.response = known.merge_by_name(answered, outcome.response)
            return outcome

        def refuse(error: ErrorCode) -> Message:
            return known.merge_by_name(answered, refused_transactional_commit(part, error))

        producer = Producer(request.producer_id, request.producer_epoch, call.guard)
        self.write(call, request.group_id, now_ms, operation, refuse, producer=producer)

    def offset_delete(self, call: Call, request: OffsetDeleteRequest, now_ms: int) -> None:
        def refuse(error: ErrorCode) -> OffsetDeleteResponse:
            return OffsetDeleteResponse(error_code=error)

        if not self.permit(call, AclOperation.DELETE, request.group_id, refuse):
            return
        part, answered = known.known_delete(self.topics, call, request)

        def operation(state: ShardState) -> Outcome:
            outcome = delete_offsets(state, part)
            assert isinstance(outcome.response, OffsetDeleteResponse)
            if not outcome.response.error_code:  # an error of the whole request stands alone
                outcome.response = known.merge_by_name(answered, outcome.response)
            return outcome

        self.write(call, request.group_id, now_ms, operation, refuse)

    def offset_fetch(self, call: Call, request: OffsetFetchRequest, now_ms: int) -> None:
        groups = request.groups if call.version >= 8 else [one_group(request)]
        gathered: Gathered[OffsetFetchResponseGroup] = Gathered(
            len(groups), lambda rows: self.respond(call, fetch_response(rows, call.version))
        )
        if not groups:
            self.respond(call, fetch_response([], call.version))
        for number, group in enumerate(groups):
            self.fetch_group(call, group, request.require_stable, now_ms, partial(gathered.put, number))

    def fetch_group(
        self,
        call: Call,
        request: OffsetFetchRequestGroup,
        require_stable: bool,
        now_ms: int,
        put: Callable[[OffsetFetchResponseGroup], None],
    ) -> None:
        """Fetch the offsets of one group of a request."""
        if not self.may(call, AclOperation.DESCRIBE, request.group_id):
            put(refused_fetch(request, ErrorCode.GROUP_AUTHORIZATION_FAILED, call.version))
            return
        part, answered = known.known_fetch(self.topics, call, request)

        def finish(response: OffsetFetchResponseGroup) -> None:
            put(known.merge_fetch(self.topics, call, request.topics is None, answered, response))

        def operation(state: ShardState) -> OffsetFetchResponseGroup:
            return fetch_offsets(state, part, require_stable)

        def refuse(error: ErrorCode) -> OffsetFetchResponseGroup:
            if error in FETCH_NOT_COORDINATOR:
                error = ErrorCode.NOT_COORDINATOR
            return refused_fetch(part, answer_to_failed_append(error), call.version)

        try:
            shard = self.shard_of(request.group_id, now_ms)
            if not require_stable:
                finish(operation(shard.state))
                return
        except Refusal as error:
            finish(refuse(error.code))
            return
        # A reader of stable offsets waits until all that is written now is committed.
        shard.write(lambda: Outcome(response=operation(shard.state)), finish, refuse)

    # Groups

    def describe_groups(self, call: Call, request: DescribeGroupsRequest, now_ms: int) -> None:
        rows = []
        for group_id in request.groups:
            if not self.may(call, AclOperation.DESCRIBE, group_id):
                rows.append(refused_description(group_id, ErrorCode.GROUP_AUTHORIZATION_FAILED))
                continue
            try:
                rows.append(described(self.shard_of(group_id, now_ms).state, group_id, call.version))
            except Refusal as error:
                rows.append(refused_description(group_id, error.code))
        self.respond(call, DescribeGroupsResponse(groups=rows))

    def describing(
        self, call: Call, request: ConsumerGroupDescribeRequest | ShareGroupDescribeRequest, now_ms: int
    ) -> Slices[Message]:
        """The answer to the description of groups that may have very many members, in slices."""
        if isinstance(request, ShareGroupDescribeRequest):
            return self.share.describing(call, request, now_ms)
        return self.consumer.describing(call, request, now_ms)

    def list_groups(self, call: Call, request: ListGroupsRequest, now_ms: int) -> None:
        self.respond(call, at_once(self.listing(call, request, now_ms)))

    def listing(self, call: Call, request: ListGroupsRequest, now_ms: int) -> Slices[ListGroupsResponse]:
        """The answer to ListGroups, in slices: there may be very many groups."""
        if any(shard.status is ShardStatus.LOADING for shard in self.shards.values()):
            return ListGroupsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        sees_all = call.allows(AclOperation.DESCRIBE, AclResourceType.CLUSTER, "kafka-cluster")
        may = None if sees_all else partial(self.may, call, AclOperation.DESCRIBE)
        states = [shard.state for shard in self.active(now_ms)]
        return ListGroupsResponse(groups=(yield from listed_groups(states, request, may)))

    def delete_groups(self, call: Call, request: DeleteGroupsRequest, now_ms: int) -> None:
        refused: list[DeletableGroupResult] = []
        by_partition: dict[int, list[str]] = {}
        for group_id in dict.fromkeys(request.groups_names):
            if self.may(call, AclOperation.DELETE, group_id):
                by_partition.setdefault(self.partition_for(group_id), []).append(group_id)
            else:
                error = ErrorCode.GROUP_AUTHORIZATION_FAILED
                refused.append(DeletableGroupResult(group_id, error))

        def finish(parts: list[DeleteGroupsResponse]) -> None:
            results = [row for part in parts for row in part.results]
            self.respond(call, DeleteGroupsResponse(results=results + refused))

        gathered: Gathered[DeleteGroupsResponse] = Gathered(len(by_partition), finish)
        if not by_partition:
            finish([])
        for number, group_ids in enumerate(by_partition.values()):
            put = partial(gathered.put, number)

            def refuse(error: ErrorCode, group_ids: list[str] = group_ids) -> DeleteGroupsResponse:
                return refused_deletion(group_ids, answer_to_failed_append(error))

            try:
                shard = self.shard_of(group_ids[0], now_ms)
            except Refusal as error:
                put(refuse(error.code))
                continue
            if has_share_groups(shard.state, group_ids):
                self.delete_share_groups_first(shard, group_ids, put, refuse)
            else:
                shard.write(partial(delete_groups, shard.state, group_ids), put, refuse)

    def delete_share_groups_first(
        self, shard: GroupShard, group_ids: list[str], put: Answer, refuse: Refuse
    ) -> None:
        """Delete groups once the share coordinators have forgotten those of them that are share groups."""

        def go_on(errors: Errors, now_ms: int) -> None:
            refused = [DeletableGroupResult(group_id, error) for group_id, error in errors.items()]
            rest = [group_id for group_id in group_ids if group_id not in errors]

            def finish(response: DeleteGroupsResponse) -> None:
                put(DeleteGroupsResponse(results=[*refused, *response.results]))

            try:
                present = self.shard_of(group_ids[0], now_ms)
            except Refusal as error:
                finish(refused_deletion(rest, error.code))
                return
            present.write(partial(delete_groups, present.state, rest), finish, refuse)

        forget_groups(self.share.asking, shard, group_ids, go_on)


# OffsetFetch answers these errors of an append so, because old consumers do not know the usual ones.
FETCH_NOT_COORDINATOR = frozenset(
    {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.REQUEST_TIMED_OUT}
)


def one_group(request: OffsetFetchRequest) -> OffsetFetchRequestGroup:
    """The one group of an OffsetFetch before version 8."""
    topics = request.topics
    rows = (
        None
        if topics is None
        else [OffsetFetchRequestTopics(t.name, partition_indexes=t.partition_indexes) for t in topics]
    )
    return OffsetFetchRequestGroup(request.group_id, topics=rows)


HANDLERS: dict[type[Message], Callable[[GroupCoordinator, Call, Any, int], None]] = {
    ConsumerGroupHeartbeatRequest: lambda coordinator, *asked: coordinator.consumer.heartbeat(*asked),
    ConsumerGroupDescribeRequest: lambda coordinator, *asked: coordinator.consumer.describe(*asked),
    JoinGroupRequest: GroupCoordinator.join_group,
    SyncGroupRequest: GroupCoordinator.sync_group,
    HeartbeatRequest: GroupCoordinator.heartbeat,
    LeaveGroupRequest: GroupCoordinator.leave_group,
    OffsetCommitRequest: GroupCoordinator.offset_commit,
    TxnOffsetCommitRequest: GroupCoordinator.txn_offset_commit,
    OffsetFetchRequest: GroupCoordinator.offset_fetch,
    OffsetDeleteRequest: GroupCoordinator.offset_delete,
    DescribeGroupsRequest: GroupCoordinator.describe_groups,
    ListGroupsRequest: GroupCoordinator.list_groups,
    DeleteGroupsRequest: GroupCoordinator.delete_groups,
    ShareGroupHeartbeatRequest: lambda coordinator, *asked: coordinator.share.heartbeat(*asked),
    DescribeShareGroupOffsetsRequest: lambda coordinator, *asked: coordinator.share.describe_offsets(*asked),
    AlterShareGroupOffsetsRequest: lambda coordinator, *asked: coordinator.share.alter_offsets(*asked),
    DeleteShareGroupOffsetsRequest: lambda coordinator, *asked: coordinator.share.delete_offsets(*asked),
    ShareGroupDescribeRequest: lambda coordinator, *asked: coordinator.share.describe(*asked),
}
