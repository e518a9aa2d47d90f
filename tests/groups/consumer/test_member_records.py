"""The records of members, what each keeps of the others, and the timings of groups."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kraftd.groups.config import GroupConfig
from kraftd.groups.consumer import settings
from kraftd.groups.consumer.group import ConsumerGroup
from kraftd.groups.consumer.member import Member, MemberState
from kraftd.groups.consumer.records import current_record, subscription_record
from kraftd.messages.consumer_group_member_metadata_value import ClassicMemberMetadata, ClassicProtocol
from tests.groups.consumer.members import HEARTBEAT, Consumer, heartbeat, joining
from tests.groups.consumer.test_loading import loaded
from tests.groups.desk import Desk, KnownTopics

ORDERS = b"orders".rjust(16, b"\1")
WHOLE = Member(
    "m1",
    epoch=7,
    previous_epoch=6,
    state=MemberState.UNREVOKED_PARTITIONS,
    instance_id="i1",
    rack_id="r1",
    rebalance_timeout_ms=9_000,
    client_id="c1",
    client_host="/h1",
    topics=frozenset(("orders", "audit")),
    regex="o.*",
    assignor="range",
    assigned={ORDERS: {0: 5, 1: 7}},
    revoking={ORDERS: {2: 4}},
    classic=ClassicMemberMetadata(45_000, [ClassicProtocol("range", b"\0")]),
)


def test_each_record_of_a_member_leaves_what_the_other_has() -> None:
    _, group = loaded([subscription_record("g", WHOLE), current_record("g", WHOLE)])
    assert group.members == {"m1": WHOLE}
    other = Member("m1", epoch=8, previous_epoch=7, topics=frozenset(("new",)), client_id="c2")
    _, group = loaded(
        [*(subscription_record("g", WHOLE), current_record("g", WHOLE)), current_record("g", other)]
    )
    expected = replace(WHOLE, epoch=8, previous_epoch=7, state=MemberState.STABLE, assigned={}, revoking={})
    assert group.members == {"m1": expected}
    _, group = loaded(
        [*(subscription_record("g", WHOLE), current_record("g", WHOLE)), subscription_record("g", other)]
    )
    kept = {
        name: getattr(WHOLE, name) for name in ("epoch", "previous_epoch", "state", "assigned", "revoking")
    }
    assert group.members == {"m1": replace(other, **kept)}


def test_a_record_of_what_a_member_has_is_enough_to_make_it() -> None:
    _, group = loaded([current_record("g", WHOLE)])
    named = Member("m1", epoch=7, previous_epoch=6, state=WHOLE.state)
    assert group.members == {"m1": replace(named, assigned=WHOLE.assigned, revoking=WHOLE.revoking)}


@pytest.mark.parametrize(
    ("number", "state"), [(2, MemberState.UNRELEASED_PARTITIONS), (9, MemberState.UNKNOWN)]
)
def test_a_state_of_a_newer_release_is_unknown(number: int, state: MemberState) -> None:
    record = current_record("g", WHOLE)
    record.value.state = number  # type: ignore[union-attr]
    assert loaded([record])[1].members["m1"].state is state


def test_a_static_member_that_leaves_for_a_while_has_nothing_to_give_up() -> None:
    member = replace(WHOLE, classic=None)
    desk, group = loaded([subscription_record("g", member), current_record("g", member)])
    assert desk.ask(heartbeat("m1", -2, instance="i1"), HEARTBEAT).error_code == 0
    away = replace(member, epoch=-2, assigned={ORDERS: {0: 0, 1: 0}}, revoking={})
    assert group.members == {"m1": away} and group.owners.few == {ORDERS: {0: "m1", 1: "m1"}}


def written(desk: Desk, since: int) -> list[tuple[str, Any]]:
    """The kinds of records with their values' epochs, None for tombstones."""
    rows = []
    for record in desk.records()[since:]:
        kind = type(record.key).__name__.removeprefix("ConsumerGroup").removesuffix("Key")
        value = record.value
        epochs = value and (getattr(value, "member_epoch", ""), getattr(value, "previous_member_epoch", ""))
        rows.append((f"{kind} {getattr(record.key, 'member_id', '')}".strip(), epochs))
    return rows


def test_a_successor_takes_a_static_members_place_by_kafkas_records() -> None:
    desk = Desk(GroupConfig(group_consumer_assignment_interval_ms=0), orders=4)
    former = Consumer(desk.ask, "s1", instance="i1")
    former.join()
    desk.topics.change("orders", 5)
    former.beat()
    former.leave(-2)
    since = len(desk.records())
    assert desk.ask(joining("s2", instance="i1"), HEARTBEAT).member_epoch == 3
    other = ("", "")
    assert written(desk, since) == [
        ("CurrentMemberAssignment s1", None),
        ("TargetAssignmentMember s1", None),
        ("MemberMetadata s1", None),
        ("MemberMetadata s2", other),
        ("TargetAssignmentMember s2", other),
        ("CurrentMemberAssignment s2", (0, 0)),
        ("CurrentMemberAssignment s2", (3, 0)),
    ]
    group = desk.coordinator.shards[0].state.groups["g"]
    assert isinstance(group, ConsumerGroup)
    assert group.members["s2"].assigned == {ORDERS: dict.fromkeys(range(5), 0)}
    assert group.targets == {"s2": {ORDERS: set(range(5))}} and group.static_members == {"i1": "s2"}


@pytest.mark.parametrize(
    ("epoch", "instance", "removed"), [(-1, None, True), (-1, "i1", True), (-2, "i1", False)]
)
def test_a_member_that_leaves_is_answered_with_its_id_and_the_epoch_of_leaving(
    epoch: int, instance: str | None, removed: bool
) -> None:
    desk = Desk(orders=4)
    one = Consumer(desk.ask, "m1", instance=instance)
    one.join()
    since = len(desk.records())
    answer = one.leave(epoch)
    assert (answer.error_code, answer.member_id, answer.member_epoch) == (0, "m1", epoch)
    assert (answer.heartbeat_interval_ms, answer.assignment, answer.error_message) == (0, None, None)
    expected = [
        ("CurrentMemberAssignment m1", None),
        ("TargetAssignmentMember m1", None),
        ("MemberMetadata m1", None),
        ("Metadata", ("", "")),
    ]
    assert written(desk, since) == (expected if removed else [("CurrentMemberAssignment m1", (-2, 0))])


def test_a_member_that_prefers_another_assignor_does_not_count_for_its_former_one() -> None:
    desk = Desk(GroupConfig(group_consumer_assignment_interval_ms=0), orders=3, audit=3)
    members = [Consumer(desk.ask, f"m{n}", topics=("orders", "audit"), assignor="range") for n in range(2)]
    for one in members:
        one.join()
    state = desk.coordinator.shards[0].state
    group = state.groups["g"]
    assert isinstance(group, ConsumerGroup)

    def sizes() -> list[int]:
        return sorted(sum(map(len, rows.values())) for rows in group.targets.values())

    assert sizes() == [2, 4]  # of each topic, the first one gets one more
    topics = ("orders", "audit", "none")
    desk.ask(heartbeat("m0", members[0].epoch, topics=topics, assignor="uniform"), HEARTBEAT)
    assert group.assignors == {"range": 1, "uniform": 1} and sizes() == [3, 3]


OWN = {"consumer.session.timeout.ms": "50000", "consumer.heartbeat.interval.ms": "7000"}


@pytest.mark.parametrize(
    ("own", "session_ms", "heartbeat_ms"),
    [
        ({}, 46_000, 6_000),
        (OWN, 50_000, 7_000),
        (dict.fromkeys(OWN, "1"), 45_000, 5_000),
        (dict.fromkeys(OWN, "99999"), 60_000, 15_000),
        (dict.fromkeys(OWN, "5001"), 45_000, 5_001),
    ],
)
def test_a_groups_own_timings_count_within_the_brokers_bounds(
    own: dict[str, str], session_ms: int, heartbeat_ms: int
) -> None:
    config = GroupConfig(group_consumer_session_timeout_ms=46_000, group_consumer_heartbeat_interval_ms=6_000)
    assert settings.session_timeout_ms(config, own) == session_ms
    assert settings.heartbeat_interval_ms(config, own) == heartbeat_ms
    desk = Desk(config, orders=4)
    desk.topics.configs["g"] = own
    assert desk.ask(joining("m1"), HEARTBEAT).heartbeat_interval_ms == heartbeat_ms
    group = desk.coordinator.shards[0].state.groups["g"]
    desk.wait(session_ms - 1)
    assert not group.is_empty()
    desk.wait(1)
    assert group.is_empty()


@pytest.mark.parametrize(
    ("of_broker", "own", "expected"),
    [
        (None, None, 900),
        ("700", None, 700),
        ("700", "800", 800),
        (None, "800", 800),
        ("1", None, 100),
        ("99999", None, 1_000),
        ("700", "99999", 1_000),
        ("700", "1", 100),
    ],
)
def test_the_interval_of_targets_is_the_groups_or_the_brokers_of_now(
    of_broker: str | None, own: str | None, expected: int
) -> None:
    config = GroupConfig(
        group_consumer_assignment_interval_ms=900,
        group_consumer_min_assignment_interval_ms=100,
        group_consumer_max_assignment_interval_ms=1_000,
    )
    topics = KnownTopics(orders=1)
    key = "consumer.assignment.interval.ms"
    if of_broker is not None:
        topics.of_brokers[f"group.{key}"] = of_broker
    if own is not None:
        topics.configs["g"] = {key: own}
    assert settings.assignment_interval_ms(config, topics, "g") == expected
