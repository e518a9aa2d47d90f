"""Partitions: their history, their state, how they changed and why their leaders moved.

A partition's records are replayed by key: a field that a change omits keeps its value. A record that names a
leader (even the same) makes a new leader epoch, every change a new partition epoch. One record type is not
keyed: ClearElrRecord affects all partitions of a topic, or of all topics, that have eligible leader replicas.
So each of them first gets a record of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kraftd.spark.decoding.decode import LAST_OFFSET
from kraftd.spark.tables.filling import (
    EARLIER,
    IN_CHECKPOINT,
    IN_LOG,
    KEY,
    PLACE,
    Clears,
    fill,
    filled_schema,
)
from kraftd.spark.tables.partition_records import Read, by_group
from kraftd.spark.tables.topics import topic_lives
from kraftd.spark.tables.validity import NEXT, validity
from kraftd.spark.timeline import Timeline, in_log

STATE = (
    "topic_id",
    "topic_name",
    "partition_id",
    "leader",
    "isr",
    "replicas",
    "removing_replicas",
    "adding_replicas",
    "leader_recovery_state",
    "leader_epoch",
    "partition_epoch",
    "directories",
    "eligible_leader_replicas",
    "last_known_elr",
)
OLD = (
    "leader",
    "isr",
    "replicas",
    "removing_replicas",
    "adding_replicas",
    "leader_recovery_state",
    "eligible_leader_replicas",
)
REMOVED = ("removed_offset", "removed_timestamp_ms")
_OF_TOPICS = ("topic_name", "created_offset", *REMOVED)
REPLAYED = (*PLACE, *STATE, *(f"old_{name}" for name in OLD), *NEXT, *_OF_TOPICS[1:])

_CHANGES = {
    name: name.removeprefix("new_")
    for name in (
        "offset",
        "epoch",
        "timestamp_ms",
        "batch_offset",
        "topic_id",
        "topic_name",
        "partition_id",
        "old_leader",
        "new_leader",
        "old_isr",
        "new_isr",
        "old_replicas",
        "new_replicas",
        "adding_replicas",
        "removing_replicas",
        "leader_recovery_state",
        "leader_epoch",
        "partition_epoch",
        "old_leader_recovery_state",
        "old_eligible_leader_replicas",
        "eligible_leader_replicas",
    )
}
"""The columns of `partition_changes`, and those of the replay that they are."""


def partition_replay(timeline: Timeline, columns: Sequence[str] = REPLAYED) -> DataFrame:
    """Every partition after each of its records, with the columns that the caller needs, or more.

    Columns that begin with old_ have the value before, null for a new partition; `next_*` is the place of
    the next record, or of the topic's removal.
    """
    return timeline.shared(
        "partition_replay", lambda: _replay(timeline, REPLAYED), lambda: _replay(timeline, columns)
    )


def _replay(timeline: Timeline, columns: Sequence[str]) -> DataFrame:
    lives = topic_lives(timeline, whole=True).withColumnRenamed("name", "topic_name")
    needed = {*columns, *KEY, *NEXT}
    filled = _states(timeline, [name for name in REPLAYED if name in needed], whole=True)
    return until_removed(filled.join(lives, "topic_id", "left")).select(*columns)


def _states(timeline: Timeline, columns: Sequence[str], *, whole: bool) -> DataFrame:
    """Every partition after each of its records, without what is known of its topic.

    With whole false only the records that the state needs, and the state after the last one.
    """
    names = [name for name in columns if name not in _OF_TOPICS]
    work = partial(fill, names=names, last=not whole, clears=_clears(timeline, whole))
    return by_group(
        timeline.session,
        reads_of(timeline, whole=whole),
        timeline.group_count,
        work,
        filled_schema(names),
        aborted=timeline.aborted,
        permissive=timeline.permissive,
    )


def reads_of(timeline: Timeline, *, whole: bool) -> list[Read]:
    """Where the records are: as `Timeline.history` (whole) or `state`, dated by partition."""
    checkpoint = timeline.first_checkpoint if whole else timeline.state_checkpoint
    start = 0 if checkpoint is None else checkpoint.end_offset
    found = [Read(piece, IN_LOG, start, timeline.end_offset - 1) for piece in timeline.pieces()]
    if checkpoint is None:
        return found
    found += [Read(piece, IN_CHECKPOINT, 0, LAST_OFFSET) for piece in timeline.pieces(checkpoint)]
    if not whole and timeline.earlier_end(checkpoint) is not None:
        found += [Read(piece, EARLIER, 0, start - 1) for piece in timeline.pieces()]
    return found


def _clears(timeline: Timeline, whole: bool) -> Clears | None:
    """The records that clear the ELRs of partitions, and the topics that there are; None for no record."""
    read = timeline.history if whole else timeline.state
    records = read([*PLACE, "topic_name"], ["ClearElrRecord"]).toArrow()
    if not len(records):
        return None
    lives = topic_lives(timeline, whole=whole).select("topic_id", "name", "removed_offset").toArrow()
    return Clears(records, lives)


def until_removed(rows: DataFrame) -> DataFrame:
    """The rows; where no record follows, the removal of the topic does."""
    return rows.withColumns({name: F.coalesce(name, end) for name, end in zip(NEXT, REMOVED, strict=True)})


def partitions(timeline: Timeline) -> DataFrame:
    """The state table `partitions`."""
    rows = timeline.made.get("partition_replay") if timeline.replays_history else None
    if rows is None:
        # Joined with what still exists alone: most records are of an earlier state.
        living = topic_lives(timeline, whole=False).where("removed_offset IS NULL")
        living = living.select("topic_id", F.col("name").alias("topic_name"))
        rows = _states(timeline, ("offset", *STATE), whole=False).join(living, "topic_id")
    else:
        rows = rows.where("next_offset IS NULL AND topic_name IS NOT NULL")
    return rows.select(*STATE, in_log("offset").alias("changed_offset"))


def partition_history(timeline: Timeline) -> DataFrame:
    """The table `partition_history`: one row for each state of a partition."""
    return partition_replay(timeline).select(*STATE, *validity())


def partition_changes(timeline: Timeline) -> DataFrame:
    """The table `partition_changes`: one row a PartitionChangeRecord."""
    rows = partition_replay(timeline, (*dict.fromkeys(("type", *_CHANGES.values())),))
    rows = rows.where("type = 'PartitionChangeRecord'")
    return rows.select(*[F.col(source).alias(name) for name, source in _CHANGES.items()])
