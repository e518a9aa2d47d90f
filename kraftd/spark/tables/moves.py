"""The moves of leadership and ISRs, and their causes.

The log does not say why a leader moved. The cause is a broker whose record the controller appends with the
change (`causes`). Without such a record, the change itself shows the cause.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kraftd.spark.tables.causes import explained_by, with_brokers
from kraftd.spark.tables.partitions import partition_changes
from kraftd.spark.timeline import Timeline

CAUSES = {
    "broker-fenced": "broker fenced",
    "broker-unregistered": "broker unregistered",
    "broker-registered": "unclean shutdown",
    "broker-directories-changed": "log directory failed",
    "broker-shutting-down": "controlled shutdown",
    "broker-unfenced": "broker unfenced",
}
"""The cause for each kind of event of a broker."""


def leader_moves(timeline: Timeline) -> DataFrame:
    """The table `leader_moves`: changes after which another broker leads, or none does."""
    moves = with_brokers(timeline, partition_changes(timeline).where("old_leader != new_leader"))
    names = F.create_map(*[F.lit(part) for pair in CAUSES.items() for part in pair])
    same_replicas = F.array_sort("old_replicas") == F.array_sort("new_replicas")
    preferred = (F.col("new_leader") == F.col("new_replicas")[0]) & F.array_contains(
        "new_isr", F.col("old_leader")
    )
    cause = (
        F.when(_is_unclean(same_replicas), "unclean election")
        .when(explained_by("before"), names[F.col("before.kind")])
        .when(explained_by("after"), names[F.col("after.kind")])
        .when(F.col("divided").isNotNull(), names[F.col("divided")])
        .when(~same_replicas, "reassignment")
        .when(F.col("new_leader") == -1, "leader lost")
        .when(preferred, "preferred election")
        .otherwise("election")
    )
    return moves.select(
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


def _is_unclean(same_replicas: Column) -> Column:
    """Whether a leader was elected that may lack records: neither in the ISR nor an eligible leader replica.

    A partition that still recovers from such an election does not begin to recover once more.
    """
    begins_recovery = (F.col("leader_recovery_state") == 1) & (F.col("old_leader_recovery_state") != 1)
    candidates = F.array_union("old_isr", "old_eligible_leader_replicas")
    is_outsider = (F.col("new_leader") >= 0) & ~F.array_contains(candidates, F.col("new_leader"))
    return begins_recovery | (is_outsider & same_replicas)


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
