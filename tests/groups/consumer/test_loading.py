"""Consumer groups that are loaded from their records."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from kraftd.groups.consumer.group import ConsumerGroup
from kraftd.groups.consumer.member import Member, MemberState
from kraftd.groups.consumer.records import (
    Resolved,
    current_record,
    epoch_record,
    group_tombstones,
    member_tombstones,
    regex_record,
    subscription_record,
    target_epoch_record,
    target_record,
)
from kraftd.groups.records import CoordinatorRecord, encode_record
from kraftd.messages.consumer_group_current_member_assignment_value import (
    ConsumerGroupCurrentMemberAssignmentValue,
)
from kraftd.messages.consumer_group_member_metadata_value import ClassicMemberMetadata, ClassicProtocol
from kraftd.messages.consumer_group_partition_metadata_key import ConsumerGroupPartitionMetadataKey
from kraftd.messages.consumer_group_partition_metadata_value import ConsumerGroupPartitionMetadataValue
from kraftd.messages.delete_groups_request import DeleteGroupsRequest
from kraftd.messages.list_groups_request import ListGroupsRequest
from kraftd.wire.error_code import ErrorCode
from tests.groups.desk import Desk
from tests.groups.requests import COMMIT, commit

ORDERS = b"orders".rjust(16, b"\1")
FIRST = Member(
    "m1",
    epoch=3,
    previous_epoch=2,
    instance_id="i1",
    topics=frozenset({"orders"}),
    regex="au.*",
    assignor="range",
    assigned={ORDERS: {0: 2, 1: 3}},
    revoking={ORDERS: {2: 2}},
    state=MemberState.UNREVOKED_PARTITIONS,
)
SECOND = Member("m2", epoch=3, topics=frozenset({"orders"}), assigned={ORDERS: {3: 1}})
RECORDS = [
    subscription_record("g", FIRST),
    subscription_record("g", SECOND),
    CoordinatorRecord(ConsumerGroupPartitionMetadataKey("g"), ConsumerGroupPartitionMetadataValue()),
    epoch_record("g", 4, 77),
    target_record("g", "m1", {ORDERS: frozenset({0, 1})}),
    target_record("g", "m2", {ORDERS: frozenset({2, 3})}),
    target_epoch_record("g", 4, 123),
    current_record("g", FIRST),
    current_record("g", SECOND),
    regex_record("g", "au.*", Resolved(frozenset({"audit"}), 9, 8)),
]


def loaded(records: Iterable[CoordinatorRecord]) -> tuple[Desk, ConsumerGroup]:
    desk = Desk()
    desk.logs[0] += [(encode_record(record), -1) for record in records]
    desk.committed[0] = len(desk.logs[0])
    desk.reload()
    group = desk.coordinator.shards[0].state.groups["g"]
    assert isinstance(group, ConsumerGroup)
    return desk, group


def states(desk: Desk) -> list[tuple[str, str, str]]:
    rows = desk.ask(ListGroupsRequest(), 5).groups
    return [(row.group_id, row.group_type, row.group_state) for row in rows]


def test_a_group_is_what_its_records_make_of_it() -> None:
    desk, group = loaded(RECORDS)
    assert group.members == {"m1": FIRST, "m2": SECOND}
    assert group.targets["m2"] == {ORDERS: {2, 3}}
    assert group.facts == (4, 77, 4, 123, True)
    assert group.owners.few == {ORDERS: {0: "m1", 1: "m1", 2: "m1", 3: "m2"}}
    assert group.topics == {"orders": (2, 0), "audit": (0, 1)}
    assert group.static_members == {"i1": "m1"} and group.assignors == {"range": 1}
    assert group.regexes == {"au.*": 1}
    assert states(desk) == [("g", "consumer", "Reconciling")]


def test_a_partition_belongs_to_the_member_of_its_latest_record() -> None:
    """A record of the former owner that is written later does not take it away from the new one."""
    former = Member("m1", epoch=5, assigned={ORDERS: {0: 1}})
    new = Member("m2", epoch=6, assigned={ORDERS: {0: 6}})
    without = Member("m1", epoch=6)
    _, group = loaded([current_record("g", former), current_record("g", new), current_record("g", without)])
    assert group.owners.few == {ORDERS: {0: "m2"}}


def test_a_loaded_classic_member_has_its_rebalance_timeout_to_give_partitions_up() -> None:
    """No record says that it was to join again; a heartbeat tells it so anew, with a deadline of its own."""
    classic = ClassicMemberMetadata(45_000, [ClassicProtocol("range", b"")])
    member = replace(FIRST, classic=classic, rebalance_timeout_ms=20_000, instance_id=None)
    both = [subscription_record("g", SECOND), current_record("g", SECOND), epoch_record("g", 4, 77)]
    desk, group = loaded([*both, subscription_record("g", member), current_record("g", member)])
    desk.wait(19_999)
    assert "m1" in group.members
    desk.wait(1)
    assert list(group.members) == ["m2"]


def test_partitions_without_epochs_have_that_of_their_member() -> None:
    """Kafka's former releases write none."""
    record = current_record("g", FIRST)
    value = record.value
    assert isinstance(value, ConsumerGroupCurrentMemberAssignmentValue)
    for row in (*value.assigned_partitions, *value.partitions_pending_revocation):
        row.assignment_epochs = None
    member = loaded([*RECORDS[:-3], record])[1].members["m1"]
    assert (member.assigned, member.revoking) == ({ORDERS: {0: 3, 1: 3}}, {ORDERS: {2: 3}})


def test_members_that_have_left_leave_nothing_behind() -> None:
    gone = [*RECORDS, *member_tombstones("g", "m1"), *member_tombstones("g", "m2")]
    desk, group = loaded(gone)
    assert not (group.members or group.owners or group.regexes or group.assignors or group.static_members)
    assert group.topics == {"audit": (0, 1)}  # until the pattern's record is removed
    assert states(desk) == [("g", "consumer", "Empty")]


def test_a_group_without_members_is_deleted_with_all_its_records() -> None:
    desk, _ = loaded([*RECORDS, *member_tombstones("g", "m1"), *member_tombstones("g", "m2")])
    assert desk.ask(DeleteGroupsRequest(("g",)), 2).results[0].error_code == 0
    assert states(desk) == []
    assert desk.records()[-4:] == group_tombstones("g", ["au.*"])
    desk.reload()
    assert states(desk) == []


def test_a_group_with_members_is_not_deleted() -> None:
    desk, _ = loaded(RECORDS)
    assert desk.ask(DeleteGroupsRequest(("g",)), 2).results[0].error_code == ErrorCode.NON_EMPTY_GROUP


def test_offsets_are_committed_in_the_epoch_of_the_partition() -> None:
    desk, _ = loaded(RECORDS)

    def error(partition: int, epoch: int, member: str = "m1", version: int = COMMIT) -> int:
        answer = desk.ask(commit(1, epoch, member, partition=partition), version)
        code: int = answer.topics[0].partitions[0].error_code
        return code

    assert error(0, 3) == error(0, 2) == error(2, 2) == ErrorCode.NONE
    assert error(1, 2) == error(3, 2) == error(0, 4) == error(0, -1) == ErrorCode.STALE_MEMBER_EPOCH
    assert error(0, 3, "m9") == ErrorCode.UNKNOWN_MEMBER_ID
    assert error(0, 3, version=8) == ErrorCode.UNSUPPORTED_VERSION


def test_a_write_that_fails_is_taken_back() -> None:
    desk, group = loaded(RECORDS)
    before = (
        dict(group.members),
        dict(group.owners.few),
        dict(group.topics),
        dict(group.regexes),
        group.facts,
    )
    timeline, offset = group.timeline, len(desk.logs[0])
    timeline.offset = offset
    group.put(Member("m3", epoch=1, topics=frozenset({"new"}), assigned={ORDERS: {3: 1}}))
    group.remove("m1")
    group.set_resolved("au.*", None)
    group.set_facts(epoch=9)
    timeline.revert(offset)
    after = (
        dict(group.members),
        dict(group.owners.few),
        dict(group.topics),
        dict(group.regexes),
        group.facts,
    )
    assert after == before


def test_only_offsets_make_no_classic_group_of_it() -> None:
    """Offsets that come first in the log made a simple group, which the group's records replace."""
    desk = Desk()
    desk.ask(commit(5), COMMIT)
    desk.logs[0] += [(encode_record(record), -1) for record in RECORDS]
    desk.committed[0] = len(desk.logs[0])
    desk.reload()
    assert states(desk) == [("g", "consumer", "Reconciling")]
