"""Partitions: their history, their state, how they changed and why their leaders moved.

A partition's records are replayed by key: a field that a change omits keeps its value. A record that names a
leader (even the same) makes a new leader epoch, every change a new partition epoch. One record type is not
keyed: ClearElrRecord affects all partitions of a topic, or of all topics, that have eligible leader replicas.
So each of them first gets a record of its own.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kraftd.spark.tables.topics import topic_lives
from kraftd.spark.tables.validity import NEXT, validity, with_next
from kraftd.spark.timeline import Timeline, in_log, last_known
from kraftd.types import DIRECTORY_MIGRATING, uuid_text

KEY = ("topic_id", "partition_id")
KEPT = (
    "isr",
    "replicas",
    "removing_replicas",
    "adding_replicas",
    "directories",
    "eligible_leader_replicas",
    "last_known_elr",
)
"""What a change leaves as it was where it says nothing of it, beside the leader and its recovery state."""
TYPES = ("PartitionRecord", "PartitionChangeRecord")
COLUMNS = (
    "offset",
    "epoch",
    "timestamp_ms",
    "type",
    "batch_offset",
    *KEY,
    "leader",
    "leader_recovery_state",
    "leader_epoch",
    "partition_epoch",
    *KEPT,
)
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
PLACE = ("offset", "epoch", "timestamp_ms", "batch_offset", "type")
REMOVED = ("removed_offset", "removed_timestamp_ms")
REPLAYED = (*PLACE, *STATE, *(f"old_{name}" for name in OLD), *NEXT, "created_offset", *REMOVED)


def partition_replay(timeline: Timeline) -> DataFrame:
    """Every partition after each of its records.

    Columns that begin with old_ have the value before, null for a new partition; `next_*` is the place of
    the next record, or of the topic's removal.
    """
    return timeline.shared("partition_replay", lambda: _replay(timeline))


def _replay(timeline: Timeline) -> DataFrame:
    lives = topic_lives(timeline, whole=True).withColumnRenamed("name", "topic_name")
    rows = _states(timeline, whole=True).join(lives, "topic_id", "left")
    return until_removed(rows).select(*REPLAYED)


def _states(timeline: Timeline, *, whole: bool) -> DataFrame:
    """Every partition after each of its records, without what is known of its topic.

    With whole false only the records that the state needs.
    """
    rows = timeline.history(COLUMNS, TYPES) if whole else timeline.state(COLUMNS, TYPES, dated_by=KEY)
    is_new = F.col("type") == "PartitionRecord"
    rows = rows.withColumns(
        {
            "named_leader": F.when(F.col("leader") != -2, F.col("leader")),
            "named_recovery": F.when(F.col("leader_recovery_state") != -1, F.col("leader_recovery_state")),
            "eligible_leader_replicas": _or_empty("eligible_leader_replicas", is_new),
            "last_known_elr": _or_empty("last_known_elr", is_new),
        }
    )
    rows = _with_cleared(timeline, rows, whole)
    so_far = Window.partitionBy(*KEY).orderBy("offset").rowsBetween(Window.unboundedPreceding, 0)
    leaders = F.sum((~is_new & F.col("named_leader").isNotNull()).cast("int")).over(so_far)
    changes = F.sum((~is_new).cast("int")).over(so_far)
    rows = with_next(rows.withColumns({"leader_changes": leaders, "partition_changes": changes}), *KEY)
    known = {name: last_known(name, *KEY) for name in KEPT}
    known |= {
        "leader": last_known("named_leader", *KEY),
        "leader_recovery_state": last_known("named_recovery", *KEY),
        "leader_epoch": _counted("leader_epoch", "leader_changes", is_new),
        "partition_epoch": _counted("partition_epoch", "partition_changes", is_new),
    }
    sources = {"leader": "named_leader", "leader_recovery_state": "named_recovery"}
    for name in OLD:
        known[f"old_{name}"] = last_known(sources.get(name, name), *KEY, before=True)
    return rows.withColumns(known).withColumn("directories", _directories())


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
        rows = _states(timeline, whole=False).where("next_offset IS NULL").join(living, "topic_id")
    else:
        rows = rows.where("next_offset IS NULL AND topic_name IS NOT NULL")
    return rows.select(*STATE, in_log("offset").alias("changed_offset"))


def partition_history(timeline: Timeline) -> DataFrame:
    """The table `partition_history`: one row for each state of a partition."""
    return partition_replay(timeline).select(*STATE, *validity())


def partition_changes(timeline: Timeline) -> DataFrame:
    """The table `partition_changes`: one row a PartitionChangeRecord."""
    rows = partition_replay(timeline).where("type = 'PartitionChangeRecord'")
    return rows.select(
        "offset",
        "epoch",
        "timestamp_ms",
        "batch_offset",
        "topic_id",
        "topic_name",
        "partition_id",
        "old_leader",
        F.col("leader").alias("new_leader"),
        "old_isr",
        F.col("isr").alias("new_isr"),
        "old_replicas",
        F.col("replicas").alias("new_replicas"),
        "adding_replicas",
        "removing_replicas",
        "leader_recovery_state",
        "leader_epoch",
        "partition_epoch",
        "old_leader_recovery_state",
        "old_eligible_leader_replicas",
        "eligible_leader_replicas",
    )


def _or_empty(name: str, is_new: Column) -> Column:
    """The ELR of a record; a new partition without one has an empty one."""
    return F.when(is_new, F.coalesce(F.col(name), F.array().cast("array<int>"))).otherwise(F.col(name))


def _directories() -> Column:
    """The directory of each replica: a record without directories is of a version before KIP-858."""
    migrating = F.lit(uuid_text(DIRECTORY_MIGRATING))
    # No lambda: Spark compiles none.
    are_known = F.size(F.array_remove("directories", migrating)) > 0
    unknown = F.array_repeat(migrating, F.size("replicas"))
    return F.when(F.coalesce(are_known, F.lit(False)), F.col("directories")).otherwise(unknown)


def _counted(name: str, changes: str, is_new: Column) -> Column:
    """An epoch: that of the last PartitionRecord, and the changes since."""
    return last_known(F.when(is_new, F.col(name) - F.col(changes)), *KEY) + F.col(changes)


def _with_cleared(timeline: Timeline, rows: DataFrame, whole: bool) -> DataFrame:
    """The rows, and one for each partition that a ClearElrRecord changes: one that had an ELR."""
    read = timeline.history if whole else timeline.state
    clears = read(
        ["offset", "epoch", "timestamp_ms", "type", "batch_offset", "topic_name"], ["ClearElrRecord"]
    )
    if clears.isEmpty():
        return rows
    names = topic_lives(timeline, whole=whole).select(
        "topic_id", F.col("name").alias("live_name"), "removed_offset"
    )
    keys = rows.groupBy(*KEY).agg(F.min("offset").alias("first_offset")).join(names, "topic_id")
    meant = (F.col("topic_name") == "") | (F.col("topic_name") == F.col("live_name"))
    lives = (F.col("offset") > F.col("first_offset")) & (
        F.col("removed_offset").isNull() | (F.col("offset") < F.col("removed_offset"))
    )
    empty = F.array().cast("array<int>")
    cleared = (
        keys.join(F.broadcast(clears), meant & lives)
        .withColumns({"eligible_leader_replicas": empty, "last_known_elr": empty})
        .select(
            "offset",
            "epoch",
            "timestamp_ms",
            "type",
            "batch_offset",
            *KEY,
            "eligible_leader_replicas",
            "last_known_elr",
        )
    )
    both = rows.unionByName(cleared, allowMissingColumns=True)
    had = F.lit(False)
    for name in ("eligible_leader_replicas", "last_known_elr"):
        had = had | (F.coalesce(F.size(last_known(name, *KEY, before=True)), F.lit(0)) > 0)
    both = both.withColumn("clears", (F.col("type") != "ClearElrRecord") | had)
    return both.where("clears").drop("clears")
