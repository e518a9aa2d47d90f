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


def partition_history(timeline: Timeline, *, whole: bool) -> DataFrame:
    """Every partition after each of its records. With whole false only the records that the state needs.

    Columns that begin with old_ have the value before; they are null for a new partition.
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
    rows = rows.withColumns(
        {
            "leader_changes": leaders,
            "partition_changes": changes,
            "is_last": F.lead("offset").over(Window.partitionBy(*KEY).orderBy("offset")).isNull(),
        }
    )
    known = {name: last_known(name, *KEY) for name in KEPT}
    known |= {
        "leader": last_known("named_leader", *KEY),
        "leader_recovery_state": last_known("named_recovery", *KEY),
        "leader_epoch": _counted("leader_epoch", "leader_changes", is_new),
        "partition_epoch": _counted("partition_epoch", "partition_changes", is_new),
    }
    old = {"leader": "named_leader", "leader_recovery_state": "named_recovery"}
    for name in ("leader", "isr", "replicas", "leader_recovery_state", "eligible_leader_replicas"):
        before = last_known(old.get(name, name), *KEY, before=True)
        known[f"old_{name}"] = F.when(~is_new, before)
    return rows.withColumns(known)


def partitions(timeline: Timeline) -> DataFrame:
    """The state table `partitions`."""
    living = topic_lives(timeline, whole=False).where("removed_offset IS NULL")
    rows = partition_history(timeline, whole=False).where("is_last")
    rows = rows.join(living.select("topic_id", F.col("name").alias("topic_name")), "topic_id")
    return rows.select(
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
        _directories().alias("directories"),
        "eligible_leader_replicas",
        "last_known_elr",
        in_log("offset").alias("changed_offset"),
    )


def partition_changes(timeline: Timeline) -> DataFrame:
    """The table `partition_changes`: one row a PartitionChangeRecord."""
    if "partition_changes" in timeline.made:
        return timeline.made["partition_changes"]
    rows = partition_history(timeline, whole=True).where("type = 'PartitionChangeRecord'")
    names = topic_lives(timeline, whole=True).select("topic_id", F.col("name").alias("topic_name"))
    return rows.join(names, "topic_id", "left").select(
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
    has_directories = F.coalesce(F.size("directories"), F.lit(0)) > 0
    migrating = F.array_repeat(F.lit(uuid_text(DIRECTORY_MIGRATING)), F.size("replicas"))
    return F.when(has_directories, F.col("directories")).otherwise(migrating)


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
