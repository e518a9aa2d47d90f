"""`topics` and `topic_history`."""

from __future__ import annotations

from kraftd.spark.replay.source import Replay, in_log
from kraftd.spark.tables.columns import Row, Rows
from kraftd.spark.tables.topics import CREATED, REMOVED


def topic_lives(replay: Replay, *, whole: bool) -> dict[str, Row]:
    """By topic id: name, and created_* and removed_* offset and time."""
    if whole:
        return replay.shared("topic_lives", lambda replay: _lives(replay, whole=True))
    return _lives(replay, whole=False)


def _lives(replay: Replay, *, whole: bool) -> dict[str, Row]:
    read = replay.history if whole else replay.state
    rows = read(["topic_id", "name"], [CREATED, REMOVED], dated_by=["type", "topic_id"])
    found: dict[str, Row] = {}
    for row in rows:
        life = found.setdefault(row["topic_id"], dict.fromkeys(("name", *_PLACES)))
        if row["type"] == CREATED:
            life |= {"name": row["name"], "created_offset": in_log(row)}
            life["created_timestamp_ms"] = in_log(row, "timestamp_ms")
        else:
            life |= {"removed_offset": row["offset"], "removed_timestamp_ms": row["timestamp_ms"]}
    return found


_PLACES = ("created_offset", "created_timestamp_ms", "removed_offset", "removed_timestamp_ms")


def topics(replay: Replay) -> Rows:
    counts = replay.shared("partition_counts", partition_counts)
    return [
        life | {"topic_id": topic_id, "partition_count": counts.get(topic_id, 0)}
        for topic_id, life in topic_lives(replay, whole=replay.extent.replays_history).items()
        if life["removed_offset"] is None
    ]


def partition_counts(replay: Replay) -> dict[str, int]:
    """The number of partitions of each topic that has some."""
    rows = replay.state(["topic_id", "partition_id"], ["PartitionRecord"])
    found: dict[str, set[int]] = {}
    for row in rows:
        found.setdefault(row["topic_id"], set()).add(row["partition_id"])
    return {topic_id: len(partitions) for topic_id, partitions in found.items()}


def topic_history(replay: Replay) -> Rows:
    return [
        {
            "topic_id": topic_id,
            "name": life["name"],
            "valid_from_offset": life["created_offset"],
            "valid_from_ms": life["created_timestamp_ms"],
            "valid_to_offset": life["removed_offset"],
            "valid_to_ms": life["removed_timestamp_ms"],
        }
        for topic_id, life in topic_lives(replay, whole=True).items()
    ]
