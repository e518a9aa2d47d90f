"""Groups with members change their protocol, member by member."""

from __future__ import annotations

from kraftd.messages.join_group_request import JoinGroupRequestProtocol
from kraftd.wire.error_code import ErrorCode
from tests.groups.classic_consumers import (
    ALL,
    ClassicConsumer,
    assignment,
    classic_group,
    consumer_group,
    desk_of,
    kind,
    said,
)
from tests.groups.consumer.members import HEARTBEAT, Consumer, joining, settle
from tests.groups.desk import Desk
from tests.groups.requests import (
    BEAT,
    COMMIT,
    JOIN,
    LEAVE,
    beat,
    commit,
    fetched,
    join,
    leave,
    member_id,
    subscription,
    sync,
)


def test_a_live_group_changes_its_protocol_and_back() -> None:
    desk = desk_of()
    old = classic_group(desk)
    desk.ask(commit(5, old.generation, old.member_id), COMMIT)
    new = Consumer(desk.ask, "new")
    assert new.join().error_code == 0
    assert kind(desk) == "consumer" and new.count() == 0
    for _ in range(4):
        old.beat()
        new.beat()
    assert new.count() == len(old.has) == 2
    assert not old.has & set(new.has[desk.topics.topic_id("orders") or b""])
    assert old.beat() == 0
    assert desk.ask(commit(6, old.generation, old.member_id), COMMIT).topics[0].partitions[0].error_code == 0
    desk.reload()
    old.beat()
    settle(new)
    assert len(old.has) == 2
    new.leave()
    assert kind(desk) == "classic"
    assert desk.ask(beat(old.generation, old.member_id), BEAT).error_code != 0
    number = desk.send(join("g", old.member_id, metadata=subscription("orders"), session_ms=45_000), JOIN)
    desk.wait(0)
    old.generation = desk.answers[number].generation_id  # type: ignore[attr-defined]
    assert old.sync({old.member_id: ALL}) == 0 and old.has == {0, 1, 2, 3}
    assert fetched(desk) == 6
    desk.reload()
    assert kind(desk) == "classic" and old.beat() == 0


def test_the_last_classic_member_that_leaves_ends_the_change() -> None:
    desk = desk_of()
    old = classic_group(desk)
    new = Consumer(desk.ask, "new")
    new.join()
    desk.ask(leave((old.member_id, None)), LEAVE)
    settle(new)
    assert new.count() == 4 and kind(desk) == "consumer"


def test_a_classic_member_that_does_not_join_again_in_time_is_fenced() -> None:
    desk = desk_of()
    old = classic_group(desk)
    new = Consumer(desk.ask, "new")
    new.join()
    assert desk.ask(beat(old.generation, old.member_id), BEAT).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    for _ in range(7):
        desk.wait(10_000)
        new.beat()
        desk.ask(beat(old.generation, old.member_id), BEAT)
    settle(new)
    assert new.count() == 4


def test_a_static_member_takes_its_place_with_the_other_protocol() -> None:
    desk = desk_of()
    new = Consumer(desk.ask, "new", instance="i")
    new.join()
    settle(new)
    old = ClassicConsumer(desk, instance="i")
    assert old.join().error_code == 0
    assert kind(desk) == "classic"
    assert desk.ask(sync(old.generation, old.member_id), 5).error_code == 0
    again = Consumer(desk.ask, "again", instance="i")
    assert again.join().error_code == 0
    settle(again)
    assert kind(desk) == "consumer" and again.count() == 4


def test_a_former_instance_id_takes_no_place_with_the_other_protocol__as_kafka() -> None:
    desk = desk_of()
    for instance in ("i", "j"):
        Consumer(desk.ask, "new", instance=instance).join()
    assert ClassicConsumer(desk, instance="i").join().error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert kind(desk) == "consumer"
    assert ClassicConsumer(desk, instance="j").join().error_code == 0
    assert kind(desk) == "classic"


def test_the_policy_decides() -> None:
    desk = desk_of("downgrade")
    classic_group(desk)
    assert desk.ask(joining("new"), HEARTBEAT).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    desk = desk_of("disabled")
    Consumer(desk.ask, "new").join()
    assert ClassicConsumer(desk, "old").join().error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    desk = desk_of("upgrade")
    old = classic_group(desk)
    new = Consumer(desk.ask, "new")
    new.join()
    new.leave()
    assert kind(desk) == "consumer"
    assert old.beat() in (0, ErrorCode.REBALANCE_IN_PROGRESS)


def test_a_group_that_all_have_left_before_its_first_generation_changes() -> None:
    desk = desk_of()
    desk.send(join("g", session_ms=45_000), 3)  # waits for the first rebalance to end
    (only,) = desk.coordinator.shards[0].state.classic_group("g").members
    desk.ask(leave((only, None)), LEAVE)
    answer = desk.ask(joining("new"), HEARTBEAT)
    assert (answer.error_code, answer.member_epoch) == (0, 1)
    assert kind(desk) == "consumer"
    desk.wait(60_000)  # nor does the end of the classic rebalance matter
    assert kind(desk) == "consumer"


def test_a_classic_member_of_a_group_that_is_empty_now_is_unknown() -> None:
    desk = desk_of()
    new = Consumer(desk.ask, "new")
    new.join()
    new.leave()
    answer = desk.ask(join("g", "old", session_ms=45_000), JOIN)
    assert (answer.error_code, answer.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "old")
    assert kind(desk) == "consumer"


def test_a_group_without_a_readable_protocol_does_not_change_back() -> None:
    desk = desk_of()
    new = Consumer(desk.ask, "new")
    new.join()
    known, empty = subscription("orders"), b""
    for name, protocols in (("a", {"range": known, "sticky": empty}), ("b", {"sticky": known})):
        request = join("g", name, session_ms=45_000)
        request.protocols = [JoinGroupRequestProtocol(one, data) for one, data in protocols.items()]
        assert desk.ask(request, JOIN).error_code == 0
    assert new.leave().error_code == ErrorCode.GROUP_ID_NOT_FOUND
    desk.wait(60_000)  # nor does the end of its session
    assert kind(desk) == "consumer"


def kinds_of_records(desk: Desk, since: int) -> list[str]:
    """What kind each record is, of those after some; tombstones with a minus."""
    return [
        f"{'-' if record.value is None else ''}{type(record.key).__name__.removesuffix('Key')}"
        for record in desk.records()[since:]
    ]


def test_changes_of_the_protocol_write_kafkas_records_in_kafkas_order() -> None:
    desk = desk_of()
    classic_group(desk)
    before = len(desk.records())
    Consumer(desk.ask, "new").join()
    assert kinds_of_records(desk, before)[:6] == [
        "-GroupMetadata",
        "ConsumerGroupMemberMetadata",
        "ConsumerGroupMetadata",
        "ConsumerGroupTargetAssignmentMember",
        "ConsumerGroupTargetAssignmentMetadata",
        "ConsumerGroupCurrentMemberAssignment",
    ]
    before = len(desk.records())
    desk.ask(leave(("new", None)), LEAVE)
    assert kinds_of_records(desk, before) == [
        *["-ConsumerGroupCurrentMemberAssignment"] * 2,
        *["-ConsumerGroupTargetAssignmentMember"] * 2,
        "-ConsumerGroupTargetAssignmentMetadata",
        *["-ConsumerGroupMemberMetadata"] * 2,
        "-ConsumerGroupPartitionMetadata",
        "-ConsumerGroupMetadata",
        "GroupMetadata",
    ]


def stable_pair(desk: Desk, assignments: tuple[bytes, bytes]) -> list[str]:
    """Two classic members in generation 1, the leader first, that know `range` and `sticky`."""
    names = [member_id(desk) for _ in range(2)]
    calls = [desk.send(join("g", name, protocols=("range", "sticky")), JOIN) for name in names]
    desk.wait(6_000)
    names.sort(key=lambda name: name != desk.answers[calls[0]].leader)
    desk.send(sync(1, names[1]), 5)
    assert desk.ask(sync(1, names[0], dict(zip(names, assignments, strict=True))), 5).error_code == 0
    return names


def test_a_partition_of_two_classic_members_keeps_the_group_classic__as_kafka() -> None:
    desk = desk_of()
    stable_pair(desk, (assignment(0, 1), assignment(1, 2)))
    assert desk.ask(joining("new"), HEARTBEAT).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert kind(desk) == "classic"
    desk = desk_of()
    stable_pair(desk, (assignment(0, 1), assignment(2, 3)))
    assert desk.ask(joining("new"), HEARTBEAT).error_code == 0


def test_a_member_without_the_last_protocol_keeps_the_group_classic__as_kafka() -> None:
    desk = desk_of()
    stable_pair(desk, (assignment(0, 1), assignment(2, 3)))
    desk.send(join("g", member_id(desk), protocols=("sticky",)), JOIN)
    assert desk.ask(joining("new"), HEARTBEAT).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert kind(desk) == "classic"


def test_a_change_that_is_not_written_is_taken_back() -> None:
    desk = desk_of()
    old = classic_group(desk)
    desk.failure = ErrorCode.NOT_ENOUGH_REPLICAS
    assert desk.ask(joining("new"), HEARTBEAT).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    desk.failure = None
    assert kind(desk) == "classic" and old.beat() == 0
    new = Consumer(desk.ask, "new")
    new.join()
    desk.failure = ErrorCode.NOT_ENOUGH_REPLICAS
    new.leave()
    desk.failure = None
    assert kind(desk) == "consumer"
    assert set(consumer_group(desk).members) == {"new", old.member_id}


def test_the_records_of_a_change_have_what_the_classic_group_had() -> None:
    desk = desk_of()
    old = classic_group(desk)
    before = len(desk.records())
    Consumer(desk.ask, "new").join()
    _, _, group, target, epoch, current = (record.value for record in desk.records()[before : before + 6])
    assert (group.epoch, epoch.assignment_epoch) == (old.generation, old.generation)
    assert group.metadata_hash != 0
    had = [(desk.topics.topic_id("orders"), (0, 1, 2, 3))]
    assert [(topic.topic_id, topic.partitions) for topic in target.topic_partitions] == had
    assert [(topic.topic_id, topic.partitions) for topic in current.assigned_partitions] == had
    assert (current.member_epoch, current.previous_member_epoch) == (old.generation, old.generation)


def test_a_group_before_its_first_generation_keeps_its_protocol__as_kafka() -> None:
    desk = desk_of(group_initial_rebalance_delay_ms=3_000)
    desk.send(join("g"), 3)
    assert desk.ask(joining("new"), HEARTBEAT).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert kind(desk) == "classic"


def test_a_member_of_a_full_group_joins_again() -> None:
    desk = desk_of(group_consumer_max_size=2)
    Consumer(desk.ask, "new").join()
    old = ClassicConsumer(desk)
    assert old.join().error_code == 0
    assert old.join().error_code == 0
    assert ClassicConsumer(desk).join().error_code == ErrorCode.GROUP_MAX_SIZE_REACHED


def test_a_member_gives_up_what_it_does_not_read_before_there_is_a_new_target() -> None:
    desk = desk_of(group_consumer_assignment_interval_ms=15_000)
    old = classic_group(desk)
    Consumer(desk.ask, "new").join()
    desk.topics.change("audit", 1)
    assert old.join(said("audit", owned={"orders": (0, 1, 2, 3)})).error_code == 0
    one = consumer_group(desk).members[old.member_id]
    assert not one.assigned and sorted(*one.revoking.values()) == [0, 1, 2, 3]


def test_a_member_joins_again_once_all_that_it_lacks_is_free() -> None:
    desk = desk_of(partitions=6)
    others = [Consumer(desk.ask, name) for name in ("first", "second")]
    for one in others:
        one.join()
    settle(*others)
    old = ClassicConsumer(desk)
    assert old.join().error_code == 0 and old.sync() == 0
    for one in others:
        one.beat()  # is to give one up
    others[0].beat()
    assert old.beat() == 0 and not old.has
    assert old.join().error_code == old.sync() == 0 and len(old.has) == 1  # by itself
    assert old.beat() == 0
    others[1].beat()
    assert old.beat() == ErrorCode.REBALANCE_IN_PROGRESS and len(old.has) == 2


def test_a_static_classic_member_is_fenced_by_its_successor() -> None:
    desk = desk_of()
    Consumer(desk.ask, "new").join()
    old, again = (ClassicConsumer(desk, instance="i") for _ in range(2))
    assert old.join().error_code == again.join().error_code == 0
    assert old.member_id != again.member_id
    request = sync(old.generation, old.member_id)
    request.group_instance_id = "i"
    fenced = (
        desk.ask(request, 5).error_code,
        desk.ask(beat(old.generation, old.member_id, "i"), BEAT).error_code,
    )
    assert fenced == (ErrorCode.FENCED_INSTANCE_ID,) * 2
