"""Consumer groups of a stock broker and of kraftd's coordinator: the same answers, epochs and assignments."""

from __future__ import annotations

import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from kraftd.ground.java_hashes import int_hash, string_hash
from kraftd.groups.consumer.group import ConsumerGroup
from kraftd.groups.migration.embedded import assignment_of
from kraftd.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from kraftd.messages.delete_groups_request import DeleteGroupsRequest
from kraftd.messages.describe_groups_request import DescribeGroupsRequest
from kraftd.messages.list_groups_request import ListGroupsRequest
from kraftd.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kraftd.messages.sync_group_response import SyncGroupResponse
from kraftd.wire.error_code import ErrorCode
from testkit.cluster import Cluster
from testkit.process import wait_until
from tests.groups.consumer.members import Consumer, heartbeat
from tests.groups.desk import Desk
from tests.groups.requests import LEAVE, commit, leave
from tests.kafka.groups.pair import ASIDE, CLIENT, CONFIG, PARTITIONS, Pair, same
from tests.kafka.groups.reading import load

pytestmark = pytest.mark.kafka

STEPS = 250
OFFSETS = "__consumer_offsets"
SUBSCRIPTIONS: list[Any] = [("orders",), ("orders", "audit"), ("audit", "missing"), ()]
DESCRIBE = 1


def spread_ids(count: int) -> list[str]:
    """Member ids in different buckets of a small HashMap, whose order is then known."""
    found: dict[int, str] = {}
    for number in range(1000):
        name = f"member-{number}"
        value = string_hash(name) & 0xFFFFFFFF
        found.setdefault((value ^ int_hash(value) >> 16) & 15, name)
    return list(found.values())[:count]


def any_ids(random: Random, count: int) -> list[str]:
    """Member ids as clients make them."""
    return [urlsafe_b64encode(random.randbytes(16)).decode().rstrip("=") for _ in range(count)]


class Both:
    """Asks a stock broker, then kraftd's coordinator, and compares what they answer."""

    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        self.codes: dict[int, int] = {}

    def ask(self, request: Any, version: int) -> Any:
        pair = self.pair
        pair.desk.wait(max(0, pair.clock_ms() - pair.desk.now_ms))
        theirs = pair.ask_kafka(request, version)
        own = self.ask_kraftd(request, version)
        assert alike(own, theirs, version), f"{request!r}\n Kafka  {theirs!r}\n kraftd {own!r}"
        code = getattr(own, "error_code", 0)
        self.codes[code] = self.codes.get(code, 0) + 1
        return own

    def ask_kraftd(self, request: Any, version: int) -> Any:
        """Ask kraftd under a token that is no step's of the pair."""
        desk = self.pair.desk
        desk.calls = ASIDE
        desk.answers.pop(ASIDE + 1, None)
        return desk.ask(request, version, CLIENT)

    @staticmethod
    def partitions(answer: Any) -> dict[str, list[int]]:
        """The partitions of a SyncGroup's answer, by topic."""
        rows = assignment_of(answer.assignment).assigned_partitions
        return {row.topic: sorted(row.partitions) for row in rows}

    def describe(self, *groups: str) -> Any:
        """The groups as both sides describe them, once all is committed at the broker."""
        request, end = ConsumerGroupDescribeRequest(groups), time.monotonic() + 10
        while True:
            self.pair.desk.wait(max(0, self.pair.clock_ms() - self.pair.desk.now_ms))
            own = self.ask_kraftd(request, DESCRIBE)
            theirs = self.pair.ask_kafka(request, DESCRIBE)
            if alike(own, theirs, DESCRIBE):
                return own.groups
            assert time.monotonic() < end, f"\n Kafka  {theirs!r}\n kraftd {own!r}"
            time.sleep(0.05)


def alike(own: Any, theirs: Any, version: int) -> bool:
    if isinstance(own, SyncGroupResponse) and own.assignment and theirs.assignment:
        if Both.partitions(own) != Both.partitions(theirs) or own.assignment[:2] != theirs.assignment[:2]:
            return False
        own, theirs = replace(own, assignment=b""), replace(theirs, assignment=b"")
    return same(own, theirs, version)


@pytest.fixture
def both(group_broker: Cluster) -> Iterator[Both]:
    pair = Pair(group_broker)
    yield Both(pair)
    remove_groups(pair)
    pair.close()


def remove_groups(pair: Pair) -> None:
    """Leave the broker without groups, as other tests expect it."""
    names = tuple(row.group_id for row in pair.ask_kafka(ListGroupsRequest(), 5).groups)
    for name in names:
        groups = [
            *pair.ask_kafka(DescribeGroupsRequest((name,)), 5).groups,
            *pair.ask_kafka(ConsumerGroupDescribeRequest((name,)), DESCRIBE).groups,
        ]
        ids = [(member.member_id, None) for group in groups for member in group.members]
        if ids:
            pair.ask_kafka(leave(*ids, group=name), LEAVE)

    def is_deleted() -> bool:
        rows = pair.ask_kafka(DeleteGroupsRequest(names), 2).results
        return all(row.error_code in (0, ErrorCode.GROUP_ID_NOT_FOUND) for row in rows)

    wait_until(is_deleted, "the groups are gone", 10)


class Crowd:
    """Members of one group that do as they like, most of it sensible."""

    def __init__(self, both: Both, random: Random, group: str) -> None:
        self.both, self.random, self.group = both, random, group
        ids = any_ids(random, 6)
        self.members = [
            self.new(name, instance=f"i{number}" if number < 3 else None) for number, name in enumerate(ids)
        ]

    def new(self, name: str, **more: Any) -> Consumer:
        topics = self.random.choice(SUBSCRIPTIONS)
        assignor = self.random.choice([None, None, "range", "uniform"])
        return Consumer(self.both.ask, name, self.group, topics=topics, assignor=assignor, **more)

    def step(self) -> None:
        one, act = self.random.choice(self.members), self.random.random()
        if one.epoch <= 0 or act < 0.04:
            one.join()
        elif act < 0.66:
            if one.beat().error_code:
                one.epoch = 0
        elif act < 0.7:
            one.take(self.both.ask(heartbeat(one.member_id, one.epoch, group=self.group), 1))
        elif act < 0.78:
            one.subscription["topics"] = self.random.choice(SUBSCRIPTIONS)
            one.beat(topics=one.subscription["topics"], rebalance_ms=60_000)
        elif act < 0.84:
            one.leave(self.random.choice([-1, -2]) if one.subscription.get("instance") else -1)
            one.epoch = 0
        elif act < 0.88:
            strange = self.random.choice([one.epoch + 1, one.epoch - 1, 1, 77, -2, -3])
            self.both.ask(heartbeat(one.member_id, strange, group=self.group, owned=one.has), 1)
        elif act < 0.92:
            self.commit(one)
        elif act < 0.96:
            self.fetch(one)
        else:
            self.both.describe(self.group, "nobody")

    def commit(self, one: Consumer) -> None:
        epoch = one.epoch + self.random.choice([0, 0, -1, 1])
        row = commit(1, epoch, one.member_id, group=self.group, partition=self.random.randrange(3))
        self.both.ask(row, self.random.choice([8, 9]))

    def fetch(self, one: Consumer) -> None:
        rows = [OffsetFetchRequestTopics("orders", partition_indexes=(0,))]
        epoch = one.epoch + self.random.choice([0, 0, 1])
        part = OffsetFetchRequestGroup(self.group, one.member_id, epoch, rows)
        self.both.ask(OffsetFetchRequest(groups=[part], require_stable=True), 9)


def play_consumers(both: Both, seed: int) -> None:
    """Play random members of two consumer groups; raise where an answer differs."""
    random = Random(f"consumers-{seed}")
    crowds = [Crowd(both, random, f"crowd-{seed}-{number}") for number in range(2)]
    for _ in range(STEPS):
        random.choice(crowds).step()
    both.describe(*(crowd.group for crowd in crowds))


@pytest.mark.parametrize("seed", range(2))
def test_random_members_are_answered_alike(both: Both, seed: int) -> None:
    play_consumers(both, seed)
    assert len(both.codes) >= 4, both.codes


def test_patterns_are_resolved_alike(both: Both) -> None:
    first, second = spread_ids(2)
    one = Consumer(both.ask, first, "patterns", topics=None, regex="or.*")
    one.join()
    both.describe("patterns")
    one.beat()
    assert one.count() == 3
    two = Consumer(both.ask, second, "patterns", topics=None, regex="or.*")
    two.join()
    for _ in range(3):
        one.beat()
        two.beat()
    assert sorted((one.count(), two.count())) == [1, 2]
    three = Consumer(both.ask, spread_ids(3)[2], "patterns", topics=None, regex="(a")
    assert three.join().error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    two.leave()
    one.beat()
    assert one.count() == 3
    both.describe("patterns")


def test_groups_move_with_their_members(both: Both) -> None:
    """Each side loads what the other wrote, with the hash of the topics: no member has to move."""
    one, two = (Consumer(both.ask, name, "moves", topics=("orders", "audit")) for name in spread_ids(2))
    for _ in range(4):
        for member in (one, two):
            member.beat() if member.epoch else member.join()
    (before,) = both.describe("moves")
    assert before.group_state == "Stable"
    pair = both.pair
    taken = Desk(CONFIG, PARTITIONS)
    taken.topics = pair.desk.topics
    taken.coordinator = taken.new_coordinator()
    taken.now_ms = pair.desk.now_ms
    for partition in range(PARTITIONS):
        load(taken.coordinator, pair.idle[0], OFFSETS, partition, taken.now_ms)
    one.ask = two.ask = lambda request, version: taken.ask(request, version, CLIENT)
    assert one.beat().error_code == two.beat().error_code == 0
    groups = [group for shard in taken.coordinator.shards.values() for group in shard.state.groups.values()]
    (moved,) = [group for group in groups if group.group_id == "moves"]
    assert isinstance(moved, ConsumerGroup) and moved.facts.epoch == before.group_epoch
    answer = taken.ask(ConsumerGroupDescribeRequest(("moves",)), DESCRIBE)
    assert alike(answer, pair.ask_kafka(ConsumerGroupDescribeRequest(("moves",)), DESCRIBE), DESCRIBE)
    assert taken.ask(ListGroupsRequest(types_filter=("consumer",)), 5).groups
