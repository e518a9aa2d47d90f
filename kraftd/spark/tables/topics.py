"""The tables of topics: those that exist, and the lifetime of each. A topic id is never reused, a name may
be.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kraftd.spark.timeline import Timeline

LIVES = "topic_lives"
"""The name under which several tables share the lives of topics."""
CREATED, REMOVED = "TopicRecord", "RemoveTopicRecord"


def topic_lives(timeline: Timeline, *, whole: bool) -> DataFrame:
    """topic_id, name, and created_* and removed_* offset and time; whole also keeps removed topics that the
    log still has.
    """
    if whole:
        return timeline.shared(LIVES, lambda: _lives(timeline, whole=True))
    return _lives(timeline, whole=False)


def _lives(timeline: Timeline, *, whole: bool) -> DataFrame:
    read = timeline.history if whole else timeline.state
    columns = ["offset", "timestamp_ms", "type", "topic_id", "name"]
    rows = read(columns, [CREATED, REMOVED], dated_by=["type", "topic_id"])
    created, removed = F.col("type") == CREATED, F.col("type") == REMOVED
    return rows.groupBy("topic_id").agg(
        F.max("name").alias("name"),
        F.max(F.when(created & (F.col("offset") >= 0), F.col("offset"))).alias("created_offset"),
        F.max(F.when(created & (F.col("offset") >= 0), F.col("timestamp_ms"))).alias("created_timestamp_ms"),
        F.max(F.when(removed, F.col("offset"))).alias("removed_offset"),
        F.max(F.when(removed, F.col("timestamp_ms"))).alias("removed_timestamp_ms"),
    )


def lives_of(history: DataFrame) -> DataFrame:
    """`topic_lives` from the table `topic_history`."""
    periods = {"from": "created", "to": "removed"}
    places = [
        F.col(f"valid_{end}_{unit}").alias(f"{name}_{'offset' if unit == 'offset' else 'timestamp_ms'}")
        for end, name in periods.items()
        for unit in ("offset", "ms")
    ]
    return history.select("topic_id", "name", *places)


def topics(timeline: Timeline) -> DataFrame:
    """The state table `topics`."""
    rows = topic_lives(timeline, whole=timeline.replays_history).where("removed_offset IS NULL")
    parts = timeline.state(["topic_id", "partition_id"], ["PartitionRecord"])
    counts = parts.groupBy("topic_id").agg(
        F.countDistinct("partition_id").cast("int").alias("partition_count")
    )
    return rows.join(counts, "topic_id", "left").select(
        "name",
        "topic_id",
        F.coalesce("partition_count", F.lit(0)).alias("partition_count"),
        "created_offset",
        "created_timestamp_ms",
    )


def topic_history(timeline: Timeline) -> DataFrame:
    """The table `topic_history`: one row a topic, from its creation to its removal."""
    return topic_lives(timeline, whole=True).select(
        "topic_id",
        "name",
        F.col("created_offset").alias("valid_from_offset"),
        F.col("created_timestamp_ms").alias("valid_from_ms"),
        F.col("removed_offset").alias("valid_to_offset"),
        F.col("removed_timestamp_ms").alias("valid_to_ms"),
    )
