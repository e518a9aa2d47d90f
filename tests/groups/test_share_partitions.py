"""The share coordinator, value by value: its refusals, records and long work, and how batches combine."""

from __future__ import annotations

from typing import Any

import pytest

from kraftd.groups.call import Call
from kraftd.groups.effects import ReadRecords
from kraftd.groups.events import PartitionResigned, TopicsDeleted
from kraftd.groups.outcome import Outcome
from kraftd.groups.share_state import shard, state_batches
from kraftd.groups.share_state.config import ShareStateConfig
from kraftd.groups.share_state.coordinator import ShareCoordinator
from kraftd.groups.share_state.key import SharePartitionKey, parse_key
from kraftd.groups.share_state.partition_state import SharePartitionState
from kraftd.groups.share_state.records import update_record
from kraftd.groups.share_state.state_batches import StateBatch, combined
from kraftd.messages.read_share_group_state_request import (
    PartitionData as Reading,
)
from kraftd.messages.read_share_group_state_request import ReadShareGroupStateRequest, ReadStateData
from kraftd.messages.share_snapshot_value import ShareSnapshotValue
from kraftd.messages.share_update_value import ShareUpdateValue
from kraftd.messages.share_update_value import StateBatch as UpdateBatch
from kraftd.messages.write_share_group_state_request import (
    PartitionData,
    WriteShareGroupStateRequest,
    WriteStateData,
)
from kraftd.messages.write_share_group_state_request import StateBatch as WrittenBatch
from kraftd.wire.error_code import ErrorCode
from tests.groups.share_state_desk import ShareStateDesk, read_rows

AVAILABLE, ACKNOWLEDGED, ARCHIVED = 0, 2, 4
DAY_MS = 24 * 60 * 60 * 1000
FIVE_MINUTES_MS = 5 * 60 * 1000
ID_TEXT = "AAAAAAAAAAAAAAAAAAAAAQ"
TOPIC_ID = bytes(15) + b"\1"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"g:{ID_TEXT}:7", ("g", 7)),
        (f"a:b:{ID_TEXT}:0", ("a:b", 0)),
        (f"::g:{ID_TEXT}:+12::", ("::g", 12)),
        (f"g:{ID_TEXT}:2147483647", ("g", 2147483647)),
        (f"g:{ID_TEXT}:-2147483648", ("g", -2147483648)),
        (f"g:{ID_TEXT}:2147483648", "not a partition: '2147483648'"),
        (f"g:{ID_TEXT}:-2147483649", "not a partition: '-2147483649'"),
        (f"g:{ID_TEXT}:x", "not a partition: 'x'"),
        (f"g:{ID_TEXT}: 7", "not a partition: ' 7'"),
        (f"g:{ID_TEXT}", f"not of the form groupId:topicId:partition: 'g:{ID_TEXT}'"),
        ("", "not of the form groupId:topicId:partition: ''"),
        (f" : :{ID_TEXT}:7", (" : ", 7)),
        (f" :{ID_TEXT}:7", "a group id must not be blank"),
        ("g:AAAA:7", "'AAAA' is not a uuid: 3 bytes, not 16"),
        (f":{ID_TEXT}:7", "a group id must not be blank"),
    ],
)
def test_a_key_is_a_group_a_topic_id_and_a_number_of_32_bits(text: str, found: Any) -> None:
    if isinstance(found, str):
        with pytest.raises(ValueError) as refused:
            parse_key(text)
        assert str(refused.value) == found
    else:
        key = parse_key(text)
        assert key == SharePartitionKey(found[0], TOPIC_ID, found[1])
        assert key.text == f"{found[0]}:{ID_TEXT}:{found[1]}" and parse_key(key.text) == key


@pytest.mark.parametrize("what", ["initialize", "write", "read", "summarize", "delete"])
def test_partitions_that_cannot_be_are_refused_by_each_api(what: str) -> None:
    desk = ShareStateDesk()
    for partition in range(4):
        desk.initialize(partition)
    ask = getattr(desk, what)
    assert [ask(partition=partition).error_code for partition in (0, 3)] == [0, 0]
    count = len(desk.logs[0])
    negative = ask(partition=-1)
    assert (negative.partition, negative.error_code) == (-1, ErrorCode.INVALID_REQUEST)
    assert negative.error_message == "The partition id cannot be a negative number."
    for count_left in (2, None):
        desk.topics.change("orders", count_left)
        unknown = ask(partition=2)
        error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert (unknown.partition, unknown.error_code, unknown.error_message) == (2, error, error.message)
    assert len(desk.logs[0]) == count


@pytest.mark.parametrize(
    ("what", "named"),
    [
        ("initialize", "initialize share group state"),
        ("write", "write share group state"),
        ("read", "read share group state"),
        ("summarize", "read share group state summary"),
        ("delete", "delete share group state"),
    ],
)
def test_each_api_names_itself_where_it_is_not_served(what: str, named: str) -> None:
    desk = ShareStateDesk()
    desk.step(PartitionResigned(0))
    row = getattr(desk, what)(partition=1)
    error = ErrorCode.NOT_COORDINATOR
    assert (row.partition, row.error_code) == (1, error)
    assert row.error_message == f"Unable to {named}: {error.message}"


def test_each_part_of_a_request_comes_with_the_number_of_its_batches() -> None:
    """Broker nodes take parts of many batches in steps of their own."""
    desk = ShareStateDesk()
    rows = [
        PartitionData(number, 1, 0, 0, 0, [WrittenBatch(at, at, 0, 1) for at in range(number)])
        for number in (2, 0, 3)
    ]
    request = WriteShareGroupStateRequest("g", [WriteStateData(desk.topic_id, rows)])
    assert [count for count, _ in desk.coordinator.parts(Call(1, 1), request)] == [2, 0, 3]
    topics = [ReadStateData(desk.topic_id, [Reading(0, 1), Reading(1, 1)])]
    assert [
        count for count, _ in desk.coordinator.parts(Call(2, 0), ReadShareGroupStateRequest("g", topics))
    ] == [0, 0]


def test_what_begins_anew_has_nothing_to_be_behind_of_until_it_has_an_offset() -> None:
    desk = ShareStateDesk()
    desk.now_ms = 77
    desk.initialize(start=-1, state_epoch=3)
    desk.now_ms = 78
    desk.initialize(start=0, state_epoch=4)
    desk.initialize(start=5, state_epoch=4)
    assert [record.value for record in desk.records()] == [
        ShareSnapshotValue(0, 3, 0, -1, -1, 77, 77, []),
        ShareSnapshotValue(1, 4, 0, 0, 0, 78, 78, []),
        ShareSnapshotValue(2, 4, 0, 5, 0, 78, 78, []),
    ]


def test_what_is_written_is_in_updates_and_snapshots_value_by_value() -> None:
    desk = ShareStateDesk(ShareStateConfig(share_coordinator_snapshot_update_records_per_snapshot=2))
    desk.initialize(start=4)
    began_ms = desk.now_ms
    desk.now_ms += 9
    desk.write((4, 6, AVAILABLE, 1), (5, 5, ACKNOWLEDGED, 1), complete=1, leader_epoch=5)
    desk.write((4, 4, ARCHIVED, 2), start=5, complete=3, leader_epoch=-1)
    desk.write((7, 7, ACKNOWLEDGED, 1), start=6, complete=2, leader_epoch=8)
    values = [record.value for record in desk.records()]
    assert values[0] == ShareSnapshotValue(0, 1, 0, 4, 0, began_ms, began_ms, [])
    batches = [
        UpdateBatch(4, 4, AVAILABLE, 1),
        UpdateBatch(5, 5, ACKNOWLEDGED, 1),
        UpdateBatch(6, 6, AVAILABLE, 1),
    ]
    assert isinstance(values[1], ShareUpdateValue)
    assert values[1].state_batches == batches
    assert [(one.snapshot_epoch, one.start_offset, one.delivery_complete_count) for one in values[1:3]] == [
        (0, -1, 1),
        (0, 5, 3),
    ]
    last = values[3]
    assert isinstance(last, ShareSnapshotValue)
    assert (last.snapshot_epoch, last.state_epoch, last.start_offset) == (1, 1, 6)
    assert (last.delivery_complete_count, last.create_timestamp, last.write_timestamp) == (
        2,
        desk.now_ms,
        desk.now_ms,
    )
    assert [(one.first_offset, one.last_offset, one.delivery_state) for one in last.state_batches] == [
        (6, 6, AVAILABLE),
        (7, 7, ACKNOWLEDGED),
    ]
    assert read_rows(desk.read(leader_epoch=-1)) == [(6, 6, AVAILABLE, 1), (7, 7, ACKNOWLEDGED, 1)]


def test_the_leader_epoch_is_that_of_the_last_that_told_one() -> None:
    desk = ShareStateDesk()
    desk.initialize()
    assert desk.summarize().leader_epoch == 0
    desk.read(leader_epoch=7)
    assert desk.summarize().leader_epoch == 7
    desk.write(leader_epoch=-1)
    assert desk.summarize().leader_epoch == 7
    desk.reload()
    assert desk.summarize().leader_epoch == 7
    assert desk.read(leader_epoch=6).error_code == ErrorCode.FENCED_LEADER_EPOCH


def test_an_update_whose_snapshot_is_gone_counts_as_all_that_is_known() -> None:
    desk = ShareStateDesk(ShareStateConfig(share_coordinator_snapshot_update_records_per_snapshot=2))
    key = SharePartitionKey("g", desk.topic_id, 1)
    change = SharePartitionState(
        snapshot_epoch=3,
        leader_epoch=6,
        start_offset=4,
        delivery_complete_count=2,
        batches=(StateBatch(4, 5, 1, ACKNOWLEDGED),),
    )
    desk.coordinator.shards[0].write(lambda: Outcome([update_record(key, change)]))
    desk.flush()
    for _ in range(2):
        (state,) = desk.states().values()
        assert state == SharePartitionState(
            snapshot_epoch=3,
            leader_epoch=6,
            start_offset=4,
            delivery_complete_count=2,
            batches=(StateBatch(4, 5, 1, ACKNOWLEDGED),),
            highest_leader_epoch=6,
            update_count=1,
        )
        desk.reload()
    desk.write(partition=1, leader_epoch=6)
    desk.write(partition=1, leader_epoch=6)
    kinds = [type(record.value) for record in desk.records()]
    assert kinds == [ShareUpdateValue, ShareUpdateValue, ShareSnapshotValue]


def test_the_time_of_a_write_is_that_until_its_answer() -> None:
    desk = ShareStateDesk()
    desk.initialize()
    times = desk.coordinator.write_times
    desk.is_held = True
    desk.read(leader_epoch=-1)
    for took_ms, average, longest in ((50, 50, 50), (250, 150, 250), (-100, 100, 250)):
        desk.is_held = True
        with pytest.raises(AssertionError, match="no answer yet"):
            desk.write()
        desk.now_ms += took_ms  # if the clock goes back, it took no time
        desk.release()
        assert (times.average(desk.now_ms), times.maximum(desk.now_ms)) == (average, longest)


def test_share_groups_are_off_until_the_cluster_has_them_and_reads_are_bounded() -> None:
    config = ShareStateConfig(share_coordinator_load_buffer_size=4321)
    desk = ShareStateDesk(config)
    assert ShareCoordinator(config, desk.topics).is_enabled is False
    desk.initialize()
    asked: list[ReadRecords] = []
    perform = desk.perform

    def noting(effects: list[Any]) -> None:
        asked.extend(one for one in effects if isinstance(one, ReadRecords))
        perform(effects)

    desk.perform = noting  # type: ignore[method-assign]
    desk.reload()
    assert [one.max_bytes for one in asked] == [4321]


def test_nothing_is_before_the_first_record() -> None:
    desk = ShareStateDesk(ShareStateConfig(share_coordinator_cold_partition_snapshot_interval_ms=DAY_MS))
    desk.initialize()
    desk.wait(3 * FIVE_MINUTES_MS)
    assert desk.pruned == []
    desk.initialize()
    desk.wait(3 * FIVE_MINUTES_MS)
    assert desk.pruned == [(0, 1)]


COLD = ShareStateConfig(share_coordinator_state_topic_prune_interval_ms=DAY_MS)


def test_only_what_is_at_rest_for_long_is_repeated_and_again_after_each_change() -> None:
    desk = ShareStateDesk(COLD)
    desk.wait(1)
    desk.initialize(0)
    desk.initialize(1)
    desk.wait(FIVE_MINUTES_MS - 2)
    desk.initialize(2)
    desk.wait(1)
    assert len(desk.records()) == 3  # the two are a millisecond too young
    repeated = []
    for is_changed in (False, False, True, False):
        count = len(desk.records())
        if is_changed:
            desk.initialize(0)
            count += 1
        desk.wait(FIVE_MINUTES_MS)
        repeated.append([record.key.partition for record in desk.records()[count:]])
    assert repeated == [[0, 1, 2], [], [0, 1, 2], []]
    values = [record.value for record in desk.records() if record.key.partition == 1]
    assert [value.snapshot_epoch for value in values] == [0, 1, 2]


@pytest.mark.parametrize("a_slice", [1, 2, 3, 4])
def test_many_share_partitions_are_repeated_and_removed_in_slices(
    a_slice: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shard, "KEYS_A_SLICE", a_slice)
    desk = ShareStateDesk(COLD)
    desk.topics.change("orders", 5)
    for partition in range(4):
        desk.initialize(partition)
    desk.wait(FIVE_MINUTES_MS)
    assert len(desk.records()) == 4 + a_slice
    due_ms = desk.coordinator.deadline_ms()
    assert due_ms is not None and (due_ms == desk.now_ms + 1) == (a_slice < 4)
    desk.delete(3)
    if a_slice < 4:
        desk.wait(1)
    desk.wait(3)
    repeated = [record.key.partition for record in desk.records()[4:] if record.value is not None]
    assert repeated == ([0, 1, 2] if a_slice < 4 else [0, 1, 2, 3])
    desk.step(TopicsDeleted({"orders": desk.topic_id}))
    desk.flush()
    assert len(desk.states()) == max(0, 3 - a_slice)
    desk.wait(0)
    assert not desk.states()


def test_what_is_repeated_or_removed_need_not_fit_into_a_batch() -> None:
    desk = ShareStateDesk(COLD)
    desk.topics.change("orders", 20)
    for partition in range(20):
        desk.initialize(partition)
    desk.coordinator.shards[0].limit_batches(400)
    desk.wait(FIVE_MINUTES_MS)
    for _ in range(20):
        desk.flush()
    assert len(desk.records()) == 40
    desk.step(TopicsDeleted({"orders": desk.topic_id}))
    for _ in range(20):
        desk.flush()
    assert len(desk.records()) == 60 and not desk.states()


def rows(*batches: tuple[int, int, int]) -> tuple[StateBatch, ...]:
    """Batches of first and last offset, and delivery count."""
    return tuple(StateBatch(first, last, count, AVAILABLE) for first, last, count in batches)


@pytest.mark.parametrize(
    ("former", "newer", "start", "expected"),
    [
        # A batch that both overlaps and touches others joins those of its rank.
        ([(4, 4, 2), (5, 8, 1)], [(5, 5, 2)], -1, [(4, 5, 2), (6, 8, 1)]),
        ([(0, 3, 1), (4, 4, 2), (5, 8, 1)], [(5, 5, 2)], -1, [(0, 3, 1), (4, 5, 2), (6, 8, 1)]),
        ([(0, 3, 1), (6, 8, 1)], [(4, 5, 1)], -1, [(0, 8, 1)]),
        ([(0, 2, 1), (7, 8, 1)], [(4, 5, 1)], -1, [(0, 2, 1), (4, 5, 1), (7, 8, 1)]),
        ([(0, 9, 3)], [(4, 5, 1)], -1, [(0, 9, 3)]),
        ([(0, 9, 1)], [(4, 5, 3)], -1, [(0, 3, 1), (4, 5, 3), (6, 9, 1)]),
        ([], [(5, 5, 1), (3, 6, 1), (7, 9, 1)], -1, [(3, 9, 1)]),
        ([], [(0, 0, 1), (1, 1, 1), (2, 2, 2), (4, 4, 2)], -1, [(0, 1, 1), (2, 2, 2), (4, 4, 2)]),
        ([(0, 4, 1), (6, 9, 1)], [], 3, [(3, 4, 1), (6, 9, 1)]),
        ([(0, 4, 1), (6, 9, 1)], [], 4, [(4, 4, 1), (6, 9, 1)]),
        ([(0, 4, 1), (6, 9, 1)], [], 5, [(6, 9, 1)]),
        ([(0, 4, 1), (6, 9, 1)], [], 6, [(6, 9, 1)]),
        ([(0, 4, 1), (6, 9, 1)], [(8, 8, 2)], 10, []),
        ([(0, 4, 1)], [(0, 0, 2)], 0, [(0, 0, 2), (1, 4, 1)]),
    ],
)
def test_neighbours_of_one_rank_are_one_batch_and_none_is_before_the_start(
    former: Any, newer: Any, start: int, expected: Any
) -> None:
    assert combined(rows(*former), rows(*newer), start) == rows(*expected)


def test_only_the_batches_that_meet_a_newer_one_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """There may be thousands; members acknowledge record by record."""
    looked: list[int] = []
    laid_over = state_batches._laid_over

    def counting(some: list[StateBatch], batch: StateBatch) -> list[StateBatch]:
        looked.append(len(some))
        return laid_over(some, batch)

    monkeypatch.setattr(state_batches, "_laid_over", counting)
    former = rows(*((offset, offset, 1) for offset in range(0, 3000, 3)))
    newer = rows(*((offset, offset, 1) for offset in range(1501, 1602)))
    result = combined(former, newer, -1)
    assert looked == [35]  # those from 1500 to 1602, in one go
    assert len(result) == 1000 - 34 and result[500] == StateBatch(1500, 1602, 1, AVAILABLE)
