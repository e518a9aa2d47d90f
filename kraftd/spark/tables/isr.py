"""Which broker was in the ISR of which partition, and when."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kraftd.spark.tables.filling import KEY
from kraftd.spark.tables.partitions import REMOVED, partition_replay, until_removed
from kraftd.spark.tables.validity import lasted, validity, with_next
from kraftd.spark.timeline import Timeline


def isr_history(timeline: Timeline) -> DataFrame:
    """The table `isr_history`: one row for each time that a broker was in the ISR of a partition."""
    rows = partition_replay(timeline)
    before = F.coalesce("old_isr", F.array().cast("array<int>"))
    joined, left = F.array_except("isr", before), F.array_except(before, "isr")
    steps = F.concat(_steps(joined, joins=True), _steps(left, joins=False))
    rows = rows.select("offset", "timestamp_ms", *KEY, "topic_name", *REMOVED, F.explode(steps).alias("step"))
    rows = until_removed(with_next(rows.select("*", "step.*"), *KEY, "broker_id")).where("joins")
    rows = rows.select("topic_id", "topic_name", "partition_id", "broker_id", *validity())
    return rows.withColumn("duration_ms", lasted())


def _steps(brokers: Column, *, joins: bool) -> Column:
    return F.transform(
        brokers, lambda broker: F.struct(broker.alias("broker_id"), F.lit(joins).alias("joins"))
    )
