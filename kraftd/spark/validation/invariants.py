"""The controller's invariants C3 to C7 over a whole history, each as a query for the rows that break it.

A check returns the row of the lowest offset that breaks it. Records of aborted transactions are ignored.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from kraftd.spark.tables.brokers import REGISTERED, UNREGISTERED, broker_events
from kraftd.spark.tables.partitions import partition_replay
from kraftd.spark.tables.topics import CREATED, topic_lives
from kraftd.spark.timeline import Timeline
from kraftd.spark.validation.findings import break_text


def broker_epochs_grow(timeline: Timeline) -> DataFrame:
    """C3: a broker registers with a higher broker epoch than ever before, and no other record names an old
    one."""
    rows = broker_events(timeline, whole=True)
    so_far = Window.partitionBy("broker_id").orderBy("offset")
    before = F.max("broker_epoch").over(so_far.rowsBetween(Window.unboundedPreceding, -1))
    registered = F.col("type") == REGISTERED
    not_above = registered & (F.col("broker_epoch") <= F.col("epoch_before"))
    stale = ~registered & (F.col("broker_epoch") != F.col("epoch_before"))
    rows = rows.withColumn("epoch_before", before).where(not_above | stale)
    return rows.select("offset", "type", "broker_id", "broker_epoch", "epoch_before")


def isr_within_replicas(timeline: Timeline) -> DataFrame:
    """C4: the ISR of a partition is a subset of its replicas, and its leader is one of the ISR, unless it was
    elected uncleanly."""
    rows = partition_replay(timeline).where("type != 'ClearElrRecord'")
    strangers = F.size(F.array_except("isr", "replicas")) > 0
    outside = (F.col("leader") >= 0) & ~F.array_contains("isr", F.col("leader"))
    return rows.where(strangers | (outside & (F.col("leader_recovery_state") == 0))).select(
        "offset", "topic_id", "partition_id", "leader", "isr", "replicas"
    )


def leader_epochs_grow(timeline: Timeline) -> DataFrame:
    """C4: leader and partition epochs of a partition never go back."""
    rows = partition_replay(timeline)
    order = Window.partitionBy("topic_id", "partition_id").orderBy("offset")
    rows = rows.withColumns(
        {
            "old_leader_epoch": F.lag("leader_epoch").over(order),
            "old_partition_epoch": F.lag("partition_epoch").over(order),
        }
    )
    return rows.where("leader_epoch < old_leader_epoch OR partition_epoch <= old_partition_epoch").select(
        "offset",
        "topic_id",
        "partition_id",
        "old_leader_epoch",
        "leader_epoch",
        "old_partition_epoch",
        "partition_epoch",
    )


def inactive_brokers_join_nothing(timeline: Timeline) -> DataFrame:
    """C5: a broker that is fenced, shutting down or not registered becomes no leader and joins no ISR.

    The records of one batch are one event: a broker that is unfenced in a batch may join in it.
    """
    parts = partition_replay(timeline).where("type = 'PartitionChangeRecord'")
    joined = F.array_except("isr", "old_isr")
    leads = F.when((F.col("leader") >= 0) & (F.col("leader") != F.col("old_leader")), F.array("leader"))
    no_replicas = F.array().cast("array<int>")
    admitted = F.explode(F.array_union(joined, F.coalesce(leads, no_replicas)))
    proposed = parts.select(
        "offset",
        "batch_offset",
        "topic_id",
        "partition_id",
        admitted.alias("broker_id"),
        F.lit(1).alias("later"),
    )
    events = broker_events(timeline, whole=True)
    gone = F.when(F.col("type") == UNREGISTERED, F.lit(True)).when(F.col("type") == REGISTERED, F.lit(False))
    reported = events.select(
        "offset",
        F.when(F.col("offset") < 0, F.lit(-1)).otherwise(F.col("batch_offset")).alias("batch_offset"),
        "broker_id",
        F.lit(0).alias("later"),
        F.when(F.col("type") == UNREGISTERED, F.lit(True))
        .otherwise(F.col("became_fenced"))
        .alias("set_fenced"),
        F.coalesce(F.col("became_shutting_down"), gone).alias("set_shutting_down"),
    )
    both = proposed.unionByName(reported, allowMissingColumns=True)
    order = Window.partitionBy("broker_id").orderBy("batch_offset", "later", "offset")
    order = order.rowsBetween(Window.unboundedPreceding, 0)
    both = both.withColumns(
        {
            "fenced": F.coalesce(F.last("set_fenced", ignorenulls=True).over(order), F.lit(True)),
            "shutting_down": F.coalesce(
                F.last("set_shutting_down", ignorenulls=True).over(order), F.lit(True)
            ),
        }
    )
    return both.where("later = 1 AND (fenced OR shutting_down)").select(
        "offset", "topic_id", "partition_id", "broker_id", "fenced", "shutting_down"
    )


def producer_ids_are_disjoint(timeline: Timeline) -> DataFrame:
    """C6: every block of producer ids begins where the one before it ends."""
    rows = timeline.history(["offset", "broker_id", "next_producer_id"], ["ProducerIdsRecord"])
    before = F.lag("next_producer_id").over(Window.orderBy("offset"))
    rows = rows.withColumn("next_before", before)
    return rows.where("next_producer_id <= next_before").select(
        "offset", "broker_id", "next_before", "next_producer_id"
    )


def topic_names_are_unique(timeline: Timeline) -> DataFrame:
    """C7: a topic id is given once, and a name to one living topic at a time."""
    lives = topic_lives(timeline, whole=True)
    order = Window.partitionBy("name").orderBy(F.coalesce("created_offset", F.lit(-1)), "topic_id")
    lives = lives.withColumns(
        {"before_id": F.lag("topic_id").over(order), "before_removed": F.lag("removed_offset").over(order)}
    )
    alive = "before_removed IS NULL OR before_removed > coalesce(created_offset, -1)"
    names = lives.where(f"before_id IS NOT NULL AND ({alive})").select(
        F.coalesce("created_offset", F.lit(-1)).alias("offset"), "name", "topic_id", "before_id"
    )
    again = (
        timeline.history(["offset", "topic_id", "name"], [CREATED])
        .groupBy("topic_id")
        .agg(F.max("offset").alias("offset"), F.max("name").alias("name"), F.count("*").alias("count"))
    )
    ids = again.where("count > 1").select("offset", "name", "topic_id", F.col("topic_id").alias("before_id"))
    return names.unionByName(ids)


INVARIANTS: dict[str, Callable[[Timeline], DataFrame]] = {
    "C3 broker epochs grow": broker_epochs_grow,
    "C4 ISR within replicas, leader within ISR": isr_within_replicas,
    "C4 leader and partition epochs grow": leader_epochs_grow,
    "C5 inactive brokers lead and join nothing": inactive_brokers_join_nothing,
    "C6 producer id blocks are disjoint": producer_ids_are_disjoint,
    "C7 topic names and ids are unique": topic_names_are_unique,
}


def first_break(timeline: Timeline, name: str) -> str | None:
    """The first row that breaks an invariant, in words; None if there is none."""
    row = INVARIANTS[name](timeline).orderBy("offset").first()
    if row is None:
        return None
    return break_text(timeline, row.asDict(recursive=True))
