"""Committed offsets: each commit with what became of it and the lag then, and those that hold in the end."""

from __future__ import annotations

from typing import Any

from kraftd.messages.legacy_offset_commit_key import LegacyOffsetCommitKey
from kraftd.messages.legacy_offset_commit_value import LegacyOffsetCommitValue
from kraftd.messages.offset_commit_key import OffsetCommitKey
from kraftd.messages.offset_commit_value import OffsetCommitValue
from kraftd.spark.coordinators.log_ends import LogEnds
from kraftd.spark.coordinators.partitions import TopicPartition
from kraftd.spark.coordinators.records import Place
from kraftd.spark.tables.columns import Row, Rows

Key = tuple[str, TopicPartition]
OffsetKey = OffsetCommitKey | LegacyOffsetCommitKey
NONE_MS = -1


class CommittedOffsets:
    """The offsets in one partition of ``__consumer_offsets``.

    A transaction's commits count when its marker commits it: each unless a later record has replaced it.
    """

    def __init__(self, coordinator_partition: int, ends: LogEnds) -> None:
        self._partition = coordinator_partition
        self._ends = ends
        self._committed: dict[Key, Row] = {}
        self._pending: dict[int, Rows] = {}

    def add(
        self, place: Place, key: OffsetKey, value: OffsetCommitValue | LegacyOffsetCommitValue | None
    ) -> Rows:
        """Apply a record; the rows of `offset_commits` that are complete by it."""
        row = self._row(place, key, value)
        if place.producer_id >= 0:
            self._pending.setdefault(place.producer_id, []).append(row)
            return []
        self._apply(row)
        return [row]

    def end(self, place: Place, *, is_commit: bool) -> Rows:
        """Apply the marker of a transaction; the rows that are complete by it."""
        rows = self._pending.pop(place.producer_id, [])
        for row in rows:
            row["ended_ms"] = place.timestamp_ms
            row["outcome"] = "committed" if is_commit else "aborted"
            if is_commit:
                before = self._committed.get(_key_of(row))
                if before is None or before["offset"] < row["offset"]:
                    self._apply(row)
        return rows

    def pending(self) -> Rows:
        """The rows of transactions that are open in the end."""
        return [row for rows in self._pending.values() for row in rows]

    def committed(self, time_ms: int | None) -> Rows:
        """The rows of `committed_offsets`, with the lag at a time, or in the end for None."""
        found = []
        for (_, partition), row in self._committed.items():
            end = self._ends.at(partition, time_ms)
            found.append({**row, "log_end_offset": end, "lag": _lag(end, row["committed_offset"])})
        return found

    def _row(self, place: Place, key: OffsetKey, value: Any) -> Row:
        is_transactional = place.producer_id >= 0
        row: Row = {
            "group_id": key.group,
            "topic_name": key.topic,
            "partition_id": key.partition,
            "committed_offset": None,
            "committed_leader_epoch": None,
            "metadata": None,
            "commit_timestamp_ms": None,
            "expire_timestamp_ms": None,
            "producer_id": place.producer_id if is_transactional else None,
            "producer_epoch": place.producer_epoch if is_transactional else None,
            "outcome": "pending" if is_transactional else "removed" if value is None else "committed",
            "ended_ms": None if is_transactional else place.timestamp_ms,
            "coordinator_partition": self._partition,
            "offset": place.offset,
            "timestamp_ms": place.timestamp_ms,
        }
        if value is not None:
            row["committed_offset"] = value.offset
            row["metadata"] = value.metadata
            row["commit_timestamp_ms"] = value.commit_timestamp
        if isinstance(value, OffsetCommitValue):
            row["committed_leader_epoch"] = value.leader_epoch if value.leader_epoch >= 0 else None
            row["expire_timestamp_ms"] = value.expire_timestamp if value.expire_timestamp != NONE_MS else None
        end = self._ends.at((key.topic, key.partition), place.timestamp_ms)
        before = self._committed.get((key.group, (key.topic, key.partition)))
        row["log_end_offset"] = end
        row["lag"] = _lag(end, row["committed_offset"])
        row["lag_before"] = _lag(end, None if before is None else before["committed_offset"])
        return row

    def _apply(self, row: Row) -> None:
        if row["committed_offset"] is None:
            self._committed.pop(_key_of(row), None)
        else:
            self._committed[_key_of(row)] = row


def _key_of(row: Row) -> Key:
    return row["group_id"], (row["topic_name"], row["partition_id"])


def _lag(end: int | None, committed: int | None) -> int | None:
    """Records behind a committed offset; 0 if producers' clocks say that the log ended before it.

    A client may commit a negative offset: the log begins at 0.
    """
    return None if end is None or committed is None else max(end - max(committed, 0), 0)
