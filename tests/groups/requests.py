"""Requests in short."""

from __future__ import annotations

from collections.abc import Sequence

from kraftd.messages.heartbeat_request import HeartbeatRequest
from kraftd.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from kraftd.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from kraftd.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kraftd.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kraftd.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from kraftd.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.groups.desk import Desk

JOIN, SYNC, BEAT, LEAVE, COMMIT, FETCH = 9, 5, 4, 5, 9, 9  # the versions that tests mostly use


def subscription(*topics: str) -> bytes:
    """A consumer's metadata, version 0."""
    names = b"".join(len(topic).to_bytes(2, "big") + topic.encode() for topic in topics)
    return b"\0\0" + len(topics).to_bytes(4, "big") + names + b"\0\0\0\0"


def join(
    group: str = "g",
    member: str = "",
    instance: str | None = None,
    *,
    protocols: Sequence[str] = ("range",),
    metadata: bytes = subscription("orders"),
    session_ms: int = 10_000,
    rebalance_ms: int = 60_000,
    kind: str = "consumer",
) -> JoinGroupRequest:
    rows = [JoinGroupRequestProtocol(name, metadata) for name in protocols]
    return JoinGroupRequest(group, session_ms, rebalance_ms, member, instance, kind, rows)


def sync(
    generation: int, member: str, assignment: dict[str, bytes] | None = None, group: str = "g"
) -> SyncGroupRequest:
    rows = [SyncGroupRequestAssignment(name, data) for name, data in (assignment or {}).items()]
    return SyncGroupRequest(group, generation, member, None, "consumer", "range", rows)


def beat(generation: int, member: str, instance: str | None = None, group: str = "g") -> HeartbeatRequest:
    return HeartbeatRequest(group, generation, member, instance)


def leave(*members: tuple[str, str | None], group: str = "g") -> LeaveGroupRequest:
    return LeaveGroupRequest(group, members=[MemberIdentity(name, instance) for name, instance in members])


def commit(
    offset: int,
    generation: int = -1,
    member: str = "",
    *,
    topic: str = "orders",
    partition: int = 0,
    group: str = "g",
    leader_epoch: int = -1,
    metadata: str | None = "",
    retention_ms: int = -1,
) -> OffsetCommitRequest:
    row = OffsetCommitRequestPartition(partition, offset, leader_epoch, metadata)
    topics = [OffsetCommitRequestTopic(topic, partitions=[row])]
    return OffsetCommitRequest(group, generation, member, None, retention_ms, topics)


def txn_commit(
    offset: int, producer_id: int, *, topic: str = "orders", partition: int = 0, group: str = "g"
) -> TxnOffsetCommitRequest:
    row = TxnOffsetCommitRequestPartition(partition, offset)
    return TxnOffsetCommitRequest(
        "txn", group, producer_id, 0, topics=[TxnOffsetCommitRequestTopic(topic, [row])]
    )


def fetch(
    group: str = "g", *, topic: str | None = "orders", partition: int = 0, stable: bool = False
) -> OffsetFetchRequest:
    topics = None if topic is None else [OffsetFetchRequestTopics(topic, partition_indexes=(partition,))]
    return OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group, topics=topics)], require_stable=stable)


def fetched(
    desk: Desk, group: str = "g", *, topic: str = "orders", partition: int = 0, stable: bool = False
) -> int:
    """The committed offset of a partition, -1 if there is none."""
    answer = desk.ask(fetch(group, topic=topic, partition=partition, stable=stable), FETCH)
    offset: int = answer.groups[0].topics[0].partitions[0].committed_offset
    return offset


def member_id(desk: Desk, group: str = "g") -> str:
    """A member id, as a first JoinGroup gives it."""
    found: str = desk.ask(join(group), JOIN).member_id
    return found


def members(desk: Desk, count: int, group: str = "g") -> list[str]:
    """That many members of a new group in generation 1, the leader first; the group waits for assignments."""
    names = [member_id(desk, group) for _ in range(count)]
    calls = [desk.send(join(group, name), JOIN) for name in names]
    desk.wait(6_000)
    answers = [desk.answers[call] for call in calls]
    leader = answers[0].leader
    assert {answer.generation_id for answer in answers} == {1}
    return sorted(names, key=lambda name: name != leader)


def settle(desk: Desk, names: Sequence[str], generation: int = 1, group: str = "g") -> None:
    """Let the leader, the first of the members, assign to each its own name."""
    calls = [desk.send(sync(generation, name, group=group), SYNC) for name in names[1:]]
    assignment = {name: name.encode() for name in names}
    assert desk.ask(sync(generation, names[0], assignment, group), SYNC).error_code == 0
    for name, call in zip(names[1:], calls, strict=True):
        assert desk.answers[call].assignment == name.encode()


def stable_group(desk: Desk, count: int, group: str = "g") -> list[str]:
    """The members of a new group in generation 1, the leader first, each with its own name assigned."""
    names = members(desk, count, group)
    settle(desk, names, group=group)
    return names
