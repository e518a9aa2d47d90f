"""ConsumerGroupHeartbeat: joining, moving towards a target, leaving, and being fenced."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kraftd.groups import assigning
from kraftd.groups.config import GroupConfig
from kraftd.groups.consumer import patterns
from kraftd.groups.consumer.group import ConsumerGroup
from kraftd.messages.consumer_group_current_member_assignment_key import (
    ConsumerGroupCurrentMemberAssignmentKey,
)
from kraftd.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from kraftd.messages.consumer_group_metadata_key import ConsumerGroupMetadataKey
from kraftd.messages.list_groups_request import ListGroupsRequest
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
from tests.groups.desk import Desk
from tests.groups.requests import COMMIT, JOIN, LEAVE, commit, fetched, join, leave, members

SESSION_MS = 45_000


def desk_of(**config: Any) -> Desk:
    return Desk(GroupConfig(group_consumer_assignment_interval_ms=0, **config), orders=4, audit=2)


def consumers(desk: Desk, *names: str, **subscription: Any) -> list[Consumer]:
    joined = [Consumer(desk.ask, name, **subscription) for name in names]
    for one in joined:
        assert one.join().error_code == 0
    settle(*joined)
    return joined


def described(desk: Desk, group: str = "g") -> Any:
    return desk.ask(ConsumerGroupDescribeRequest((group,)), DESCRIBE).groups[0]


def refused(desk: Desk, request: Any, version: int = HEARTBEAT) -> int:
    code: int = desk.ask(request, version).error_code
    return code


def test_the_first_member_gets_everything_at_once() -> None:
    desk = desk_of()
    answer = desk.ask(joining("m1"), HEARTBEAT)
    assert answer.member_epoch == 2 and answer.heartbeat_interval_ms == 5000
    assert partitions(answer) == {desk.topics.topic_id("orders"): [0, 1, 2, 3]}
    group = described(desk)
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Stable", 2, 2)
    assert group.assignor_name == "uniform" and group.members[0].member_type == 1
    (listed,) = desk.ask(ListGroupsRequest(types_filter=("consumer",)), 5).groups
    assert (listed.group_id, listed.protocol_type, listed.group_state) == ("g", "consumer", "Stable")
    assert listed.group_type == "consumer"


def test_a_partition_is_given_up_before_another_member_gets_it() -> None:
    desk = desk_of()
    first, second = Consumer(desk.ask, "m1"), Consumer(desk.ask, "m2")
    first.join()
    assert partitions(second.join()) == {}
    assert described(desk).group_state == "Reconciling"
    kept = partitions(first.beat())
    assert kept is not None and sum(map(len, kept.values())) == 2
    assert first.epoch == 2 and second.beat().assignment is None
    first.beat()  # reports only what it has kept
    assert first.epoch == 3
    assert partitions(second.beat()) is not None and second.count() == 2
    assert described(desk).group_state == "Stable"


def test_a_heartbeat_that_reports_nothing_gives_nothing_up() -> None:
    desk = desk_of()
    first, second = Consumer(desk.ask, "m1"), Consumer(desk.ask, "m2")
    first.join()
    second.join()
    first.beat()
    desk.ask(heartbeat("m1", first.epoch), HEARTBEAT)
    second.beat()
    assert second.count() == 0


def test_members_that_leave_or_fall_silent_make_room() -> None:
    desk = desk_of()
    first, second = consumers(desk, "m1", "m2")
    assert second.leave().member_epoch == -1
    settle(first)
    assert first.count() == 4
    third = Consumer(desk.ask, "m3")
    third.join()
    desk.wait(SESSION_MS - 1)
    settle(first, third)
    desk.wait(SESSION_MS - 1)
    third.beat()
    desk.wait(1)
    assert [member.member_id for member in described(desk).members] == ["m3"]
    assert refused(desk, heartbeat("m1", first.epoch)) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_does_not_give_up_partitions_in_time_is_fenced() -> None:
    desk = desk_of()
    first, second = Consumer(desk.ask, "m1"), Consumer(desk.ask, "m2")
    first.join()
    second.join()
    held = dict(first.has)
    first.beat()
    for _ in range(REBALANCE_MS // 10_000):
        desk.wait(10_000)
        second.beat()
        request = heartbeat("m1", first.epoch, owned=held)
        error = desk.ask(request, HEARTBEAT).error_code
    assert error == ErrorCode.UNKNOWN_MEMBER_ID
    settle(second)
    assert second.count() == 4


def test_a_silent_member_is_fenced_again_if_that_could_not_be_written() -> None:
    desk = desk_of()
    consumers(desk, "m1")
    desk.failure = ErrorCode.NOT_ENOUGH_REPLICAS
    desk.wait(SESSION_MS + 10_000)
    assert [member.member_id for member in described(desk).members] == ["m1"]
    desk.failure = None
    desk.wait(500)
    assert described(desk).group_state == "Empty"


@pytest.mark.parametrize("by_heartbeat", [True, False])
def test_a_member_whose_leaving_could_not_be_written_goes_once_it_can_be(by_heartbeat: bool) -> None:
    desk = desk_of()
    one, two = consumers(desk, "m1", "m2")
    desk.failure = ErrorCode.NOT_ENOUGH_REPLICAS
    if by_heartbeat:
        answers = [member.leave() for member in (one, two)]
    else:
        answers = [desk.ask(leave(("m1", None), ("m2", None)), LEAVE)]
    assert {one.error_code for one in answers} == {ErrorCode.COORDINATOR_NOT_AVAILABLE}
    desk.failure = None
    assert two.beat().error_code == 0  # it stays after all
    desk.wait(500)
    assert [member.member_id for member in described(desk).members] == ["m2"]


def test_a_member_that_was_not_fenced_after_all_goes_on_if_it_is_heard() -> None:
    desk = desk_of()
    (first,) = consumers(desk, "m1")
    desk.failure = ErrorCode.NOT_ENOUGH_REPLICAS
    desk.wait(SESSION_MS)
    desk.failure = None
    first.beat()
    desk.wait(SESSION_MS - 1)
    assert described(desk).group_state == "Stable"
    desk.wait(1)
    assert described(desk).group_state == "Empty"


def test_partitions_that_are_not_given_up_are_taken_once_that_can_be_written() -> None:
    desk = desk_of()
    first, second = Consumer(desk.ask, "m1"), Consumer(desk.ask, "m2")
    first.join()
    second.join()
    held = dict(first.has)
    first.beat()
    for waited in range(REBALANCE_MS // 10_000 + 1):
        desk.failure = ErrorCode.NOT_ENOUGH_REPLICAS if waited * 10_000 == REBALANCE_MS - 10_000 else None
        desk.wait(10_000)
        desk.failure = None
        if waited * 10_000 < REBALANCE_MS:
            second.beat()
            assert refused(desk, heartbeat("m1", first.epoch, owned=held)) == 0
    assert refused(desk, heartbeat("m1", first.epoch, owned=held)) == ErrorCode.UNKNOWN_MEMBER_ID


def test_epochs_that_a_member_was_not_told_are_fenced() -> None:
    desk = desk_of()
    first, _ = consumers(desk, "m1", "m2")
    assert first.epoch == 3
    assert refused(desk, heartbeat("m1", 4)) == ErrorCode.FENCED_MEMBER_EPOCH
    assert refused(desk, heartbeat("m1", 2)) == ErrorCode.FENCED_MEMBER_EPOCH
    assert refused(desk, heartbeat("m1", 2, owned=first.has)) == 0  # the answer to the last one was lost
    assert refused(desk, heartbeat("m1", 2, owned={})) == 0
    audit = desk.topics.topic_id("audit") or b""
    assert refused(desk, heartbeat("m1", 2, owned={audit: []})) == ErrorCode.FENCED_MEMBER_EPOCH
    assert refused(desk, heartbeat("m1", 1, owned=first.has)) == ErrorCode.FENCED_MEMBER_EPOCH
    assert refused(desk, heartbeat("m9", 1)) == ErrorCode.UNKNOWN_MEMBER_ID
    assert refused(desk, heartbeat("m1", 1, group="none")) == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_static_member_keeps_its_partitions_while_it_is_away() -> None:
    desk = desk_of()
    static, other = consumers(desk, "m1", "m2", instance=None)
    static.leave()
    static = Consumer(desk.ask, "s1", instance="i1")
    static.join()
    settle(static, other)
    had = dict(static.has)
    assert refused(desk, joining("s2", instance="i1")) == ErrorCode.UNRELEASED_INSTANCE_ID
    assert static.leave(-2).member_epoch == -2
    settle(other)
    assert other.count() == 2
    successor = Consumer(desk.ask, "s2", instance="i1")
    assert successor.join().error_code == 0
    assert successor.has == had
    settle(successor, other)
    assert refused(desk, heartbeat("s1", 3, instance="i1")) == ErrorCode.FENCED_INSTANCE_ID
    assert refused(desk, heartbeat("s1", 3, instance="i9")) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_former_instance_id_is_refused_once_its_member_has_gone__as_kafka() -> None:
    """A member that joins anew under another instance id keeps both: no record takes the former away."""
    desk = desk_of()
    for instance in ("i1", "i2"):
        one = Consumer(desk.ask, "m1", instance=instance)
        one.join()
    assert refused(desk, joining("m2", instance="i1")) == ErrorCode.UNRELEASED_INSTANCE_ID
    one.leave()
    answer = desk.ask(joining("m2", instance="i1"), HEARTBEAT)
    assert answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert answer.error_message == "Member m1 is not a member of group g."
    assert refused(desk, joining("m2", instance="i2")) == 0


@pytest.mark.parametrize("names", [("stranger", "member-3"), ("member-3", "stranger")])
def test_members_of_one_bucket_are_served_in_the_order_of_kafkas_table(names: tuple[str, str]) -> None:
    """These two share a bucket of Kafka's map. Its table gives `stranger` last in either case."""
    desk = Desk(GroupConfig(group_consumer_assignment_interval_ms=0), orders=3)
    first, second, other = consumers(desk, *names, "other")
    assert [first.count(), second.count(), other.count()] == [1, 1, 1]
    other.leave()
    settle(first, second)
    assert {one.member_id: one.count() for one in (first, second)} == {"stranger": 2, "member-3": 1}


def test_a_table_of_members_makes_room_for_one_more_whenever_one_is_put_into_it() -> None:
    """Kafka's grows for the sixth when the fifth is replaced. These two then part, and have another order."""
    desk = desk_of()
    consumers(desk, "member-0", "member-38", "a", "b")
    group = desk.coordinator.shards[0].state.groups["g"]
    assert isinstance(group, ConsumerGroup)
    ids = group.member_ids()
    assert ids.index("member-38") < ids.index("member-0")
    (last,) = consumers(desk, "c")
    last.leave()
    ids = group.member_ids()
    assert ids.index("member-0") < ids.index("member-38")


def test_new_partitions_and_topics_raise_the_epoch() -> None:
    desk = desk_of()
    (first,) = consumers(desk, "m1", topics=("orders", "later"))
    desk.topics.change("orders", 6)
    settle(first)
    assert first.count() == 6
    desk.topics.change("later", 1)
    settle(first)
    assert first.count() == 7
    epoch = described(desk).group_epoch
    desk.topics.change("unrelated", 1)
    settle(first)
    assert described(desk).group_epoch == epoch


def test_many_patterns_are_matched_together_as_each_alone__kip848(monkeypatch: pytest.MonkeyPatch) -> None:
    regexes = [f"topic-{number}[0-9]?" for number in range(20)]
    regexes += ["(", "a\\.b", "(?i)A.*", ".*-1", "", "topic"]
    names = [*(f"topic-{number}" for number in range(0, 60, 3)), "a.b", "topic", "topic-1", "other", ""]
    together = patterns.Matcher(regexes)
    assert together.together is not None
    monkeypatch.setattr(patterns, "SEVERAL", 1000)
    alone = patterns.Matcher(regexes)
    for name in names:
        assert sorted(together.matching(name)) == sorted(alone.matching(name))
    assert together.matching("a.b") == ["a\\.b", "(?i)A.*"]
    assert together.names_a_slice() > alone.names_a_slice()
    together.together = SimpleNamespace(Match=lambda name: [])  # it had no memory for this name
    assert together.matching("a.b") == ["a\\.b", "(?i)A.*"]
    monkeypatch.setattr(patterns, "SEVERAL", 0)
    monkeypatch.setattr(patterns, "MAX_TOGETHER_BYTES", 1)
    assert patterns.Matcher(regexes).matching("topic-1") == alone.matching("topic-1")


def test_a_member_subscribes_by_a_pattern() -> None:
    desk = desk_of()
    one = Consumer(desk.ask, "m1", topics=None, regex="o.*|au")
    one.join()
    assert one.count() == 0
    desk.wait(10)
    settle(one)
    assert one.count() == 4  # the whole name must match
    desk.topics.change("other", 2)
    desk.wait(10_010)
    one.beat()
    desk.wait(10)
    settle(one)
    assert one.count() == 6
    assert refused(desk, joining("m2", None, regex="(")) == ErrorCode.INVALID_REGULAR_EXPRESSION


def test_a_member_without_a_subscription_does_not_change_who_agrees__kip848() -> None:
    """It joins before the target that a pattern's topics call for: as in Kafka, it has a part in it."""
    desk = desk_of()
    Consumer(desk.ask, "m1", topics=None, regex="orders").join()
    desk.wait(10)
    desk.topics.change("unrelated", 1)
    two = Consumer(desk.ask, "m2", topics=(), regex="")
    two.join()
    rows = {member.member_id: member for member in described(desk).members}
    targets = {name: row.target_assignment.topic_partitions for name, row in rows.items()}
    assert [len(topic.partitions) for name in ("m1", "m2") for topic in targets[name]] == [2, 2]
    assert two.count() == 0  # it takes nothing of what it is not subscribed to


def test_members_agree_as_they_did_before_a_pattern_went_with_its_last_member() -> None:
    desk = desk_of()
    Consumer(desk.ask, "m1").join()
    two = Consumer(desk.ask, "m2", topics=None, regex="audit")
    two.join()
    desk.wait(10)
    two.leave()
    group = desk.coordinator.shards[0].state.groups["g"]
    assert isinstance(group, ConsumerGroup)
    assert set(group.topics) == {"orders"}
    assert not group.is_homogeneous()  # as in Kafka: its pattern's tombstone comes after the member's
    group.put(group.members["m1"])
    assert group.is_homogeneous()


def test_a_member_without_a_subscription_gets_no_part_of_a_changed_topic() -> None:
    desk = desk_of()
    stays, goes = Consumer(desk.ask, "m1"), Consumer(desk.ask, "m2")
    for one in (stays, goes):
        one.join()
    settle(stays, goes)
    desk.topics.change("orders", 6)
    goes.leave()  # its record has the hash of the topics as they are now
    Consumer(desk.ask, "m3", topics=()).join()
    settle(stays)
    assert stays.count() == 6


def test_a_member_that_gives_up_an_empty_subscription_has_no_former_epoch__kip848() -> None:
    """As in Kafka, which writes that although the member loses nothing."""
    desk = Desk(GroupConfig(group_consumer_assignment_interval_ms=10_000))
    one = Consumer(desk.ask, "m1", topics=("none",))
    one.join()
    ends = []
    for topics in (("others",), ()):  # before another target is due
        assert desk.ask(heartbeat("m1", one.epoch, topics=topics), HEARTBEAT).member_epoch == one.epoch
        ends.append(desk.records()[-1])
    assert isinstance(ends[0].key, ConsumerGroupMetadataKey)
    assert isinstance(ends[1].key, ConsumerGroupCurrentMemberAssignmentKey)
    assert (ends[1].value.member_epoch, ends[1].value.previous_member_epoch) == (one.epoch, one.epoch)


def test_requests_that_are_not_valid_are_refused() -> None:
    desk = desk_of(group_consumer_max_size=1)
    invalid = [
        joining(""),
        joining("m", group=""),
        joining("m", instance=""),
        joining(" \0\x1f"),
        heartbeat("m", 0, topics=("orders",), owned={}),
        heartbeat("m", 0, topics=("orders",), rebalance_ms=1),
        heartbeat("m", 0, owned={}, rebalance_ms=1),
        heartbeat("m", -3),
        heartbeat("m", -2),
    ]
    assert [refused(desk, request) for request in invalid] == [ErrorCode.INVALID_REQUEST] * len(invalid)
    unknown = desk.ask(joining("m", assignor="best"), HEARTBEAT)
    assert unknown.error_code == ErrorCode.UNSUPPORTED_ASSIGNOR
    assert unknown.error_message.endswith("Supported assignors: uniform, range.")
    assert refused(desk, joining("\u2003", group="blank")) == 0  # a blank, but none of Java's trim
    assert refused(desk, joining("", group="h"), 0) == 0  # before version 1 this side makes the id
    consumers(desk, "m1")
    assert refused(desk, joining("m2")) == ErrorCode.GROUP_MAX_SIZE_REACHED


def test_the_feature_decides_whether_there_are_consumer_groups() -> None:
    desk = desk_of()
    desk.coordinator.group_version = 0
    assert refused(desk, joining("m1")) == ErrorCode.UNSUPPORTED_VERSION
    assert described(desk).error_code == ErrorCode.UNSUPPORTED_VERSION


def test_groups_without_members_change_their_kind() -> None:
    desk = desk_of(group_consumer_migration_policy="disabled")
    members(desk, 1)
    assert refused(desk, joining("m1")) == ErrorCode.GROUP_ID_NOT_FOUND
    desk.wait(SESSION_MS)
    desk.ask(commit(7, group="g"), COMMIT)
    (one,) = consumers(desk, "m1")
    assert fetched(desk) == 7
    assert desk.ask(join(), JOIN).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    one.leave()
    assert desk.ask(join(), JOIN).error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert [row.group_type for row in desk.ask(ListGroupsRequest(), 5).groups] == ["classic"]
    desk.reload()
    assert [row.group_type for row in desk.ask(ListGroupsRequest(), 5).groups] == ["classic"]
    assert fetched(desk) == 7


def test_the_next_broker_goes_on_where_this_one_was() -> None:
    desk = desk_of()
    first, second = consumers(desk, "m1", "m2")
    before = described(desk)
    desk.reload()
    assert described(desk) == before
    settle(first, second)
    assert described(desk) == before
    desk.reload()
    desk.wait(SESSION_MS)
    assert described(desk).group_state == "Empty"


def test_own_configs_of_a_group_count_within_the_brokers_bounds() -> None:
    desk = desk_of()
    desk.topics.configs["g"] = {"consumer.heartbeat.interval.ms": "7000", "consumer.session.timeout.ms": "1"}
    assert desk.ask(joining("m1"), HEARTBEAT).heartbeat_interval_ms == 7000
    desk.wait(SESSION_MS - 1)
    assert len(described(desk).members) == 1
    desk.wait(1)
    assert described(desk).members == []


def test_targets_are_not_computed_more_often_than_the_interval() -> None:
    desk = Desk(GroupConfig(group_consumer_assignment_interval_ms=1000), orders=4)
    first = Consumer(desk.ask, "m1")
    first.join()
    second = Consumer(desk.ask, "m2")
    second.join()
    assert described(desk).group_state == "Assigning"
    desk.wait(1000)
    settle(first, second)
    assert first.count() == second.count() == 2


def test_the_brokers_interval_of_targets_may_change_while_it_runs__kip226() -> None:
    desk = Desk(GroupConfig(), orders=4)
    Consumer(desk.ask, "m1").join()
    desk.topics.of_brokers["group.consumer.assignment.interval.ms"] = "0"
    Consumer(desk.ask, "m2").join()
    assert described(desk).group_state == "Reconciling"
    desk.topics.configs["g"] = {"consumer.assignment.interval.ms": "1000"}  # of the group: it counts more
    Consumer(desk.ask, "m3").join()
    assert described(desk).group_state == "Assigning"


def test_a_target_of_a_clock_that_was_ahead_does_not_hold_up_the_next_one() -> None:
    desk = Desk(GroupConfig(group_consumer_assignment_interval_ms=1000), orders=4)
    first, second = Consumer(desk.ask, "m1"), Consumer(desk.ask, "m2")
    first.join()
    desk.now_ms -= 3_600_000  # another broker coordinates the group now
    second.join()
    settle(first, second)
    assert first.count() == second.count() == 2


def test_a_large_group_is_assigned_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assigning, "AT_ONCE", 0)
    monkeypatch.setattr(assigning, "RECORDS_A_SLICE", 2)
    desk = desk_of()
    joined = [Consumer(desk.ask, f"m{number}") for number in range(7)]
    for one in joined:
        one.join()
    for _ in range(10):
        desk.wait(50)
        for one in joined:
            assert one.beat().error_code == 0
    assert sorted(one.count() for one in joined) == [0, 0, 0, 1, 1, 1, 1]
    assert described(desk).group_state == "Stable"


def test_a_heartbeat_whose_records_are_not_written_changes_nothing() -> None:
    desk = desk_of()
    (first,) = consumers(desk, "m1")
    before = described(desk)
    desk.failure = ErrorCode.NOT_ENOUGH_REPLICAS
    assert refused(desk, joining("m2")) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    desk.failure = None
    assert described(desk) == before
    settle(first)
    assert described(desk) == before
