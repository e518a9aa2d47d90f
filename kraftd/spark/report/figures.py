"""The numbers of the report: each at most a few hundred rows, however long the log."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kraftd.spark.tables import audit, intervals, moves, quorum, topics
from kraftd.spark.timeline import Timeline

BUCKETS = 200
MOST_ROWS = 20
MAX_OPERATIONS = 200
Rows = list[dict[str, Any]]


class Span:
    """The time from the first to the last record, in BUCKETS parts of equal length."""

    def __init__(self, first_ms: int, last_ms: int) -> None:
        self.first_ms, self.last_ms = first_ms, last_ms
        self.width_ms = max(1, (last_ms - first_ms) // BUCKETS + 1)

    def bucket(self, column: str) -> Any:
        """The part in which a time lies, as its first millisecond."""
        part = F.floor((F.col(column) - self.first_ms) / self.width_ms)
        return (F.lit(self.first_ms) + F.greatest(part, F.lit(0)) * self.width_ms).alias("at_ms")


def find_span(timeline: Timeline) -> Span:
    """The span of the log; of an empty one, nothing."""
    row = timeline.log(["timestamp_ms"]).agg(F.min("timestamp_ms"), F.max("timestamp_ms")).first()
    return Span(0, 0) if row is None or row[0] is None else Span(row[0], row[1])


def partitions_over_time(timeline: Timeline, span: Span) -> Rows:
    """How many partitions there were at the end of each part of the span in which that changed."""
    made = timeline.history(["offset", "timestamp_ms", "topic_id", "partition_id"], ["PartitionRecord"])
    first = made.groupBy("topic_id", "partition_id").agg(F.min("timestamp_ms").alias("timestamp_ms"))
    counts = first.groupBy("topic_id").agg(F.count("*").alias("partitions"))
    lives = topics.topic_lives(timeline, whole=True).where("removed_timestamp_ms IS NOT NULL")
    removed = lives.join(counts, "topic_id").select(
        F.col("removed_timestamp_ms").alias("timestamp_ms"), (-F.col("partitions")).alias("change")
    )
    changes = first.select("timestamp_ms", F.lit(1).cast("long").alias("change")).unionByName(removed)
    rows = _collect(
        changes.groupBy(span.bucket("timestamp_ms")).agg(F.sum("change").alias("change")), "at_ms"
    )
    total = 0
    for row in rows:
        total += row["change"]
        row["partitions"] = total
    return rows


def moves_over_time(timeline: Timeline, span: Span) -> Rows:
    """Leader moves of each part of the span, by cause."""
    rows = moves.leader_moves(timeline).groupBy(span.bucket("timestamp_ms"), "cause")
    return _collect(rows.agg(F.count("*").alias("moves")), "at_ms")


def operations_over_time(timeline: Timeline, span: Span) -> Rows:
    """Admin operations of each part of the span, by action."""
    rows = audit.audit(timeline).groupBy(span.bucket("timestamp_ms"), "action")
    return _collect(rows.agg(F.count("*").alias("operations")), "at_ms")


def unhealthy_over_time(timeline: Timeline, span: Span) -> Rows:
    """The number of unhealthy partitions, by kind, after each part of the span in which it changed."""
    rows = intervals.partition_intervals(timeline)
    begun = rows.select("kind", F.col("start_timestamp_ms").alias("timestamp_ms"), F.lit(1).alias("change"))
    ended = rows.where("end_timestamp_ms IS NOT NULL").select(
        "kind", F.col("end_timestamp_ms").alias("timestamp_ms"), F.lit(-1).alias("change")
    )
    both = begun.unionByName(ended).groupBy(span.bucket("timestamp_ms"), "kind")
    found = _collect(both.agg(F.sum("change").alias("change")), "at_ms")
    totals: dict[str, int] = {}
    for row in found:
        totals[row["kind"]] = totals.get(row["kind"], 0) + row["change"]
        row["partitions"] = totals[row["kind"]]
    return found


def longest_intervals(timeline: Timeline) -> Rows:
    """The topics whose partitions were unhealthy for the longest total time."""
    rows = intervals.interval_totals(timeline).where("scope = 'topic'")
    return _collect(rows, F.desc("duration_ms"), MOST_ROWS)


def top_churners(timeline: Timeline) -> Rows:
    """The partitions that changed most."""
    return _collect(moves.isr_churn(timeline), F.desc("changes"), MOST_ROWS)


def last_operations(timeline: Timeline) -> Rows:
    """The last admin operations, the newest first."""
    return _collect(audit.audit(timeline), F.desc("offset"), MAX_OPERATIONS)


def elections(timeline: Timeline) -> Rows:
    """The last leaders of the quorum, the newest first."""
    return _collect(quorum.elections(timeline), F.desc("offset"), MOST_ROWS)


def _collect(rows: DataFrame, order: Any, most: int = 10_000) -> Rows:
    return [row.asDict(recursive=True) for row in rows.orderBy(order).limit(most).collect()]
