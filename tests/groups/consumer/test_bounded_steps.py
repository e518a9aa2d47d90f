"""No step of a group with very many partitions does more than a few thousand calls."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from typing import Any

import pytest

from kraftd.ground.java_hashes import copied_index_order, copied_order, int_hash
from kraftd.groups import shard
from kraftd.groups.call import Call
from kraftd.groups.consumer import reconciling, replay
from kraftd.groups.consumer.assignors.spec import (
    PARTITIONS_A_SLICE,
    Assigned,
    GroupSpec,
    MemberSpec,
    Waits,
)
from kraftd.groups.consumer.assignors.uniform import assign_uniformly
from kraftd.groups.consumer.group import ConsumerGroup
from kraftd.groups.consumer.metadata_hash import topic_hash
from kraftd.groups.consumer.owners import MANY
from kraftd.groups.records import CoordinatorRecord, KeyAndValue, encode_record
from kraftd.groups.share.assignor import assign_simply
from kraftd.groups.state import FEW_TOPICS
from kraftd.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from kraftd.wire.records import ENGINE
from tests.groups.calls import Counted, counted_steps
from tests.groups.consumer.members import HEARTBEAT, Consumer, joining
from tests.groups.desk import Desk

PARTITIONS, MEMBERS = 10_000, 1_000
LARGE = 50_000
MAX_CALLS = 8_000  # in a step: less than one for each partition


def test_no_step_grows_with_the_partitions_of_a_group() -> None:
    desk = Desk(orders=PARTITIONS)
    coordinator: Any = desk.coordinator
    steps = counted_steps(coordinator)
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
    assert max(max(counted.calls) for counted in steps) < MAX_CALLS
    asked = ConsumerGroupDescribeRequest(("g",))
    described, longest = in_slices(coordinator.describing(Call("", 1), asked, desk.now_ms))
    assert len(described.groups[0].members) == MEMBERS
    assert longest < MAX_CALLS


@pytest.mark.parametrize("assignor", ["uniform", "range"])
def test_no_heartbeat_of_members_with_a_pattern_goes_through_all_topics(assignor: str) -> None:
    """But for those of a member that gets all of them."""
    topics = 4 * FEW_TOPICS
    desk = Desk(**{f"topic-{number}": 1 for number in range(topics)})
    coordinator: Any = desk.coordinator
    members = [
        Consumer(desk.ask, f"m{number}", topics=None, regex="topic-.*", assignor=assignor)
        for number in range(100)
    ]
    members[0].join()
    desk.wait(2_000)
    members[0].beat()
    coordinator.handle, coordinator.tick = Counted(coordinator.handle), Counted(coordinator.tick)
    for member in members[1:]:
        member.join()
    for _ in range(3):
        desk.wait(2_000)
        for member in members[1:]:
            member.beat()
    members[50].leave()
    desk.wait(2_000)
    members[1].beat()
    assert max(coordinator.handle.calls) < topics
    # A target takes no slice for each topic.
    assert len(coordinator.tick.calls) < topics // 10


def in_slices(slices: Waits[Any]) -> tuple[Any, int]:
    """The result, and how many calls the longest slice makes."""
    step = Counted(next)
    while True:
        try:
            step(slices)
        except StopIteration as end:
            return end.value, max(step.calls)


def test_no_step_of_a_share_group_s_target_grows_with_its_partitions() -> None:
    topics = tuple(bytes([number]) * 16 for number in range(10))
    counts = dict.fromkeys(topics, PARTITIONS // len(topics))
    assignable = {topic_id: frozenset(range(count)) for topic_id, count in counts.items()}
    assigned: Assigned = {}
    for count in (MEMBERS, MEMBERS - 100, MEMBERS):
        members = {
            name: MemberSpec(None, topics, assigned.get(name, {}))
            for name in (f"m{number}" for number in range(count))
        }
        assigned, longest = in_slices(assign_simply(GroupSpec(members, True, counts), assignable))
        assert longest < 2 * MAX_CALLS  # one slice sorts all partitions
    assert sum(len(indexes) for topics in assigned.values() for indexes in topics.values()) == PARTITIONS


def test_a_target_of_ten_subscriptions_takes_no_slice_for_each_topic() -> None:
    topics = [number.to_bytes(16, "big") for number in range(4_000)]
    subscriptions = [tuple(topics[first::10]) for first in range(10)]
    assigned: Assigned = {}
    for count in (50, 500):
        members = {
            f"m{number}": MemberSpec(None, subscriptions[number % 10], assigned.get(f"m{number}", {}))
            for number in range(count)
        }
        slices = assign_uniformly(GroupSpec(members, False, dict.fromkeys(topics, 1)))
        steps = 0
        with contextlib.suppress(StopIteration):
            while True:
                next(slices)
                steps += 1
        assert steps < len(topics) // 10
        assigned, _ = in_slices(assign_uniformly(GroupSpec(members, False, dict.fromkeys(topics, 1))))


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


def without_pause(slices: Iterator[None]) -> Any:
    """The result of work that is short enough to be done at once."""
    try:
        next(slices)
    except StopIteration as end:
        return end.value
    raise AssertionError("more is divided at once than in a slice")


def never_read(*_: Any) -> Any:
    raise AssertionError("a record was read again to be replayed")


def encoded_before(record: CoordinatorRecord) -> KeyAndValue:
    """A record in the log, which is short or was encoded in slices before its step."""
    pair = encode_record(record)
    assert record.encoded is not None or len(pair[1] or b"") < 1_000, "a long record is encoded at once"
    return pair


def group_of(desk: Desk) -> ConsumerGroup:
    group = desk.coordinator.shards[0].state.groups["g"]
    assert isinstance(group, ConsumerGroup)
    return group


def test_a_member_of_very_many_partitions_takes_its_steps_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its heartbeat makes no division and no record at once, and replays no record from its value."""
    monkeypatch.setattr(reconciling, "at_once", without_pause)
    monkeypatch.setattr(shard, "encode_record", encoded_before)
    monkeypatch.setattr(replay, "with_assignment", never_read)
    desk, slices = Desk(orders=LARGE), Counted(next)
    desk.run_slice = slices
    first, second = Consumer(desk.ask, "m0"), Consumer(desk.ask, "m1")
    first.join()
    desk.wait(2_000)
    first.beat()
    assert first.count() == LARGE
    assert len(slices.calls) > LARGE // PARTITIONS_A_SLICE and max(slices.calls) < 100
    second.join()
    desk.wait(6_000)
    for one in (first, first, second, second):
        one.beat()
    assert [first.count(), second.count()] == [LARGE // 2] * 2
    group = group_of(desk)
    assert not group.owners.few and [len(members) for members in group.owners.many.values()] == [2]
    kept = group.members, group.targets, group.owners.many
    monkeypatch.undo()
    desk.reload()
    group = group_of(desk)
    assert (group.members, group.targets, group.owners.many) == kept
    first.leave()
    second.leave()
    assert not group.owners


@pytest.mark.parametrize(("partitions", "waits"), [(2 * MANY, True), (2 * MANY + 2, False)])
def test_members_that_join_together_do_not_wait_for_very_large_parts__kip848(
    partitions: int, waits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconciling, "at_once", without_pause if not waits else reconciling.at_once)
    desk = Desk(orders=partitions)
    members = [Consumer(desk.ask, f"m{number}") for number in range(2)]
    sent = [desk.send(joining(one.member_id), HEARTBEAT) for one in members]
    desk.wait(2_000)
    for one, number in zip(members, sent, strict=True):
        one.take(desk.answers[number])
        assert one.count() == (partitions // 2 if waits else 0)
        one.beat()
        assert one.count() == partitions // 2


def test_a_division_is_made_anew_if_the_target_changes_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reconciling, "at_once", without_pause)
    desk = Desk(orders=LARGE)
    first, second = Consumer(desk.ask, "m0"), Consumer(desk.ask, "m1")
    first.join()
    desk.wait(2_000)

    def interrupted(slices: Iterator[None]) -> None:
        desk.run_slice = next
        next(slices)
        second.join()
        desk.wait(6_000)

    desk.run_slice = interrupted
    first.beat()
    assert first.count() == LARGE // 2
    second.beat()
    assert second.count() == LARGE // 2


def test_a_division_is_made_anew_if_another_member_gives_up_meanwhile() -> None:
    """What is free then is the member's at once, instead of after another heartbeat."""
    desk = Desk(orders=LARGE)
    first, second = Consumer(desk.ask, "m0"), Consumer(desk.ask, "m1")
    first.join()
    desk.wait(2_000)
    first.beat()
    second.join()
    desk.wait(6_000)
    first.beat()

    def interrupted(slices: Iterator[None]) -> None:
        next(slices)
        desk.run_slice = next
        first.beat()

    desk.run_slice = interrupted
    second.beat()
    assert [first.count(), second.count()] == [LARGE // 2] * 2


@pytest.mark.skipif(not hasattr(ENGINE, "partition_bytes"), reason="Python looks at each partition")
def test_the_hash_of_a_topic_calls_nothing_for_each_partition() -> None:
    hashed = Counted(topic_hash)
    racks = {broker_id: f"rack-{broker_id % 5}" for broker_id in range(30)}
    replicas = tuple((index % 30, index % 29, index % 28) for index in range(PARTITIONS))
    hashed(bytes(16), "orders", replicas, racks)
    assert hashed.calls[0] < 1_000


@pytest.mark.parametrize("count", [1, 60_000, 65_537, 131_072, 150_000])
def test_the_order_of_very_many_partitions_is_that_of_javas_set(count: int) -> None:
    """As the slow way has it, with gaps and without."""
    rng = random.Random(count)
    for indexes in (
        range(count),
        rng.sample(range(count), count * 4 // 5),
        rng.sample(range(2 * count), count),
    ):
        assert copied_index_order(indexes) == copied_order(sorted(indexes), int_hash)
    pauses = sum(1 for _ in copied_index_order.begin(range(count)))
    assert pauses >= (count - 65_536) // 16_384  # of those that are sorted anew
