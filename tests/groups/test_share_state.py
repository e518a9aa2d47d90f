"""The share coordinator: what is written, which epochs fence, what the log keeps (KIP-932)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from kraftd.groups.events import PartitionResigned, TopicsDeleted
from kraftd.groups.share_state import operations, shard
from kraftd.groups.share_state.config import ShareStateConfig
from kraftd.groups.share_state.shard import ShareStateShard
from kraftd.groups.share_state.state_batches import StateBatch, combined
from kraftd.messages import initialize_share_group_state_request
from kraftd.messages.share_snapshot_key import ShareSnapshotKey
from kraftd.messages.share_snapshot_value import ShareSnapshotValue
from kraftd.messages.share_update_value import ShareUpdateValue
from kraftd.messages.write_share_group_state_request import (
    PartitionData,
    WriteShareGroupStateRequest,
    WriteStateData,
)
from kraftd.wire.error_code import ErrorCode
from tests.groups.share_state_desk import Row, ShareStateDesk, read_rows

AVAILABLE, ACKNOWLEDGED, ARCHIVED = 0, 2, 4
DAY_MS = 24 * 60 * 60 * 1000
FIVE_MINUTES_MS = 5 * 60 * 1000


def test_what_is_written_is_read_after_another_broker_has_loaded_it() -> None:
    desk = ShareStateDesk()
    assert desk.initialize(start=3).error_code == ErrorCode.NONE
    assert desk.write((3, 5, ACKNOWLEDGED, 1), (6, 9, AVAILABLE, 2)).error_code == ErrorCode.NONE
    assert desk.write((6, 7, ARCHIVED, 3), start=6, complete=2).error_code == ErrorCode.NONE
    expected = [(6, 7, ARCHIVED, 3), (8, 9, AVAILABLE, 2)]
    for _ in range(2):
        row = desk.read(leader_epoch=-1)
        assert (row.start_offset, row.state_epoch, read_rows(row)) == (6, 1, expected)
        summary = desk.summarize()
        assert (summary.start_offset, summary.delivery_complete_count, summary.state_epoch) == (6, 2, 1)
        desk.reload()
    kinds = [type(record.value) for record in desk.records()]
    assert kinds == [ShareSnapshotValue, ShareUpdateValue, ShareUpdateValue]


def test_a_share_partition_that_is_not_initialized_is_neither_read_nor_written() -> None:
    desk = ShareStateDesk()
    for row, what in ((desk.write(), "Write"), (desk.read(), "Read")):
        assert row.error_code == ErrorCode.INVALID_REQUEST
        assert row.error_message == f"{what} operation on uninitialized share partition not allowed."
    summary = desk.summarize()
    assert (summary.error_code, summary.start_offset, summary.delivery_complete_count) == (0, -1, -1)
    assert desk.delete().error_code == ErrorCode.NONE
    assert not desk.logs[0]


def test_earlier_epochs_are_fenced() -> None:
    desk = ShareStateDesk()
    desk.initialize(state_epoch=4)
    assert desk.initialize(state_epoch=3).error_code == ErrorCode.FENCED_STATE_EPOCH
    assert desk.write(state_epoch=3).error_code == ErrorCode.FENCED_STATE_EPOCH
    assert desk.read(leader_epoch=7).error_code == ErrorCode.NONE  # notes the epoch
    count = len(desk.logs[0])
    assert desk.read(leader_epoch=7).error_code == ErrorCode.NONE
    assert len(desk.logs[0]) == count
    assert desk.write(state_epoch=4, leader_epoch=6).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert desk.read(leader_epoch=6).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert desk.write(state_epoch=-1, leader_epoch=-1).error_code == ErrorCode.NONE
    desk.initialize(state_epoch=5, start=100)  # does not let former leaders in
    desk.reload()
    assert desk.write(state_epoch=5, leader_epoch=6).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert desk.write(state_epoch=4, leader_epoch=7).error_code == ErrorCode.FENCED_STATE_EPOCH
    assert desk.summarize().start_offset == 100


def test_a_read_that_notes_a_leader_epoch_counts_as_a_write() -> None:
    desk = ShareStateDesk()
    desk.initialize()
    desk.write()
    desk.read(leader_epoch=-1)
    assert desk.coordinator.write_count == 1
    for _ in range(2):
        desk.read(leader_epoch=7)
    assert desk.coordinator.write_count == 2
    assert desk.read(leader_epoch=6).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert desk.write(leader_epoch=6).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert desk.coordinator.write_count == 3  # of the refused ones, the write


def test_a_snapshot_follows_after_so_many_updates() -> None:
    desk = ShareStateDesk(ShareStateConfig(share_coordinator_snapshot_update_records_per_snapshot=2))
    desk.initialize()
    for offset in range(6):
        desk.write((offset, offset, ACKNOWLEDGED, 1))
    values = [record.value for record in desk.records()]
    kinds = ["s" if isinstance(value, ShareSnapshotValue) else "u" for value in values]
    assert "".join(kinds) == "suusuus"
    assert [value.snapshot_epoch for value in values] == [0, 0, 0, 1, 1, 1, 2]
    assert [(row.first_offset, row.last_offset) for row in values[3].state_batches] == [(0, 2)]


def test_a_snapshot_keeps_the_start_unless_a_write_names_another() -> None:
    desk = ShareStateDesk(ShareStateConfig(share_coordinator_snapshot_update_records_per_snapshot=0))
    desk.initialize(start=3)
    desk.write((3, 9, AVAILABLE, 1))
    assert (desk.summarize().start_offset, read_rows(desk.read())) == (3, [(3, 9, AVAILABLE, 1)])
    desk.write((8, 9, ACKNOWLEDGED, 1), start=5)
    rows = [(5, 7, AVAILABLE, 1), (8, 9, ACKNOWLEDGED, 1)]
    assert (desk.summarize().start_offset, read_rows(desk.read())) == (5, rows)
    assert all(isinstance(record.value, ShareSnapshotValue) for record in desk.records())


def test_a_request_of_several_partitions_is_answered_whole() -> None:
    desk = ShareStateDesk(partition_count=3)
    for partition in range(3):
        desk.initialize(partition)
    rows = [PartitionData(partition, 1, 0, partition) for partition in (2, 0, -1, 9, 1)]
    desk.is_held = True
    number = desk.send(WriteShareGroupStateRequest("g", [WriteStateData(desk.topic_id, rows)]), 1)
    assert number not in desk.answers
    desk.release()
    answer: Any = desk.answers[number]
    (topic,) = answer.results
    invalid = ErrorCode.INVALID_REQUEST
    assert [(row.partition, row.error_code) for row in topic.partitions] == [
        (2, 0),
        (0, 0),
        (-1, invalid),
        (9, invalid),  # as of one that is not initialized
        (1, 0),
    ]
    assert desk.initialize(9).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    for empty in (
        WriteShareGroupStateRequest("", [WriteStateData(desk.topic_id, rows)]),
        WriteShareGroupStateRequest("g", []),
        WriteShareGroupStateRequest("g", [WriteStateData(desk.topic_id, [])]),
    ):
        assert desk.ask(empty, 1).results == []


def test_topics_without_partitions_are_left_out_where_partitions_begin__kip932() -> None:
    desk = ShareStateDesk()
    rows = [initialize_share_group_state_request.PartitionData(0, 1, 0)]
    begins = [
        initialize_share_group_state_request.InitializeStateData(desk.topic_id, rows),
        initialize_share_group_state_request.InitializeStateData(bytes(16), []),
    ]
    request = initialize_share_group_state_request.InitializeShareGroupStateRequest("g", begins)
    (topic,) = desk.ask(request, 0).results
    assert (topic.topic_id, topic.partitions[0].error_code) == (desk.topic_id, 0)
    writes = [
        WriteStateData(desk.topic_id, [PartitionData(0, 1, 0, 0)]),
        WriteStateData(bytes(16), []),
    ]
    assert desk.ask(WriteShareGroupStateRequest("g", writes), 1).results == []


def test_a_broker_that_does_not_lead_refuses() -> None:
    desk = ShareStateDesk()
    desk.initialize()
    desk.failure = ErrorCode.NOT_ENOUGH_REPLICAS
    row = desk.write((0, 0, ACKNOWLEDGED, 1))
    assert row.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert row.error_message.startswith("Unable to write share group state: ")
    desk.failure = None
    assert read_rows(desk.read()) == []  # what was refused is not kept
    desk.step(PartitionResigned(0))
    assert desk.write().error_code == ErrorCode.NOT_COORDINATOR


def test_records_that_later_snapshots_repeat_are_pruned() -> None:
    config = ShareStateConfig(
        share_coordinator_snapshot_update_records_per_snapshot=1,
        share_coordinator_cold_partition_snapshot_interval_ms=DAY_MS,
    )
    desk = ShareStateDesk(config)
    desk.wait(FIVE_MINUTES_MS)
    assert not desk.pruned
    desk.initialize(0)
    desk.initialize(1)
    desk.write((0, 0, ACKNOWLEDGED, 1))
    desk.write((1, 1, ACKNOWLEDGED, 1))  # a snapshot, at 3
    desk.wait(FIVE_MINUTES_MS)
    assert desk.pruned == [(0, 1)]  # partition 1 has not moved
    desk.delete(1)
    desk.wait(2 * FIVE_MINUTES_MS)
    assert desk.pruned == [(0, 1), (0, 3)]
    desk.delete(0)
    desk.wait(FIVE_MINUTES_MS)
    assert desk.pruned[-1] == (0, 5)  # the last tombstone stays


def test_a_share_partition_at_rest_is_written_anew() -> None:
    desk = ShareStateDesk(ShareStateConfig(share_coordinator_state_topic_prune_interval_ms=DAY_MS))
    desk.initialize(0, start=7)
    desk.initialize(1)
    desk.wait(FIVE_MINUTES_MS)
    again = [record.value for record in desk.records()[2:]]
    assert [(value.snapshot_epoch, value.start_offset) for value in again] == [(1, 7), (1, 0)]
    assert [value.write_timestamp - value.create_timestamp for value in again] == [FIVE_MINUTES_MS] * 2
    desk.wait(DAY_MS // 2)
    assert len(desk.records()) == 4  # all are at rest


def test_without_share_groups_nothing_is_pruned_or_repeated() -> None:
    desk = ShareStateDesk()
    desk.coordinator.is_enabled = False
    desk.initialize(0)
    desk.initialize(0)
    desk.wait(3 * FIVE_MINUTES_MS)
    assert len(desk.records()) == 2 and not desk.pruned


def test_many_share_partitions_are_forgotten_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard, "KEYS_A_SLICE", 1)
    desk = ShareStateDesk()
    desk.initialize(0)
    desk.initialize(1)
    desk.step(TopicsDeleted({"a": desk.topic_id}))
    desk.flush()
    assert len(desk.states()) == 1
    desk.wait(1)
    assert not desk.states()


def test_the_share_partitions_of_deleted_topics_are_forgotten() -> None:
    desk = ShareStateDesk()
    desk.initialize(0)
    desk.initialize(1)
    desk.step(TopicsDeleted({"a": b"\2" * 16}))
    desk.flush()
    assert len(desk.states()) == 2
    desk.step(TopicsDeleted({"a": desk.topic_id}))
    desk.flush()
    assert not desk.states()
    tombstones = desk.records()[2:]
    assert [(record.key, record.value) for record in tombstones] == [
        (ShareSnapshotKey("g", desk.topic_id, partition), None) for partition in (0, 1)
    ]


# Batches laid over each other, beside a model with one entry an offset

batch_rows = st.tuples(
    st.integers(0, 12), st.integers(0, 5), st.integers(0, 2), st.sampled_from([0, 2, 4])
).map(lambda row: StateBatch(row[0], row[0] + row[1], row[2], row[3]))


def by_offset(batches: list[StateBatch], start: int) -> dict[int, tuple[int, int]]:
    ranks: dict[int, tuple[int, int]] = {}
    for batch in batches:
        for offset in range(max(batch.first_offset, start), batch.last_offset + 1):
            ranks[offset] = max(batch.rank, ranks.get(offset, batch.rank))
    return ranks


@settings(max_examples=100, deadline=None)
@given(st.lists(batch_rows, max_size=6), st.lists(batch_rows, max_size=6), st.integers(-1, 12))
def test_the_later_delivery_holds_at_each_offset(
    former: list[StateBatch], newer: list[StateBatch], start: int
) -> None:
    result = combined(combined((), former, -1), newer, start)
    assert by_offset(list(result), -1) == by_offset([*former, *newer], start)
    for one, next in pairwise(result):
        assert one.last_offset < next.first_offset
        assert one.last_offset + 1 < next.first_offset or one.rank != next.rank


# The coordinator beside a model


class ShareStateMachine(RuleBasedStateMachine):
    """Random requests, failed appends and changes of the leader, beside what one entry an offset says."""

    def __init__(self) -> None:
        super().__init__()
        self.desk = ShareStateDesk(ShareStateConfig(share_coordinator_snapshot_update_records_per_snapshot=3))
        self.offsets: dict[int, dict[int, tuple[int, int]]] = {}
        self.starts: dict[int, int] = {}
        self.epochs: dict[int, tuple[int, int]] = {}  # state and leader epoch, the highest

    @rule(partition=st.integers(0, 1), epoch=st.integers(1, 4), start=st.integers(-1, 8))
    def initialize(self, partition: int, epoch: int, start: int) -> None:
        error = self.desk.initialize(partition, epoch, start).error_code
        state, leader = self.epochs.get(partition, (-1, -1))
        assert (error == ErrorCode.FENCED_STATE_EPOCH) == (epoch < state)
        if not error:
            self.offsets[partition], self.starts[partition] = {}, start
            self.epochs[partition] = epoch, max(leader, 0)

    @rule(
        partition=st.integers(0, 1),
        epochs=st.tuples(st.integers(-1, 4), st.integers(-1, 4)),
        start=st.integers(-1, 12),
        rows=st.lists(batch_rows, max_size=3),
        fails=st.booleans(),
    )
    def write(
        self,
        partition: int,
        epochs: tuple[int, int],
        start: int,
        rows: list[StateBatch],
        fails: bool,
    ) -> None:
        self.desk.failure = ErrorCode.NOT_ENOUGH_REPLICAS if fails else None
        state_epoch, leader_epoch = epochs
        asked: list[Row] = [(row[0], row[1], row[3], row[2]) for row in rows]
        row = self.desk.write(
            *asked, partition=partition, state_epoch=state_epoch, leader_epoch=leader_epoch, start=start
        )
        self.desk.failure = None
        if partition not in self.starts:
            assert row.error_code == ErrorCode.INVALID_REQUEST
            return
        state, leader = self.epochs[partition]
        if -1 < leader_epoch < leader:
            assert row.error_code == ErrorCode.FENCED_LEADER_EPOCH
        elif -1 < state_epoch < state:
            assert row.error_code == ErrorCode.FENCED_STATE_EPOCH
        elif fails:
            assert row.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        else:
            assert row.error_code == ErrorCode.NONE
            start = self.starts[partition] = self.starts[partition] if start == -1 else start
            former = [StateBatch(offset, offset, *rank) for offset, rank in self.offsets[partition].items()]
            self.offsets[partition] = by_offset([*former, *rows], start)

    @rule(partition=st.integers(0, 1), leader_epoch=st.integers(-1, 4))
    def read(self, partition: int, leader_epoch: int) -> None:
        row = self.desk.read(partition, leader_epoch)
        if partition not in self.starts:
            assert row.error_code == ErrorCode.INVALID_REQUEST
            return
        state, leader = self.epochs[partition]
        assert (row.error_code == ErrorCode.FENCED_LEADER_EPOCH) == (-1 < leader_epoch < leader)
        if not row.error_code:
            assert (row.state_epoch, row.start_offset) == (state, self.starts[partition])
            self.epochs[partition] = state, max(leader, leader_epoch)

    @rule(partition=st.integers(0, 1))
    def delete(self, partition: int) -> None:
        assert self.desk.delete(partition).error_code == ErrorCode.NONE
        for kept in (self.offsets, self.starts, self.epochs):
            kept.pop(partition, None)

    @rule()
    def prune_and_reload(self) -> None:
        """What is pruned is missed by no later coordinator."""
        self.desk.wait(FIVE_MINUTES_MS)
        before = {key: state.batches for key, state in self.desk.states().items()}
        for number, offset in self.desk.pruned[-1:]:
            log = self.desk.logs[number]
            del log[: max(0, offset - self.start)]
            self.start = max(self.start, offset)
        self.load_pruned()
        assert {key: state.batches for key, state in self.desk.states().items()} == before

    start = 0

    def load_pruned(self) -> None:
        """Begin again with what is left of the log, at offset 0: only its order counts."""
        self.start = 0
        self.desk.pruned.clear()
        self.desk.committed[0] = 0
        self.desk.reload()
        self.desk.commit()
        for key, state in self.desk.states().items():
            highest = state.highest_state_epoch, state.highest_leader_epoch
            self.epochs[key.partition] = highest  # of what is left

    @invariant()
    def the_state_is_that_of_the_model(self) -> None:
        states = {key.partition: state for key, state in self.desk.states().items()}
        assert states.keys() == self.starts.keys()
        for partition, state in states.items():
            assert state.start_offset == self.starts[partition]
            assert by_offset(list(state.batches), -1) == self.offsets[partition]


def run_machine(examples: int) -> None:
    run_state_machine_as_test(
        ShareStateMachine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=25,
            deadline=None,
            phases=(Phase.generate,),
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_random_requests_agree_with_a_model() -> None:
    run_machine(40)


def unfenced(state: object, epoch: int) -> None:
    return None


def eager(shard: ShareStateShard) -> int | None:
    """Prune all but the newest snapshot, of whichever share partition."""
    return max(shard.snapshots.values(), default=None)


@pytest.mark.parametrize(
    ("where", "name", "defect"),
    [
        (operations, "fenced_leader", unfenced),
        (operations, "fenced_state", unfenced),
        (ShareStateShard, "redundant_before", eager),
    ],
    ids=["leaders are not fenced", "states are not fenced", "too much is pruned"],
)
def test_a_planted_defect_is_found(
    monkeypatch: pytest.MonkeyPatch, where: object, name: str, defect: object
) -> None:
    monkeypatch.setattr(where, name, defect)
    with pytest.raises(AssertionError):
        run_machine(200)
