"""How members go and come back, which deadlines they leave behind, and which epochs are taken of them."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kraftd.ground.refusal import Refusal
from kraftd.groups.classic.group import ClassicGroup
from kraftd.groups.config import GroupConfig
from kraftd.groups.consumer.fencing import JOIN, REBALANCE, SESSION, SYNC
from kraftd.groups.consumer.group import ConsumerGroup, preferred_assignor
from kraftd.groups.consumer.member import Member, MemberState
from kraftd.groups.consumer.records import Resolved, current_record, member_tombstones
from kraftd.groups.consumer.replay import of_group
from kraftd.groups.consumer.sessions import await_rejoining, await_sync, forget_sync, watch_revocation
from kraftd.groups.modern_group import BY_ONE_REGEX
from kraftd.groups.records import UnreadableRecord
from kraftd.groups.state import ShardState
from kraftd.groups.timeline import Timeline
from kraftd.messages.consumer_group_current_member_assignment_value import (
    ConsumerGroupCurrentMemberAssignmentValue,
)
from kraftd.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from kraftd.messages.consumer_group_member_metadata_key import ConsumerGroupMemberMetadataKey
from kraftd.messages.consumer_group_member_metadata_value import ClassicMemberMetadata
from kraftd.wire.error_code import ErrorCode
from tests.groups.consumer.members import DESCRIBE, HEARTBEAT, Consumer, heartbeat
from tests.groups.consumer.test_loading import FIRST, ORDERS, RECORDS, loaded
from tests.groups.desk import Desk
from tests.groups.requests import COMMIT, commit, fetched
from tests.groups.requests import members as classic_members

NONE: Any = None
KINDS = (SESSION, REBALANCE, JOIN, SYNC)


def state_of(desk: Desk) -> ShardState:
    return desk.coordinator.shards[0].state


def described(desk: Desk) -> Any:
    (group,) = desk.ask(ConsumerGroupDescribeRequest(("g",)), DESCRIBE).groups
    return group


def test_a_member_that_leaves_raises_the_epoch_by_one_and_leaves_no_deadline() -> None:
    desk = Desk(GroupConfig(group_consumer_assignment_interval_ms=0), orders=4, audit=2)
    first, second = Consumer(desk.ask, "m1"), Consumer(desk.ask, "m2")
    first.join()
    second.join()
    first.beat()  # it is to give something up
    state = state_of(desk)
    for kind in (JOIN, SYNC):
        state.deadlines.schedule((kind, "g", "m1"), desk.now_ms + 1_000, NONE)
    assert all((kind, "g", "m1") in state.deadlines for kind in KINDS)
    before = described(desk).group_epoch
    assert (first.leave().member_epoch, described(desk).group_epoch) == (-1, before + 1)
    assert not any((kind, "g", "m1") in state.deadlines for kind in KINDS)
    assert (SESSION, "g", "m2") in state.deadlines


def test_a_static_member_that_is_away_has_its_partitions_since_epoch_0__kip848() -> None:
    desk = Desk(orders=4)
    static = Consumer(desk.ask, "m1", instance="i1")
    static.join()
    answer = static.leave(-2)
    assert (answer.member_id, answer.member_epoch, answer.error_code) == ("m1", -2, 0)
    away = desk.records()[-1].value
    assert isinstance(away, ConsumerGroupCurrentMemberAssignmentValue)
    ((orders,), state, epoch) = away.assigned_partitions, away.state, away.member_epoch
    assert (orders.partitions, orders.assignment_epochs, state, epoch) == ((0, 1, 2, 3), (0,) * 4, 0, -2)


def test_a_member_that_has_given_up_a_topic_in_its_epoch_is_not_fenced_for_it() -> None:
    """Its subscription has changed, and no other target is due for as long as the deadline would take."""
    desk = Desk(GroupConfig(group_consumer_assignment_interval_ms=15_000), orders=4, audit=2)
    desk.topics.configs["g"] = {"consumer.assignment.interval.ms": "15000"}
    one = Consumer(desk.ask, "m1", topics=("orders", "audit"))
    one.join()
    audit, epoch = desk.topics.topic_id("audit") or b"", one.epoch
    request = heartbeat("m1", epoch, topics=("orders",), owned=one.has, rebalance_ms=20_000)
    one.take(desk.ask(request, HEARTBEAT))
    state, key = state_of(desk), (REBALANCE, "g", "m1")
    assert key in state.deadlines and audit not in one.has
    one.beat()
    assert one.epoch == epoch and key not in state.deadlines


def test_a_member_that_has_gone_on_to_another_epoch_is_not_fenced_for_the_former_one() -> None:
    desk, group = loaded([*RECORDS, current_record("g", FIRST)])
    state = state_of(desk)
    for name, epoch in (("m1", 3), ("m2", 2)):
        member = replace(group.members[name], rebalance_timeout_ms=20_000)
        watch_revocation(state, (REBALANCE, "g", name), replace(member, epoch=epoch))
    desk.wait(20_000)
    assert list(group.members) == ["m2"]


CLASSIC = Member("c", rebalance_timeout_ms=20_000, classic=ClassicMemberMetadata(45_000, []))


def test_a_classic_member_has_its_timeouts_for_joining_again_and_for_sync() -> None:
    desk = Desk()
    group = ConsumerGroup("g", state_of(desk).timeline)
    state_of(desk).timeline.put(state_of(desk).groups, "g", group)
    for name in ("c", "d"):
        group.put(replace(CLASSIC, member_id=name))
    group.put(Member("m"))
    state = state_of(desk)
    state.now_ms = desk.now_ms
    await_rejoining(state, "g", CLASSIC)
    state.now_ms += 5_000
    await_rejoining(state, "g", CLASSIC)  # from the first notice on
    assert state.deadlines.next_ms() == desk.now_ms + 20_000
    await_sync(state, "g", "c", 7_000)
    assert (JOIN, "g", "c") not in state.deadlines
    assert state.deadlines.next_ms() == desk.now_ms + 12_000
    await_sync(state, "g", "d", 7_000)
    forget_sync(state, "g", "d")
    desk.wait(11_999)
    assert list(group.members) == ["c", "d", "m"]
    desk.wait(1)
    assert list(group.members) == ["d", "m"]
    desk.wait(100_000)
    assert list(group.members) == ["d", "m"]


# Records that end something


def test_a_member_whose_assignment_is_removed_has_nothing_and_has_left() -> None:
    """Its own record is removed with it, or was before."""
    tombstone = member_tombstones("g", "m1")[0]
    _, group = loaded([*RECORDS, tombstone, member_tombstones("g", "m9")[0]])
    left = replace(FIRST, epoch=-1, previous_epoch=-1, state=MemberState.STABLE, assigned={}, revoking={})
    assert group.members["m1"] == left
    assert list(group.members) == ["m1", "m2"]
    assert group.owners.few == {ORDERS: {3: "m2"}}


def test_targets_that_are_removed_are_none() -> None:
    _, group = loaded([*RECORDS, member_tombstones("g", "m1")[1]])
    assert group.targets == {"m2": {ORDERS: {2, 3}}}
    group.replay_target_epoch(NONE, None)
    assert (group.facts.target_epoch, group.facts.target_ms) == (-1, 0)


def test_partitions_without_epochs_of_a_member_that_is_away_have_epoch_0() -> None:
    record = current_record("g", replace(FIRST, epoch=-2))
    value: Any = record.value
    for row in (*value.assigned_partitions, *value.partitions_pending_revocation):
        row.assignment_epochs = None
    member = loaded([*RECORDS[:-3], record])[1].members["m1"]
    assert (member.epoch, member.assigned, member.revoking) == (-2, {ORDERS: {0: 0, 1: 0}}, {ORDERS: {2: 0}})


def test_records_make_the_groups_that_are_missing_and_tombstones_none() -> None:
    desk, seen = Desk(), []
    state = state_of(desk)
    replay = of_group(lambda group, key, value: seen.append((group.group_id, key.member_id, value)))
    key, value = ConsumerGroupMemberMetadataKey("new", "m1"), current_record("g", FIRST).value
    replay(state, key, None, 0, -1)
    assert "new" not in state.groups and seen == []
    replay(state, key, value, 0, -1)
    assert isinstance(state.groups["new"], ConsumerGroup) and seen == [("new", "m1", value)]
    replay(state, key, None, 0, -1)
    assert seen.pop() == ("new", "m1", None)
    classic_members(desk, 1)
    other = ConsumerGroupMemberMetadataKey("g", "m1")
    replay(state, other, None, 0, -1)
    assert isinstance(state.groups["g"], ClassicGroup) and len(seen) == 1
    with pytest.raises(UnreadableRecord) as unreadable:
        replay(state, other, value, 0, -1)
    assert str(unreadable.value) == "a record of consumer group g, which is classic"


# Epochs


ANY = object()


@pytest.mark.parametrize(
    ("member_id", "epoch", "is_latest", "code"),
    [
        ("a", 6, True, None),
        ("a", 5, False, None),
        ("a", 5, True, ErrorCode.STALE_MEMBER_EPOCH),
        ("a", 6, False, ErrorCode.STALE_MEMBER_EPOCH),
        ("new", 6, True, None),
        ("new", 6, False, ErrorCode.UNKNOWN_MEMBER_ID),
        (None, -1, True, None),
        (None, 0, True, ErrorCode.UNKNOWN_SERVER_ERROR),
        (None, 6, False, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_offsets_are_fetched_in_the_epoch_of_now_or_of_the_high_watermark(
    member_id: str | None, epoch: int, is_latest: bool, code: ErrorCode | None
) -> None:
    group = ConsumerGroup("g", Timeline())
    group.put(Member("a", epoch=5))
    group.timeline.offset = 1
    group.timeline.commit(1)
    group.timeline.offset = 2
    for name in ("a", "new"):
        group.put(Member(name, epoch=6))
    if code is None:
        group.check_fetch(member_id, epoch, is_latest=is_latest)
        return
    with pytest.raises(Refusal) as refused:
        group.check_fetch(member_id, epoch, is_latest=is_latest)
    assert refused.value.code is code


@pytest.mark.parametrize(
    ("commit", "code"),
    [
        (("", None, -1, False, 9), None),
        (("x", None, -2, False, 9), None),
        (("", None, 0, False, 9), ErrorCode.UNKNOWN_MEMBER_ID),
        (("", None, -1, True, 3), None),
        (("x", None, 0, True, 3), ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_an_empty_group_takes_commits_of_those_that_are_no_members(
    commit: Any, code: ErrorCode | None
) -> None:
    check_commit(ConsumerGroup("g", Timeline()), commit, code)


@pytest.mark.parametrize(
    ("commit", "code"),
    [
        (("", None, -1, False, 9), ErrorCode.UNKNOWN_MEMBER_ID),
        (("", None, -1, True, 3), None),
        (("a", None, -1, True, 3), ANY),
        (("", "i", -1, True, 3), ErrorCode.UNKNOWN_MEMBER_ID),
        (("", None, -2, True, 3), ErrorCode.UNKNOWN_MEMBER_ID),
        (("", None, 5, True, 3), ErrorCode.UNKNOWN_MEMBER_ID),
        (("a", None, 5, True, 3), None),
        (("a", None, 5, False, 9), None),
        (("a", None, 5, False, 8), ErrorCode.UNSUPPORTED_VERSION),
        (("c", None, 5, False, 8), None),
        (("a", None, 6, False, 9), ErrorCode.STALE_MEMBER_EPOCH),
        (("c", None, 6, False, 9), ErrorCode.ILLEGAL_GENERATION),
        (("a", None, 4, False, 9), ANY),
    ],
)
def test_a_group_takes_commits_of_its_members_and_of_transactions_without_one(
    commit: Any, code: ErrorCode | None
) -> None:
    """ANY: by partition, and none of these is the member's."""
    group = ConsumerGroup("g", Timeline())
    group.put(Member("a", epoch=5))
    group.put(replace(CLASSIC, epoch=5))
    check_commit(group, commit, code)


def check_commit(group: ConsumerGroup, commit: Any, code: Any) -> None:
    if code is None:
        assert group.check_commit(*commit) is None
        return
    with pytest.raises(Refusal) as refused:
        each: Any = group.check_commit(*commit)
        assert code is ANY
        each(ORDERS, 0)
    assert refused.value.code is (ErrorCode.STALE_MEMBER_EPOCH if code is ANY else code)


# What is counted


def test_members_agree_anew_once_another_one_has_gone() -> None:
    group = ConsumerGroup("g", Timeline())
    group.put(Member("a", topics=frozenset(("orders",))))
    group.put(Member("b", regex="au.*"))
    group.set_resolved("au.*", Resolved(frozenset(("audit",)), 1, 0))
    assert not group.is_homogeneous()
    group.remove("none")
    group.set_resolved("au.*", None)
    group.remove("b")
    assert group.is_homogeneous()
    group.put(Member("a", regex="au.*"))
    group.put(Member("b", regex="au.*"))
    group.set_subscribers("audit", BY_ONE_REGEX)
    assert group.is_homogeneous()
    assert group.is_subscribed_to("audit") and not group.is_subscribed_to("orders")


def test_topics_of_one_pattern_share_what_is_noted_of_them() -> None:
    group = ConsumerGroup("g", Timeline())
    group.put(Member("a", topics=frozenset(("audit",)), regex="a.*"))
    group.set_resolved("a.*", Resolved(frozenset(("audit", "all")), 1, 0))
    assert group.topics == {"audit": (1, 1), "all": (0, 1)} and group.topics["all"] is BY_ONE_REGEX
    group.set_resolved("al.*", Resolved(frozenset(("all",)), 1, 0))
    assert group.topics["all"] == (0, 2)
    group.set_resolved("a.*", Resolved(frozenset(("other",)), 2, 0))
    assert group.topics == {"audit": (1, 0), "all": (0, 1), "other": (0, 1)}


def test_the_preferred_assignor_of_one_member_is_that_of_the_rest() -> None:
    assert preferred_assignor({"range": 1, "uniform": 2}, old="uniform") == "uniform"
    assert preferred_assignor({"range": 1, "uniform": 1}, old="uniform") == "range"


def test_a_group_shows_its_state_with_what_is_not_committed() -> None:
    desk, group = loaded(RECORDS)
    assert repr(group) == "<ConsumerGroup g Reconciling epoch 4, target 4, 2 members>"
    assert repr(group.members["m2"]) == "<Member m2 STABLE epoch 3, 1 partitions>"
    desk.is_held = True
    desk.send(heartbeat("m2", -1), HEARTBEAT)
    assert (group.state_now(), group.state_name()) == ("Assigning", "Reconciling")


def test_offsets_of_topics_that_no_member_reads_expire_by_their_commit__kip211() -> None:
    desk = Desk(GroupConfig(offsets_retention_minutes=15), orders=4, audit=2)
    Consumer(desk.ask, "m1").join()
    one = described(desk).members[0]
    for topic in ("orders", "audit"):
        answer = desk.ask(commit(5, one.member_epoch, "m1", topic=topic), COMMIT)
        assert answer.topics[0].partitions[0].error_code == 0
    for _ in range(40):
        desk.wait(40_000)
        assert desk.ask(heartbeat("m1", one.member_epoch), HEARTBEAT).error_code == 0
    assert (fetched(desk), fetched(desk, topic="audit")) == (5, -1)
