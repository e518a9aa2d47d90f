"""Reassignments of replicas, from the record that starts one to the record that ends it.

A change that makes another set of replicas at once is a reassignment, too: it ends with the record that
starts it.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kraftd.spark.tables.filling import KEY
from kraftd.spark.tables.partitions import partition_replay, until_removed
from kraftd.spark.tables.validity import lasted, validity, with_next
from kraftd.spark.timeline import Timeline

COMPLETED, CANCELLED, REPLACED, DELETED = "completed", "cancelled", "replaced", "topic deleted"


def reassignments(timeline: Timeline) -> DataFrame:
    """The table `reassignments`."""
    rows = reassignment_steps(timeline).where("starts")
    rows = rows.select(
        "topic_id",
        "topic_name",
        "partition_id",
        "old_replicas",
        "target_replicas",
        "adding_replicas",
        "removing_replicas",
        "outcome",
        *validity(),
    )
    return rows.withColumn("duration_ms", lasted())


def reassignment_steps(timeline: Timeline) -> DataFrame:
    """The records that start or end a reassignment; next_* is where a started one ends.

    old_replicas and target_replicas are those of the started one.
    """
    rows = partition_replay(timeline)
    moving, moved = (
        _size("adding_replicas", "removing_replicas"),
        _size("old_adding_replicas", "old_removing_replicas"),
    )
    target = F.array_except("replicas", _list("removing_replicas"))
    old_target = F.array_except(_list("old_replicas"), _list("old_removing_replicas"))
    another = ~target.eqNullSafe(old_target)
    at_once = (moving == 0) & (moved == 0) & F.col("old_replicas").isNotNull() & another
    rows = rows.withColumns(
        {
            "at_once": at_once,
            "starts": at_once | ((moving > 0) & ((moved == 0) | another)),
            "ends": (moved > 0) & ((moving == 0) | another),
            "is_moving": moving > 0,
            "target_replicas": target,
            "now_replicas": F.col("replicas"),
        }
    ).where("starts OR ends")
    # Without an earlier record, as in a checkpoint, the replicas before are those that are not being added.
    before = F.coalesce("old_replicas", "replicas")
    added = F.coalesce("old_adding_replicas", "adding_replicas")
    original = F.when(moved > 0, F.array_except(before, added)).otherwise(
        F.when(F.col("old_replicas").isNull(), F.array_except("replicas", "adding_replicas")).otherwise(
            before
        )
    )
    order = Window.partitionBy(*KEY).orderBy("offset")
    rows = with_next(rows.withColumn("old_replicas", original), *KEY)
    ends = F.struct("now_replicas", "is_moving", "epoch")
    rows = until_removed(rows.withColumn("end", F.lead(ends).over(order)))
    places = {
        name: F.when(F.col("at_once"), F.col(own)).otherwise(F.col(name))
        for name, own in {"next_offset": "offset", "next_ms": "timestamp_ms"}.items()
    }
    return rows.withColumns(
        places
        | {
            "adding_replicas": _or_difference("adding_replicas", "target_replicas", "old_replicas"),
            "removing_replicas": _or_difference("removing_replicas", "old_replicas", "target_replicas"),
            "outcome": _outcome(),
        }
    )


def _outcome() -> Column:
    end = F.col("end")
    return (
        F.when(F.col("at_once"), COMPLETED)
        .when(F.col("next_offset").isNull(), F.lit(None))
        .when(end.isNull(), DELETED)
        .when(end["is_moving"], REPLACED)
        .when(F.array_sort(end["now_replicas"]) == F.array_sort("old_replicas"), CANCELLED)
        .otherwise(COMPLETED)
    )


def _or_difference(name: str, one: str, other: str) -> Column:
    """The replicas that the record names; of a change at once the difference."""
    return F.when(F.col("at_once"), F.array_except(one, other)).otherwise(F.col(name))


def _list(name: str) -> Column:
    return F.coalesce(name, F.array().cast("array<int>"))


def _size(*names: str) -> Column:
    return sum((F.size(_list(name)) for name in names[1:]), F.size(_list(names[0])))
