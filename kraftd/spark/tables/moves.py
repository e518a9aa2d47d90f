"""The moves of leadership and ISRs, and their causes.

The log does not say why a leader moved. The cause is derived from the records of the same batch, which the
controller writes for one event: a broker that was fenced, shut down, unregistered or unfenced. Without such a
record, the change itself shows the cause.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kraftd.spark.tables.brokers import UNREGISTERED, broker_events
from kraftd.spark.tables.partitions import partition_changes
from kraftd.spark.timeline import Timeline


def leader_moves(timeline: Timeline) -> DataFrame:
    """The table `leader_moves`: changes after which another broker leads, or none does."""
    moves = partition_changes(timeline).where("old_leader != new_leader")
    events = broker_events(timeline, whole=True).where("offset >= 0")
    what = (
        F.when(F.col("type") == UNREGISTERED, "broker unregistered")
        .when(F.col("became_shutting_down"), "controlled shutdown")
        .when(F.col("became_fenced"), "broker fenced")
        .when(F.col("became_fenced") == F.lit(False), "broker unfenced")
    )
    events = events.select("batch_offset", "broker_id", what.alias("event")).where("event IS NOT NULL")
    by_broker = events.groupBy("batch_offset", "broker_id").agg(F.max("event").alias("event"))
    lost = by_broker.where("event != 'broker unfenced'").select(
        "batch_offset", F.col("broker_id").alias("old_leader"), F.col("event").alias("lost_by")
    )
    won = by_broker.where("event = 'broker unfenced'").select(
        "batch_offset", F.col("broker_id").alias("new_leader"), F.col("event").alias("won_by")
    )
    cause = (
        F.when(F.col("leader_recovery_state") == 1, "unclean election")
        .when(F.col("lost_by").isNotNull(), F.col("lost_by"))
        .when(F.col("won_by").isNotNull(), F.col("won_by"))
        .when(
            ~F.array_contains("new_replicas", F.col("old_leader")) & (F.col("old_leader") >= 0),
            "reassignment",
        )
        .when(F.col("new_leader") == -1, "leader lost")
        .when(F.col("new_leader") == F.col("new_replicas")[0], "preferred election")
        .otherwise("election")
    )
    joined = moves.join(lost, ["batch_offset", "old_leader"], "left").join(
        won, ["batch_offset", "new_leader"], "left"
    )
    return joined.select(
        "offset",
        "timestamp_ms",
        "topic_id",
        "topic_name",
        "partition_id",
        "old_leader",
        "new_leader",
        cause.alias("cause"),
        "leader_epoch",
        "new_isr",
        "new_replicas",
    )


def isr_churn(timeline: Timeline) -> DataFrame:
    """The table `isr_churn`: how often each partition changed, by kind of change."""
    rows = partition_changes(timeline)
    left, joined = F.array_except("old_isr", "new_isr"), F.array_except("new_isr", "old_isr")
    return rows.groupBy("topic_id", "topic_name", "partition_id").agg(
        F.count("*").alias("changes"),
        F.sum((F.size(left) > 0).cast("int")).alias("isr_shrinks"),
        F.sum((F.size(joined) > 0).cast("int")).alias("isr_expands"),
        F.sum((F.col("old_leader") != F.col("new_leader")).cast("int")).alias("leader_moves"),
        F.min("timestamp_ms").alias("first_timestamp_ms"),
        F.max("timestamp_ms").alias("last_timestamp_ms"),
    )
