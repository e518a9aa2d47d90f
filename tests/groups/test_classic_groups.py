"""Classic groups, scene by scene."""

from __future__ import annotations

import pytest

from kraftd.groups.classic.group import ClassicGroup
from kraftd.groups.classic.states import TRANSITIONS, ClassicState
from kraftd.groups.config import GroupConfig
from kraftd.messages.describe_groups_request import DescribeGroupsRequest
from kraftd.messages.list_groups_request import ListGroupsRequest
from kraftd.wire.error_code import ErrorCode
from tests.groups.desk import Desk
from tests.groups.requests import (
    BEAT,
    JOIN,
    LEAVE,
    SYNC,
    beat,
    join,
    leave,
    member_id,
    members,
    settle,
    stable_group,
    sync,
)


def group_of(desk: Desk, name: str = "g") -> ClassicGroup:
    group = desk.coordinator.shards[0].state.groups[name]
    assert isinstance(group, ClassicGroup)
    return group


def test_a_first_join_is_given_a_member_id__kip394() -> None:
    desk = Desk()
    first = desk.ask(join(), JOIN, "app")
    assert first.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert first.member_id == "app-0001"
    assert desk.ask(join(), 3 + 1).error_code == ErrorCode.MEMBER_ID_REQUIRED
    old = desk.send(join("old"), 3)
    assert old not in desk.answers, "before KIP-394 the member waits at once"


def test_the_first_rebalance_waits_for_more_members__kip134() -> None:
    desk = Desk()
    one, two = member_id(desk), member_id(desk)
    first = desk.send(join(member=one), JOIN)
    desk.wait(2_999)
    second = desk.send(join(member=two), JOIN)
    desk.wait(1)
    assert first not in desk.answers, "a member came meanwhile: the delay begins again"
    desk.wait(3_000)
    assert desk.answers[first].generation_id == desk.answers[second].generation_id == 1
    assert len(desk.answers[first].members) + len(desk.answers[second].members) == 2


def test_members_get_what_the_leader_assigns() -> None:
    desk = Desk()
    leader, other = members(desk, 2)
    waiting = desk.send(sync(1, other), SYNC)
    assert waiting not in desk.answers
    settle(desk, [leader, other])
    assert desk.ask(sync(1, other), SYNC).assignment == other.encode()
    assert desk.ask(beat(1, other), BEAT).error_code == 0


def test_an_assignment_is_answered_once_it_is_committed() -> None:
    desk = Desk()
    (leader,) = members(desk, 1)
    desk.is_held = True
    call = desk.send(sync(1, leader, {leader: b"x"}), SYNC)
    assert call not in desk.answers
    assert group_of(desk).state is ClassicState.COMPLETING_REBALANCE
    desk.release()
    assert desk.answers[call].assignment == b"x"
    assert group_of(desk).state is ClassicState.STABLE


def test_an_assignment_that_cannot_be_written_leads_to_a_rebalance() -> None:
    desk = Desk()
    leader, other = members(desk, 2)
    waiting = desk.send(sync(1, other), SYNC)
    desk.failure = ErrorCode.NOT_ENOUGH_REPLICAS
    assert desk.ask(sync(1, leader), SYNC).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert desk.answers[waiting].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert group_of(desk).state is ClassicState.PREPARING_REBALANCE


def test_a_member_that_joins_rebalances_the_group() -> None:
    desk = Desk()
    leader, other = stable_group(desk, 2)
    third = member_id(desk)
    joining = desk.send(join(member=third), JOIN)
    assert desk.ask(beat(1, leader), BEAT).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    calls = [desk.send(join(member=name), JOIN) for name in (leader, other)]
    assert {desk.answers[call].generation_id for call in [joining, *calls]} == {2}
    assert desk.ask(beat(1, leader), BEAT).error_code == ErrorCode.ILLEGAL_GENERATION


def test_a_member_without_heartbeats_is_removed() -> None:
    desk = Desk()
    leader, other = stable_group(desk, 2)
    desk.wait(9_000)
    desk.ask(beat(1, leader), BEAT)
    desk.wait(1_001)
    assert desk.ask(beat(1, other), BEAT).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert desk.ask(beat(1, leader), BEAT).error_code == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_member_that_does_not_rejoin_in_time_is_removed() -> None:
    desk = Desk()
    leader, other = stable_group(desk, 2)
    rejoining = desk.send(join(member=leader), JOIN)
    for _ in range(12):
        desk.wait(5_000)
        desk.ask(beat(1, other), BEAT)
    assert desk.answers[rejoining].generation_id == 2
    assert list(group_of(desk).members) == [leader]


def test_a_member_that_does_not_sync_in_time_is_removed() -> None:
    desk = Desk()
    leader, other = members(desk, 2)
    waiting = desk.send(sync(1, leader, {}), SYNC)
    assert desk.answers[waiting].error_code == 0
    for _ in range(13):
        desk.wait(5_000)
        for name in (leader, other):
            desk.ask(beat(1, name), BEAT)
    assert list(group_of(desk).members) == [leader]


def test_when_the_leader_leaves_another_member_leads() -> None:
    desk = Desk()
    leader, other = stable_group(desk, 2)
    left = desk.ask(leave((leader, None)), LEAVE)
    assert [row.error_code for row in left.members] == [0]
    answer = desk.ask(join(member=other), JOIN)
    assert (answer.generation_id, answer.leader) == (2, other)
    assert len(answer.members) == 1


def test_the_last_member_leaves_the_group_empty() -> None:
    desk = Desk()
    (leader,) = stable_group(desk, 1)
    desk.ask(leave((leader, None)), LEAVE)
    assert group_of(desk).state is ClassicState.EMPTY
    assert desk.records()[-1].value.generation == 2


def test_a_static_member_that_restarts_keeps_its_assignment__kip345() -> None:
    desk = Desk()
    first = desk.send(join(instance="i1"), JOIN)
    desk.wait(3_000)
    old = desk.answers[first].member_id
    desk.ask(sync(1, old, {old: b"mine"}), SYNC)
    back = desk.ask(join(instance="i1"), JOIN)
    assert (back.error_code, back.generation_id, back.leader) == (0, 1, back.member_id)
    assert back.skip_assignment, "KIP-814: it leads and must not assign anew"
    assert desk.ask(sync(1, back.member_id), SYNC).assignment == b"mine"
    assert desk.ask(beat(1, old, "i1"), BEAT).error_code == ErrorCode.FENCED_INSTANCE_ID
    older = desk.ask(join(instance="i1"), 8)
    assert (older.leader, older.members, older.skip_assignment) == (back.member_id, [], False)


def test_a_static_member_whose_record_is_not_written_keeps_its_old_id__kip345() -> None:
    desk = Desk()
    first = desk.send(join(instance="i1"), JOIN)
    desk.wait(3_000)
    old = desk.answers[first].member_id
    desk.ask(sync(1, old, {old: b"mine"}), SYNC)
    desk.failure = ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert desk.ask(join(instance="i1"), JOIN).error_code == ErrorCode.NOT_COORDINATOR
    desk.failure = None
    assert desk.ask(beat(1, old, "i1"), BEAT).error_code == 0


def test_an_operator_removes_static_members_by_instance_id__kip345() -> None:
    desk = Desk()
    first = desk.send(join(instance="i1"), JOIN)
    desk.wait(3_000)
    assert first in desk.answers
    rows = desk.ask(leave(("", "i1"), ("", "i2"), ("nobody", None)), LEAVE).members
    assert [row.error_code for row in rows] == [0, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.UNKNOWN_MEMBER_ID]


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (join(session_ms=5_999), ErrorCode.INVALID_SESSION_TIMEOUT),
        (join(session_ms=1_800_001), ErrorCode.INVALID_SESSION_TIMEOUT),
        (join(""), ErrorCode.INVALID_GROUP_ID),
        (join(member="stranger"), ErrorCode.UNKNOWN_MEMBER_ID),
        (join(kind=""), ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        (join(protocols=()), ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    ],
)
def test_a_join_that_cannot_be_is_refused(request_: object, error: ErrorCode) -> None:
    assert Desk().ask(request_, JOIN).error_code == error  # type: ignore[arg-type]


def test_members_agree_on_one_protocol() -> None:
    desk = Desk()
    first = desk.send(join(protocols=("sticky", "range")), 3)
    desk.wait(1)
    second = desk.send(join(protocols=("range", "sticky")), 3)
    third = desk.send(join(protocols=("range", "sticky")), 3)
    assert desk.ask(join(protocols=("other",)), 3).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    desk.wait(6_000)
    assert {desk.answers[call].protocol_name for call in (first, second, third)} == {"range"}


def test_a_full_group_refuses_more_members() -> None:
    desk = Desk(GroupConfig(group_max_size=1))
    (leader,) = stable_group(desk, 1)
    assert desk.ask(join(), JOIN).error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert desk.ask(beat(1, leader), BEAT).error_code == 0


def test_members_that_need_too_much_memory_are_refused() -> None:
    desk = Desk(GroupConfig(members_max_bytes=10_000))
    big = desk.ask(join(metadata=bytes(10_000)), JOIN)
    assert big.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    names = stable_group(desk, 2)
    for name in names:
        desk.ask(leave((name, None)), LEAVE)
    assert desk.coordinator.memory.used_bytes == 0


def test_groups_are_listed_by_state_and_type() -> None:
    desk = Desk()
    stable_group(desk, 1, "one")
    members(desk, 1, "two")
    every = {row.group_id: row.group_state for row in desk.ask(ListGroupsRequest(), 5).groups}
    assert every == {"one": "Stable", "two": "CompletingRebalance"}
    stable = desk.ask(ListGroupsRequest((" STABLE",), ("Classic",)), 5).groups
    assert [row.group_id for row in stable] == ["one"]
    assert desk.ask(ListGroupsRequest((), ("share",)), 5).groups == []


def test_a_group_is_described_with_its_members() -> None:
    desk = Desk()
    (leader,) = stable_group(desk, 1)
    one, missing = desk.ask(DescribeGroupsRequest(("g", "none")), 6).groups
    assert (one.group_state, one.protocol_data) == ("Stable", "range")
    assert [(row.member_id, row.member_assignment) for row in one.members] == [(leader, leader.encode())]
    assert (missing.error_code, missing.group_state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")
    assert desk.ask(DescribeGroupsRequest(("none",)), 5).groups[0].error_code == 0


def test_a_loaded_group_goes_on() -> None:
    desk = Desk()
    leader, other = stable_group(desk, 2)
    desk.reload()
    assert desk.ask(beat(1, leader), BEAT).error_code == 0
    assert desk.ask(sync(1, other), SYNC).assignment == other.encode()
    desk.wait(10_001)
    assert group_of(desk).state is ClassicState.EMPTY, "the session timeouts of a loaded group run"


def test_every_state_follows_only_as_the_table_allows() -> None:
    memory = Desk().coordinator.memory
    for state in ClassicState:
        for following in ClassicState:
            group = ClassicGroup("g", state, 0, memory)
            if following in TRANSITIONS[state]:
                group.transition_to(following, 1)
                assert (group.previous_state, group.state, group.state_since_ms) == (state, following, 1)
            else:
                with pytest.raises(AssertionError):
                    group.transition_to(following, 1)
