"""Classic consumers that change their protocol with their group, and what they say within JoinGroup."""

from __future__ import annotations

from collections.abc import Collection
from struct import pack
from typing import Any

from kraftd.groups.config import GroupConfig
from kraftd.groups.consumer.group import ConsumerGroup
from kraftd.groups.migration.embedded import assignment_of
from kraftd.messages.consumer_protocol_subscription import ConsumerProtocolSubscription, TopicPartition
from kraftd.messages.list_groups_request import ListGroupsRequest
from kraftd.wire.codec import encode_bytes
from kraftd.wire.error_code import ErrorCode
from tests.groups.desk import Desk
from tests.groups.requests import BEAT, JOIN, beat, join, subscription, sync


def assignment(*indexes: int) -> bytes:
    """Partitions of a topic, as a leader assigns them, version 1."""
    return b"\0\1\0\0\0\1" + partitions_of_orders(indexes) + b"\xff\xff\xff\xff"


def partitions_of_orders(indexes: Collection[int]) -> bytes:
    return b"\0\6orders" + len(indexes).to_bytes(4, "big") + b"".join(i.to_bytes(4, "big") for i in indexes)


ALL = assignment(0, 1, 2, 3)


class ClassicConsumer:
    """A member with the classic protocol; in a consumer group it is never a leader."""

    def __init__(self, desk: Desk, member_id: str = "", instance: str | None = None) -> None:
        self.desk, self.member_id, self.instance = desk, member_id, instance
        self.generation = -1
        self.has: set[int] = set()

    def join(self, metadata: bytes = subscription("orders")) -> Any:
        request = join("g", self.member_id, self.instance, metadata=metadata, session_ms=45_000)
        answer = self.desk.ask(request, JOIN)
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
            return self.join(metadata)
        if answer.error_code == 0:
            self.member_id, self.generation = answer.member_id, answer.generation_id
        return answer

    def sync(self, assignments: dict[str, bytes] | None = None) -> int:
        answer = self.desk.ask(sync(self.generation, self.member_id, assignments), 5)
        if answer.error_code == 0:
            rows = assignment_of(answer.assignment).assigned_partitions
            self.has = {index for row in rows for index in row.partitions}
        return answer.error_code  # type: ignore[no-any-return]

    def beat(self) -> int:
        code: int = self.desk.ask(beat(self.generation, self.member_id, self.instance), BEAT).error_code
        if code == ErrorCode.REBALANCE_IN_PROGRESS:
            assert self.join(said(owned={"orders": self.has}, version=1)).error_code == 0
            assert self.sync() in (0, ErrorCode.REBALANCE_IN_PROGRESS)
        return code


def said(
    *topics: str, owned: dict[str, Collection[int]] | None = None, rack: str | None = None, version: int = 3
) -> bytes:
    """A consumer's metadata: what it reads, what it has, and where it is."""
    rows = [TopicPartition(topic, tuple(indexes)) for topic, indexes in (owned or {}).items()]
    subscribed = ConsumerProtocolSubscription(topics or ("orders",), None, rows, rack_id=rack)
    return pack(">h", version) + encode_bytes(subscribed, version)


def desk_of(policy: str = "bidirectional", partitions: int = 4, **settings: int) -> Desk:
    config: dict[str, Any] = {
        "group_consumer_assignment_interval_ms": 0,
        "group_initial_rebalance_delay_ms": 0,
        "group_consumer_migration_policy": policy,
        **settings,
    }
    return Desk(GroupConfig(**config), orders=partitions)


def classic_group(desk: Desk) -> ClassicConsumer:
    """A stable classic group of one member, which has everything."""
    one = ClassicConsumer(desk)
    desk.ask(join("g", session_ms=45_000), JOIN)
    one.member_id = next(
        iter(desk.coordinator.shards[0].state.classic_group("g").pending_join)  # type: ignore[union-attr]
    )
    number = desk.send(join("g", one.member_id, session_ms=45_000), JOIN)
    desk.wait(0)
    one.generation = desk.answers[number].generation_id  # type: ignore[attr-defined]
    assert one.sync({one.member_id: ALL}) == 0
    assert one.has == {0, 1, 2, 3}
    return one


def kind(desk: Desk) -> str:
    (row,) = desk.ask(ListGroupsRequest(), 5).groups
    return str(row.group_type)


def consumer_group(desk: Desk) -> ConsumerGroup:
    """The group as the coordinator has it in memory."""
    group = desk.coordinator.shards[0].state.groups["g"]
    assert isinstance(group, ConsumerGroup)
    return group
