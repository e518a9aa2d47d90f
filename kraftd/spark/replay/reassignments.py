"""`reassignments`, and their steps for `audit`."""

from __future__ import annotations

from collections.abc import Iterator

from kraftd.spark.replay.partitions import partition_replay, until_removed
from kraftd.spark.replay.source import Replay, and_next, by_key, lasted, validity, without
from kraftd.spark.tables.columns import Row, Rows
from kraftd.spark.tables.filling import KEY
from kraftd.spark.tables.reassignments import CANCELLED, COMPLETED, DELETED, REPLACED


def reassignments(replay: Replay) -> Rows:
    found = []
    for row in reassignment_steps(replay):
        if row["starts"]:
            period = validity(row)
            found.append(row | period | lasted(period))
    return found


def reassignment_steps(replay: Replay) -> Rows:
    """The records that start or end a reassignment, as `kraftd.spark.tables.reassignments` has them."""
    return replay.shared("reassignment_steps", lambda replay: list(_steps(replay)))


def _steps(replay: Replay) -> Iterator[Row]:
    rows = [step for row in partition_replay(replay, whole=True) if (step := _step(row)) is not None]
    for group in by_key(rows, *KEY).values():
        for row, end in and_next(group):
            row["next_offset"] = None if end is None else end["offset"]
            row["next_ms"] = None if end is None else end["timestamp_ms"]
            row["end_epoch"] = None if end is None else end["epoch"]
            until_removed(row)
            row["outcome"] = _outcome(row, end)
            if row["at_once"]:
                row |= {"next_offset": row["offset"], "next_ms": row["timestamp_ms"]}
                row["adding_replicas"] = without(row["target_replicas"], row["old_replicas"])
                row["removing_replicas"] = without(row["old_replicas"], row["target_replicas"])
            yield row


def _step(row: Row) -> Row | None:
    """A record that starts or ends a reassignment; None for any other."""
    if row["replicas"] is None:
        return None
    adding, removing = row["adding_replicas"] or [], row["removing_replicas"] or []
    old_adding, old_removing = row["old_adding_replicas"] or [], row["old_removing_replicas"] or []
    moving, moved = bool(adding or removing), bool(old_adding or old_removing)
    old = row["old_replicas"]
    if not (moving or moved) and old in (None, row["replicas"]):
        return None
    target = without(row["replicas"], removing)
    another = target != without(old or [], old_removing)
    at_once = not moving and not moved and old is not None and another
    starts = at_once or (moving and (not moved or another))
    ends = moved and (not moving or another)
    if not (starts or ends):
        return None
    # Without an earlier record, as in a checkpoint, the replicas before are those that are not being added.
    if moved or old is None:
        before = row["replicas"] if old is None else old
        original = without(before, adding if row["old_adding_replicas"] is None else old_adding)
    else:
        original = old
    return row | {
        "at_once": at_once,
        "starts": starts,
        "is_moving": moving,
        "target_replicas": target,
        "old_replicas": original,
    }


def _outcome(row: Row, end: Row | None) -> str | None:
    if row["at_once"]:
        return COMPLETED
    if row["next_offset"] is None:
        return None
    if end is None:
        return DELETED
    if end["is_moving"]:
        return REPLACED
    return CANCELLED if sorted(end["replicas"]) == sorted(row["old_replicas"]) else COMPLETED
