"""Members of share groups join, share partitions, and go (KIP-932)."""

from __future__ import annotations

import pytest

from kraftd.groups import assigning
from kraftd.groups.config import GroupConfig
from kraftd.groups.events import TopicsDeleted
from kraftd.groups.records import CoordinatorRecord
from kraftd.groups.share.state_partitions import Named, StatePartitions, uninitialized
from kraftd.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kraftd.messages.initialize_share_group_state_request import InitializeShareGroupStateRequest
from kraftd.messages.list_groups_request import ListGroupsRequest
from kraftd.messages.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestGroup
from kraftd.messages.share_group_metadata_key import ShareGroupMetadataKey
from kraftd.messages.share_group_state_partition_metadata_key import ShareGroupStatePartitionMetadataKey
from kraftd.wire.error_code import ErrorCode
from tests.groups.share.members import ShareDesk, Sharer, desk_of, settle

SESSION_MS = 45_000


def names_of(records: list[CoordinatorRecord]) -> list[str]:
    kinds = [type(record.key).__name__.removeprefix("ShareGroup").removesuffix("Key") for record in records]
    return [
        kind + ("" if record.value is not None else " gone")
        for kind, record in zip(kinds, records, strict=True)
    ]


def test_partitions_are_assigned_once_the_share_coordinator_knows_them__kip932() -> None:
    desk = desk_of(orders=3)
    desk.is_silent = True
    one = Sharer(desk, "m1")
    answer = one.join()
    assert (answer.error_code, answer.member_epoch, answer.heartbeat_interval_ms) == (0, 2, 5000)
    assert one.has == {}
    assert names_of(desk.records()) == [
        "MemberMetadata",
        "Metadata",
        "TargetAssignmentMember",
        "TargetAssignmentMetadata",
        "CurrentMemberAssignment",
        "StatePartitionMetadata",
    ]
    (asked,) = desk.asked
    assert isinstance(asked.request, InitializeShareGroupStateRequest)
    (topic,) = asked.request.topics
    rows = [(row.partition, row.state_epoch, row.start_offset) for row in topic.partitions]
    assert rows == [(0, 2, -1), (1, 2, -1), (2, 2, -1)]
    assert one.beat().assignment is None
    desk.answer_asked()
    assert one.beat().member_epoch == 3
    assert one.has == {"orders": [0, 1, 2]}
    count = len(desk.records())
    settle(one)
    assert len(desk.records()) == count


def test_members_share_what_is_not_enough_for_all__kip932() -> None:
    desk = desk_of(orders=2)
    members = [Sharer(desk, f"m{number}") for number in range(4)]
    for one in members:
        one.join()
    settle(*members)
    assert sorted(index for one in members for index in one.has["orders"]) == [0, 0, 1, 1]
    group = desk.describe()
    assert (group.group_state, group.assignor_name, len(group.members)) == ("Stable", "simple", 4)
    assert group.group_epoch == group.assignment_epoch
    (row,) = desk.ask(ListGroupsRequest(types_filter=("Share",)), 5).groups
    assert (row.group_id, row.protocol_type, row.group_state, row.group_type) == (
        "g", "share", "Stable", "share",
    )  # fmt: skip


def test_a_new_member_is_assigned_to_before_another_of_its_bucket() -> None:
    """Kafka's heartbeat puts it into the table of members at once, which gives the latest of a slot first."""
    desk = desk_of(orders=3)
    first, second = Sharer(desk, "member-0"), Sharer(desk, "member-38")
    first.join()
    settle(first)
    second.join()
    settle(first, second)
    assert [len(one.has["orders"]) for one in (first, second)] == [1, 2]


def test_members_of_no_topic_that_exists_have_nothing() -> None:
    desk = desk_of(orders=2)
    one, other = Sharer(desk, "m1", "nowhere"), Sharer(desk, "m2", "nowhere")
    one.join(), other.join()
    settle(one, other)
    assert (one.has, other.has) == ({}, {})
    group = desk.describe()
    assert group.group_epoch == group.assignment_epoch
    desk.topics.change("nowhere", 1)
    desk.wait(5 * 60_000)
    one.join(), other.join()
    settle(one, other)
    assert {"nowhere": [0]} in (one.has, other.has)


def test_a_silent_member_goes_and_another_gets_its_partitions() -> None:
    desk = desk_of(orders=2)
    first, second = Sharer(desk, "m1"), Sharer(desk, "m2")
    first.join()
    second.join()
    settle(first, second)
    assert first.has != second.has
    desk.wait(SESSION_MS - 1)
    first.beat()
    desk.wait(1)
    settle(first)
    assert first.has == {"orders": [0, 1]}
    assert second.beat().error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert names_of(desk.records())[-7:-3] == [
        "CurrentMemberAssignment gone",
        "TargetAssignmentMember gone",
        "MemberMetadata gone",
        "Metadata",
    ]
    assert desk.heartbeat("m1", -1).member_epoch == -1
    assert desk.describe().group_state == "Empty"


def test_a_silent_member_goes_once_that_can_be_written() -> None:
    desk = desk_of(orders=2)
    Sharer(desk, "m1").join()
    desk.failure = ErrorCode.NOT_ENOUGH_REPLICAS
    desk.wait(SESSION_MS + 10_000)
    assert desk.describe().group_state == "Stable"
    desk.failure = None
    desk.wait(500)
    assert desk.describe().group_state == "Empty"


def test_a_member_whose_leaving_could_not_be_written_goes_once_it_can_be() -> None:
    desk = desk_of(orders=2)
    one, two = Sharer(desk, "m1"), Sharer(desk, "m2")
    one.join(), two.join()
    settle(one, two)
    desk.failure = ErrorCode.NOT_ENOUGH_REPLICAS
    for name in ("m1", "m2"):
        assert desk.heartbeat(name, -1).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    desk.failure = None
    assert two.beat().error_code == 0  # it stays after all, with a whole session
    desk.wait(500)
    assert [member.member_id for member in desk.describe().members] == ["m2"]
    desk.wait(SESSION_MS - 501)
    assert desk.describe().group_state == "Stable"
    desk.wait(1)
    assert desk.describe().group_state == "Empty"


@pytest.mark.parametrize("is_reloaded", [False, True])
def test_epochs_fence_members_but_not_those_that_missed_an_answer(is_reloaded: bool) -> None:
    desk = desk_of(orders=1)
    one = Sharer(desk, "m1")
    one.join()
    settle(one)
    if is_reloaded:
        desk.reload()
    before, now = one.epoch - 1, one.epoch
    assert desk.heartbeat("m1", before).error_code == 0
    assert desk.heartbeat("m1", before - 1).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    late = desk.heartbeat("m1", now + 1)
    assert late.error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert "greater member epoch (4)" in late.error_message
    assert desk.heartbeat("m2", now).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert desk.heartbeat("m1", 1, group="other").error_code == ErrorCode.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize(
    ("member", "epoch", "topics", "message"),
    [
        ("", 0, ("orders",), None),
        ("m" * 37, 0, ("orders",), None),
        (" ", 0, ("orders",), "MemberId can't be empty."),
        ("m", 0, None, "SubscribedTopicNames must be set in first request."),
        ("m", 0, (), "SubscribedTopicNames must be set in first request."),
        ("m", -2, None, "MemberEpoch is invalid."),
    ],
)
def test_heartbeats_that_make_no_sense_change_nothing(
    member: str, epoch: int, topics: tuple[str, ...] | None, message: str | None
) -> None:
    desk = desk_of()
    answer = desk.heartbeat(member, epoch, topics)
    assert (answer.error_code, answer.error_message) == (ErrorCode.INVALID_REQUEST, message)
    assert not desk.records()


def test_a_group_has_one_protocol() -> None:
    desk = desk_of()
    Sharer(desk, "m1").join()
    consumer = ConsumerGroupHeartbeatRequest("g", "c", 0, None, None, 60_000, ("orders",), None, None, [])
    assert desk.ask(consumer, 1).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    fetched = desk.ask(OffsetFetchRequest(groups=[OffsetFetchRequestGroup("g", topics=None)]), 9)
    assert (fetched.groups[0].error_code, fetched.groups[0].topics) == (0, [])
    consumer.group_id = "c"
    assert desk.ask(consumer, 1).error_code == 0
    refused = desk.heartbeat("m1", 0, ("orders",), group="c")
    assert refused.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert refused.error_message == "Group c is not a share group."


def test_there_are_no_share_groups_without_the_feature() -> None:
    desk = desk_of()
    desk.coordinator.share.version = 0
    assert desk.heartbeat("m1", 0, ("orders",)).error_code == ErrorCode.UNSUPPORTED_VERSION
    assert desk.describe().error_code == ErrorCode.UNSUPPORTED_VERSION


def test_a_refusal_of_the_share_coordinator_is_tried_again() -> None:
    desk = desk_of(orders=1)
    desk.refusal = ErrorCode.COORDINATOR_NOT_AVAILABLE
    one = Sharer(desk, "m1")
    one.join()
    one.beat()
    assert one.has == {}
    desk.refusal = ErrorCode.NONE
    one.beat()
    one.beat()
    assert one.has == {"orders": [0]}


def test_an_answer_that_a_former_coordinator_awaited_is_asked_for_again() -> None:
    desk = desk_of(orders=1)
    desk.is_silent = True
    one = Sharer(desk, "m1")
    one.join()
    desk.asked.clear()
    desk.reload()
    desk.wait(29_999)
    one.beat()
    assert not desk.asked
    desk.wait(1)
    one.beat()
    assert len(desk.asked) == 1


def test_the_share_coordinator_is_not_asked_twice_at_once() -> None:
    """The later of two requests would undo what members acknowledge after the earlier."""
    desk = desk_of(orders=2)
    desk.is_silent = True
    one = Sharer(desk, "m1")
    one.join()
    (first,) = desk.asked
    desk.wait(30_000)
    one.beat()
    assert desk.asked == [first]
    desk.topics.change("orders", 3)
    one.beat()
    (_, second) = desk.asked
    (topic,) = second.request.topics  # type: ignore[union-attr]
    assert [row.partition for row in topic.partitions] == [2]
    desk.refusal = ErrorCode.NOT_COORDINATOR
    desk.answer_asked()
    desk.refusal = ErrorCode.NONE
    one.beat()
    (third,) = desk.asked
    assert [row.partition for row in third.request.topics[0].partitions] == [0, 1, 2]  # type: ignore[union-attr]


def test_new_partitions_come_and_deleted_topics_go() -> None:
    desk = desk_of(orders=1, audit=1)
    one = Sharer(desk, "m1", "orders", "audit")
    one.join()
    settle(one)
    desk.topics.change("orders", 3)
    settle(one)
    assert one.has == {"orders": [0, 1, 2], "audit": [0]}
    audit = desk.topics.topic_id("audit")
    assert audit is not None
    desk.topics.change("audit", None)
    desk.step(TopicsDeleted({"audit": audit}))
    desk.flush()
    settle(one)
    assert one.has == {"orders": [0, 1, 2]}
    (last,) = [
        record
        for record in desk.records()[-6:]
        if isinstance(record.key, ShareGroupStatePartitionMetadataKey)
    ]
    assert [topic.topic_name for topic in last.value.initialized_topics] == ["orders"]


def test_a_group_takes_no_more_members_than_it_may() -> None:
    desk = ShareDesk(GroupConfig(group_share_max_size=1), orders=1)
    Sharer(desk, "m1").join()
    assert Sharer(desk, "m1").join().error_code == 0
    refused = Sharer(desk, "m2").join()
    assert refused.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED


def test_a_groups_own_configs_count_within_the_brokers_bounds() -> None:
    desk = ShareDesk(orders=1)
    desk.topics.configs["g"] = {
        "share.heartbeat.interval.ms": "9000",
        "share.session.timeout.ms": "50000",
        "share.assignment.interval.ms": "0",
    }
    one = Sharer(desk, "m1")
    assert one.join().heartbeat_interval_ms == 9000
    settle(one)
    assert one.has == {"orders": [0]}
    desk.wait(49_999)
    assert desk.describe().group_state == "Stable"
    desk.wait(1)
    assert desk.describe().group_state == "Empty"
    desk.topics.configs["g"]["share.heartbeat.interval.ms"] = "1000"
    assert one.join().heartbeat_interval_ms == 5000


def test_the_brokers_interval_of_targets_may_change_while_it_runs__kip226() -> None:
    desk = ShareDesk(orders=2)
    one, two = Sharer(desk, "m1"), Sharer(desk, "m2")
    one.join()
    one.beat()
    assert one.has == {}  # what is initialized waits for the next target
    desk.topics.of_brokers["group.share.assignment.interval.ms"] = "0"
    one.beat()
    assert one.has == {"orders": [0, 1]}
    two.join()
    assert two.has


def test_a_large_share_group_is_assigned_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assigning, "AT_ONCE", 0)
    desk = desk_of(orders=6)
    members = [Sharer(desk, f"m{number}") for number in range(3)]
    for one in members:
        one.join()
    for _ in range(6):
        desk.wait(20)
        for one in members:
            one.beat()
    assert sorted(index for one in members for index in one.has["orders"]) == list(range(6))


def test_a_share_group_outlives_a_new_coordinator_and_the_age_of_offsets() -> None:
    desk = desk_of(orders=2)
    one = Sharer(desk, "m1")
    one.join()
    settle(one)
    before = desk.describe()
    desk.reload()
    assert desk.describe() == before
    count = len(desk.records())
    settle(one)
    assert len(desk.records()) == count
    desk.heartbeat("m1", -1)
    desk.wait(8 * 24 * 3600 * 1000)
    desk.reload()
    group = desk.describe()
    assert (group.group_state, group.group_epoch) == ("Empty", before.group_epoch + 1)
    assert [type(record.key) for record in desk.records()].count(ShareGroupMetadataKey) == 3


def test_a_heartbeat_that_could_not_be_written_is_taken_back() -> None:
    desk = desk_of(orders=1)
    desk.failure = ErrorCode.NOT_ENOUGH_REPLICAS
    assert Sharer(desk, "m1").join().error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert not desk.asked
    desk.failure = None
    assert desk.describe().error_code == ErrorCode.GROUP_ID_NOT_FOUND
    one = Sharer(desk, "m1")
    one.join()
    settle(one)
    assert one.has == {"orders": [0]}


@pytest.mark.parametrize(
    ("noted_ms", "is_asked"), [(1_000, False), (2_000, False), (999, True), (2_001, True), (9_999_999, True)]
)
def test_partitions_whose_answer_is_lost_are_initialized_again_whatever_the_clock(
    noted_ms: int, is_asked: bool
) -> None:
    """Noted before the clock went back, they would wait until it is that time again."""
    (shard,) = desk_of(orders=3).coordinator.shards.values()
    metadata = shard.state.metadata
    topic_id = metadata.topic_id("orders") or b""
    known = StatePartitions({topic_id: Named("orders", {0, 1, 2})}, noted_ms=noted_ms)
    assert bool(uninitialized(known, ["orders"], metadata, now_ms=2_000, retry_ms=1_001)) is is_asked
