"""Groups that change their protocol with their members, at a stock broker and at kraftd's coordinator."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from kraftd.messages.describe_groups_request import DescribeGroupsRequest
from testkit.cluster import Cluster
from tests.groups.classic_consumers import assignment, said
from tests.groups.consumer.members import Consumer
from tests.groups.requests import (
    BEAT,
    COMMIT,
    JOIN,
    LEAVE,
    SYNC,
    beat,
    commit,
    join,
    leave,
    subscription,
    sync,
)
from tests.kafka.groups.pair import LONG_MS, Pair
from tests.kafka.groups.test_consumer_groups import Both, remove_groups, spread_ids
from tests.kafka.groups.test_time import described

pytestmark = pytest.mark.kafka

STEPS = 200


@pytest.fixture
def both(group_broker: Cluster) -> Iterator[Both]:
    pair = Pair(group_broker)
    yield Both(pair)
    remove_groups(pair)
    pair.close()


class Classic:
    """A member of a consumer group with the classic protocol, under an id of its own choice."""

    def __init__(self, both: Both, member_id: str, group: str, random: Random) -> None:
        self.both, self.member_id, self.group, self.random = both, member_id, group, random
        self.generation = -1
        self.has: set[int] = set()

    def join(self) -> None:
        protocols = self.random.choice([("range",), ("range", "roundrobin"), ("roundrobin",)])
        metadata = (
            said(owned={"orders": self.has}, version=1)
            if self.random.random() < 0.8
            else subscription("orders")
        )
        request = join(self.group, self.member_id, protocols=protocols, metadata=metadata, session_ms=LONG_MS)
        answer = self.both.ask(request, JOIN)
        if answer.error_code == 0:
            self.generation = answer.generation_id
            self.protocol = answer.protocol_name

    def step(self) -> None:
        act = self.random.random()
        if self.generation < 0 or act < 0.05:
            self.join()
        elif act < 0.5:
            answer = self.both.ask(beat(self.generation, self.member_id, group=self.group), BEAT)
            if answer.error_code:
                self.join()
        elif act < 0.8:
            request = sync(self.generation, self.member_id, group=self.group)
            request.protocol_name = self.protocol
            answer = self.both.ask(request, SYNC)
            if answer.error_code == 0:
                rows = self.both.partitions(answer)
                self.has = {index for indexes in rows.values() for index in indexes}
        elif act < 0.9:
            generation = self.generation + self.random.choice([0, 0, 1, -1])
            self.both.ask(commit(1, generation, self.member_id, group=self.group), COMMIT)
        else:
            self.both.ask(leave((self.member_id, None), ("nobody", None), group=self.group), LEAVE)
            self.generation, self.has = -1, set()


def play_migration(both: Both, seed: int) -> None:
    """Play random members of both protocols in one group; raise where an answer differs."""
    random = Random(f"migration-{seed}")
    group = f"mixed-{seed}"
    ids = spread_ids(5)
    anchor = Consumer(both.ask, ids[0], group, topics=("orders",))
    anchor.join()
    members = [
        anchor,
        Consumer(both.ask, ids[1], group),
        *(Classic(both, name, group, random) for name in ids[2:]),
    ]
    for _ in range(STEPS):
        one: Any = random.choice(members)
        if isinstance(one, Classic):
            one.step()
        elif one is not anchor and one.epoch > 0 and random.random() < 0.1:
            one.leave()
            one.epoch = 0
        elif one.epoch <= 0 or one.beat().error_code:
            one.join()
        if random.random() < 0.05:
            both.describe(group)
    both.describe(group)


@pytest.mark.parametrize("seed", range(2))
def test_random_members_of_both_protocols_are_answered_alike(both: Both, seed: int) -> None:
    play_migration(both, seed)
    assert len(both.codes) >= 3, both.codes


def test_a_classic_group_changes_and_changes_back(both: Both) -> None:
    pair = both.pair
    token = pair.send(join("changes", session_ms=LONG_MS), JOIN)
    old: str = pair.desk.answers[token].member_id  # type: ignore[attr-defined]
    pair.send(join("changes", old, session_ms=LONG_MS), JOIN)
    pair.send(sync(1, old, {old: assignment(0, 1, 2)}, "changes"), SYNC)
    assert described(pair, "changes").group_state == "Stable"
    new = Consumer(both.ask, spread_ids(1)[0], "changes")
    new.join()
    (group,) = both.describe("changes")
    assert {member.member_type for member in group.members} == {0, 1}
    has = {0, 1, 2}
    for _ in range(4):
        answer = both.ask(beat(group.members[0].member_epoch, old, group="changes"), BEAT)
        if answer.error_code:
            joined = both.ask(
                join("changes", old, metadata=said(owned={"orders": has}, version=1), session_ms=LONG_MS),
                JOIN,
            )
            answer = both.ask(sync(joined.generation_id, old, group="changes"), SYNC)
            if answer.error_code == 0:
                has = {index for some in both.partitions(answer).values() for index in some}
        new.beat()
        group.members.sort(key=lambda member: member.member_id != old)
        group = both.describe("changes")[0]
        group.members.sort(key=lambda member: member.member_id != old)
    assert new.count() + len(has) == 3
    new.leave()
    pair.send(DescribeGroupsRequest(("changes",)), 5)
    assert described(pair, "changes").group_state == "PreparingRebalance"
    pair.send(join("changes", old, session_ms=LONG_MS), JOIN)
    assert described(pair, "changes").group_state == "CompletingRebalance"
