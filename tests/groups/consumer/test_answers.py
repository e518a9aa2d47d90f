"""What heartbeats are answered, and what they write: whole ones, odd ones, and those that change nothing."""

from __future__ import annotations

from typing import Any

import pytest

from kraftd.acl import AclOperation, AclResourceType
from kraftd.groups.call import Call
from kraftd.groups.config import GroupConfig
from kraftd.groups.consumer import heartbeat as beats
from kraftd.groups.consumer.member import Member
from kraftd.groups.consumer.owners import MANY
from kraftd.groups.consumer.records import current_record, subscription_record
from kraftd.groups.events import PartitionElected, PartitionResigned
from kraftd.groups.state import ShardState
from kraftd.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from kraftd.messages.consumer_group_heartbeat_response import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from kraftd.messages.consumer_group_member_metadata_key import ConsumerGroupMemberMetadataKey
from kraftd.messages.consumer_group_member_metadata_value import ClassicMemberMetadata, ClassicProtocol
from kraftd.messages.consumer_group_partition_metadata_key import ConsumerGroupPartitionMetadataKey
from kraftd.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from kraftd.wire.error_code import ErrorCode
from tests.groups.consumer.members import (
    DESCRIBE,
    HEARTBEAT,
    REBALANCE_MS,
    Consumer,
    heartbeat,
    joining,
    partitions,
    settle,
)
from tests.groups.consumer.test_loading import RECORDS, loaded
from tests.groups.desk import Desk
from tests.groups.requests import members


def desk_of(**config: Any) -> Desk:
    return Desk(GroupConfig(group_consumer_assignment_interval_ms=0, **config), orders=4, audit=2)


def state_of(desk: Desk) -> ShardState:
    return desk.coordinator.shards[0].state


def refusal(desk: Desk, request: Any, version: int = HEARTBEAT) -> tuple[int, str | None]:
    answer = desk.ask(request, version)
    return answer.error_code, answer.error_message


@pytest.mark.parametrize(
    ("more", "tells"),
    [
        ({"topics": ("orders",), "rebalance_ms": REBALANCE_MS, "owned": {}}, True),
        ({"regex": "orders", "rebalance_ms": REBALANCE_MS, "owned": {}}, True),
        ({"regex": "", "rebalance_ms": REBALANCE_MS, "owned": {}}, True),
        ({"topics": ("orders",), "rebalance_ms": 1, "owned": {}}, True),
        ({"rebalance_ms": REBALANCE_MS, "owned": {}}, False),
        ({"topics": ("orders",), "owned": {}}, False),
        ({"topics": ("orders",), "rebalance_ms": REBALANCE_MS}, False),
        ({"regex": "", "rebalance_ms": REBALANCE_MS}, False),
        ({}, False),
    ],
)
def test_a_heartbeat_with_everything_is_answered_with_the_assignment(
    more: dict[str, Any], tells: bool
) -> None:
    desk = Desk()
    one = Consumer(desk.ask, "m1")
    one.join()
    request = heartbeat("m1", one.epoch, **more)
    answer = desk.ask(request, HEARTBEAT)
    assert (answer.error_code, answer.member_id, answer.member_epoch) == (0, "m1", 2)
    assert partitions(answer) == ({desk.topics.topic_id("orders"): [0, 1, 2, 3]} if tells else None)
    assert (desk.last_of(request) is None) is tells, "only answers without one are given again"


def member_row(desk: Desk, member_id: str = "m1") -> Any:
    (group,) = desk.ask(ConsumerGroupDescribeRequest(("g",)), DESCRIBE).groups
    return next(row for row in group.members if row.member_id == member_id)


def test_a_heartbeat_by_another_client_is_noted() -> None:
    desk = desk_of()
    one = Consumer(desk.ask, "m1")
    one.join()
    end = len(desk.records())
    desk.ask(heartbeat("m1", one.epoch), HEARTBEAT, "client")
    assert len(desk.records()) == end
    desk.ask(heartbeat("m1", one.epoch), HEARTBEAT, "other")
    assert (member_row(desk).client_id, member_row(desk).client_host) == ("other", "/127.0.0.1")
    assert [type(record.key) for record in desk.records()[end:]] == [ConsumerGroupMemberMetadataKey]


def test_a_member_whose_id_is_made_here_gets_it() -> None:
    desk = desk_of()
    answer = desk.ask(joining(""), 0)
    assert (answer.error_code, answer.member_id) == (0, "0001")
    assert member_row(desk, "0001").member_epoch == answer.member_epoch == 2


def test_a_member_that_gets_an_instance_id_later_stays_what_it_was() -> None:
    desk = desk_of()
    one = Consumer(desk.ask, "m1")
    one.join()
    answer = desk.ask(joining("m1", instance="i1"), HEARTBEAT)
    assert (answer.error_code, answer.member_epoch, member_row(desk).instance_id) == (0, 2, "i1")


def test_what_a_heartbeat_leaves_out_stays_as_it_was() -> None:
    desk = desk_of()
    one = Consumer(desk.ask, "m1", regex="au.*", assignor="range", instance="i1")
    one.join()
    desk.wait(10)
    one.beat()
    request = heartbeat("m1", one.epoch, instance="i1")
    request.rack_id = "r1"
    assert refusal(desk, request) == refusal(desk, heartbeat("m1", one.epoch, instance="i1")) == (0, None)
    row = member_row(desk)
    assert (row.rack_id, row.instance_id) == ("r1", "i1")
    assert (row.subscribed_topic_names, row.subscribed_topic_regex) == (("orders",), "au.*")
    member = state_of(desk).groups["g"].members["m1"]  # type: ignore[attr-defined]
    assert (member.rebalance_timeout_ms, member.assignor) == (REBALANCE_MS, "range")
    changed = heartbeat("m1", member.epoch, instance="i1", topics=(), regex="", rebalance_ms=7, owned={})
    desk.ask(changed, HEARTBEAT)
    member = state_of(desk).groups["g"].members["m1"]  # type: ignore[attr-defined]
    assert (member.rebalance_timeout_ms, member.topics, member.regex) == (7, frozenset(), "")


def test_refusals_have_their_reasons() -> None:
    desk = desk_of(group_consumer_max_size=2)
    one = Consumer(desk.ask, "m1", instance="i1")
    one.join()
    for name in ("m1", "m2"):
        desk.ask(joining(name, group="full"), HEARTBEAT)
    desk.ask(ShareGroupHeartbeatRequest("share", "m1", 0, None, ("orders",)), 1)
    members(desk, 1, "classic")
    greater, smaller = (
        f"The consumer group member has a {how} than the one known by the group coordinator (2). "
        "The member must abandon all its partitions and rejoin."
        for how in ("greater member epoch (9)", "smaller member epoch (1)")
    )
    unreleased = "instance id i1 cannot join the group because the instance id is owned by m1 member."
    fenced = "Static member m9 with instance id i1 was fenced by member m1."
    not_member = "Member m9 is not a member of group g."
    not_found, full = ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.GROUP_MAX_SIZE_REACHED
    table: list[tuple[Any, ErrorCode, str]] = [
        (
            joining("m3", group="full"),
            full,
            "The consumer group has reached its maximum capacity of 2 members.",
        ),
        (heartbeat("m1", 9, instance="i1"), ErrorCode.FENCED_MEMBER_EPOCH, greater),
        (heartbeat("m1", 1, instance="i1"), ErrorCode.FENCED_MEMBER_EPOCH, smaller),
        (heartbeat("m1", 9), ErrorCode.FENCED_MEMBER_EPOCH, greater),
        (
            joining("m2", instance="i1"),
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member m2 with {unreleased}",
        ),
        (heartbeat("m9", 3, instance="i1"), ErrorCode.FENCED_INSTANCE_ID, fenced),
        (heartbeat("m9", -1, instance="i1"), ErrorCode.FENCED_INSTANCE_ID, fenced),
        (heartbeat("m9", -1, instance="i9"), ErrorCode.UNKNOWN_MEMBER_ID, "Instance id i9 is unknown."),
        (heartbeat("m9", -1), ErrorCode.UNKNOWN_MEMBER_ID, not_member),
        (heartbeat("m9", 3), ErrorCode.UNKNOWN_MEMBER_ID, not_member),
        (heartbeat("m9", 3, group="none"), not_found, "Consumer group none not found."),
        (heartbeat("m9", -1, group="none"), not_found, "Group none not found."),
        (joining("m9", group="share"), not_found, "Group share is not a consumer group."),
        (heartbeat("m9", 3, group="classic"), not_found, "Group classic is not a consumer group."),
        (heartbeat("m9", -1, group="classic"), not_found, "Group classic is not a consumer group."),
    ]
    assert [refusal(desk, request) for request, _, _ in table] == [(code, text) for _, code, text in table]


@pytest.mark.parametrize(
    ("protocols", "version", "is_served"),
    [
        (["classic"], 1, False),
        (["classic", "Consumer"], 1, True),
        (["consumer"], 2, True),
        (["consumer"], 0, False),
    ],
)
def test_configs_and_the_feature_decide_whether_there_are_consumer_groups(
    protocols: list[str], version: int, is_served: bool
) -> None:
    desk = desk_of(group_coordinator_rebalance_protocols=protocols)
    desk.coordinator.group_version = version
    code = 0 if is_served else ErrorCode.UNSUPPORTED_VERSION
    assert refusal(desk, joining("m1")) == (code, None)


def test_a_member_names_only_topics_that_it_may_describe() -> None:
    desk = desk_of()

    def allows(operation: AclOperation, kind: AclResourceType, name: str) -> bool:
        assert operation is (AclOperation.READ if kind is AclResourceType.GROUP else AclOperation.DESCRIBE)
        return name != "audit"

    def answer(request: Any) -> tuple[int, str | None]:
        desk.calls += 1
        call = Call(desk.calls, HEARTBEAT, "client", "/127.0.0.1", allows)
        desk.perform(desk.coordinator.handle(call, request, desk.now_ms))
        desk.flush()
        found: Any = desk.answers[call.token]
        return found.error_code, found.error_message

    denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED, None
    assert answer(joining("m1", ("orders", "audit"))) == denied
    assert answer(joining("m1", group="audit")) == (ErrorCode.GROUP_AUTHORIZATION_FAILED, None)
    assert answer(joining("m1")) == (0, None)


def test_members_wait_for_no_others_in_a_shard_that_does_not_serve() -> None:
    desk = Desk(orders=4)
    desk.coordinator.step(PartitionResigned(0), desk.now_ms)
    number = desk.send(joining("m1"), HEARTBEAT)
    assert desk.answers[number] == ConsumerGroupHeartbeatResponse(error_code=ErrorCode.NOT_COORDINATOR)
    desk.coordinator.step(PartitionElected(0, 2, 0, 1), desk.now_ms)  # its log is read
    number = desk.send(joining("m1"), HEARTBEAT)
    loading = ConsumerGroupHeartbeatResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    assert desk.answers[number] == loading


def test_hashes_of_topics_are_looked_up_only_after_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = desk_of()
    one = Consumer(desk.ask, "m1")
    one.join()
    settle(one)
    asked: list[str] = []
    find = desk.topics.topic_hash

    def topic_hash(name: str) -> int | None:
        asked.append(name)
        return find(name)

    monkeypatch.setattr(desk.topics, "topic_hash", topic_hash)
    one.beat()
    assert asked == []
    desk.topics.change("unrelated", 1)
    for _ in range(2):
        one.beat()
        assert asked == ["orders"]
    state_of(desk).hashing.add("g")  # a hash of very many topics is on its way
    desk.topics.change("orders", 6)
    one.beat()
    assert asked == ["orders"] and one.count() == 4
    state_of(desk).hashing.clear()
    one.beat()
    assert one.count() == 6


def test_each_new_epoch_is_counted_as_a_rebalance() -> None:
    desk = desk_of()
    one = Consumer(desk.ask, "m1")
    counts = desk.coordinator.counts
    before = counts.consumer_rebalances
    one.join()
    settle(one)
    assert counts.consumer_rebalances == before + 1
    desk.topics.change("orders", 5)
    settle(one)
    assert counts.consumer_rebalances == before + 2


def test_what_releases_before_4_1_kept_of_topics_goes_with_the_next_epoch__kip848() -> None:
    desk, group = loaded(RECORDS)
    assert group.facts.has_partition_metadata
    end = len(desk.records())
    for name, count in (("m3", 1), ("m4", 0)):
        desk.ask(joining(name), HEARTBEAT)
        keys = [record.key for record in desk.records()[end:] if record.value is None]
        assert keys == [ConsumerGroupPartitionMetadataKey("g")] * count
        assert not group.facts.has_partition_metadata
        end = len(desk.records())


@pytest.mark.parametrize(("name", "instance"), [("c", None), ("c", "i"), ("new", "i")])
def test_a_classic_member_that_joins_by_heartbeat_is_one_of_the_new_protocol(
    name: str, instance: str | None
) -> None:
    classic = ClassicMemberMetadata(45_000, [ClassicProtocol("range", b"")])
    member = Member("c", epoch=4, instance_id=instance, topics=frozenset(("orders",)), classic=classic)
    desk, _ = loaded([*RECORDS, subscription_record("g", member), current_record("g", member)])
    assert member_row(desk, "c").member_type == 0
    assert refusal(desk, joining(name, instance=instance)) == (0, None)
    assert member_row(desk, name).member_type == 1


@pytest.mark.parametrize(("count", "many"), [(None, False), (0, False), (MANY, False), (MANY + 1, True)])
def test_answers_of_very_many_partitions_are_encoded_in_a_step_of_their_own(
    count: int | None, many: bool
) -> None:
    rows = [TopicPartitions(bytes([number]) * 16, tuple(range(number, count or 0, 2))) for number in (0, 1)]
    assignment = None if count is None else Assignment(rows)
    assert beats.has_many(ConsumerGroupHeartbeatResponse(assignment=assignment)) is many
