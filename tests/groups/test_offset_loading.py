"""Records of committed offsets that are read in a row leave what each record by itself leaves."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from kraftd.groups.offsets.loading import apply_offsets
from kraftd.groups.records import KeyAndValue, encode_record, encode_value, offset_record
from kraftd.groups.shard import ShardStatus
from kraftd.messages.offset_commit_value import OffsetCommitValue
from kraftd.types import ZERO_UUID
from tests.groups.desk import Desk
from tests.groups.requests import fetch

GROUPS = ("g", "h", "ä" * 3)


def drawn(random: Random) -> KeyAndValue:
    """A record of an offset: mostly of the form that is written now, some older, odd or tombstones."""
    group, topic, partition = random.choice(GROUPS), random.choice(("orders", "audit")), random.randrange(3)
    topic_id = random.choice((b"\1" * 16, b"\2" * 16, ZERO_UUID))
    metadata = random.choice(("", "", "", "x", "y" * 200))
    value = OffsetCommitValue(
        random.getrandbits(63), random.randrange(-1, 1 << 31), metadata, random.getrandbits(40), -1, topic_id
    )
    kind = random.randrange(8)
    if kind == 0:
        return encode_record(offset_record(group, topic, partition, None))
    key, encoded = encode_record(offset_record(group, topic, partition, value))
    if kind == 1:
        value.topic_id = ZERO_UUID
        encoded = encode_value(value, random.randrange(1, 4))
    if kind == 2 and encoded is not None:
        encoded += b"more"  # which is passed over
    return key, encoded


def loaded(log: list[KeyAndValue], committed: int, *, in_a_row: bool) -> Desk:
    desk = Desk()
    desk.logs[0] = [(one, -1) for one in log]
    desk.committed[0] = committed
    if not in_a_row:
        desk.new_coordinator = lambda: one_by_one(Desk.new_coordinator(desk))  # type: ignore[method-assign]
    desk.reload()
    assert desk.coordinator.shards[0].status is ShardStatus.ACTIVE, desk.notes
    return desk


def one_by_one(coordinator: Any) -> Any:
    make = coordinator.new_shard

    def new_shard(partition: int, leader_epoch: int) -> Any:
        shard = make(partition, leader_epoch)
        shard.on_loaded_in_a_row = lambda records: 0
        return shard

    coordinator.new_shard = new_shard
    return coordinator


@pytest.mark.parametrize("seed", range(30))
def test_offsets_read_in_a_row_are_those_read_one_by_one(seed: int) -> None:
    random = Random(seed)
    log = [drawn(random) for _ in range(300)]
    committed = random.choice((0, 150, 300))
    first, second = (loaded(log, committed, in_a_row=in_a_row) for in_a_row in (True, False))
    states = [desk.coordinator.shards[0].state for desk in (first, second)]
    assert states[0].offsets.by_group == states[1].offsets.by_group
    assert states[0].groups.keys() == states[1].groups.keys()
    for group in GROUPS:
        assert list(states[0].offsets.committed(group)) == list(states[1].offsets.committed(group))
        assert first.ask(fetch(group), 8) == second.ask(fetch(group), 8)
    for desk in (first, second):
        desk.coordinator.shards[0].timeline.revert(committed)
    assert states[0].offsets.by_group == states[1].offsets.by_group


def test_names_and_topic_ids_are_shared() -> None:
    desk = Desk()
    value = OffsetCommitValue(5, 1, "", 7, -1, b"\1" * 16)
    rows = [
        (number, 0, *encode_record(offset_record("g", "orders", number, value)), ()) for number in range(3)
    ]
    state = desk.coordinator.shards[0].state
    assert apply_offsets(state, rows, {}) == 3
    (first, one), (second, other), _ = state.offsets.by_group["g"].items()
    assert first[0] is second[0]
    assert one.topic_id is other.topic_id
