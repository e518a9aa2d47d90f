"""What the records of share groups say, read back from a log that another broker or Kafka has written."""

from __future__ import annotations

from typing import Any

import pytest

from kraftd.groups.effects import PartitionFailed
from kraftd.groups.events import TopicsDeleted
from kraftd.groups.outcome import Outcome
from kraftd.groups.records import CoordinatorRecord
from kraftd.groups.share.group import ShareGroup
from kraftd.groups.share.state_partitions import (
    Named,
    StatePartitions,
    initialized,
    initializing,
    not_initialized,
)
from kraftd.messages.consumer_group_metadata_key import ConsumerGroupMetadataKey
from kraftd.messages.consumer_group_metadata_value import ConsumerGroupMetadataValue
from kraftd.messages.delete_groups_request import DeleteGroupsRequest
from kraftd.messages.share_group_current_member_assignment_key import ShareGroupCurrentMemberAssignmentKey
from kraftd.messages.share_group_current_member_assignment_value import (
    ShareGroupCurrentMemberAssignmentValue,
    TopicPartitions,
)
from kraftd.messages.share_group_member_metadata_key import ShareGroupMemberMetadataKey
from kraftd.messages.share_group_member_metadata_value import ShareGroupMemberMetadataValue
from kraftd.messages.share_group_metadata_key import ShareGroupMetadataKey
from kraftd.messages.share_group_metadata_value import ShareGroupMetadataValue
from kraftd.messages.share_group_state_partition_metadata_key import ShareGroupStatePartitionMetadataKey
from kraftd.messages.share_group_state_partition_metadata_value import (
    ShareGroupStatePartitionMetadataValue,
    TopicInfo,
    TopicPartitionsInfo,
)
from kraftd.messages.share_group_target_assignment_member_key import ShareGroupTargetAssignmentMemberKey
from kraftd.messages.share_group_target_assignment_member_value import (
    ShareGroupTargetAssignmentMemberValue,
    TopicPartition,
)
from kraftd.messages.share_group_target_assignment_metadata_key import ShareGroupTargetAssignmentMetadataKey
from kraftd.messages.share_group_target_assignment_metadata_value import (
    ShareGroupTargetAssignmentMetadataValue,
)
from tests.groups.share.members import ShareDesk, Sharer, desk_of

SESSION_MS = 45_000
ORDERS, AUDIT = b"\1" * 10 + b"orders", b"\1" * 11 + b"audit"
KEYS: list[Any] = [
    ShareGroupMetadataKey("g"),
    ShareGroupMemberMetadataKey("g", "m"),
    ShareGroupCurrentMemberAssignmentKey("g", "m"),
    ShareGroupTargetAssignmentMemberKey("g", "m"),
    ShareGroupTargetAssignmentMetadataKey("g"),
    ShareGroupStatePartitionMetadataKey("g"),
]
VALUES: list[Any] = [
    ShareGroupMetadataValue(7, 99),
    ShareGroupMemberMetadataValue("r", "c", "/h", ("orders", "audit")),
    ShareGroupCurrentMemberAssignmentValue(6, 5, 0, [TopicPartitions(ORDERS, (1, 0))]),
    ShareGroupTargetAssignmentMemberValue([TopicPartition(ORDERS, (0, 1))]),
    ShareGroupTargetAssignmentMetadataValue(6, 123),
    ShareGroupStatePartitionMetadataValue(
        [TopicPartitionsInfo(AUDIT, "audit", (0,))],
        [TopicPartitionsInfo(ORDERS, "orders", (0, 1))],
        [TopicInfo(b"\2" * 16, "<UNKNOWN>")],
    ),
]


def written(*records: tuple[Any, Any]) -> ShareDesk:
    """A coordinator that has written these records, keys and values, and nothing else."""
    desk = desk_of(orders=2, audit=1)
    for key, value in records:
        desk.coordinator.shards[0].write(
            lambda key=key, value=value: Outcome([CoordinatorRecord(key, value)])
        )
        desk.flush()
    return desk


def group_of(desk: ShareDesk) -> ShareGroup:
    group = desk.coordinator.shards[0].state.groups["g"]
    assert isinstance(group, ShareGroup)
    return group


def facts(group: ShareGroup) -> list[Any]:
    """What each kind of record says, in the order of KEYS."""
    member = group.members.get("m")
    return [
        (group.facts.epoch, group.facts.metadata_hash),
        None
        if member is None
        else (member.rack_id, member.client_id, member.client_host, member.topics, set(group.topics)),
        None if member is None else (member.epoch, member.previous_epoch, member.assigned),
        group.target("m"),
        (group.facts.target_epoch, group.facts.target_ms),
        group.state and (group.state.initializing, group.state.initialized, group.state.deleting),
    ]


FACTS: list[Any] = [
    (7, 99),
    ("r", "c", "/h", {"orders", "audit"}, {"orders", "audit"}),
    (6, 5, {ORDERS: {0, 1}}),
    {ORDERS: {0, 1}},
    (6, 123),
    ({AUDIT: Named("audit", {0})}, {ORDERS: Named("orders", {0, 1})}, {b"\2" * 16}),
]


@pytest.mark.parametrize("is_loaded", [False, True])
def test_each_record_holds_its_part_of_a_group(is_loaded: bool) -> None:
    desk = written(*zip(KEYS, VALUES, strict=True))
    noted_ms = desk.now_ms
    if is_loaded:
        desk.now_ms += 5
        desk.reload()
    assert facts(group_of(desk)) == FACTS
    known = group_of(desk).state
    assert known is not None and known.noted_ms == desk.now_ms == noted_ms + 5 * is_loaded


@pytest.mark.parametrize(
    ("number", "after"),
    [
        (1, None),
        (2, (-1, -1, {})),
        (3, {}),
        (4, (-1, 0)),
        (5, None),
    ],
)
def test_a_tombstone_takes_back_what_its_record_has_said(number: int, after: Any) -> None:
    desk = written(*zip(KEYS, VALUES, strict=True), (KEYS[number], None))
    for _ in range(2):
        expected = FACTS[:number] + [after] + FACTS[number + 1 :]
        if number == 1:
            expected[2] = None  # without the member
            assert group_of(desk).topics == {}
        assert facts(group_of(desk)) == expected
        desk.reload()
    desk = written(*zip(KEYS, VALUES, strict=True), (KEYS[0], None))
    assert "g" not in desk.coordinator.shards[0].state.groups


@pytest.mark.parametrize("key", KEYS)
def test_a_tombstone_alone_makes_no_group(key: Any) -> None:
    desk = written((key, None))
    for _ in range(2):
        assert desk.coordinator.shards[0].state.groups == {}
        desk.reload()


@pytest.mark.parametrize(("key", "value"), list(zip(KEYS, VALUES, strict=True)))
def test_each_record_alone_makes_its_group(key: Any, value: Any) -> None:
    desk = written((key, value))
    for _ in range(2):
        group_of(desk)
        desk.reload()


def test_a_record_of_another_kind_of_group_cannot_be_loaded() -> None:
    consumer = ConsumerGroupMetadataKey("g"), ConsumerGroupMetadataValue(1)
    desk = written(consumer, (KEYS[1], None))
    desk.reload()
    assert len(desk.notes) == 2 and not any(isinstance(one, PartitionFailed) for one in desk.notes)
    desk.logs[0] += written((KEYS[0], VALUES[0])).logs[0]
    desk.reload()
    failed = desk.notes[-1]
    assert isinstance(failed, PartitionFailed)
    assert failed.reason == "UnreadableRecord: offset 2: a record of share group g, which is consumer"


def test_what_is_written_of_a_member_from_its_first_heartbeat_to_its_last() -> None:
    desk = desk_of(orders=2)
    one = Sharer(desk, "m", "orders", "audit")
    one.join()
    desk.now_ms += 7
    one.beat()
    desk.heartbeat("m", -1)
    begun = [TopicPartitionsInfo(ORDERS, "orders", (0, 1))]
    epochs = [
        record.value
        for record in desk.records()
        if isinstance(record.key, ShareGroupMetadataKey) and record.value is not None
    ]
    first, second, last = epochs
    assert [value.epoch for value in epochs] == [2, 3, 4]
    assert first.metadata_hash == second.metadata_hash != last.metadata_hash == 0  # of no topics
    assert [(record.key, record.value) for record in desk.records()] == [
        (KEYS[1], ShareGroupMemberMetadataValue(None, "client", "/127.0.0.1", ("audit", "orders"))),
        (KEYS[0], first),
        (KEYS[3], ShareGroupTargetAssignmentMemberValue([])),
        (KEYS[4], ShareGroupTargetAssignmentMetadataValue(2, desk.now_ms - 7)),
        (KEYS[2], ShareGroupCurrentMemberAssignmentValue(2, 0, 0, [])),
        (KEYS[5], ShareGroupStatePartitionMetadataValue(begun, [], [])),
        (KEYS[5], ShareGroupStatePartitionMetadataValue([], begun, [])),
        (KEYS[0], second),
        (KEYS[3], ShareGroupTargetAssignmentMemberValue([TopicPartition(ORDERS, (0, 1))])),
        (KEYS[4], ShareGroupTargetAssignmentMetadataValue(3, desk.now_ms)),
        (KEYS[2], ShareGroupCurrentMemberAssignmentValue(3, 2, 0, [TopicPartitions(ORDERS, (0, 1))])),
        (KEYS[2], None),
        (KEYS[3], None),
        (KEYS[1], None),
        (KEYS[0], last),
    ]
    desk.ask(DeleteGroupsRequest(("g",)), 2)
    assert [(record.key, record.value) for record in desk.records()[15:]] == [
        (KEYS[5], ShareGroupStatePartitionMetadataValue([], [], [TopicInfo(ORDERS, "orders")])),
        (KEYS[4], None),
        (KEYS[5], None),
        (KEYS[0], None),
    ]


def test_deleted_topics_are_forgotten_in_each_list_and_by_each_group() -> None:
    desk = written(*zip(KEYS, VALUES, strict=True))
    known = group_of(desk).state
    assert known is not None
    expected = [dict(known.initializing), dict(known.initialized), set(known.deleting)]
    for number, topic_id in enumerate((AUDIT, ORDERS, b"\2" * 16)):
        count = len(desk.records())
        desk.step(TopicsDeleted({"other": b"\3" * 16}))
        desk.flush()
        assert len(desk.records()) == count
        desk.step(TopicsDeleted({"one": topic_id}))
        desk.flush()
        expected[number] = set() if number == 2 else {}
        known = group_of(desk).state
        assert known is not None
        assert [known.initializing, known.initialized, set(known.deleting)] == expected


def test_what_many_groups_forget_need_not_fit_into_a_batch() -> None:
    names = [f"g{number}" for number in range(20)]
    desk = written(*((ShareGroupStatePartitionMetadataKey(name), VALUES[5]) for name in names))
    desk.coordinator.shards[0].limit_batches(400)
    desk.step(TopicsDeleted({"orders": ORDERS}))
    for _ in names:
        desk.flush()
    assert len(desk.records()) == 2 * len(names)
    assert all(record.value.initialized_topics == [] for record in desk.records()[len(names) :])


def test_each_answer_of_share_coordinators_moves_only_its_partitions() -> None:
    metadata = desk_of(orders=3, audit=1).topics
    other = b"\2" * 16
    known = StatePartitions(
        {ORDERS: Named("former", frozenset({0, 1}))},
        {AUDIT: Named("former", frozenset({0}))},
        frozenset({other}),
    )
    begun = {ORDERS: Named("orders", frozenset({2})), other: Named("other", frozenset({0}))}
    assert initializing(known, begun) == StatePartitions(
        {ORDERS: Named("orders", frozenset({0, 1, 2})), other: begun[other]}, known.initialized
    )
    done = {ORDERS: frozenset({1}), AUDIT: frozenset({1}), bytes(16): frozenset({0})}
    assert initialized(known, metadata, done) == StatePartitions(
        {ORDERS: Named("former", frozenset({0}))},
        {
            AUDIT: Named("audit", frozenset({0, 1})),
            ORDERS: Named("orders", frozenset({1})),
            bytes(16): Named("<UNKNOWN>", frozenset({0})),
        },
        known.deleting,
    )
    assert not_initialized(known, {ORDERS: frozenset({0, 1, 2})}) == StatePartitions(
        {}, known.initialized, known.deleting
    )
