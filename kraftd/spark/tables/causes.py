"""The broker behind a change of a partition, by the rule of `kraftd.history.causes`.

Apache Kafka's controller appends the records of one event without a gap, in as many batches as it needs. So
the changes of consecutive offsets, a run, have the broker's record right before or right after them. Runs are
found in buckets of offsets, in parallel. One task joins those that reach the edges of buckets: two a bucket.

kraftd's controller lets a broker leave a few hundred partitions at once, between other decisions. The changes
of a batch that take partitions from one broker are a part. Parts, and the broker's record before the first or
after the last of them, are one event unless more than MAX_PAUSE_MS lie between them.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kraftd.history.causes import FIRST, LAST, MAX_PAUSE_MS, MAX_UNDIVIDED
from kraftd.spark.tables.brokers import REGISTERED, UNREGISTERED, broker_events
from kraftd.spark.tables.partitions import partition_changes
from kraftd.spark.timeline import Timeline

BUCKET_OFFSETS = 1 << 14


def with_brokers(timeline: Timeline, changes: DataFrame) -> DataFrame:
    """Changes of partitions, with the broker's events around the run of records that each belongs to.

    These are in `before` and `after`, structs of kind and broker_id, which are null without one. `divided` is
    the kind of the event of which the change's batch is a part.
    """
    runs = _runs_of_events(timeline)
    within = (
        (_bucket("offset") == F.col("bucket"))
        & (F.col("offset") >= F.col("first"))
        & (F.col("offset") <= F.col("last"))
    )
    changes = changes.join(F.broadcast(runs), within, "left").drop("bucket", "first", "last")
    leavers = _leavers()
    changes = changes.join(F.broadcast(_parts_of_events(timeline)), "batch_offset", "left")
    own = F.filter("parts", lambda part: F.array_contains(leavers, part["broker_id"]))
    return changes.withColumn("divided", F.get(own, 0)["kind"]).drop("parts")


def explained_by(event: str) -> Column:
    """Whether that event of a broker (`before` or `after`) explains a change, as `causes.explains` says."""
    kind, broker = F.col(f"{event}.kind"), F.col(f"{event}.broker_id")
    returned = (F.col("old_leader") < 0) & (F.col("new_leader") >= 0)
    same_replicas = F.array_sort("old_replicas") == F.array_sort("new_replicas")
    left_isr = F.array_contains("old_isr", broker) & ~F.array_contains("new_isr", broker)
    left = same_replicas & (left_isr | ((F.col("old_leader") == broker) & (F.col("new_leader") < 0)))
    return F.coalesce(F.when(kind == "broker-unfenced", returned).otherwise(left), F.lit(False))


def _leavers() -> Column:
    """The brokers whose departure explains a change."""
    same_replicas = F.array_sort("old_replicas") == F.array_sort("new_replicas")
    left_isr = F.array_except("old_isr", "new_isr")
    no_longer_leads = (F.col("old_leader") >= 0) & (F.col("new_leader") < 0)
    leader = F.when(no_longer_leads, F.array("old_leader")).otherwise(F.array().cast("array<int>"))
    return F.when(same_replicas, F.array_union(left_isr, leader))


def _parts_of_events(timeline: Timeline) -> DataFrame:
    """The batches that are parts of an event: an array of broker and kind of event for each."""
    changes = partition_changes(timeline).withColumn("broker_id", F.explode(_leavers()))
    parts = changes.groupBy("batch_offset", "broker_id").agg(
        F.min("offset").alias("offset"),
        F.max("timestamp_ms").alias("timestamp_ms"),
        F.max("epoch").alias("epoch"),
        F.count("*").alias("size"),
    )
    events = _events(timeline).withColumn("size", F.lit(MAX_UNDIVIDED + 1).cast("long"))
    rows = parts.unionByName(events, allowMissingColumns=True)
    order = Window.partitionBy("broker_id").orderBy("offset")
    is_near = (F.lag("epoch").over(order) == F.col("epoch")) & (
        F.col("timestamp_ms") - F.lag("timestamp_ms").over(order) <= MAX_PAUSE_MS
    )
    # The last part may be small.
    is_part = (F.col("size") > MAX_UNDIVIDED) | (is_near & (F.lag("size").over(order) > MAX_UNDIVIDED))
    rows = rows.withColumn("is_part", is_part).where("is_part")
    is_first, is_last = F.col("kind").isin(sorted(FIRST)), F.lag("kind").over(order).isin(sorted(LAST))
    begins = ~is_near | F.coalesce(is_first, F.lit(False)) | F.coalesce(is_last, F.lit(False))
    rows = rows.withColumn("begins", F.coalesce(begins, F.lit(True)).cast("int"))
    rows = rows.withColumn("event", F.sum("begins").over(order))
    whole = Window.partitionBy("broker_id", "event")
    first, last = F.min_by("kind", "offset").over(whole), F.max_by("kind", "offset").over(whole)
    kind = F.when(first == "broker-shutting-down", first).when(last.isin(sorted(LAST)), last)
    rows = rows.withColumn("cause", kind).where("batch_offset IS NOT NULL AND cause IS NOT NULL")
    part = F.struct("broker_id", F.col("cause").alias("kind"))
    return rows.groupBy("batch_offset").agg(F.collect_list(part).alias("parts"))


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
    """The offset, epoch, timestamp_ms, kind and broker_id of each event that may be a cause."""
    rows = broker_events(timeline, whole=True).where("offset >= 0")
    kind = (
        F.when(F.col("type") == UNREGISTERED, "broker-unregistered")
        .when(F.col("type") == REGISTERED, "broker-registered")
        .when(F.col("became_fenced"), "broker-fenced")
        .when(F.col("became_fenced") == F.lit(False), "broker-unfenced")
        .when(F.col("became_shutting_down"), "broker-shutting-down")
        .when(F.size("log_dirs") > 0, "broker-directories-changed")
    )
    rows = rows.select("offset", "epoch", "timestamp_ms", kind.alias("kind"), "broker_id")
    return rows.where(F.col("kind").isin(sorted(FIRST | LAST)))


def _bucket(name: str) -> Column:
    return F.floor(F.col(name) / BUCKET_OFFSETS)
