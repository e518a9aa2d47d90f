"""What a group that changes its protocol answers each of its members, and how long it waits for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kraftd.groups.consumer.member import Member
from kraftd.messages.join_group_request import JoinGroupRequestProtocol
from kraftd.messages.list_groups_request import ListGroupsRequest
from kraftd.messages.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kraftd.wire.error_code import ErrorCode, error_name
from tests.groups.classic_consumers import (
    ALL,
    ClassicConsumer,
    classic_group,
    consumer_group,
    desk_of,
    kind,
    said,
)
from tests.groups.consumer.members import HEARTBEAT, Consumer, joining, settle
from tests.groups.desk import Desk
from tests.groups.requests import BEAT, JOIN, LEAVE, SYNC, beat, commit, join, leave, member_id, members, sync

SESSION_MS, REBALANCE_MS = 45_000, 60_000
REJOIN = ErrorCode.REBALANCE_IN_PROGRESS


def mixed(desk: Desk, topic: str = "orders") -> tuple[Consumer, ClassicConsumer]:
    """A member with each protocol. The classic one has joined, and got nothing as yet."""
    new, old = Consumer(desk.ask, "new"), ClassicConsumer(desk)
    new.join()
    settle(new)
    assert old.join(said(topic)).error_code == 0
    return new, old


def member(desk: Desk, one: ClassicConsumer) -> Member:
    return consumer_group(desk).members[one.member_id]


def passes(desk: Desk, time_ms: int, *alive: Consumer | ClassicConsumer) -> bool:
    """Let time pass while some members send heartbeats; return whether a classic member is left then."""
    for _ in range(time_ms // 5_000):
        desk.wait(5_000)
        for one in alive:
            if isinstance(one, Consumer):
                one.beat()
            else:
                desk.ask(beat(one.generation, one.member_id), BEAT)
    return any(one.classic is not None for one in consumer_group(desk).members.values())


@pytest.mark.parametrize(
    ("version", "changes", "error"),
    [
        (9, {}, "MEMBER_ID_REQUIRED"),
        (4, {}, "MEMBER_ID_REQUIRED"),
        (3, {}, "NONE"),
        (9, {"group_instance_id": "i"}, "NONE"),
        (9, {"member_id": "given"}, "NONE"),
        (9, {"member_id": "given", "group_instance_id": "i"}, "UNKNOWN_MEMBER_ID"),
        (9, {"member_id": "given", "group_instance_id": "held"}, "FENCED_INSTANCE_ID"),
        (3, {"protocol_type": "connect"}, "INCONSISTENT_GROUP_PROTOCOL"),
        (3, {"protocols": [JoinGroupRequestProtocol("range", b"\0")]}, "UNKNOWN_SERVER_ERROR"),
        (3, {"protocols": [JoinGroupRequestProtocol("range", b"\xff\xff")]}, "UNKNOWN_SERVER_ERROR"),
    ],
)
def test_a_classic_member_joins_a_consumer_group_at_once(
    version: int, changes: dict[str, Any], error: str
) -> None:
    desk = desk_of()
    Consumer(desk.ask, "new", instance="held").join()
    Consumer(desk.ask, "newer").join()
    before = consumer_group(desk).facts.epoch
    request = join("g", protocols=("range", "sticky"))
    for name, value in changes.items():
        setattr(request, name, value)
    answer = desk.ask(request, version)
    assert error_name(answer.error_code) == error
    is_named = error in ("MEMBER_ID_REQUIRED", "NONE")
    assert answer.member_id == (changes.get("member_id", "0001") if is_named else "")
    if error == "NONE":
        assert (answer.protocol_type, answer.protocol_name) == ("consumer", "range")
        assert answer.generation_id == consumer_group(desk).facts.epoch == before + 1
        assert (answer.leader, answer.members) == ("", [])
    assert len(consumer_group(desk).members) == 2 + (error == "NONE")


@pytest.mark.parametrize("limit", [1, 2])
def test_a_full_group_takes_no_classic_member(limit: int) -> None:
    desk = desk_of(group_consumer_max_size=limit)
    Consumer(desk.ask, "new").join()
    answer = ClassicConsumer(desk).join()
    assert answer.error_code == (ErrorCode.GROUP_MAX_SIZE_REACHED if limit == 1 else 0)


def test_a_classic_member_is_noted_and_what_it_leaves_out_stays() -> None:
    desk = desk_of()
    _, old = mixed(desk)
    before = consumer_group(desk).facts.epoch
    assert old.join(said("orders", "audit", rack="a")).error_code == 0
    assert (old.generation, consumer_group(desk).facts.epoch) == (before + 1, before + 1)
    one = member(desk, old)
    assert (one.topics, one.rack_id, one.rebalance_timeout_ms) == ({"orders", "audit"}, "a", 60_000)
    assert (one.client_id, one.client_host, one.instance_id) == ("client", "/127.0.0.1", None)
    assert one.classic is not None and one.classic.session_timeout_ms == SESSION_MS
    request = join("g", old.member_id, metadata=said("orders", "audit"), rebalance_ms=-1)
    assert desk.ask(request, JOIN).generation_id == before + 1
    one = member(desk, old)
    assert (one.rack_id, one.rebalance_timeout_ms) == ("a", 60_000)
    assert desk.ask(request, 0).error_code == 0  # which has only a session timeout
    assert member(desk, old).rebalance_timeout_ms == 10_000


def test_a_topic_that_is_gone_is_no_part_of_what_a_member_has() -> None:
    desk = desk_of()
    _, old = mixed(desk)
    assert old.join(said(owned={"orders": (), "gone": (0, 1)})).error_code == 0
    assert old.sync() == 0


def test_a_classic_member_gets_the_next_epoch_once_it_has_given_up_what_it_must() -> None:
    desk = desk_of()
    old = classic_group(desk)
    Consumer(desk.ask, "new").join()
    before = old.generation
    for _ in range(2):
        assert old.join(said(owned={"orders": (0, 1, 2, 3)})).error_code == 0
        assert old.generation == before and old.sync() == 0
    assert len(old.has) == 2
    assert old.join(said(owned={"orders": old.has})).error_code == 0
    assert old.generation > before and not member(desk, old).revoking


def test_a_static_classic_member_joins_again_with_its_id() -> None:
    desk = desk_of()
    new = Consumer(desk.ask, "new")
    new.join()
    one = ClassicConsumer(desk, instance="i")
    assert one.join().error_code == 0 and one.sync() == 0
    first = one.member_id
    assert one.join(said("audit")).error_code == 0
    assert one.member_id == first and len(consumer_group(desk).members) == 2
    assert one.beat() == 0
    desk.reload()
    assert consumer_group(desk).static_members == {"i": first}


@pytest.mark.parametrize(
    ("is_synced", "is_alive", "time_ms", "is_left"),
    [
        (False, True, REBALANCE_MS - 5_000, True),
        (False, True, REBALANCE_MS, False),  # no SyncGroup in time
        (True, True, 3 * REBALANCE_MS, True),
        (False, False, SESSION_MS - 5_000, True),
        (False, False, SESSION_MS, False),
        (True, False, SESSION_MS - 5_000, True),
        (True, False, SESSION_MS, False),
    ],
)
def test_a_classic_member_has_a_session_and_is_to_sync(
    is_synced: bool, is_alive: bool, time_ms: int, is_left: bool
) -> None:
    desk = desk_of()
    new, old = mixed(desk, "audit")
    if is_synced:
        passes(desk, 10_000, new)
        assert old.sync() == 0  # its session begins anew
    assert passes(desk, time_ms, new, *([old] if is_alive else [])) is is_left


@pytest.mark.parametrize("api", ["sync", "beat"])
def test_a_classic_member_that_does_not_join_again_is_fenced_although_it_lives(api: str) -> None:
    desk = desk_of()
    new, old = mixed(desk, "audit")
    assert old.sync() == 0
    Consumer(desk.ask, "third", topics=("audit",)).join()  # a newer target
    requests: dict[str, Callable[[], Any]] = {
        "sync": lambda: desk.ask(sync(old.generation, old.member_id), SYNC),
        "beat": lambda: desk.ask(beat(old.generation, old.member_id), BEAT),
    }
    assert requests[api]().error_code == REJOIN
    for _ in range(REBALANCE_MS // 5_000 - 1):
        assert passes(desk, 5_000, new, old)
    assert not passes(desk, 5_000, new, old)


def test_members_whose_change_is_not_written_have_no_new_deadlines() -> None:
    desk = desk_of()
    new, old = mixed(desk, "audit")
    assert old.sync() == 0
    desk.failure = ErrorCode.NOT_ENOUGH_REPLICAS
    request = join("g", old.member_id, metadata=said("orders"), session_ms=10_000, rebalance_ms=10_000)
    assert desk.ask(request, JOIN).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    desk.failure = None
    assert passes(desk, SESSION_MS - 5_000, new)


def test_a_sync_names_generation_and_protocol_or_leaves_the_protocol_out() -> None:
    desk = desk_of()
    _, old = mixed(desk)
    codes = []
    for changes in (
        {"generation_id": old.generation - 1},
        {"generation_id": old.generation + 1},
        {"protocol_type": "connect"},
        {"protocol_name": "sticky"},
        {"protocol_type": None, "protocol_name": None},  # as before version 5
        {},
    ):
        request = sync(old.generation, old.member_id)
        for name, value in changes.items():
            setattr(request, name, value)
        answer = desk.ask(request, SYNC if request.protocol_type else 4)
        codes.append(error_name(answer.error_code))
        if not answer.error_code:
            shown = answer.protocol_type, answer.protocol_name
            assert shown == (request.protocol_type, request.protocol_name)
    illegal, inconsistent = ["ILLEGAL_GENERATION"] * 2, ["INCONSISTENT_GROUP_PROTOCOL"] * 2
    assert codes == [*illegal, *inconsistent, "NONE", "NONE"]
    for generation in (old.generation - 1, old.generation + 1):
        answer = desk.ask(beat(generation, old.member_id), BEAT)
        assert answer.error_code == ErrorCode.ILLEGAL_GENERATION
    assert desk.ask(beat(2, "new"), BEAT).error_code == ErrorCode.UNKNOWN_MEMBER_ID  # no classic one


def test_a_classic_member_joins_again_when_what_it_waits_for_is_free() -> None:
    desk = desk_of()
    new, old = mixed(desk)
    assert old.sync() == 0 and not old.has
    assert desk.ask(beat(old.generation, old.member_id), BEAT).error_code == 0
    new.beat()  # is to give up two
    assert desk.ask(beat(old.generation, old.member_id), BEAT).error_code == 0
    new.beat()  # has given them up
    assert old.beat() == REJOIN
    assert len(old.has) == 2 and old.beat() == 0


def test_members_of_either_protocol_leave_by_id_or_by_instance() -> None:
    desk = desk_of()
    _, old = mixed(desk)
    static = ClassicConsumer(desk, instance="i")
    static.join()
    before = len(desk.records())

    def left(*names: tuple[str, str | None]) -> list[tuple[str, str | None, str]]:
        answer = desk.ask(leave(*names), LEAVE)
        assert answer.error_code == 0
        return [(row.member_id, row.group_instance_id, error_name(row.error_code)) for row in answer.members]

    unknown: list[tuple[str, str | None]] = [("x", None), ("", "j"), ("x", "i"), ("", None)]
    errors = ["UNKNOWN_MEMBER_ID", "UNKNOWN_MEMBER_ID", "FENCED_INSTANCE_ID", "UNKNOWN_MEMBER_ID"]
    assert left(*unknown) == [(*name, error) for name, error in zip(unknown, errors, strict=True)]
    assert len(desk.records()) == before
    assert left((old.member_id, None), ("x", None)) == [
        (old.member_id, None, "NONE"),
        ("x", None, "UNKNOWN_MEMBER_ID"),
    ]
    assert set(consumer_group(desk).members) == {"new", static.member_id}
    assert left(("", "i")) == [("", "i", "NONE")]
    assert set(consumer_group(desk).members) == {"new"}
    static.member_id = ""
    static.join()
    assert left((static.member_id, "i")) == [(static.member_id, "i", "NONE")]


# Back to the classic protocol


@pytest.mark.parametrize(("limit", "expected"), [(1, "classic"), (0, "consumer")])
def test_a_group_that_is_too_large_for_a_classic_one_stays(limit: int, expected: str) -> None:
    desk = desk_of(group_max_size=limit)
    new, _ = mixed(desk)
    new.leave()
    assert kind(desk) == expected
    desk = desk_of(group_max_size=limit)
    Consumer(desk.ask, "new", instance="i").join()
    assert ClassicConsumer(desk, instance="i").join().error_code == 0
    assert kind(desk) == expected


@pytest.mark.parametrize("policy", ["upgrade", "bidirectional"])
@pytest.mark.parametrize("has_other", [True, False])
def test_a_static_classic_member_changes_the_group_if_it_takes_the_last_place(
    policy: str, has_other: bool
) -> None:
    desk = desk_of(policy)
    if has_other:
        Consumer(desk.ask, "other").join()
    Consumer(desk.ask, "new", instance="i").join()
    assert ClassicConsumer(desk, instance="i").join().error_code == 0
    is_classic = policy == "bidirectional" and not has_other
    assert kind(desk) == ("classic" if is_classic else "consumer")
    logged: list[Any] = [what for what, _ in desk.logs[0]]
    left = {int.from_bytes(key[:2], "big") for key, value in dict(logged).items() if value is not None}
    assert (left == {2}) is is_classic  # else a record of the consumer group would outlive it
    desk.reload()
    assert kind(desk) == ("classic" if is_classic else "consumer")


@pytest.mark.parametrize(("topic", "state"), [("orders", "Stable"), ("audit", "PreparingRebalance")])
def test_a_group_goes_on_in_its_generation_unless_its_target_is_old(topic: str, state: str) -> None:
    desk = desk_of()
    desk.topics.change("audit", 1)
    new = Consumer(desk.ask, "new", instance="i")
    new.join()
    settle(new)
    old = ClassicConsumer(desk, instance="i")
    answer = old.join(said(topic, owned={"orders": (0, 1, 2, 3)}))
    (row,) = desk.ask(ListGroupsRequest(), 5).groups
    assert (row.group_type, row.group_state, row.protocol_type) == ("classic", state, "consumer")
    if state == "Stable":
        assert answer.generation_id == new.epoch
        assert old.sync() == 0 and old.has == {0, 1, 2, 3}
        assert old.beat() == 0


def test_a_classic_group_that_was_a_consumer_group_knows_its_members_and_topics() -> None:
    desk = desk_of()
    new = Consumer(desk.ask, "new", instance="i")
    new.join()
    desk.ask(commit(1, new.epoch, "new"), 9)
    old = ClassicConsumer(desk, instance="i")
    old.join()
    rows = [OffsetDeleteRequestPartition(0)]
    topics = [OffsetDeleteRequestTopic(name, rows) for name in ("orders", "audit")]
    desk.topics.change("audit", 1)
    answer = desk.ask(OffsetDeleteRequest("g", topics), 0)
    errors = {one.name: error_name(one.partitions[0].error_code) for one in answer.topics}
    assert errors == {"orders": "GROUP_SUBSCRIBED_TO_TOPIC", "audit": "NONE"}
    desk.wait(SESSION_MS - 1)
    assert desk.ask(ListGroupsRequest(), 5).groups[0].group_state == "Stable"
    desk.wait(1)  # its session is over
    assert desk.ask(ListGroupsRequest(), 5).groups[0].group_state == "Empty"


def test_a_change_back_that_is_not_written_takes_no_memory() -> None:
    desk = desk_of()
    new, _ = mixed(desk)
    memory = desk.coordinator.shards[0].state.memory
    before = memory.used_bytes
    desk.failure = ErrorCode.NOT_ENOUGH_REPLICAS
    new.leave()
    assert kind(desk) == "consumer" and memory.used_bytes == before
    desk.failure = None
    new.leave()
    assert kind(desk) == "classic" and memory.used_bytes > before


@pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        (b"", "Buffer underflow while parsing consumer protocol's header"),
        (b"\xff\xff", "Unsupported assignment version: -1"),
    ],
)
def test_a_change_back_is_refused_with_its_reason(metadata: bytes, reason: str) -> None:
    desk = desk_of()
    new = Consumer(desk.ask, "new")
    new.join()
    for name, protocols in (("a", {"range": said(), "sticky": metadata}), ("b", {"sticky": said()})):
        request = join("g", name)
        request.protocols = [JoinGroupRequestProtocol(one, data) for one, data in protocols.items()]
        assert desk.ask(request, JOIN).error_code == 0
    answer = new.leave()
    assert answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert answer.error_message == f"Cannot downgrade the classic group g: {reason}."


# To the new protocol

CUSTOM = ALL[:-4] + b"\0\0\0\1x"
ADVICE = (
    "an unsupported custom assignor is in use. Please refer to the documentation or "
    "switch to a default assignor before re-attempting the upgrade"
)


@pytest.mark.parametrize(
    ("policy", "limit", "protocol_type", "assigned", "reason"),
    [
        ("disabled", 9, "consumer", ALL, "online upgrade is disabled"),
        ("downgrade", 9, "consumer", ALL, "online upgrade is disabled"),
        ("upgrade", 9, "connect", ALL, "the group does not use the consumer embedded protocol"),
        ("upgrade", 0, "consumer", ALL, "the group size exceeds the consumer group maximum size"),
        ("upgrade", 9, "consumer", CUSTOM, ADVICE),
        ("upgrade", 9, "consumer", b"\0", "the embedded consumer protocol is malformed"),
        ("upgrade", 9, "consumer", b"\0\1\0", "the embedded consumer protocol is malformed"),
        ("UpGrade", 9, "consumer", ALL, None),
        ("BIDIRECTIONAL", 9, "consumer", b"", None),
    ],
)
def test_a_change_is_refused_with_its_reason(
    policy: str, limit: int, protocol_type: str, assigned: bytes, reason: str | None
) -> None:
    desk = desk_of(policy, group_consumer_max_size=limit)
    number = desk.send(join("g", kind=protocol_type), 3)
    desk.wait(0)
    leader = desk.answers[number].member_id  # type: ignore[attr-defined]
    request = sync(1, leader, {leader: assigned})
    request.protocol_type = protocol_type
    assert desk.ask(request, SYNC).error_code == 0
    answer = desk.ask(joining("new"), HEARTBEAT)
    if reason is None:
        assert answer.error_code == 0 and kind(desk) == "consumer"
        return
    assert answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert answer.error_message == f"Cannot upgrade classic group g to consumer group because {reason}."
    assert kind(desk) == "classic"


def test_a_group_at_its_limit_changes_but_takes_no_member_more() -> None:
    desk = desk_of(group_consumer_max_size=1)
    classic_group(desk)
    assert desk.ask(joining("new"), HEARTBEAT).error_code == ErrorCode.GROUP_MAX_SIZE_REACHED


@pytest.mark.parametrize("waits_for", ["join", "sync"])
def test_members_that_wait_are_to_join_again(waits_for: str) -> None:
    desk = desk_of()
    if waits_for == "sync":
        _, name = members(desk, 2)
        number = desk.send(sync(1, name), SYNC)
    else:
        classic_group(desk)
        name = member_id(desk)
        number = desk.send(join("g", name), JOIN)
    assert number not in desk.answers
    assert desk.ask(joining("new"), HEARTBEAT).error_code == 0
    answer: Any = desk.answers[number]
    assert answer.error_code == REJOIN
    if waits_for == "join":
        assert answer.member_id == name


@pytest.mark.parametrize("rack", [None, "a"])
def test_classic_members_are_noted_as_what_they_said(rack: str | None) -> None:
    desk = desk_of()
    old = classic_group(desk)
    old.generation = 1
    number = desk.send(join("g", old.member_id, metadata=said(rack=rack), session_ms=SESSION_MS), JOIN)
    desk.wait(0)
    old.generation = desk.answers[number].generation_id  # type: ignore[attr-defined]
    assert old.sync({old.member_id: ALL}) == 0
    new = Consumer(desk.ask, "new")
    new.join()
    one = member(desk, old)
    assert (one.rack_id, one.instance_id, one.topics) == (rack, None, {"orders"})
    assert (one.epoch, one.client_id, one.rebalance_timeout_ms) == (old.generation, "client", REBALANCE_MS)
    assert one.client_host == "/127.0.0.1"
    (record,) = [
        record
        for record in desk.records()
        if type(record.key).__name__ == "ConsumerGroupMemberMetadataKey"
        and record.key.member_id == old.member_id
    ]
    assert record.value.rack_id == rack
    assert passes(desk, SESSION_MS - 5_000, new)
    assert not passes(desk, 5_000, new)  # it was silent
