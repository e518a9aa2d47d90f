"""Records of committed offsets that are read in a row leave what each record by itself leaves."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from kraftd.groups.offsets import loading
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


def rows_of(*encoded: KeyAndValue) -> list[tuple[Any, ...]]:
    """Records as a batch has them."""
    return [(number, 0, key, value, ()) for number, (key, value) in enumerate(encoded)]


def plain(topic: str = "orders", group: str = "g", **changes: Any) -> KeyAndValue:
    """An offset in the form that is written now."""
    value = OffsetCommitValue(5, 1, "", 7, -1, b"\1" * 16)
    for name, content in changes.items():
        setattr(value, name, content)
    return encode_record(offset_record(group, topic, 0, value))


KEY, VALUE = plain()
assert VALUE is not None

ODD: dict[str, KeyAndValue] = {
    "a tombstone": (KEY, None),
    "metadata": plain(metadata="x"),
    "one byte less": (KEY, VALUE[:-1]),
    "another version": (KEY, b"\0\3" + VALUE[2:]),
    "another length of the text": (KEY, VALUE[:14] + b"\2" + VALUE[15:]),
    "another tag": (KEY, VALUE[:23] + b"\1\1\x10" + VALUE[26:]),
    "a key without an end": (KEY[:-1], VALUE),
    "a key with more bytes": (KEY + b"\0", VALUE),
    "a key of four bytes": (KEY[:4], VALUE),
    "no key": (None, VALUE),  # type: ignore[dict-item]
    "a group's key": (b"\0\2" + KEY[2:], VALUE),
}


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("number", [0, 2])
def test_a_row_ends_before_a_record_of_another_form(name: str, number: int) -> None:
    desk = Desk()
    state = desk.coordinator.shards[0].state
    assert apply_offsets(state, rows_of(*[plain()] * number, ODD[name], plain("audit")), {}) == number
    assert list(state.offsets.of_group("g")) == [("orders", 0)][:number]
    assert list(state.groups) == ["g"][:number]


def test_names_are_remembered_by_their_bytes_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "MOST_NAMES", 2)
    state = Desk().coordinator.shards[0].state
    known: loading.Names = {}
    topics = ["t1", "t2", "t1", "t2"]
    assert apply_offsets(state, rows_of(*map(plain, topics)), known) == 4
    assert list(known.values()) == [("g", "t1"), ("g", "t2")]
    assert list(state.offsets.of_group("g")) == [("t1", 0), ("t2", 0)]
    odd = dict.fromkeys(known, ("other", "name"))  # what is remembered is not read again
    apply_offsets(state, rows_of(plain("t1")), odd)
    assert list(state.offsets.of_group("other")) == [("name", 0)]
    apply_offsets(state, rows_of(plain("t3"), plain("t1", "h")), known)
    assert list(known.values()) == [("g", "t3"), ("h", "t1")]
    assert set(state.groups) == {"g", "h", "other"}
