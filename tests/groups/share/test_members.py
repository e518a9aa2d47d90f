"""What members of share groups say of themselves, and what a heartbeat tells them and others (KIP-932)."""

from __future__ import annotations

from typing import Any

import pytest

from kraftd.ground.refusal import Refusal
from kraftd.groups import assigning
from kraftd.groups.call import Call
from kraftd.groups.config import GroupConfig
from kraftd.groups.share import target
from kraftd.groups.share.group import ShareGroup
from kraftd.groups.share.heartbeat import plan_of
from kraftd.groups.share.sessions import SESSION
from kraftd.messages.share_group_describe_request import ShareGroupDescribeRequest
from kraftd.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from kraftd.wire.error_code import ErrorCode
from tests.groups.consumer.random_groups import counted
from tests.groups.share.members import ShareDesk, Sharer, desk_of, settle

SESSION_MS = 45_000
INTERVAL_MS = 60_000


def slow_desk(**topics: int) -> ShareDesk:
    """A minute passes between two targets."""
    return ShareDesk(
        GroupConfig(
            group_share_assignment_interval_ms=INTERVAL_MS, group_share_max_assignment_interval_ms=INTERVAL_MS
        ),
        **topics,
    )


def group_of(desk: ShareDesk) -> ShareGroup:
    group = desk.coordinator.shards[0].state.groups["g"]
    assert isinstance(group, ShareGroup)
    return group


@pytest.mark.parametrize("at_once", [True, False])
def test_members_with_one_subscription_divide_all_topics_together(
    at_once: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not at_once:
        monkeypatch.setattr(assigning, "AT_ONCE", 0)
    desk = desk_of(orders=1, audit=1, other=1)
    members = [Sharer(desk, name, "orders", "audit") for name in ("m1", "m2")]
    for _ in range(4):
        for one in members:
            one.beat() if one.epoch else one.join()
            desk.wait(20)
    assert sorted(topic for one in members for topic in one.has) == ["audit", "orders"]
    third = Sharer(desk, "m3", "orders")
    third.join()
    for _ in range(4):
        desk.wait(20)
        for one in (third, *members):
            one.beat()
    assert third.has == {"orders": [0]}
    assert [one.has for one in members] == [{"orders": [0], "audit": [0]}] * 2  # topic by topic


def test_a_member_is_described_as_its_heartbeats_describe_it() -> None:
    desk = desk_of(orders=1)

    def beat(epoch: int, rack: str | None, client: str) -> Any:
        names = ("orders",) if epoch == 0 else None
        return desk.ask(ShareGroupHeartbeatRequest("g", "m", epoch, rack, names), 1, client)

    def shown() -> tuple[Any, ...]:
        (one,) = desk.describe().members
        return one.member_id, one.rack_id, one.client_id, one.client_host, one.subscribed_topic_names

    epoch = beat(0, "r1", "c1").member_epoch
    assert shown() == ("m", "r1", "c1", "/127.0.0.1", ("orders",))
    epoch = beat(epoch, None, "c1").member_epoch
    assert shown()[1] == "r1"
    count = len(desk.records())
    beat(epoch, "r2", "c2")
    assert shown() == ("m", "r2", "c2", "/127.0.0.1", ("orders",))
    assert len(desk.records()) == count + 1
    desk.reload()
    assert shown() == ("m", "r2", "c2", "/127.0.0.1", ("orders",))


def test_a_full_request_is_answered_with_the_assignment_and_others_with_changes() -> None:
    desk = desk_of(orders=1)
    desk.is_silent = True
    joined = desk.heartbeat("m", 0, ("orders",))
    assert joined.assignment is not None and joined.assignment.topic_partitions == []
    assert desk.heartbeat("m", joined.member_epoch).assignment is None
    desk.answer_asked()
    changed = desk.heartbeat("m", joined.member_epoch)
    (row,) = changed.assignment.topic_partitions
    assert (row.topic_id, row.partitions) == (desk.topics.topic_id("orders"), (0,))
    assert (changed.member_id, changed.member_epoch) == ("m", joined.member_epoch + 1)
    assert desk.heartbeat("m", changed.member_epoch).assignment is None
    for epoch in (0, changed.member_epoch):
        again = desk.heartbeat("m", epoch, ("orders",))
        assert again.assignment == changed.assignment
        assert again.member_epoch == changed.member_epoch


def test_each_new_epoch_counts_as_a_rebalance() -> None:
    desk = desk_of(orders=1)
    one, two = Sharer(desk, "m1"), Sharer(desk, "m2")
    one.join()
    settle(one)
    counts = desk.coordinator.counts
    assert counts.share_rebalances == desk.describe().group_epoch - 1 == 2
    two.join()
    settle(one, two)
    assert counts.share_rebalances == desk.describe().group_epoch - 1 == 3


def test_topics_are_compared_once_after_each_change_of_the_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = desk_of(orders=1)
    one, two = Sharer(desk, "m1"), Sharer(desk, "m2")
    one.join(), two.join()
    settle(one, two)
    hashed: list[str] = []
    monkeypatch.setattr(desk.topics, "topic_hash", lambda name: hashed.append(name) or 7)
    settle(one, two)
    assert hashed == []
    desk.topics.image_version += 1
    state = desk.coordinator.shards[0].state
    state.hashing.add("g")  # another heartbeat has begun to compare very many
    one.beat()
    assert hashed == []
    state.hashing.clear()
    epoch = desk.describe().group_epoch
    one.beat(), two.beat()
    assert hashed == ["orders"]
    assert desk.describe().group_epoch == epoch + 1


def test_a_subscription_that_shrinks_takes_partitions_away_before_the_next_target() -> None:
    desk = slow_desk(orders=2, audit=1)
    one = Sharer(desk, "m1", "orders", "audit")
    one.join()
    desk.wait(INTERVAL_MS // 2)
    one.beat()
    desk.wait(INTERVAL_MS // 2)
    one.beat()
    assert one.has == {"orders": [0, 1], "audit": [0]}
    epoch = one.epoch
    one.take(desk.heartbeat("m1", epoch, ("audit",)))
    assert (one.epoch, one.has) == (epoch, {"audit": [0]})
    one.take(desk.heartbeat("m1", epoch, ("audit", "orders")))
    assert (one.epoch, one.has) == (epoch, {"orders": [0, 1], "audit": [0]})


def test_a_deleted_topic_stays_with_other_members_until_the_next_target() -> None:
    desk = slow_desk(orders=1, audit=1)
    desk.topics.configs["g"] = {"share.assignment.interval.ms": "0"}
    one, two = (Sharer(desk, name, "orders", "audit") for name in ("m1", "m2"))
    one.join(), two.join()
    settle(one, two)
    desk.topics.configs.clear()
    (other,) = two.has
    desk.topics.change(other, None)
    one.beat()
    epoch = two.epoch
    assert two.beat().assignment is None
    assert (two.epoch, two.has) == (epoch, {other: [0]})
    desk.wait(SESSION_MS - 1)
    one.beat(), two.beat()
    desk.wait(INTERVAL_MS - SESSION_MS + 1)
    settle(one, two)
    assert two.epoch > epoch
    rest = "audit" if other == "orders" else "orders"
    assert [one.has, two.has] == [{rest: [0]}] * 2


def test_topics_of_a_member_that_has_left_are_no_longer_those_of_the_group() -> None:
    desk = desk_of(orders=1, audit=1)
    one, two = Sharer(desk, "m1", "orders"), Sharer(desk, "m2", "orders", "audit")
    one.join(), two.join()
    settle(one, two)
    assert [group_of(desk).is_subscribed_to(topic) for topic in ("orders", "audit")] == [True, True]
    desk.heartbeat("m2", -1)
    assert [group_of(desk).is_subscribed_to(topic) for topic in ("orders", "audit")] == [True, False]
    settle(one)
    count, epoch = len(desk.records()), one.epoch
    desk.topics.change("audit", 3)
    settle(one)
    assert (len(desk.records()), one.epoch) == (count, epoch)
    assert (SESSION, "g", "m2") not in desk.coordinator.shards[0].state.deadlines


def test_a_group_has_no_offsets_of_its_own() -> None:
    desk = desk_of(orders=1)
    Sharer(desk, "m1").join()
    group = group_of(desk)
    for check in (
        lambda: group.check_commit("m1", None, 1, False, 9),
        lambda: group.check_fetch("m1", 1, is_latest=True),
        group.check_offset_delete,
    ):
        with pytest.raises(Refusal) as refused:
            check()
        assert refused.value.code == ErrorCode.GROUP_ID_NOT_FOUND
        assert refused.value.message == "Group g is not a consumer group."


def test_a_full_group_names_its_capacity() -> None:
    desk = ShareDesk(GroupConfig(group_share_max_size=2), orders=1)
    for name in ("m1", "m2"):
        assert Sharer(desk, name).join().error_code == 0
    refused = Sharer(desk, "m3").join()
    assert refused.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert refused.error_message == "The share group has reached its maximum capacity of 2 members."


@pytest.mark.parametrize(("a_slice", "pauses"), [(5, 1), (4, 1), (3, 1), (2, 2), (1, 5), (6, 0)])
def test_a_pause_comes_after_so_many_members_of_a_target(
    a_slice: int, pauses: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = desk_of(orders=1)
    for number in range(5):
        desk.heartbeat(f"m{number}", 0, ("orders",))
    plan = plan_of(desk.coordinator.shards[0].state, group_of(desk))
    _, least = counted(plan.compute())
    monkeypatch.setattr(target, "MEMBERS_A_SLICE", a_slice)
    assigned, count = counted(plan.compute())
    assert count - least == pauses
    assert sorted(assigned) == [f"m{number}" for number in range(5)]


def test_a_member_id_has_as_many_characters_as_a_uuid_at_most() -> None:
    desk = desk_of(orders=1)
    assert desk.heartbeat("m" * 36, 0, ("orders",)).error_code == 0
    assert desk.heartbeat("m" * 37, 0, ("orders",)).error_code == ErrorCode.INVALID_REQUEST
    assert repr(desk.coordinator.share) == "<ShareGroupApis at version 1, <Asking 0 questions>>"


def test_members_have_a_whole_session_after_a_change_of_the_coordinator() -> None:
    desk = desk_of(orders=1)
    Sharer(desk, "m1").join()
    desk.wait(SESSION_MS - 1)
    desk.reload()
    desk.wait(SESSION_MS - 1)
    assert desk.describe().group_state == "Stable"
    desk.wait(1)
    assert desk.describe().group_state == "Empty"


def test_the_session_of_a_member_that_could_not_join_ends_without_a_trace() -> None:
    desk = desk_of(orders=1)

    def fails_to_join(name: str) -> None:
        desk.failure = ErrorCode.NOT_ENOUGH_REPLICAS
        assert Sharer(desk, name).join().error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        desk.failure = None

    fails_to_join("m1")
    desk.wait(SESSION_MS)
    assert desk.records() == []
    one = Sharer(desk, "m2")
    one.join()
    settle(one)
    fails_to_join("m3")
    desk.wait(SESSION_MS // 2)
    one.beat()
    count = len(desk.records())
    desk.wait(SESSION_MS // 2 + 1)
    assert len(desk.records()) == count
    assert desk.describe().group_state == "Stable"


@pytest.mark.parametrize(
    ("members", "partitions", "pauses"), [(249, 0, 0), (250, 0, 1), (1, 2479, 0), (1, 2490, 1)]
)
def test_a_group_of_many_members_or_partitions_is_described_in_slices(
    members: int, partitions: int, pauses: int
) -> None:
    desk = ShareDesk(
        GroupConfig(group_share_assignment_interval_ms=0, group_share_max_size=members), orders=partitions
    )
    names = [f"m{number}" for number in range(members)]
    for name in names:
        desk.heartbeat(name, 0, ("orders",))
    one = Sharer(desk, "m0")
    one.join()
    for _ in range(2):
        desk.wait(1_000)  # a target in slices
        one.beat()
    assert len(one.has.get("orders", ())) == partitions
    slices = desk.coordinator.describing(Call("", 1), ShareGroupDescribeRequest(("g",)), desk.now_ms)
    described, count = counted(slices)
    assert [member.member_id for member in described.groups[0].members] == names
    assert count == pauses


def test_described_members_have_what_is_left_of_deleted_topics() -> None:
    desk = desk_of(orders=2, audit=1)
    one = Sharer(desk, "m1", "orders", "audit")
    one.join()
    settle(one)
    (member,) = desk.describe().members
    assert member.subscribed_topic_names == ("audit", "orders")
    assert sorted(
        (row.topic_name, row.topic_id, sorted(row.partitions)) for row in member.assignment.topic_partitions
    ) == [
        ("audit", desk.topics.topic_id("audit"), [0]),
        ("orders", desk.topics.topic_id("orders"), [0, 1]),
    ]
    desk.topics.change("audit", None)
    (member,) = desk.describe().members
    assert [row.topic_name for row in member.assignment.topic_partitions] == ["orders"]
