"""The numbers of the report: each at most a few hundred rows, however long the log."""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kraftd.spark.report.plots import DAY_MS
from kraftd.spark.tables.brokers import racks
from kraftd.spark.tables.catalog import table
from kraftd.spark.tables.topics import topic_lives
from kraftd.spark.timeline import Timeline

BUCKETS = 200
MOST_ROWS = 20
MOST_BROKERS = 500
MOST_DAYS = 400
MOST_WORST = 10
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
    lives = topic_lives(timeline, whole=True).where("removed_timestamp_ms IS NOT NULL")
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
    rows = table("leader_moves", timeline).groupBy(span.bucket("timestamp_ms"), "cause")
    return _collect(rows.agg(F.count("*").alias("moves")), "at_ms")


def operations_over_time(timeline: Timeline, span: Span) -> Rows:
    """Admin operations of each part of the span, by action."""
    rows = table("audit", timeline).groupBy(span.bucket("timestamp_ms"), "action")
    return _collect(rows.agg(F.count("*").alias("operations")), "at_ms")


def unhealthy_over_time(timeline: Timeline, span: Span) -> Rows:
    """The number of unhealthy partitions, by kind, after each part of the span in which it changed."""
    rows = table("partition_intervals", timeline)
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
    rows = table("interval_totals", timeline).where("scope = 'topic'")
    return _collect(rows, F.desc("duration_ms"), MOST_ROWS)


def offline_intervals(timeline: Timeline, span: Span) -> Rows:
    """The longest periods without a leader; what has not ended lasts up to the last record."""
    rows = table("partition_intervals", timeline).where("kind = 'offline'")
    order = [F.desc("lasted_ms"), F.asc("topic_name"), F.asc("partition_id")]
    return _collect(rows.withColumn("lasted_ms", _lasted(span)), order, MOST_ROWS)


def worst_partitions(timeline: Timeline, span: Span) -> Rows:
    """The partitions that were unhealthy for the longest time; first those that were offline."""
    rows = table("partition_intervals", timeline).withColumn("lasted_ms", _lasted(span))
    kinds = ("offline", "under_min_isr", "under_replicated")
    sums = [
        F.sum(F.when(F.col("kind") == kind, F.col("lasted_ms")).otherwise(0)).alias(kind) for kind in kinds
    ]
    found = rows.groupBy("topic_id", "topic_name", "partition_id").agg(*sums)
    found = found.join(table("isr_churn", timeline).drop("topic_name"), ["topic_id", "partition_id"], "left")
    found = found.fillna(0)
    order = [*map(F.desc, kinds), F.asc("topic_name"), F.asc("partition_id")]
    return _collect(found, order, MOST_WORST)


def top_churners(timeline: Timeline) -> Rows:
    """The partitions that changed most."""
    order = [F.desc("changes"), F.asc("topic_name"), F.asc("partition_id")]
    return _collect(table("isr_churn", timeline), order, MOST_WORST)


def churn_by_day(timeline: Timeline) -> Rows:
    """How often partitions changed on each day in UTC, the newest first."""
    left, joined = F.array_except("old_isr", "new_isr"), F.array_except("new_isr", "old_isr")
    day = F.floor(F.col("timestamp_ms") / DAY_MS) * DAY_MS
    rows = table("partition_changes", timeline).groupBy(day.alias("day_ms"))
    counts = {
        "changes": F.lit(True),
        "isr_shrinks": F.size(left) > 0,
        "isr_expands": F.size(joined) > 0,
        "leader_moves": F.col("old_leader") != F.col("new_leader"),
    }
    return _collect(
        rows.agg(*[F.count_if(holds).alias(name) for name, holds in counts.items()]),
        F.desc("day_ms"),
        MOST_DAYS,
    )


def brokers_now(timeline: Timeline) -> Rows:
    """Each broker that was ever registered: its state, what it leads and holds, and its registrations.

    skew is how many times its even share a registered broker leads.
    """
    state = table("partitions", timeline)
    leads = state.groupBy(F.col("leader").alias("broker_id")).agg(F.count("*").alias("leads"))
    preferred = state.groupBy(F.col("replicas")[0].alias("broker_id")).agg(F.count("*").alias("preferred"))
    held = state.select(F.explode("replicas").alias("broker_id")).groupBy("broker_id")
    sessions = table("broker_sessions", timeline).groupBy("broker_id")
    rows = sessions.agg(
        F.count("*").alias("sessions"),
        F.sum("fenced_count").alias("fencings"),
        F.max("registered_timestamp_ms").alias("registered_ms"),
    )
    now = table("brokers", timeline).select("broker_id", "fenced", "in_controlled_shutdown")
    counted = (leads, preferred, held.agg(F.count("*").alias("replicas")))
    for more in (racks(timeline), now, *counted):
        rows = rows.join(more, "broker_id", "left")
    rows = rows.fillna(0, ["leads", "preferred", "replicas"])
    found = _collect(rows, [F.desc("leads"), F.asc("broker_id")], MOST_BROKERS)
    registered = [row for row in found if row["fenced"] is not None]
    led = sum(row["leads"] for row in registered)
    for row in found:
        row["skew"] = row["leads"] * len(registered) / led if row in registered and led else None
    return found


def rack_totals(broker_rows: Rows) -> Rows:
    """What the brokers of each rack lead and hold."""
    found: dict[str, dict[str, Any]] = {}
    for row in broker_rows:
        if row["fenced"] is not None:
            rack = found.setdefault(
                row["rack"], {"rack": row["rack"], "brokers": 0, "leads": 0, "replicas": 0}
            )
            rack["brokers"] += 1
            rack["leads"] += row["leads"]
            rack["replicas"] += row["replicas"]
    return sorted(found.values(), key=lambda rack: str(rack["rack"]))


def rack_violations(timeline: Timeline, rack_count: int) -> Rows:
    """The topics with partitions whose replicas lie in fewer racks than they could."""
    state = table("partitions", timeline)
    known = F.broadcast(racks(timeline).where("rack != ''"))
    rows = state.select("topic_name", "partition_id", F.explode("replicas").alias("broker_id"))
    placed = rows.join(known, "broker_id", "left").groupBy("topic_name", "partition_id")
    used = placed.agg(F.count("*").alias("size"), F.countDistinct("rack").alias("used"))
    few = used.where(F.col("used") < F.least(F.col("size"), F.lit(rack_count)))
    found = few.groupBy("topic_name").agg(F.count("*").alias("partitions"))
    return _collect(found, [F.desc("partitions"), F.asc("topic_name")], MOST_ROWS)


def last_operations(timeline: Timeline) -> Rows:
    """The last admin operations, the newest first."""
    return _collect(table("audit", timeline), F.desc("offset"), MAX_OPERATIONS)


def elections(timeline: Timeline) -> Rows:
    """The last leaders of the quorum, the newest first."""
    return _collect(table("elections", timeline), F.desc("offset"), MOST_ROWS)


def _lasted(span: Span) -> Column:
    return F.coalesce("end_timestamp_ms", F.lit(span.last_ms)) - F.col("start_timestamp_ms")


def _collect(rows: DataFrame, order: Any, most: int = 10_000) -> Rows:
    columns = order if isinstance(order, list) else [order]
    return [row.asDict(recursive=True) for row in rows.orderBy(*columns).limit(most).collect()]
