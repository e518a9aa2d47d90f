"""`partitions`, `partition_history`, `partition_changes` and `isr_history`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kraftd.spark.replay.source import Replay, in_log, in_order, passed, validity, without
from kraftd.spark.replay.topics import topic_lives
from kraftd.spark.tables.columns import Row, Rows
from kraftd.spark.tables.filling import COLUMNS, KEPT, KEY, TYPES
from kraftd.spark.tables.partitions import OLD
from kraftd.types import DIRECTORY_MIGRATING, uuid_text

_ELRS = ("eligible_leader_replicas", "last_known_elr")
_OLD = [(f"old_{name}", name) for name in OLD]
_NOTHING = dict.fromkeys((*KEPT, *OLD, "told_directories", "leader_epoch", "partition_epoch"))
_MIGRATING = uuid_text(DIRECTORY_MIGRATING)
_NO_LIFE = dict.fromkeys(("name", "created_offset", "removed_offset", "removed_timestamp_ms"))


def partition_replay(replay: Replay, *, whole: bool) -> Rows:
    """Every partition after each of its records, as `kraftd.spark.tables.partitions.partition_replay`."""
    if whole:
        return replay.shared("partition_replay", lambda replay: _replay(replay, whole=True))
    return _replay(replay, whole=False)


def _replay(replay: Replay, *, whole: bool) -> Rows:
    read = replay.history if whole else replay.state
    lives = topic_lives(replay, whole=whole)
    rows = in_order(
        [
            *read(COLUMNS, TYPES, dated_by=() if whole else KEY),
            *read([*COLUMNS, "topic_name"], ["ClearElrRecord"]),
        ]
    )
    states: dict[Any, Row] = {}
    found = []
    for row in rows:
        changes = _cleared(row, states, lives) if row["type"] == "ClearElrRecord" else [row]
        for change in changes:
            key = change["topic_id"], change["partition_id"]
            before = states.get(key)
            if before is not None:
                before["next_offset"], before["next_ms"] = change["offset"], change["timestamp_ms"]
            states[key] = _after(before, change)
            found.append(change)
    for row in found:
        life = lives.get(row["topic_id"], _NO_LIFE)
        row["topic_name"], row["created_offset"] = life["name"], life["created_offset"]
        row["removed_offset"] = life["removed_offset"]
        row["removed_timestamp_ms"] = life["removed_timestamp_ms"]
        until_removed(row)
    return found


def _cleared(clear: Row, states: dict[Any, Row], lives: dict[str, Row]) -> Iterator[Row]:
    """A record of its own for each partition that a ClearElrRecord changes."""
    for (topic_id, partition_id), state in states.items():
        life = lives.get(topic_id)
        if life is None or not any(state[name] for name in _ELRS):
            continue
        removed = life["removed_offset"]
        is_meant = clear["topic_name"] in ("", life["name"])
        if is_meant and (removed is None or clear["offset"] < removed):
            key = {"topic_id": topic_id, "partition_id": partition_id}
            yield dict.fromkeys(COLUMNS) | clear | key | {name: [] for name in _ELRS}


def _after(before: Row | None, row: Row) -> Row:
    """A partition after a record, which is filled up: what it omits keeps its value."""
    is_new = row["type"] == "PartitionRecord"
    old = _NOTHING if before is None else before
    if is_new:
        for name in _ELRS:
            row[name] = row[name] or []
    told = row["told_directories"] = (
        old["told_directories"] if row["directories"] is None else row["directories"]
    )
    for name in KEPT:
        if row[name] is None:
            row[name] = old[name]
    row["directories"] = _directories(told, row["replicas"])
    names_leader = row["leader"] is not None and row["leader"] != -2
    if not names_leader:
        row["leader"] = old["leader"]
    if row["leader_recovery_state"] in (None, -1):
        row["leader_recovery_state"] = old["leader_recovery_state"]
    if not is_new:
        row["leader_epoch"] = _plus(old["leader_epoch"], names_leader)
        row["partition_epoch"] = _plus(old["partition_epoch"], True)
    for old_name, name in _OLD:
        row[old_name] = old[name]
    row["next_offset"] = row["next_ms"] = None
    return row


def _plus(epoch: int | None, changes: bool) -> int | None:
    return None if epoch is None else epoch + changes


def _directories(told: list[str] | None, replicas: list[int] | None) -> list[str] | None:
    """The directory of each replica: a record without directories is of a version before KIP-858."""
    if told is not None and told.count(_MIGRATING) < len(told):
        return told
    return None if replicas is None else [_MIGRATING] * len(replicas)


def until_removed(row: Row) -> Row:
    """The row; where no record follows, the removal of the topic does."""
    for name, end in (("next_offset", "removed_offset"), ("next_ms", "removed_timestamp_ms")):
        if row[name] is None:
            row[name] = row[end]
    return row


def partitions(replay: Replay) -> Rows:
    rows = partition_replay(replay, whole=replay.extent.replays_history)
    return [
        row | {"changed_offset": in_log(row)}
        for row in rows
        if row["next_offset"] is None and row["topic_name"] is not None
    ]


def partition_history(replay: Replay) -> Rows:
    rows = partition_replay(replay, whole=True)
    for row in rows:
        row |= validity(row)
    return rows


def partition_changes(replay: Replay) -> Rows:
    return replay.shared("partition_changes", _changes)


def _changes(replay: Replay) -> Rows:
    rows = [row for row in partition_replay(replay, whole=True) if row["type"] == "PartitionChangeRecord"]
    for row in rows:
        row |= {"new_leader": row["leader"], "new_isr": row["isr"], "new_replicas": row["replicas"]}
    return rows


def isr_history(replay: Replay) -> Rows:
    """The periods by broker of each partition, in their order."""
    found: dict[tuple[str, int, int], Rows] = {}
    for row in partition_replay(replay, whole=True):
        before = row["old_isr"] or []
        if row["isr"] is None or row["isr"] == before:
            continue
        for broker in without(row["isr"], before):
            key = row["topic_id"], row["partition_id"], broker
            found.setdefault(key, []).append(_membership(row, broker))
        for broker in without(before, row["isr"]):
            period = found[row["topic_id"], row["partition_id"], broker][-1]
            period["valid_to_offset"], period["valid_to_ms"] = row["offset"], row["timestamp_ms"]
    periods = [period for own in found.values() for period in own]
    for period in periods:
        period["duration_ms"] = passed(period["valid_from_ms"], period["valid_to_ms"])
    return periods


def _membership(row: Row, broker_id: int) -> Row:
    """A broker's time in an ISR from a record on, as if the broker stayed until the topic's removal."""
    return {
        "topic_id": row["topic_id"],
        "topic_name": row["topic_name"],
        "partition_id": row["partition_id"],
        "broker_id": broker_id,
        "valid_from_offset": in_log(row),
        "valid_from_ms": in_log(row, "timestamp_ms"),
        "valid_to_offset": row["removed_offset"],
        "valid_to_ms": row["removed_timestamp_ms"],
    }
