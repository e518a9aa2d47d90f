"""A member of a classic consumer group: joins, is assigned partitions, sends heartbeats, commits, leaves.

The leader of the group assigns by ranges, as Java's consumer does by default. Every method may raise Refused
and Unreachable. After `Rebalance` the member joins again.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence

from kraftd.client.cluster import Cluster, Pause
from kraftd.client.connection import Connection
from kraftd.client.failures import ClientFailure, Refused, Unreachable
from kraftd.client.group_offsets import BY_NAME, Committed, GroupOffsets
from kraftd.client.waits import TOLD_AFTER_S, Wait
from kraftd.messages.consumer_protocol_assignment import ConsumerProtocolAssignment, TopicPartition
from kraftd.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kraftd.messages.heartbeat_request import HeartbeatRequest
from kraftd.messages.heartbeat_response import HeartbeatResponse
from kraftd.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from kraftd.messages.join_group_response import JoinGroupResponse
from kraftd.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from kraftd.messages.leave_group_response import LeaveGroupResponse
from kraftd.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kraftd.messages.offset_commit_response import OffsetCommitResponse
from kraftd.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from kraftd.messages.sync_group_response import SyncGroupResponse
from kraftd.wire.api import ApiKey
from kraftd.wire.codec import decode, encode_bytes
from kraftd.wire.error_code import ErrorCode, error_name

PROTOCOL_TYPE = "consumer"
RANGE = "range"
SESSION_TIMEOUT_MS = 10_000
REBALANCE_TIMEOUT_MS = 60_000
HEARTBEAT_S = 3.0
FIRST_LEAVE_OF_MANY = 3  # the version of LeaveGroup from which on it names members in a list
_SUBSCRIPTION_VERSION = 1
_LATE_ANSWER_S = 5.0

_ELSEWHERE = frozenset((ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR))
_REJOIN = frozenset(
    (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID)
)


class Rebalance(ClientFailure):
    """The group assigns its partitions anew; the member must join again."""


class GroupMember:
    """See the module. `assigned` are the partitions of each topic."""

    def __init__(self, cluster: Cluster, group: str, topics: Sequence[str]) -> None:
        self.group = group
        self.topics = tuple(topics)
        self.assigned: dict[str, list[int]] = {}
        self.generation = -1
        self.member_id = ""
        self._cluster = cluster
        self._offsets = GroupOffsets(cluster, group)

    def __repr__(self) -> str:
        return f"<GroupMember {self.member_id or 'new'} of {self.group}, generation {self.generation}>"

    async def join(self) -> dict[str, list[int]]:
        """Join the group and wait for the assignment."""
        cluster, refused = self._cluster, None
        pause = Pause(time.monotonic() + cluster.timeout_s + REBALANCE_TIMEOUT_MS / 1000)
        while True:
            failure: ClientFailure
            connection = await self._offsets.coordinator.found()
            try:
                await self._join_once(connection)
                return self.assigned
            except Rebalance as error:
                failure, refused = error, None
            except Unreachable as error:
                failure, refused = error, refused or Wait(None)
                self._offsets.coordinator.forget()
                if refused.lasts(TOLD_AFTER_S) and cluster.tell is not None:  # others may take long to join
                    cluster.tell(error)
                if refused.lasts(cluster.timeout_s):
                    raise
            if not await pause.wait():
                raise failure

    async def heartbeat(self) -> None:
        """Keep the membership. Raises Rebalance."""
        request = HeartbeatRequest(self.group, self.generation, self.member_id)

        async def attempt(connection: Connection) -> tuple[int, None]:
            return (await connection.ask(request, HeartbeatResponse)).error_code, None

        await self._ask(attempt)

    async def committed(self, topic: str, index: int) -> Committed | None:
        """The group's offset of a partition; None without one."""
        return await self._offsets.fetch(topic, index)

    async def commit(self, positions: Mapping[tuple[str, int], Committed]) -> None:
        """Commit positions of assigned partitions. Raises Rebalance."""
        if not positions:
            return
        topics: dict[str, OffsetCommitRequestTopic] = {}
        for (topic, index), (offset, epoch) in positions.items():
            of_topic = topics.setdefault(topic, OffsetCommitRequestTopic(topic, partitions=[]))
            of_topic.partitions.append(OffsetCommitRequestPartition(index, offset, epoch))
        request = OffsetCommitRequest(
            self.group, self.generation, self.member_id, topics=list(topics.values())
        )

        async def attempt(connection: Connection) -> tuple[int, None]:
            answer = await connection.ask(request, OffsetCommitResponse, max_version=BY_NAME)
            codes = (one.error_code for topic in answer.topics for one in topic.partitions)
            return next(filter(None, codes), 0), None

        await self._ask(attempt)

    async def leave(self) -> None:
        """Leave the group, so that the others need not wait for the end of the session."""
        if not self.member_id:
            return
        connection = await self._offsets.coordinator.connection()
        if connection.serves(ApiKey.LEAVE_GROUP, FIRST_LEAVE_OF_MANY):
            request = LeaveGroupRequest(self.group, members=[MemberIdentity(self.member_id)])
        else:
            request = LeaveGroupRequest(self.group, self.member_id)
        await connection.ask(request, LeaveGroupResponse)
        self.member_id, self.generation, self.assigned = "", -1, {}

    async def _join_once(self, connection: Connection) -> None:
        subscription = encode_data(ConsumerProtocolSubscription(self.topics), _SUBSCRIPTION_VERSION)
        request = JoinGroupRequest(
            self.group,
            SESSION_TIMEOUT_MS,
            REBALANCE_TIMEOUT_MS,
            self.member_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[JoinGroupRequestProtocol(RANGE, subscription)],
        )
        timeout_s = REBALANCE_TIMEOUT_MS / 1000 + _LATE_ANSWER_S
        joined = await connection.ask(request, JoinGroupResponse, timeout_s=timeout_s)
        if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = request.member_id = joined.member_id
            joined = await connection.ask(request, JoinGroupResponse, timeout_s=timeout_s)
        self._check(joined.error_code)
        self.member_id, self.generation = joined.member_id, joined.generation_id
        assignments = []
        if joined.leader == self.member_id:
            members = {one.member_id: decode_subscription(one.metadata) for one in joined.members}
            assignments = await self._assignments(members)
        sync = SyncGroupRequest(
            self.group,
            self.generation,
            self.member_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=RANGE,
            assignments=assignments,
        )
        synced = await connection.ask(sync, SyncGroupResponse, timeout_s=timeout_s)
        self._check(synced.error_code)
        self.assigned = decode_assignment(synced.assignment)

    async def _assignments(self, members: Mapping[str, Sequence[str]]) -> list[SyncGroupRequestAssignment]:
        """The partitions of each member, as the leader of the group assigns them."""
        topics = sorted({topic for subscribed in members.values() for topic in subscribed})
        await self._cluster.refresh(topics)
        known = self._cluster.cache.topics
        counts = {topic: len(known[topic].partitions) for topic in topics if topic in known}
        assigned = assign_ranges(members, counts)
        return [
            SyncGroupRequestAssignment(
                member,
                encode_data(
                    ConsumerProtocolAssignment(
                        [TopicPartition(topic, tuple(indexes)) for topic, indexes in of_member.items()]
                    ),
                    _SUBSCRIPTION_VERSION,
                ),
            )
            for member, of_member in assigned.items()
        ]

    async def _ask(self, attempt: Callable[[Connection], Awaitable[tuple[int, None]]]) -> None:
        """Ask the coordinator, which may move meanwhile."""
        try:
            await self._offsets.coordinator.ask(attempt)
        except Refused as error:
            self._check(error.code)

    def _check(self, code: int) -> None:
        if not code:
            return
        text = f"group {self.group}: {error_name(code)}"
        if code == ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = ""
        if code in _REJOIN:
            raise Rebalance(text)
        if code in _ELSEWHERE:
            self._offsets.coordinator.forget()
        if code in _ELSEWHERE or code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            raise Unreachable(text)
        raise Refused(text, code)


def assign_ranges(
    members: Mapping[str, Sequence[str]], counts: Mapping[str, int]
) -> dict[str, dict[str, list[int]]]:
    """By member: of each subscribed topic a range of partitions; the first members get one more."""
    found: dict[str, dict[str, list[int]]] = {member: {} for member in members}
    for topic, count in counts.items():
        subscribed = sorted(member for member, topics in members.items() if topic in topics)
        if not subscribed:
            continue
        each, more = divmod(count, len(subscribed))
        begin = 0
        for at, member in enumerate(subscribed):
            end = begin + each + (at < more)
            if end > begin:
                found[member][topic] = list(range(begin, end))
            begin = end
    return found


def encode_data(message: ConsumerProtocolSubscription | ConsumerProtocolAssignment, version: int) -> bytes:
    """A message of the consumer protocol behind its version."""
    return version.to_bytes(2, "big") + encode_bytes(message, version)


def decode_subscription(data: bytes) -> tuple[str, ...]:
    """The topics of a member's subscription."""
    version = min(int.from_bytes(data[:2], "big"), 3)
    return tuple(decode(ConsumerProtocolSubscription, version, memoryview(data), 2).topics)


def decode_assignment(data: bytes) -> dict[str, list[int]]:
    """The partitions of each topic in an assignment; an empty one has none."""
    if not data:
        return {}
    version = min(int.from_bytes(data[:2], "big"), 3)
    decoded = decode(ConsumerProtocolAssignment, version, memoryview(data), 2)
    return {one.topic: list(one.partitions) for one in decoded.assigned_partitions}
