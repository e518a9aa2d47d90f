"""The broker behind a change of a partition, by the rule of `kraftd.history.causes`.

The controller appends the records of one event without a gap, in as many batches as it needs. So the changes
of consecutive offsets, a run, have the broker's record right before or right after them. Runs are found in
buckets of offsets, in parallel. One task joins those that reach the edges of buckets: two a bucket.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kraftd.history.causes import FIRST, LAST
from kraftd.spark.tables.brokers import REGISTERED, UNREGISTERED, broker_events
from kraftd.spark.timeline import Timeline

BUCKET_OFFSETS = 1 << 14


def with_brokers(timeline: Timeline, changes: DataFrame) -> DataFrame:
    """Changes of partitions, with the broker's events around the run of records that each belongs to.

    These are in `before` and `after`, structs of kind and broker_id, which are null without one.
    """
    runs = _runs_of_events(timeline)
    within = (
        (_bucket("offset") == F.col("bucket"))
        & (F.col("offset") >= F.col("first"))
        & (F.col("offset") <= F.col("last"))
    )
    return changes.join(F.broadcast(runs), within, "left").drop("bucket", "first", "last")


def explained_by(event: str) -> Column:
    """Whether that event of a broker (`before` or `after`) explains a change, as `causes.explains` says."""
    kind, broker = F.col(f"{event}.kind"), F.col(f"{event}.broker_id")
    returned = (F.col("old_leader") < 0) & (F.col("new_leader") >= 0)
    same_replicas = F.array_sort("old_replicas") == F.array_sort("new_replicas")
    left_isr = F.array_contains("old_isr", broker) & ~F.array_contains("new_isr", broker)
    left = same_replicas & (left_isr | ((F.col("old_leader") == broker) & (F.col("new_leader") < 0)))
    return F.coalesce(F.when(kind == "broker-unfenced", returned).otherwise(left), F.lit(False))


def _runs_of_events(timeline: Timeline) -> DataFrame:
    """The parts of runs beside a broker's event, by bucket: first and last offset, before and after."""
    rows = timeline.log(["offset"], ["PartitionChangeRecord"]).withColumn("bucket", _bucket("offset"))
    in_bucket = Window.partitionBy("bucket").orderBy("offset")
    parts = rows.withColumn("part", F.col("offset") - F.row_number().over(in_bucket))
    parts = parts.groupBy("bucket", "part").agg(F.min("offset").alias("first"), F.max("offset").alias("last"))
    events = _events(timeline)
    event = F.struct("kind", "broker_id")
    sides = {"before": (FIRST, F.col("offset") + 1, "first"), "after": (LAST, F.col("offset") - 1, "last")}
    for side, (kinds, beside, end) in sides.items():
        its = events.where(F.col("kind").isin(sorted(kinds))).select(beside.alias(end), event.alias(side))
        parts = parts.join(F.broadcast(its), end, "left")
    at_edge = (F.col("first") % BUCKET_OFFSETS == 0) | ((F.col("last") + 1) % BUCKET_OFFSETS == 0)
    parts = parts.where(at_edge | F.col("before").isNotNull() | F.col("after").isNotNull())
    order = Window.orderBy("first")
    begins = F.coalesce(F.col("first") != F.lag("last").over(order) + 1, F.lit(True)).cast("int")
    parts = parts.withColumn("begins", begins)
    parts = parts.withColumn("run", F.sum("begins").over(order))
    whole = Window.partitionBy("run")
    parts = parts.select(
        "bucket",
        "first",
        "last",
        F.max("before").over(whole).alias("before"),
        F.max("after").over(whole).alias("after"),
    )
    return parts.where("before IS NOT NULL OR after IS NOT NULL")


def _events(timeline: Timeline) -> DataFrame:
    """The offset, kind and broker_id of each event that may be a cause."""
    rows = broker_events(timeline, whole=True).where("offset >= 0")
    kind = (
        F.when(F.col("type") == UNREGISTERED, "broker-unregistered")
        .when(F.col("type") == REGISTERED, "broker-registered")
        .when(F.col("became_fenced"), "broker-fenced")
        .when(F.col("became_fenced") == F.lit(False), "broker-unfenced")
        .when(F.col("became_shutting_down"), "broker-shutting-down")
        .when(F.size("log_dirs") > 0, "broker-directories-changed")
    )
    rows = rows.select("offset", kind.alias("kind"), "broker_id")
    return rows.where(F.col("kind").isin(sorted(FIRST | LAST)))


def _bucket(name: str) -> Column:
    return F.floor(F.col(name) / BUCKET_OFFSETS)
