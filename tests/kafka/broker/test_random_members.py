"""Random members of consumer and share groups at two whole Kafkas: every answer is the same.

Other seeds: ``KRAFTD_MEMBERS_SEED``, or ``python -m tests.kafka.broker --members``.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from kraftd.messages.alter_share_group_offsets_request import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from kraftd.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from kraftd.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest, TopicPartitions
from kraftd.messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from kraftd.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraftd.messages.delete_groups_request import DeleteGroupsRequest
from kraftd.messages.delete_share_group_offsets_request import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from kraftd.messages.delete_topics_request import DeleteTopicsRequest
from kraftd.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from kraftd.messages.describe_groups_request import DescribeGroupsRequest
from kraftd.messages.describe_share_group_offsets_request import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from kraftd.messages.find_coordinator_request import FindCoordinatorRequest
from kraftd.messages.heartbeat_request import HeartbeatRequest
from kraftd.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraftd.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from kraftd.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from kraftd.messages.list_groups_request import ListGroupsRequest
from kraftd.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kraftd.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kraftd.messages.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kraftd.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kraftd.messages.share_group_describe_request import ShareGroupDescribeRequest
from kraftd.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from kraftd.types import uuid_text
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.message import Message
from testkit.process import wait_until
from tests.groups.requests import subscription
from tests.kafka.broker.pair import NO_RIGHTS, SOME_RIGHTS, SUPER, BrokerPair, Side
from tests.kafka.differential.difference import difference
from tests.kafka.groups.test_consumer_groups import spread_ids

pytestmark = [pytest.mark.kafka, pytest.mark.thorough]

SEED = int(os.environ.get("KRAFTD_MEMBERS_SEED", "1"))
STEPS = int(os.environ.get("KRAFTD_MEMBERS_STEPS", "150"))
GROUP_RESOURCE = 32
GROUP, SHARE = 0, 2  # kinds of coordinators
READS = (
    ConsumerGroupDescribeRequest,
    DescribeConfigsRequest,
    DescribeGroupsRequest,
    DescribeShareGroupOffsetsRequest,
    ListGroupsRequest,
    OffsetFetchRequest,
    ShareGroupDescribeRequest,
)
WAIT_S = 5
REFUSALS = (ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.INVALID_REQUEST)
INDEXES: list[tuple[int, ...]] = [(0,), (1,), (0, 1), (0, 1), (0, 9), (), (-1,)]
MASKS = (1, 3, 7, 15)  # of the tables of small HashMaps


def buckets(topic_id: bytes) -> tuple[int, ...]:
    """Where Java's small maps keep a topic's id, by size of the map."""
    words = int.from_bytes(topic_id[:8], "big") ^ int.from_bytes(topic_id[8:], "big")
    value = (words >> 32 ^ words) & 0xFFFFFFFF
    return tuple((value ^ value >> 16) & mask for mask in MASKS)


def compared(topic_id: bytes) -> tuple[int, int]:
    """A topic's id as Java compares it: an assignor takes topics that are else equal in this order."""
    return int.from_bytes(topic_id[:8], "big", signed=True), int.from_bytes(topic_id[8:], "big", signed=True)


class Members:
    """Members of two groups of each kind, operators, and strangers."""

    def __init__(self, pair: BrokerPair, random: Random, name: str) -> None:
        self.pair, self.random = pair, random
        self.topics = (f"{name}-o", f"{name}-a")
        self.groups = [f"{name}-g", f"{name}-h"]
        self.sharing = [f"{name}-s", f"{name}-t"]
        self.ids = spread_ids(6)
        self.epochs: dict[tuple[str, str], int] = {}
        self.has: dict[tuple[str, str], dict[bytes, tuple[int, ...]]] = {}
        self.classic: dict[tuple[str, str], int] = {}  # generations
        self.codes: Counter[str] = Counter()
        # One, as a second one of a group is looked up only ten seconds after the first.
        self.regex = random.choice([f"{name}-.*", self.topics[0], "none"])
        self.kinds = {
            self.join: 12,
            self.beat: 40,
            self.resubscribe: 8,
            self.leave: 5,
            self.strange: 8,
            self.share_join: 8,
            self.share_beat: 16,
            self.share_leave: 3,
            self.share_strange: 4,
            self.join_classic: 3,
            self.beat_classic: 4,
            self.leave_classic: 1,
            self.commit: 6,
            self.fetch: 5,
            self.delete_offsets: 2,
            self.delete: 2,
            self.describe: 6,
            self.list_groups: 2,
            self.alter_share_offsets: 3,
            self.delete_share_offsets: 2,
            self.describe_share_offsets: 3,
            self.configure: 2,
            self.more_partitions: 1,
        }

    def draw(self) -> tuple[Message, int]:
        return self.random.choices(list(self.kinds), list(self.kinds.values()))[0]()

    def rarely(self, share: float = 0.06) -> bool:
        return self.random.random() < share

    def subscribed(self) -> tuple[str, ...]:
        first, second = self.topics
        return self.random.choice([(first,), (first,), (first, second), (second, f"{first}-none"), ()])

    def shared(self) -> tuple[str, ...]:
        return self.random.choice(
            [(self.topics[1],), (self.topics[1],), (self.topics[1], "none"), ("none",), ()]
        )

    def any_group(self) -> str:
        return self.random.choice([*self.groups, *self.sharing, *self.groups, *self.sharing, "no-such", ""])

    # Consumer groups

    def member(self, groups: list[str]) -> tuple[str, str]:
        return self.random.choice(groups), self.random.choice(self.ids)

    def instance(self, member: str) -> str | None:
        """Two of the members are static ones."""
        number = self.ids.index(member)
        return f"i{number}" if number < 2 else None

    def request(self, of: tuple[str, str], epoch: int, **more: Any) -> tuple[Message, int]:
        group, member = of
        fields = {"instance_id": self.instance(member), **more}
        return ConsumerGroupHeartbeatRequest(group, member, epoch, **fields), 1

    def join(self) -> tuple[Message, int]:
        of = self.member(self.groups)
        choice = self.random.choice
        more: dict[str, Any] = {
            "rebalance_timeout_ms": 300_000,
            "subscribed_topic_names": self.subscribed(),
            "server_assignor": choice([None, None, "range", "uniform"]),
            "topic_partitions": [],
            "rack_id": choice([None, None, "r1"]),
        }
        if self.rarely(0.15):
            more["subscribed_topic_regex"] = choice([self.regex, self.regex, self.regex, "(", ""])
            more["subscribed_topic_names"] = choice([None, None, ()])
        if self.rarely():  # wrong in one thing
            more |= choice(
                [
                    {"rebalance_timeout_ms": -1},
                    {"subscribed_topic_names": None},
                    {"server_assignor": "none"},
                    {"server_assignor": ""},
                    {"topic_partitions": None},
                    {"topic_partitions": [TopicPartitions(self.pair.topic_ids[self.topics[0]], (0,))]},
                    {"instance_id": ""},
                    {"instance_id": "i0"},
                    {"rack_id": ""},
                ]
            )
        return self.request(of, 0, **more)

    def owned(self, of: tuple[str, str]) -> list[TopicPartitions]:
        return [TopicPartitions(topic, some) for topic, some in self.has.get(of, {}).items()]

    def beat(self) -> tuple[Message, int]:
        of = self.random.choice(sorted(self.epochs) or [self.member(self.groups)])
        if of[0] not in self.groups:
            return self.join()
        more = {} if self.rarely(0.3) else {"topic_partitions": self.owned(of)}
        return self.request(of, self.epochs.get(of, 0), **more)

    def resubscribe(self) -> tuple[Message, int]:
        of = self.member(self.groups)
        more: dict[str, Any] = {
            "subscribed_topic_names": self.subscribed(),
            "topic_partitions": self.owned(of),
        }
        more["server_assignor"] = self.random.choice([None, None, "range", "uniform"])
        return self.request(of, self.epochs.get(of, 3), **more)

    def leave(self) -> tuple[Message, int]:
        of = self.member(self.groups)
        return self.request(of, self.random.choice([-1, -1, -2]))

    def strange(self) -> tuple[Message, int]:
        group, member = of = self.member(self.groups)
        epoch = self.epochs.get(of, 0)
        choice = self.random.choice
        kind = self.random.randrange(4)
        if kind == 0:
            return self.request(
                of, choice([epoch + 1, epoch - 1, 1, 77, -2, -3]), topic_partitions=self.owned(of)
            )
        if kind == 1:
            group = choice([*self.sharing, "", "no-such"])
            return ConsumerGroupHeartbeatRequest(group, member, epoch), 1
        if kind == 2:
            return ConsumerGroupHeartbeatRequest(group, choice(["", "stranger", "m" * 40]), epoch or 4), 1
        return self.request(of, epoch, instance_id=choice(["i0", "i1", "i9", None]))

    # Share groups

    def share_join(self) -> tuple[Message, int]:
        group, member = self.member(self.sharing)
        rack = self.random.choice([None, None, "r1"])
        return ShareGroupHeartbeatRequest(group, member, 0, rack, self.shared()), 1

    def share_beat(self) -> tuple[Message, int]:
        of = self.member(self.sharing)
        topics = self.shared() if self.rarely(0.2) else None
        return ShareGroupHeartbeatRequest(*of, self.epochs.get(of, 0), None, topics), 1

    def share_leave(self) -> tuple[Message, int]:
        return ShareGroupHeartbeatRequest(*self.member(self.sharing), -1), 1

    def share_strange(self) -> tuple[Message, int]:
        group, member = of = self.member(self.sharing)
        epoch, choice = self.epochs.get(of, 0), self.random.choice
        if self.rarely(0.5):
            return ShareGroupHeartbeatRequest(*of, choice([epoch + 1, epoch - 1, 1, 77, -2])), 1
        group = choice([group, *self.groups, "", "no-such"])
        member = choice([member, "", "stranger", "m" * 37])
        return ShareGroupHeartbeatRequest(group, member, choice([0, epoch, 4]), choice([None, "", " "])), 1

    # Classic members of consumer groups, under ids of their own choice

    def join_classic(self) -> tuple[Message, int]:
        group, member = self.member([*self.groups, *self.sharing])
        if (group, member) not in self.classic and not any(of[0] == group for of in self.epochs):
            return self.describe()  # such a group might be a classic one, which draws ids
        metadata = subscription(self.topics[0])
        protocols = [JoinGroupRequestProtocol("range", metadata)]
        return JoinGroupRequest(group, 60_000, 300_000, member, None, "consumer", protocols), 9

    def beat_classic(self) -> tuple[Message, int]:
        group, member = self.random.choice(sorted(self.classic) or [self.member(self.groups)])
        generation = self.classic.get((group, member), 1)
        return HeartbeatRequest(group, generation + (1 if self.rarely() else 0), member), 4

    def leave_classic(self) -> tuple[Message, int]:
        group, member = self.random.choice(sorted(self.classic) or [self.member(self.groups)])
        self.classic.pop((group, member), None)
        return LeaveGroupRequest(group, members=[MemberIdentity(member)]), 5

    # Offsets

    def commit(self) -> tuple[Message, int]:
        of = self.member(self.groups)
        group = self.any_group() if self.rarely(0.2) else of[0]
        epoch = self.epochs.get(of, -1) + self.random.choice([0, 0, 0, 1, -1])
        name = self.random.choice([*self.topics, "no-such"])
        rows = [OffsetCommitRequestPartition(self.random.choice([0, 1, 9]), self.random.randrange(9))]
        version = self.random.choice([8, 9, 10])
        topic = OffsetCommitRequestTopic(name, partitions=rows)
        if version == 10:
            topic = OffsetCommitRequestTopic("", self.pair.topic_ids.get(name, b"\x66" * 16), rows)
        member = self.random.choice([of[1], of[1], of[1], "", "stranger"])
        return OffsetCommitRequest(group, epoch if member else -1, member, None, -1, [topic]), version

    def fetch(self) -> tuple[Message, int]:
        of = self.member(self.groups)
        group = self.any_group() if self.rarely(0.2) else of[0]
        epoch = self.epochs.get(of, -1) + self.random.choice([0, 0, 1])
        topics = self.random.choice(
            [None, [OffsetFetchRequestTopics(self.topics[0], partition_indexes=(0, 1))]]
        )
        member: str | None = self.random.choice([of[1], None])
        row = OffsetFetchRequestGroup(group, member, epoch if member else -1, topics)
        return OffsetFetchRequest(groups=[row], require_stable=self.rarely(0.5)), self.random.choice(
            [8, 9, 9]
        )

    def delete_offsets(self) -> tuple[Message, int]:
        rows = [OffsetDeleteRequestPartition(self.random.choice([0, 1, 9]))]
        topics = [OffsetDeleteRequestTopic(self.random.choice([*self.topics, "no-such"]), rows)]
        return OffsetDeleteRequest(self.any_group(), topics), 0

    # Operators

    def delete(self) -> tuple[Message, int]:
        return DeleteGroupsRequest((self.any_group(),)), 2

    def describe(self) -> tuple[Message, int]:
        groups = tuple({self.any_group() for _ in range(self.random.choice([1, 1, 2]))})
        return self.random.choice(
            [
                (ConsumerGroupDescribeRequest(groups, self.rarely(0.5)), 1),
                (ShareGroupDescribeRequest(groups, self.rarely(0.5)), 1),
                (DescribeGroupsRequest(groups, self.rarely(0.5)), 6),
            ]
        )

    def list_groups(self) -> tuple[Message, int]:
        states = self.random.choice([(), ("Stable",), ("empty", "reconciling"), ("Nonsense",)])
        types = self.random.choice([(), ("consumer",), ("Share", "classic"), ("nonsense",)])
        return ListGroupsRequest(states, types), 5

    def alter_share_offsets(self) -> tuple[Message, int]:
        name = self.random.choice([*self.topics, "no-such"])
        rows = [
            AlterShareGroupOffsetsRequestPartition(index, self.random.randrange(-1, 9))
            for index in self.random.choice(INDEXES)
        ]
        return AlterShareGroupOffsetsRequest(
            self.any_group(), [AlterShareGroupOffsetsRequestTopic(name, rows)]
        ), 0

    def delete_share_offsets(self) -> tuple[Message, int]:
        name = self.random.choice([*self.topics, "no-such"])
        return DeleteShareGroupOffsetsRequest(
            self.any_group(), [DeleteShareGroupOffsetsRequestTopic(name)]
        ), 0

    def describe_share_offsets(self) -> tuple[Message, int]:
        name = self.random.choice([*self.topics, "no-such"])
        known = [some for some in INDEXES if 9 not in some]  # Kafka asks for others for half a minute
        rows = [DescribeShareGroupOffsetsRequestTopic(name, self.random.choice(known))]
        group = DescribeShareGroupOffsetsRequestGroup(self.any_group(), self.random.choice([None, rows]))
        return DescribeShareGroupOffsetsRequest([group]), 1

    def configure(self) -> tuple[Message, int]:
        group = self.any_group()
        if self.rarely(0.4):
            return DescribeConfigsRequest([DescribeConfigsResource(GROUP_RESOURCE, group)]), 4
        name, values = self.random.choice(
            [
                ("consumer.heartbeat.interval.ms", ("5000", "7000", "1", "99999", "x")),
                ("consumer.session.timeout.ms", ("45000", "50000", "1", "999999")),
                ("share.heartbeat.interval.ms", ("5000", "9000", "1")),
                ("share.session.timeout.ms", ("45000", "50000", "5")),
                ("share.auto.offset.reset", ("earliest", "latest", "by_duration:PT1H", "none")),
                ("share.isolation.level", ("read_committed", "read_uncommitted", "x")),
                ("no.such", ("1",)),
            ]
        )
        row = AlterableConfig(name, self.random.choice([0, 0, 0, 1]), self.random.choice(values))
        return IncrementalAlterConfigsRequest([AlterConfigsResource(GROUP_RESOURCE, group, [row])]), 1

    def more_partitions(self) -> tuple[Message, int]:
        count = self.random.choice([3, 4, 5])
        return CreatePartitionsRequest([CreatePartitionsTopic(self.topics[0], count)], 30_000), 3

    # What was answered

    def learn(self, request: Any, answer: Any) -> None:
        if isinstance(answer, str):
            return
        if isinstance(request, ConsumerGroupHeartbeatRequest | ShareGroupHeartbeatRequest):
            of = request.group_id, request.member_id
            if answer.error_code == 0 and answer.member_epoch > 0 and request.member_id in self.ids:
                self.epochs[of] = answer.member_epoch
                self.classic.pop(of, None)
                if request.member_epoch == 0:
                    self.has.pop(of, None)
                if isinstance(request, ConsumerGroupHeartbeatRequest) and answer.assignment is not None:
                    ours: Any = self.pair.sides[0].ours
                    self.has[of] = {
                        ours[row.topic_id]: row.partitions for row in answer.assignment.topic_partitions
                    }
            elif answer.error_code in (25, 110) or request.member_epoch < 0:
                self.epochs.pop(of, None)
                self.has.pop(of, None)
        elif isinstance(request, JoinGroupRequest) and answer.error_code == 0:
            self.classic[request.group_id, request.member_id] = answer.generation_id

    def settle(self) -> None:
        """Wait until both describe the groups alike: what follows an answer is written then."""
        for request, version in (
            (ConsumerGroupDescribeRequest(tuple(self.groups)), 1),
            (ShareGroupDescribeRequest(tuple(self.sharing)), 1),
            (
                DescribeShareGroupOffsetsRequest(
                    [DescribeShareGroupOffsetsRequestGroup(name, None) for name in self.sharing]
                ),
                1,
            ),
        ):
            self.compare(request, version, SUPER)

    def compare(self, request: Any, version: int, principal: str) -> list[Any]:
        pair = self.pair
        answers: list[Any] = pair.ask(request, version, principal)
        if isinstance(request, DeleteGroupsRequest):
            # The first fails after offsets were set for a partition that is not there.
            for number, side in enumerate(pair.sides):
                if answers[number].results[0].error_code in REFUSALS:
                    answers[number] = side.ask(request, version, principal)
        kafka, kraftd = pair.views(request, version, answers)
        end = time.monotonic() + WAIT_S
        while (
            counted(request, kafka) != counted(request, kraftd)
            and isinstance(request, READS)
            and time.monotonic() < end
        ):
            time.sleep(0.05)
            answers = pair.ask(request, version, principal)
            kafka, kraftd = pair.views(request, version, answers)
        kafka, kraftd = (counted(request, one) for one in (kafka, kraftd))
        assert kafka == kraftd, f"{principal}: {request}\n{kafka}\n{kraftd}\n{difference(kafka, kraftd)}"
        return answers


def counted(request: Message, shown: Any) -> Any:
    """A view of an answer. What a member of a share group has, and when that changes, follows from hashes of
    topic ids.
    """
    if not isinstance(request, ShareGroupHeartbeatRequest | ShareGroupDescribeRequest):
        return shown
    if isinstance(shown, dict):
        return {name: counted(request, one) for name, one in shown.items() if name != "assignment"}
    return [counted(request, one) for one in shown] if isinstance(shown, list) else shown


def topic_ids(side: Side, topics: tuple[str, ...]) -> list[bytes]:
    """Their ids; those that there are not are left out."""
    named = [MetadataRequestTopic(name=name) for name in topics]
    answer: Any = side.ask(MetadataRequest(named, allow_auto_topic_creation=False), 12)
    return [
        row.topic_id for name in topics for row in answer.topics if row.name == name and not row.error_code
    ]


def create_topics(pair: BrokerPair, topics: tuple[str, ...]) -> None:
    """Make the topics at both. Which of their ids comes first is then the same, in Java's small maps and by
    comparison.
    """
    orders: list[tuple[bool, ...]] = []
    for side in pair.sides:
        for _ in range(600):  # a draw fits once in 64
            side.ask(CreateTopicsRequest([CreatableTopic(name, 3, 1) for name in topics], 30_000), 7)
            wait_until(lambda side=side: len(topic_ids(side, topics)) == 2, "the topics are known", 30)  # type: ignore[misc]
            ids = topic_ids(side, topics)
            first, second = (buckets(one) for one in ids)
            order = tuple(one < two for one, two in zip(first, second, strict=True))
            order += (compared(ids[0]) < compared(ids[1]),)
            if first[0] != second[0] and order == (orders[0] if orders else order):
                orders.append(order)
                break
            side.ask(DeleteTopicsRequest([], topics, 30_000), 5)
            wait_until(lambda side=side: not topic_ids(side, topics), "the topics are gone", 30)  # type: ignore[misc]
    assert len(orders) == len(pair.sides)
    pair.settle()


def is_coordinator(side: Side, members: Members) -> bool:
    """Ask for all coordinators that a run needs, which makes their topics."""
    groups = (*members.groups, *members.sharing, "no-such")
    topic_id = uuid_text(side.theirs[members.pair.topic_ids[members.topics[0]]])  # type: ignore[arg-type]
    keys = tuple(f"{group}:{topic_id}:0" for group in groups)
    found: list[Any] = [
        side.ask(FindCoordinatorRequest(key_type=GROUP, coordinator_keys=groups), 6),
        side.ask(FindCoordinatorRequest(key_type=SHARE, coordinator_keys=keys), 6),
    ]
    described: Any = side.ask(DescribeGroupsRequest(groups), 5)
    rows = [row for one in found for row in one.coordinators] + described.groups
    offsets: Any = side.ask(
        DescribeShareGroupOffsetsRequest(
            [
                DescribeShareGroupOffsetsRequestGroup(
                    group, [DescribeShareGroupOffsetsRequestTopic(members.topics[0], (0, 1, 2))]
                )
                for group in members.sharing
            ]
        ),
        1,
    )
    if isinstance(offsets, str):
        return False
    rows += [row for group in offsets.groups for topic in group.topics for row in topic.partitions]
    return not any(row.error_code for row in [*rows, *offsets.groups])


def play(pair: BrokerPair, seed: int, steps: int) -> Counter[str]:
    """Raise where an answer differs; return how often each kind of request was asked."""
    random = Random(f"members-{seed}")
    members = Members(pair, random, f"m{seed}")
    create_topics(pair, members.topics)
    wait_until(
        lambda: all(is_coordinator(side, members) for side in pair.sides), "both coordinate groups", 60
    )
    pair.settle()
    story: list[str] = []
    for step in range(steps):
        request, version = members.draw()
        story.append(f"v{version} {request!r}")
        principal = random.choices((SUPER, SOME_RIGHTS, NO_RIGHTS), (30, 1, 1))[0]
        try:
            answers = members.compare(request, version, principal)
            story.append(f"  {answers[0]!r}")
            members.learn(request, answers[0])
            members.codes[type(request).__name__] += 1
            if isinstance(request, CreatePartitionsRequest | IncrementalAlterConfigsRequest):
                pair.settle()
                time.sleep(0.3)
            if getattr(request, "subscribed_topic_regex", None):
                time.sleep(0.2)
            members.settle()
        except AssertionError as problem:
            group = str(getattr(request, "group_id", ""))
            told = "\n".join(line for one in pairwise(story) if group in one[0] for line in one)
            raise AssertionError(f"seed {seed} step {step} of\n{told[-9000:]}\n{problem}") from None
    return members.codes


def test_random_members_of_groups_are_answered_alike(pair: BrokerPair) -> None:
    assert len(play(pair, SEED, STEPS)) > 12
