"""Partitions of ``__consumer_offsets``: loading, serving, resigning, batches and failures."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftd.ground.java_hashes import hash_map_order, partition_for, string_hash
from kraftd.groups.batches import BATCH_BYTES, Batches, size_of
from kraftd.groups.call import Call
from kraftd.groups.config import GroupConfig
from kraftd.groups.deadlines import Deadlines
from kraftd.groups.effects import (
    AppendRecords,
    PartitionFailed,
    PartitionLoaded,
    ReadRecords,
    ScheduleLoading,
)
from kraftd.groups.events import (
    AppendFailed,
    HighWatermarkAdvanced,
    LoadingDue,
    PartitionElected,
    PartitionResigned,
    RecordsAppended,
    RecordsRead,
)
from kraftd.groups.other_group import OtherGroup
from kraftd.groups.records import (
    CoordinatorRecord,
    UnknownRecordType,
    UnreadableRecord,
    decode_offset,
    decode_record,
    encode_record,
    encode_value,
    is_offset_key,
    offset_record,
)
from kraftd.groups.shard import ShardStatus
from kraftd.groups.timeline import Timeline
from kraftd.messages.list_groups_request import ListGroupsRequest
from kraftd.messages.list_groups_response import ListGroupsResponse
from kraftd.messages.offset_commit_value import OffsetCommitValue
from kraftd.messages.streams_group_metadata_key import StreamsGroupMetadataKey
from kraftd.messages.streams_group_metadata_value import StreamsGroupMetadataValue
from kraftd.wire.error_code import ErrorCode
from testkit.keyed_batches import keyed_batch
from tests.groups.desk import Desk
from tests.groups.requests import BEAT, COMMIT, FETCH, JOIN, beat, commit, fetch, fetched, join, members, sync


def test_requests_are_refused_until_their_partition_is_loaded() -> None:
    desk = Desk()
    desk.coordinator = desk.new_coordinator()
    assert desk.ask(join(), JOIN).error_code == ErrorCode.NOT_COORDINATOR
    assert desk.ask(ListGroupsRequest(), 5) == ListGroupsResponse()
    effects = desk.coordinator.step(PartitionElected(0, 1, 0, 10), desk.now_ms)
    assert effects == [ReadRecords(0, 1, 0, GroupConfig().offsets_load_buffer_size)]
    assert desk.ask(join(), JOIN).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert desk.ask(fetch(), FETCH).groups[0].error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert desk.ask(ListGroupsRequest(), 5).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert desk.ask(beat(1, "m"), BEAT).error_code == 0, "a member lives on while its group is loaded"


def test_a_partition_is_loaded_in_slices() -> None:
    desk = Desk()
    records = [encode_record(offset_record("g", "orders", n, OffsetCommitValue(n))) for n in range(1_200)]
    data = keyed_batch(records, 0, 0, 1)
    coordinator = desk.new_coordinator()
    coordinator.step(PartitionElected(0, 1, 0, 1_200), 10_000)
    effects = coordinator.step(RecordsRead(0, 1, data, 1_200), 10_100)
    slices = 1
    while effects == [ScheduleLoading(0, 1)]:
        effects = coordinator.step(LoadingDue(0, 1), 10_100 + slices)
        slices += 1
    assert effects == [PartitionLoaded(0, 1, 1_200, 1, 99 + slices)]
    assert 3 <= slices <= 6
    assert len(coordinator.shards[0].state.offsets.of_group("g")) == 1_200


@pytest.mark.parametrize(
    "data",
    [
        b"",
        keyed_batch([(None, b"x")], 0, 0, 1),
        keyed_batch([(b"\0\1", b"x")], 0, 0, 1),
        keyed_batch([(encode_record(offset_record("g", "t", 0, None))[0], b"\0\x09")], 0, 0, 1),
        keyed_batch([(b"\0\1\0\1g\0\1t\0\0\0\0", b"\0\4")], 0, 0, 1)[:-1] + b"\xff",
    ],
)
def test_damage_fails_the_partition_alone(data: bytes) -> None:
    desk = Desk(partition_count=2)
    coordinator = desk.new_coordinator()
    coordinator.step(PartitionElected(1, 1, 0, 0), 0)
    coordinator.step(PartitionElected(0, 1, 0, 1), 0)
    (failed,) = coordinator.step(RecordsRead(0, 1, data, 1), 0)
    assert isinstance(failed, PartitionFailed) and failed.reason
    assert failed.is_damaged == data.endswith(b"\xff"), "else each replica has the same"
    assert coordinator.shards[0].status is ShardStatus.FAILED
    assert coordinator.shards[1].status is ShardStatus.ACTIVE
    assert coordinator.step(PartitionElected(0, 2, 0, 0), 0) == [PartitionLoaded(0, 2, 0, 0)]


def test_records_of_unknown_types_are_passed_over() -> None:
    desk = Desk()
    coordinator = desk.new_coordinator()
    coordinator.step(PartitionElected(0, 1, 0, 1), 0)
    assert coordinator.step(RecordsRead(0, 1, keyed_batch([(b"\x7f\0", b"x")], 0, 0, 1), 1), 0) == [
        PartitionLoaded(0, 1, 1, 0)
    ]


def test_a_group_of_another_protocol_keeps_its_id() -> None:
    desk = Desk()
    record = CoordinatorRecord(StreamsGroupMetadataKey("modern"), StreamsGroupMetadataValue(3))
    desk.logs[0].append((encode_record(record), -1))
    desk.committed[0] = 1
    desk.reload()
    assert isinstance(desk.coordinator.shards[0].state.groups["modern"], OtherGroup)
    assert desk.ask(join("modern"), JOIN).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    refused = desk.ask(commit(1, 1, "m", group="modern"), COMMIT)
    assert refused.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert [row.group_type for row in desk.ask(ListGroupsRequest(), 5).groups] == ["streams"]


def test_requests_that_wait_are_answered_when_the_partition_moves() -> None:
    desk = Desk()
    leader, other = members(desk, 2)
    waiting = desk.send(sync(1, other), 5)
    desk.is_held = True
    writing = desk.send(commit(1, group="else"), COMMIT)
    joining = desk.send(join("third"), 3)
    desk.step(PartitionResigned(0))
    assert desk.answers[waiting].error_code == ErrorCode.NOT_COORDINATOR
    assert desk.answers[joining].error_code == ErrorCode.NOT_COORDINATOR
    refused = desk.answers[writing].topics[0].partitions[0].error_code
    assert refused == ErrorCode.NOT_COORDINATOR
    desk.wait(600_000)
    assert desk.coordinator.deadline_ms() is None
    assert desk.coordinator.memory.used_bytes == 0
    assert leader


def test_a_leader_that_is_elected_again_goes_on() -> None:
    desk = Desk()
    desk.ask(commit(1), COMMIT)
    assert desk.coordinator.step(PartitionElected(0, 5, 0, 1), desk.now_ms) == []
    assert fetched(desk) == 1
    desk.ask(commit(2), COMMIT)
    assert desk.coordinator.shards[0].leader_epoch == 5


def test_a_partition_with_records_of_another_writer_is_loaded_again() -> None:
    desk = Desk()
    desk.ask(commit(1), COMMIT)
    desk.logs[0].append((encode_record(offset_record("h", "orders", 0, OffsetCommitValue(9))), -1))
    desk.committed[0] = 2
    refused = desk.ask(commit(2), COMMIT).topics[0].partitions[0]
    assert refused.error_code == ErrorCode.NOT_COORDINATOR
    assert isinstance(desk.notes[-2], PartitionFailed)
    assert desk.notes[-1] == PartitionLoaded(0, 1, 2, 2)
    assert (fetched(desk), fetched(desk, "h")) == (1, 9)
    assert desk.ask(commit(2), COMMIT).topics[0].partitions[0].error_code == 0


def test_what_is_written_during_an_append_goes_with_the_next() -> None:
    desk = Desk()
    coordinator, now_ms = desk.coordinator, desk.now_ms

    def send(offset: int) -> None:
        desk.calls += 1
        desk.perform(coordinator.handle(Call(desk.calls, COMMIT), commit(offset), now_ms))

    send(1)
    send(2)
    (first,) = coordinator.flush(now_ms)
    assert isinstance(first, AppendRecords) and len(first.records) == 2
    send(3)
    assert coordinator.flush(now_ms) == []
    (second,) = coordinator.step(RecordsAppended(0, first.batch_id), now_ms)
    assert isinstance(second, AppendRecords)
    assert (second.base_offset, len(second.records)) == (2, 1)
    desk.perform(coordinator.step(HighWatermarkAdvanced(0, 2), now_ms))
    assert sorted(desk.answers) == [1, 2]
    desk.perform(coordinator.step(AppendFailed(0, second.batch_id, ErrorCode.KAFKA_STORAGE_ERROR), now_ms))
    assert desk.answers[3].topics[0].partitions[0].error_code == ErrorCode.NOT_COORDINATOR
    assert fetched(desk) == 2
    assert coordinator.step(AppendFailed(0, first.batch_id, ErrorCode.KAFKA_STORAGE_ERROR), now_ms) == []


def test_batches_are_closed_when_they_are_full() -> None:
    batches = Batches(10, BATCH_BYTES + 100)
    first = batches.open_batch(60)
    batches.add(first, record := (b"k" * 20, b"v" * 20), size_of(record))
    assert batches.open_batch(30) is first
    second = batches.open_batch(60)
    assert (second is first, second.base_offset) == (False, 11)
    transactional = batches.open_batch(10, (7, 0))
    assert transactional is not second and batches.open_batch(10) is not transactional


def test_a_timeline_shows_what_is_committed_and_takes_back_the_rest() -> None:
    timeline = Timeline()
    table: dict[str, int] = {}
    for offset, (key, value) in enumerate([("a", 1), ("b", 2), ("a", 3)]):
        timeline.offset = offset
        timeline.put(table, key, value)
    timeline.offset = 3
    timeline.remove(table, "b")
    timeline.commit(2)
    assert table == {"a": 3}
    assert dict(timeline.committed_items(table)) == {"a": 1, "b": 2}
    assert (timeline.committed_value(table, "a"), timeline.committed_value(table, "c")) == (1, None)
    timeline.revert(3)
    assert table == {"a": 3, "b": 2}
    timeline.revert(2)
    assert table == {"a": 1, "b": 2} and not len(timeline)


def test_deadlines_come_in_order_and_move() -> None:
    deadlines = Deadlines()
    for key, due_ms in (("a", 10), ("b", 5), ("c", 7)):
        deadlines.schedule(key, due_ms, lambda key=key: key)  # type: ignore[misc]
    deadlines.schedule("b", 20, lambda: "late b")
    deadlines.schedule("a", 6, lambda: "early a")
    deadlines.cancel("c")
    taken = []
    for now_ms in (4, 6, 19, 20):
        while (action := deadlines.take(now_ms)) is not None:
            taken.append((now_ms, action()))
    assert taken == [(6, "early a"), (20, "late b")]
    assert deadlines.next_ms() is None


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["schedule", "cancel", "take", "clear"]), st.integers(0, 5), st.integers(0, 40)
        )
    )
)
def test_the_next_deadline_is_no_later_than_any(steps: list[tuple[str, int, int]]) -> None:
    deadlines, due = Deadlines(), dict[int, int]()
    for what, key, at_ms in steps:
        if what == "schedule":
            deadlines.schedule(key, at_ms, lambda key=key: key)  # type: ignore[misc]
            due[key] = at_ms
        elif what == "cancel":
            deadlines.cancel(key)
            due.pop(key, None)
        elif what == "clear" and at_ms > 35:
            deadlines.clear()
            due.clear()
        elif what == "take" and (action := deadlines.take(at_ms)) is not None:
            assert due.pop(action()) <= at_ms
        else:
            assert what != "take" or all(each > at_ms for each in due.values())
        next_ms = deadlines.next_ms()
        assert (next_ms is None) == (not due) and (next_ms is None or next_ms <= min(due.values()))


def test_many_cancelled_deadlines_take_no_memory() -> None:
    deadlines = Deadlines()
    for number in range(10_000):
        deadlines.schedule(number, 1_000_000, lambda: None)
        deadlines.cancel(number)
    assert len(deadlines._heap) < 100


def test_hashes_are_javas() -> None:
    assert string_hash("") == 0
    assert string_hash("foo") == 101574
    assert string_hash("my-group") == -1906497762
    assert string_hash("grüße 𝄞") == 347378579
    assert string_hash("polygenelubricants") == -(2**31)
    assert partition_for("polygenelubricants", 50) == 0
    assert partition_for("foo", 50) == 24
    names = ["range", "roundrobin", "sticky", "cooperative-sticky", "connect", "default", "sessioned"]
    inside = ["default", "sticky", "range", "roundrobin", "connect", "cooperative-sticky", "sessioned"]
    assert hash_map_order(names) == inside
    many = [name.removeprefix("member-") for name in hash_map_order(f"member-{n * 7919}" for n in range(20))]
    assert many[:6] == ["55433", "87109", "71271", "31676", "102947", "118785"]


def test_bytes_that_are_no_record_are_named() -> None:
    with pytest.raises(UnknownRecordType, match="type 9"):
        decode_record(b"\0\x09", None)
    for key, value in ((None, None), (b"\0", None), (b"\0\1\0\5g", None), (b"\0\2\0\1g", b"\0\x63")):
        with pytest.raises(UnreadableRecord):
            decode_record(key, value)


@pytest.mark.parametrize("version", range(5))
def test_committed_offsets_are_read_alike_alone_and_among_other_records(version: int) -> None:
    value = OffsetCommitValue(9, -1 if version < 3 else 2, "m", 5, -1, bytes(16))
    key, good = encode_record(offset_record("g", "orders", 3, value))
    written = encode_value(value, version)
    assert is_offset_key(key) and good is not None
    for one in (written, written + b"\0", None):
        record = decode_record(key, one)[1]
        assert decode_offset(key, one) == (record.key, record.value)
    for bad_key, bad in ((key, b"\0"), (key, b"\0\5" + good), (key, written[:-3]), (key[:-1], written)):
        with pytest.raises(UnreadableRecord) as among:
            decode_record(bad_key, bad)
        with pytest.raises(UnreadableRecord) as alone:
            decode_offset(bad_key, bad)
        assert str(alone.value) == str(among.value)
