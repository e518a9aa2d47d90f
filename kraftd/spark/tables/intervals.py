"""The intervals in which partitions were unhealthy: under-replicated, below min.insync.replicas, leaderless,
offline.

An interval begins with the record that causes the condition. It ends with the record that removes it, or with
the topic. An end of null means that the condition still held at the last record that was read.
min.insync.replicas is the value at that end: the topic's, else the cluster's, else 1.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from kraftd.spark.tables.access import configs
from kraftd.spark.tables.brokers import brokers
from kraftd.spark.tables.partitions import KEY, partition_history
from kraftd.spark.tables.topics import topic_lives
from kraftd.spark.timeline import Timeline

MIN_ISR = "min.insync.replicas"


def partition_intervals(timeline: Timeline) -> DataFrame:
    """The table `partition_intervals`."""
    if "partition_intervals" in timeline.made:
        return timeline.made["partition_intervals"]
    lives = topic_lives(timeline, whole=True).select(
        "topic_id", F.col("name").alias("topic_name"), "removed_offset", "removed_timestamp_ms"
    )
    history = partition_history(timeline, whole=True).join(lives, "topic_id", "left")
    history = _with_min_isr(timeline, history)
    members = F.size(
        F.array_union("isr", F.coalesce("eligible_leader_replicas", F.array().cast("array<int>")))
    )
    whole_size = F.size(F.array_except("replicas", "adding_replicas"))
    lacking = F.array_except("replicas", "isr")
    leaderless = F.col("leader") == -1
    kinds = {
        "under_replicated": (F.size("isr") < whole_size, lacking),
        "under_min_isr": (F.size("isr") < F.col("min_isr"), lacking),
        "leaderless": (leaderless & (members > 0), F.col("replicas")),
        "offline": (leaderless, F.col("replicas")),
    }
    flags = F.array(*[_flag(kind, *parts) for kind, parts in kinds.items()])
    fields = ("offset", "timestamp_ms", *KEY, "topic_name", "removed_offset", "removed_timestamp_ms")
    rows = history.select(*fields, flags.alias("flags"))
    # Most partitions are always healthy: rows that change no condition are dropped before rows are
    # multiplied.
    conditions = F.transform("flags", lambda flag: flag["holds"])
    none_holds = F.array(*[F.lit(False)] * len(kinds))
    before = F.coalesce(F.lag(conditions).over(Window.partitionBy(*KEY).orderBy("offset")), none_holds)
    rows = rows.withColumn("before", before).where(conditions != F.col("before"))
    rows = rows.select(*fields, F.explode("flags").alias("flag"))
    rows = rows.select(*fields, "flag.kind", "flag.holds", "flag.brokers")
    order = Window.partitionBy(*KEY, "kind").orderBy("offset")
    ended = (
        _edges(rows, order)
        .withColumns(
            {
                "end_offset": F.coalesce(F.lead("offset").over(order), "removed_offset"),
                "end_timestamp_ms": F.coalesce(F.lead("timestamp_ms").over(order), "removed_timestamp_ms"),
            }
        )
        .where("holds")
    )
    return ended.select(
        "kind",
        "topic_id",
        "topic_name",
        "partition_id",
        F.when(F.col("offset") >= 0, F.col("offset")).alias("start_offset"),
        F.col("timestamp_ms").alias("start_timestamp_ms"),
        "end_offset",
        "end_timestamp_ms",
        (F.col("end_timestamp_ms") - F.col("timestamp_ms")).alias("duration_ms"),
        "brokers",
    )


def interval_totals(timeline: Timeline) -> DataFrame:
    """The table `interval_totals`: intervals by topic, by lacking broker and by that broker's rack; one
    that has not ended counts up to the last record that was read."""
    rows = partition_intervals(timeline)
    newest = timeline.log(["timestamp_ms"]).agg(F.max("timestamp_ms").alias("newest_ms"))
    rows = rows.crossJoin(F.broadcast(newest)).withColumn(
        "duration_ms",
        F.coalesce("end_timestamp_ms", "newest_ms") - F.col("start_timestamp_ms"),
    )
    racks = brokers(timeline).select("broker_id", F.coalesce("rack", F.lit("")).alias("rack"))
    meant = F.transform("brokers", lambda broker: F.struct(F.lit("broker"), broker.cast("string"), broker))
    topic = F.array(F.struct(F.lit("topic"), F.col("topic_name"), F.lit(None).cast("int")))
    shape = "array<struct<scope: string, name: string, broker_id: int>>"
    rows = rows.withColumn("place", F.explode(F.concat(topic.cast(shape), meant.cast(shape))))
    rows = rows.select("*", "place.*").join(F.broadcast(racks), "broker_id", "left")
    rack = F.struct(F.lit("rack"), F.coalesce("rack", F.lit("")))
    own = F.struct("scope", "name")
    pair = "struct<scope: string, name: string>"
    both = F.when(F.col("scope") == "broker", F.array(own.cast(pair), rack.cast(pair)))
    rows = rows.withColumn("pair", F.explode(both.otherwise(F.array(own.cast(pair)))))
    return rows.groupBy("kind", F.col("pair.scope").alias("scope"), F.col("pair.name").alias("name")).agg(
        F.count("*").alias("intervals"),
        F.countDistinct("topic_id", "partition_id").alias("partitions"),
        F.sum("duration_ms").alias("duration_ms"),
        F.max("duration_ms").alias("longest_ms"),
    )


def _flag(kind: str, holds: Column, brokers_meant: Column) -> Column:
    return F.struct(F.lit(kind).alias("kind"), holds.alias("holds"), brokers_meant.alias("brokers"))


def _edges(rows: DataFrame, order: WindowSpec) -> DataFrame:
    """The rows at which a condition begins or ends."""
    held_before = F.coalesce(F.lag("holds").over(order), F.lit(False))
    return rows.withColumn("held_before", held_before).where("holds != held_before").drop("held_before")


def _with_min_isr(timeline: Timeline, history: DataFrame) -> DataFrame:
    found = configs(timeline).where(F.col("name") == MIN_ISR)
    by_topic = found.where("resource_type = 2").select(
        F.col("resource_name").alias("topic_name"), F.col("value").cast("int").alias("topic_min_isr")
    )
    cluster = found.where("resource_type = 4 AND resource_name = ''").agg(
        F.max(F.col("value").cast("int")).alias("cluster_min_isr")
    )
    joined = history.join(by_topic, "topic_name", "left").crossJoin(F.broadcast(cluster))
    return joined.withColumn("min_isr", F.coalesce("topic_min_isr", "cluster_min_isr", F.lit(1)))
