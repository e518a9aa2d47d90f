"""`partitions`, `partition_history`, `partition_changes` and `isr_history`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from kraftd.spark.replay.source import Replay, in_log, in_order, lasted, validity, with_next, without
from kraftd.spark.replay.topics import topic_lives
from kraftd.spark.tables.columns import Row, Rows
from kraftd.spark.tables.partitions import COLUMNS, KEPT, KEY, OLD, TYPES
from kraftd.types import DIRECTORY_MIGRATING, uuid_text

_ELRS = ("eligible_leader_replicas", "last_known_elr")
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
            states[key] = _after(states.get(key), change)
            found.append(states[key])
    for row in with_next(found, *KEY):
        life = lives.get(row["topic_id"], _NO_LIFE)
        row |= {"topic_name": life["name"], "created_offset": life["created_offset"]}
        row |= {name: life[name] for name in ("removed_offset", "removed_timestamp_ms")}
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


def _after(before: Row | None, change: Row) -> Row:
    """A partition after a record: what that omits keeps its value."""
    is_new = change["type"] == "PartitionRecord"
    old = dict.fromkeys(KEPT) if before is None else before
    row = {name: change[name] for name in ("offset", "epoch", "timestamp_ms", "batch_offset", "type", *KEY)}
    if is_new:
        change |= {name: change[name] or [] for name in _ELRS}
    row |= {name: old[name] if change[name] is None else change[name] for name in KEPT}
    told = change["directories"]
    row["told_directories"] = old.get("told_directories") if told is None else told
    row["directories"] = _directories(row["told_directories"], row["replicas"])
    named = {
        "leader": change["leader"] if change["leader"] != -2 else None,
        "leader_recovery_state": (
            change["leader_recovery_state"] if change["leader_recovery_state"] != -1 else None
        ),
    }
    row |= {name: old.get(name) if value is None else value for name, value in named.items()}
    if is_new:
        row |= {name: change[name] for name in ("leader_epoch", "partition_epoch")}
    else:
        row["leader_epoch"] = _plus(old.get("leader_epoch"), named["leader"] is not None)
        row["partition_epoch"] = _plus(old.get("partition_epoch"), True)
    return row | {f"old_{name}": old.get(name) for name in OLD}


def _plus(epoch: int | None, changes: bool) -> int | None:
    return None if epoch is None else epoch + changes


def _directories(told: list[str] | None, replicas: list[int] | None) -> list[str] | None:
    """The directory of each replica: a record without directories is of a version before KIP-858."""
    migrating = uuid_text(DIRECTORY_MIGRATING)
    if told is not None and any(one != migrating for one in told):
        return told
    return None if replicas is None else [migrating] * len(replicas)


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
    return [row | validity(row) for row in partition_replay(replay, whole=True)]


def partition_changes(replay: Replay) -> Rows:
    return replay.shared("partition_changes", _changes)


def _changes(replay: Replay) -> Rows:
    new = ("leader", "isr", "replicas")
    return [
        row | {f"new_{name}": row[name] for name in new}
        for row in partition_replay(replay, whole=True)
        if row["type"] == "PartitionChangeRecord"
    ]


def isr_history(replay: Replay) -> Rows:
    found = []
    for row in with_next(_steps(partition_replay(replay, whole=True)), *KEY, "broker_id"):
        if row["joins"]:
            period = validity(until_removed(row))
            found.append(row | period | lasted(period))
    return found


def _steps(rows: Iterable[Row]) -> Iterator[Row]:
    """The brokers that joined or left the ISR with each record."""
    names = ("offset", "timestamp_ms", *KEY, "topic_name", "removed_offset", "removed_timestamp_ms")
    for row in rows:
        if row["isr"] is None:
            continue
        before = row["old_isr"] or []
        steps = [(broker, True) for broker in without(row["isr"], before)]
        steps += [(broker, False) for broker in without(before, row["isr"])]
        for broker, joins in steps:
            yield {name: row[name] for name in names} | {"broker_id": broker, "joins": joins}
