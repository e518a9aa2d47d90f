"""Members of groups and their requests, by the bench's own codec."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any, NamedTuple

from kraftd.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kraftd.messages.find_coordinator_request import FindCoordinatorRequest
from kraftd.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from kraftd.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kraftd.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from kraftd.requests.stats import error_codes
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.frames import parse_response
from kraftd.wire.message import Message
from kraftd.wire.table import api_key
from testkit.client import Client
from testkit.cluster import random_uuid
from testkit.process import wait_until

JOIN_VERSION, SYNC_VERSION, HEARTBEAT_VERSION, FIND_VERSION = 9, 5, 4, 4
CONSUMER_HEARTBEAT_VERSION, COMMIT_VERSION = 1, 9
TIMEOUT_MS = 600_000
RETRY_S = 0.002
RETRIED = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
)


class Member(NamedTuple):
    """A member of a group; without a member id a committer that is none. `generation` is a member epoch in
    groups of the consumer protocol.
    """

    group_id: str
    generation: int
    member_id: str


def until_served(client: Client, request: Message, version: int) -> Any:
    """The answer, asked for again while the coordinator is not ready. Raises RuntimeError otherwise."""
    return timed_until_served(client, request, version)[0]


def timed_until_served(client: Client, request: Message, version: int) -> tuple[Any, float]:
    """As `until_served`, with the milliseconds from the first byte sent to the last received.

    The client's codec is left out. Each request that came too early counts, with the pause after it.
    """
    took_s = 0.0
    while True:
        frame = client.frame(request, version)
        began = time.perf_counter()
        client.socket.sendall(frame)
        answered = client.receive_frame()
        took_s += time.perf_counter() - began
        _, answer = parse_response(api_key(request), version, answered)
        code = next(iter(error_codes(answer)), 0)
        if not code:
            return answer, took_s * 1000
        if code not in RETRIED:
            raise RuntimeError(f"{request!r} was answered with {answer!r}")
        time.sleep(RETRY_S)
        took_s += RETRY_S


def find_coordinator(client: Client, key: str, *, is_transaction: bool = False) -> None:
    """Have the coordinator's topic made, and wait until it has a leader."""
    request = FindCoordinatorRequest(key_type=int(is_transaction), coordinator_keys=(key,))

    def is_found() -> bool:
        return not client.call(request, FIND_VERSION).coordinators[0].error_code

    wait_until(is_found, f"the coordinator of {key} is found")


def join_request(group_id: str, member_id: str) -> JoinGroupRequest:
    protocol = JoinGroupRequestProtocol("range", b"\0\1\0\0\0\1\0\6orders\xff\xff\xff\xff\0\0\0\0")
    return JoinGroupRequest(group_id, TIMEOUT_MS, TIMEOUT_MS, member_id, None, "consumer", [protocol])


def sync_request(member: Member, members: Iterable[str]) -> SyncGroupRequest:
    """The request of a member; of the leader if there are members, each with an assignment."""
    rows = [SyncGroupRequestAssignment(one, b"x" * 40) for one in members]
    return SyncGroupRequest(
        member.group_id, member.generation, member.member_id, None, "consumer", "range", rows
    )


def joined(client: Client, group_id: str) -> Member:
    """The only member of a stable classic group."""
    find_coordinator(client, group_id)
    while True:
        answer = client.call(join_request(group_id, ""), JOIN_VERSION)
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            break
        time.sleep(RETRY_S)
    answer = until_served(client, join_request(group_id, answer.member_id), JOIN_VERSION)
    member = Member(group_id, answer.generation_id, answer.member_id)
    until_served(client, sync_request(member, [member.member_id]), SYNC_VERSION)
    return member


def consumer_member(client: Client, group_id: str, topic: str) -> Member:
    """The only member of a group of the consumer protocol, which has its assignment."""
    request = ConsumerGroupHeartbeatRequest(
        group_id,
        random_uuid(),
        0,
        rebalance_timeout_ms=TIMEOUT_MS,
        subscribed_topic_names=(topic,),
        topic_partitions=[],
    )
    answer = until_served(client, request, CONSUMER_HEARTBEAT_VERSION)
    owned = ConsumerGroupHeartbeatRequest(group_id, request.member_id, answer.member_epoch)
    answer = until_served(client, owned, CONSUMER_HEARTBEAT_VERSION)
    return Member(group_id, answer.member_epoch, request.member_id)


def commit_of(member: Member, topic: str, partitions: Iterable[int]) -> OffsetCommitRequest:
    """A commit of offset 1 of each partition."""
    rows = [OffsetCommitRequestPartition(index, 1) for index in partitions]
    return OffsetCommitRequest(*member, topics=[OffsetCommitRequestTopic(topic, partitions=rows)])
