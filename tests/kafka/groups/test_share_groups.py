"""Share groups of a stock broker and of kraftd: the same answers, epochs, assignments and offsets.

Another seed, or more steps: ``KRAFTD_GROUPS_SEED``, ``KRAFTD_SHARE_GROUPS_STEPS``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from kraftd.groups.share.effects import AskShareCoordinators, LatestOffsetsFound, ShareCoordinatorsAnswered
from kraftd.groups.share_state.config import ShareStateConfig
from kraftd.messages.alter_share_group_offsets_request import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from kraftd.messages.delete_groups_request import DeleteGroupsRequest
from kraftd.messages.delete_share_group_offsets_request import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from kraftd.messages.describe_groups_request import DescribeGroupsRequest
from kraftd.messages.describe_share_group_offsets_request import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from kraftd.messages.share_group_describe_request import ShareGroupDescribeRequest
from kraftd.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from kraftd.wire.api import valid_versions
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.table import api_key
from testkit.client import Client
from testkit.cluster import Cluster
from testkit.process import wait_until
from tests.groups.requests import commit
from tests.groups.share_state_desk import ShareStateDesk
from tests.kafka.groups.pair import ASIDE, CLIENT, PARTITIONS, Pair, same
from tests.kafka.groups.test_consumer_groups import any_ids
from tests.kafka.groups.test_share_state import has_share_coordinator

pytestmark = pytest.mark.kafka

SEED = int(os.environ.get("KRAFTD_GROUPS_SEED", "1"))
STEPS = int(os.environ.get("KRAFTD_SHARE_GROUPS_STEPS", "60"))
SUBSCRIPTIONS: list[tuple[str, ...]] = [("orders",), ("orders", "audit"), ("audit", "missing"), ("orders",)]
UNKNOWN = ErrorCode.UNKNOWN_SERVER_ERROR


class Both:
    """Asks a stock broker, then kraftd's coordinators, and compares what they answer."""

    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        self.states = ShareStateDesk(ShareStateConfig(), PARTITIONS)
        self.states.topics = self.states.coordinator.topics = pair.desk.topics
        self.codes: dict[int, int] = {}

    def ask(self, request: Any) -> Any:
        theirs = self.ask_kafka(request)
        if isinstance(request, DeleteGroupsRequest) and theirs.results[0].error_code == UNKNOWN:
            theirs = self.ask_kafka(request)  # the first fails after offsets of a partition that is not there
        own = self.ask_kraftd(request)
        version = newest(request)
        assert same(own, theirs, version), f"{request!r}\n Kafka  {theirs!r}\n kraftd {own!r}"
        code = getattr(own, "error_code", 0)
        self.codes[code] = self.codes.get(code, 0) + 1
        return own

    def ask_kafka(self, request: Any) -> Any:
        return self.pair.ask_kafka(request, newest(request))

    def ask_kraftd(self, request: Any) -> Any:
        """Ask kraftd, whose share coordinators answer at once."""
        desk = self.pair.desk
        desk.wait(max(0, self.pair.clock_ms() - desk.now_ms))
        desk.calls = ASIDE
        desk.answers.pop(ASIDE + 1, None)
        token = desk.send(request, newest(request), CLIENT)
        while desk.asked:
            effect = desk.asked.pop(0)
            if isinstance(effect, AskShareCoordinators):
                answer = self.states.ask(effect.request, newest(effect.request))
                desk.step(ShareCoordinatorsAnswered(effect.number, answer))
            else:
                desk.step(LatestOffsetsFound(effect.number, dict.fromkeys(effect.places, 0)))
            desk.flush()
        return desk.answers[token]

    def settle(self, group: str) -> None:
        """Wait until the broker has written what kraftd has, with the answers of its share coordinators."""
        rows = [DescribeShareGroupOffsetsRequestGroup(group, None)]
        for request in (ShareGroupDescribeRequest((group,)), DescribeShareGroupOffsetsRequest(rows)):
            end = time.monotonic() + 10
            while True:
                own, theirs = self.ask_kraftd(request), self.ask_kafka(request)
                if same(own, theirs, newest(request)):
                    break
                assert time.monotonic() < end, f"\n Kafka  {theirs!r}\n kraftd {own!r}"
                time.sleep(0.02)


def newest(request: Any) -> int:
    return valid_versions(api_key(request))[1]


@pytest.fixture
def both(group_broker: Cluster) -> Iterator[Both]:
    pair = Pair(group_broker)
    ids = [topic_id for topic_id in pair.desk.topics.ids.values() if topic_id]  # type: ignore[attr-defined]
    with Client("127.0.0.1", pair.port) as client:
        wait_until(lambda: has_share_coordinator(client, ids[0]), "the broker keeps share groups", 60)
    yield Both(pair)
    pair.close()


class Crowd:
    """Members of one group, and an operator, that do as they like, most of it sensible."""

    def __init__(self, both: Both, random: Random, group: str) -> None:
        self.both, self.random, self.group = both, random, group
        self.epochs = dict.fromkeys(any_ids(random, 8), 0)
        self.ids = list(self.epochs)

    def step(self) -> None:
        one, act = self.random.choice(self.ids), self.random.random()
        if act < 0.12 and not any(self.epochs.values()):
            self.both.ask(DeleteGroupsRequest((self.group,)))
        elif act < 0.25 and self.random.random() < (0.15 if any(self.epochs.values()) else 0.8):
            self.operate()
        elif not self.epochs[one] or act < 0.04:
            self.beat(one, 0, self.random.choice(SUBSCRIPTIONS))
        elif act < 0.66:
            self.beat(one, self.epochs[one])
        elif act < 0.78:
            self.beat(one, self.epochs[one], self.random.choice([*SUBSCRIPTIONS, ()]))
        elif act < 0.9:
            self.beat(one, -1)
            if self.random.random() < 0.3:
                for other in self.ids:
                    self.beat(other, -1)
        else:
            strange = self.random.choice([self.epochs[one] + 1, self.epochs[one] - 1, 1, 77, -2])
            self.beat(one, strange)
        self.both.settle(self.group)

    def beat(self, one: str, epoch: int, topics: tuple[str, ...] | None = None) -> None:
        answer = self.both.ask(ShareGroupHeartbeatRequest(self.group, one, epoch, None, topics))
        if answer.error_code in (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID):
            self.epochs[one] = 0
        elif not answer.error_code:
            self.epochs[one] = max(answer.member_epoch, 0)

    def operate(self) -> None:
        choice = self.random.choice
        names = [choice(["orders", "orders", "audit", "missing"]) for _ in range(2)]
        if choice([True, False]):
            topics = {
                name: {self.random.randrange(4): self.random.randrange(9) for _ in range(2)} for name in names
            }
            rows = [
                AlterShareGroupOffsetsRequestTopic(
                    name, [AlterShareGroupOffsetsRequestPartition(*one) for one in offsets.items()]
                )
                for name, offsets in topics.items()
            ]
            self.both.ask(AlterShareGroupOffsetsRequest(self.group, rows))
        elif choice([True, False]):
            asked = [DeleteShareGroupOffsetsRequestTopic(name) for name in dict.fromkeys(names)]
            self.both.ask(DeleteShareGroupOffsetsRequest(self.group, asked))
        else:
            known = [DescribeShareGroupOffsetsRequestTopic(name, (0, 1)) for name in dict.fromkeys(names)]
            group = DescribeShareGroupOffsetsRequestGroup(self.group, known)
            self.both.ask(DescribeShareGroupOffsetsRequest([group]))


def play_shares(both: Both, seed: int, steps: int) -> None:
    """Play random members of two share groups; raise where an answer differs."""
    random = Random(f"shares-{seed}")
    crowds = [Crowd(both, random, f"sharers-{seed}-{number}") for number in range(2)]
    for _ in range(steps):
        random.choice(crowds).step()


def test_random_share_members_are_answered_alike__kip932(both: Both) -> None:
    play_shares(both, SEED, STEPS)
    assert both.codes.keys() >= {0, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH}, both.codes


def test_a_share_group_is_no_other_group_for_both(both: Both) -> None:
    both.ask(ShareGroupHeartbeatRequest("shares", "m1", 0, None, ("orders",)))
    both.settle("shares")
    both.ask(DescribeGroupsRequest(("shares",)))
    both.ask(commit(1, group="shares"))
    both.ask(commit(1, group="simple"))
    both.ask(ShareGroupHeartbeatRequest("simple", "m1", 0, None, ("orders",)))
    both.ask(ShareGroupDescribeRequest(("simple", "nobody", "")))
    both.ask(ShareGroupHeartbeatRequest("shares", "m" * 37, 0, None, ("orders",)))
    both.ask(ShareGroupHeartbeatRequest("", "m1", 0, None, ("orders",)))
    both.ask(ShareGroupHeartbeatRequest("shares", "m1", 0, " ", ("orders",)))
    both.ask(DeleteGroupsRequest(("shares", "nobody")))
    both.ask(DeleteShareGroupOffsetsRequest("shares", []))
    both.ask(DeleteShareGroupOffsetsRequest("simple", []))
    both.ask(AlterShareGroupOffsetsRequest("simple", []))
    both.ask(AlterShareGroupOffsetsRequest("", []))
    both.ask(DescribeShareGroupOffsetsRequest([DescribeShareGroupOffsetsRequestGroup("nobody", [])]))
    both.ask(ShareGroupHeartbeatRequest("shares", "m1", -1))
