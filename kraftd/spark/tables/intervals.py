"""The intervals in which partitions were unhealthy: under-replicated, below min.insync.replicas, leaderless,
offline.

An interval begins with the record that causes the condition. It ends with the record that removes it, or with
the topic. An end of null means that the condition still held at the last record that was read. The brokers of
an interval may change meanwhile, so each has spans of its own.
min.insync.replicas is the value at the time: the topic's, else the cluster's, else 1, but never more than
there are replicas.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kraftd.spark.decoding.decode import LAST_OFFSET
from kraftd.spark.inputs.extent import BEFORE_THE_LOG
from kraftd.spark.tables.brokers import racks
from kraftd.spark.tables.configs import BROKER, TOPIC, config_history
from kraftd.spark.tables.filling import KEY
from kraftd.spark.tables.partitions import REMOVED, partition_replay
from kraftd.spark.timeline import Timeline

MIN_ISR = "min.insync.replicas"


def partition_intervals(timeline: Timeline) -> DataFrame:
    """The table `partition_intervals`."""
    if "partition_intervals" in timeline.made:
        return timeline.made["partition_intervals"]
    # Most partitions are always healthy: their rows are dropped before anything is sorted.
    is_lacking = (F.size("isr") < F.size("replicas")) | (F.col("leader") == -1)
    was_lacking = (F.size("old_isr") < F.size("old_replicas")) | (F.col("old_leader") == -1)
    rows = partition_replay(timeline).where(is_lacking | F.coalesce(was_lacking, F.lit(False)))
    rows = _with_min_isr(timeline, rows)
    members = F.size(
        F.array_union("isr", F.coalesce("eligible_leader_replicas", F.array().cast("array<int>")))
    )
    whole_size = F.size(F.array_except("replicas", "adding_replicas"))
    lacking = F.array_except(F.array_except("replicas", "adding_replicas"), "isr")
    leaderless = F.col("leader") == -1
    kinds = {
        "under_replicated": (F.size("isr") < whole_size, lacking),
        "under_min_isr": (F.size("isr") < F.least("min_isr", F.size("replicas")), lacking),
        "leaderless": (leaderless & (members > 0), F.col("replicas")),
        "offline": (leaderless, F.col("replicas")),
    }
    rows = rows.withColumns({kind: _state(*parts) for kind, parts in kinds.items()})
    flags = F.array(*[_flag(kind) for kind in kinds])
    fields = ("offset", "timestamp_ms", *KEY, "topic_name", *REMOVED)
    # Only what begins, changes or ends is sorted by kind: most conditions of most rows do not hold.
    rows = rows.withColumn("flags", flags).select(*fields, F.explode("flags").alias("flag"))
    return _with_spans(_steps(rows.where("flag.changes").select(*fields, "flag.*")))


def interval_totals(timeline: Timeline) -> DataFrame:
    """The table `interval_totals`: intervals by topic, and spans by broker and by that broker's rack.

    What has not ended counts up to the last record that was read.
    """
    rows = partition_intervals(timeline)
    newest = timeline.log(["timestamp_ms"]).agg(F.max("timestamp_ms").alias("newest_ms"))
    times = ("start_timestamp_ms", "end_timestamp_ms")
    meant = F.transform(
        "spans",
        lambda span: F.struct(
            F.lit("broker"),
            span["broker_id"].cast("string"),
            span["broker_id"],
            *[span[name] for name in times],
        ),
    )
    topic = F.array(F.struct(F.lit("topic"), F.col("topic_name"), F.lit(None).cast("int"), *times))
    shape = "array<struct<scope: string, name: string, broker_id: int, begin_ms: bigint, end_ms: bigint>>"
    place = F.explode(F.concat(topic.cast(shape), meant.cast(shape))).alias("place")
    rows = rows.select("kind", *KEY, place).select("kind", *KEY, "place.*").crossJoin(F.broadcast(newest))
    rows = rows.withColumn("duration_ms", F.coalesce("end_ms", "newest_ms") - F.col("begin_ms"))
    rows = rows.join(F.broadcast(racks(timeline)), "broker_id", "left")
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


def _state(holds: Column, brokers_meant: Column) -> Column:
    """Whether a condition holds, and for which brokers."""
    meant = F.when(holds, brokers_meant).otherwise(F.array()).cast("array<int>")
    return F.struct(holds.alias("holds"), meant.alias("brokers"))


def _flag(kind: str) -> Column:
    """A condition after a record: whether it begins with it, and whether it or its brokers change."""
    before = F.lag(kind).over(Window.partitionBy(*KEY).orderBy("offset"))
    held_before = F.coalesce(before["holds"], F.lit(False))
    holds, brokers = F.col(kind)["holds"], F.col(kind)["brokers"]
    same_brokers = F.coalesce(before["brokers"] == brokers, F.lit(False))
    return F.struct(
        F.lit(kind).alias("kind"),
        holds.alias("holds"),
        brokers.alias("brokers"),
        (holds & ~held_before).alias("begins"),
        ((holds != held_before) | (holds & ~same_brokers)).alias("changes"),
    )


def _steps(rows: DataFrame) -> DataFrame:
    """The times with the same brokers in which a condition held, with their number and their interval's."""
    order = Window.partitionBy(*KEY, "kind").orderBy("offset")
    return rows.select(
        "kind",
        "topic_name",
        *KEY,
        "holds",
        "brokers",
        F.sum(F.col("begins").cast("int")).over(order).alias("interval"),
        F.row_number().over(order).alias("step"),
        F.when(F.col("offset") >= 0, F.col("offset")).alias("start_offset"),
        F.col("timestamp_ms").alias("start_timestamp_ms"),
        F.coalesce(F.lead("offset").over(order), "removed_offset").alias("end_offset"),
        F.coalesce(F.lead("timestamp_ms").over(order), "removed_timestamp_ms").alias("end_timestamp_ms"),
    ).where("holds")


def _with_spans(steps: DataFrame) -> DataFrame:
    """The intervals of these steps, with each broker's spans in them."""
    interval = ("kind", "topic_id", "topic_name", "partition_id", "interval")
    steps = steps.withColumn("broker_id", F.explode_outer("brokers"))
    of_broker = Window.partitionBy(*interval, "broker_id").orderBy("step")
    steps = steps.withColumn("span", F.col("step") - F.row_number().over(of_broker))
    spans = steps.groupBy(*interval, "broker_id", "span").agg(
        F.min("step").alias("first_step"),
        F.max("step").alias("last_step"),
        *[F.min_by(name, "step").alias(name) for name in ("start_offset", "start_timestamp_ms")],
        *[F.max_by(name, "step").alias(name) for name in ("end_offset", "end_timestamp_ms")],
    )
    duration = (F.col("end_timestamp_ms") - F.col("start_timestamp_ms")).alias("duration_ms")
    times = ("start_offset", "start_timestamp_ms", "end_offset", "end_timestamp_ms")
    span = F.when(F.col("broker_id").isNotNull(), F.struct("broker_id", *times, duration))
    whole = spans.groupBy(*interval).agg(
        *[F.min_by(name, "first_step").alias(name) for name in times[:2]],
        *[F.max_by(name, "last_step").alias(name) for name in times[2:]],
        F.array_sort(F.collect_set("broker_id")).alias("brokers"),
        F.sort_array(F.collect_list(span)).alias("spans"),
    )
    return whole.select(*interval[:-1], *times, duration, "brokers", "spans")


def _with_min_isr(timeline: Timeline, rows: DataFrame) -> DataFrame:
    """The rows with the value of `min.insync.replicas` at their time.

    Where a row's ISR lacks replicas, a row is added for each offset before its next one at which a value
    begins or ends.
    """
    found = config_history(timeline).where(F.col("name") == MIN_ISR)
    begin = F.struct(
        F.coalesce("valid_from_offset", F.lit(BEFORE_THE_LOG)).alias("offset"),
        F.col("valid_from_ms").alias("ms"),
    )
    end = F.struct(F.col("valid_to_offset").alias("offset"), F.col("valid_to_ms").alias("ms"))
    value = F.struct(
        begin["offset"].alias("from_offset"),
        F.col("valid_to_offset").alias("to_offset"),
        F.expr("try_cast(value AS int)").alias("min_isr"),
    )
    shape = "array<struct<offset: bigint, ms: bigint>>"

    def gathered(scope: str) -> list[Column]:
        changes = F.flatten(F.collect_list(F.array(begin, end).cast(shape)))
        return [F.collect_list(value).alias(f"{scope}_values"), changes.alias(f"{scope}_changes")]

    by_topic = found.where(F.col("resource_type") == TOPIC).groupBy(
        F.col("resource_name").alias("topic_name")
    )
    of_cluster = found.where((F.col("resource_type") == BROKER) & (F.col("resource_name") == ""))
    rows = rows.join(by_topic.agg(*gathered("topic")), "topic_name", "left")
    rows = rows.crossJoin(F.broadcast(of_cluster.agg(*gathered("cluster"))))
    changes = F.concat(F.coalesce("topic_changes", F.array().cast(shape)), "cluster_changes")
    within = F.filter(
        changes,
        lambda change: (
            (change["offset"] > F.col("offset"))
            & (change["offset"] < F.coalesce("next_offset", F.lit(LAST_OFFSET)))
        ),
    )
    own = F.array(F.struct("offset", F.col("timestamp_ms").alias("ms")))
    is_short = F.size("isr") < F.size("replicas")
    places = F.when(is_short & (F.size(changes) > 0), F.array_union(own, within)).otherwise(own)
    rows = rows.withColumn("place", F.explode(places))
    rows = rows.withColumns({"offset": F.col("place.offset"), "timestamp_ms": F.col("place.ms")})
    known = [_value_at(name) for name in ("topic_values", "cluster_values")]
    return rows.withColumn("min_isr", F.coalesce(*known, F.lit(1)))


def _value_at(values: str) -> Column:
    """The value of a row's time, null if there was none."""
    valid = F.filter(
        values,
        lambda one: (
            (one["from_offset"] <= F.col("offset"))
            & (F.col("offset") < F.coalesce(one["to_offset"], F.lit(LAST_OFFSET)))
        ),
    )
    return F.when(F.size(values) > 0, F.get(valid, 0)["min_isr"])
