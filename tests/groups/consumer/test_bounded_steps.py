"""No step of a group with very many partitions does more than a few thousand calls."""

from __future__ import annotations

from typing import Any

import pytest

from kraftd.groups.consumer.metadata_hash import topic_hash
from kraftd.wire.records import ENGINE
from tests.groups.calls import Counted
from tests.groups.consumer.members import Consumer
from tests.groups.desk import Desk

PARTITIONS, MEMBERS = 10_000, 1_000
MAX_CALLS = 8_000  # in a step: less than one for each partition


def test_no_step_grows_with_the_partitions_of_a_group() -> None:
    desk = Desk(orders=PARTITIONS)
    coordinator: Any = desk.coordinator
    steps = {name: Counted(getattr(coordinator, name)) for name in ("handle", "tick", "step", "flush")}
    for name, counted in steps.items():
        setattr(coordinator, name, counted)
    first = Consumer(desk.ask, "m0")
    first.join()
    desk.wait(2_000)  # slices of the first target
    first.beat()
    assert first.count() == PARTITIONS
    for number in range(1, MEMBERS):
        Consumer(desk.ask, f"m{number}").join()
    for _ in range(3):
        desk.wait(2_000)  # slices of a target
        first.beat()
    assert first.count() == PARTITIONS // MEMBERS
    assert max(max(counted.calls) for counted in steps.values()) < MAX_CALLS


def test_members_that_start_together_share_a_large_first_target__kip848() -> None:
    desk = Desk(orders=PARTITIONS)
    members = [Consumer(desk.ask, f"m{number}") for number in range(10)]
    for member in members:
        member.join()
        assert (member.epoch, member.count()) == (1, 0)
    desk.wait(2_000)
    for member in members:
        member.beat()
    assert [member.count() for member in members] == [PARTITIONS // 10] * 10


def test_a_member_waits_for_others_if_no_record_can_hold_its_target__kip848() -> None:
    desk = Desk(orders=150_000)
    members = [Consumer(desk.ask, f"m{number}") for number in range(2)]
    for number, member in enumerate(members):
        member.join()
        desk.wait(6_000)
        assert member.beat().error_code == 0
        assert (member.epoch > 1) == (number == 1)
    desk.wait(6_000)
    members[0].beat()
    assert [member.count() for member in members] == [75_000] * 2


@pytest.mark.skipif(not hasattr(ENGINE, "partition_bytes"), reason="Python looks at each partition")
def test_the_hash_of_a_topic_calls_nothing_for_each_partition() -> None:
    hashed = Counted(topic_hash)
    racks = {broker_id: f"rack-{broker_id % 5}" for broker_id in range(30)}
    replicas = tuple((index % 30, index % 29, index % 28) for index in range(PARTITIONS))
    hashed(bytes(16), "orders", replicas, racks)
    assert hashed.calls[0] < 1_000
