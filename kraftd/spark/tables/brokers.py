"""Brokers and their sessions: from a registration to the next one, or to its end."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from kraftd.spark.tables.validity import validity, with_next
from kraftd.spark.timeline import Timeline, last_known, latest

REGISTERED = "RegisterBrokerRecord"
UNREGISTERED = "UnregisterBrokerRecord"
TYPES = (
    REGISTERED,
    UNREGISTERED,
    "FenceBrokerRecord",
    "UnfenceBrokerRecord",
    "BrokerRegistrationChangeRecord",
)
COLUMNS = (
    "offset",
    "epoch",
    "timestamp_ms",
    "batch_offset",
    "type",
    "broker_id",
    "broker_epoch",
    "incarnation_id",
    "end_points",
    "features",
    "rack",
    "fenced",
    "in_controlled_shutdown",
    "log_dirs",
    "cordoned_log_dirs",
    "is_migrating_zk_broker",
    "fenced_change",
    "in_controlled_shutdown_change",
)
WHOLE = ("broker_epoch", "incarnation_id", "end_points", "features", "rack", "is_migrating_zk_broker")
"""What a registration alone says, null included."""
STATE = (
    "broker_id",
    "broker_epoch",
    "incarnation_id",
    "rack",
    "fenced",
    "in_controlled_shutdown",
    "end_points",
    "features",
    "log_dirs",
    "cordoned_log_dirs",
    "is_migrating_zk_broker",
    "registered_offset",
)


def broker_events(timeline: Timeline, *, whole: bool) -> DataFrame:
    """The records of brokers; became_fenced and became_shutting_down are the states that each record sets,
    null for no change.
    """
    if whole:
        rows = timeline.history(COLUMNS, TYPES)
    else:
        rows = timeline.state(COLUMNS, TYPES, dated_by=["type", "broker_id"])
    registered = F.col("type") == REGISTERED
    fenced = (
        F.when(registered, F.col("fenced"))
        .when((F.col("type") == "FenceBrokerRecord") | (F.col("fenced_change") == 1), F.lit(True))
        .when((F.col("type") == "UnfenceBrokerRecord") | (F.col("fenced_change") == -1), F.lit(False))
    )
    shutting_down = F.when(registered, F.coalesce("in_controlled_shutdown", F.lit(False))).when(
        F.col("in_controlled_shutdown_change") == 1, F.lit(True)
    )
    return rows.withColumns({"became_fenced": fenced, "became_shutting_down": shutting_down})


def brokers(timeline: Timeline) -> DataFrame:
    """The state table `brokers`: those registered."""
    return _registrations(timeline, whole=False).where("next_offset IS NULL").select(*STATE)


def broker_history(timeline: Timeline) -> DataFrame:
    """The table `broker_history`: one row for each state of a registered broker."""
    return _registrations(timeline, whole=True).select(*STATE, *validity())


def racks(timeline: Timeline) -> DataFrame:
    """The rack of every broker in the history, of its last registration; empty without one."""
    rows = broker_events(timeline, whole=True).where(F.col("type") == REGISTERED)
    newest = latest(rows.select("broker_id", "offset", "rack"), "broker_id")
    return newest.select("broker_id", F.coalesce("rack", F.lit("")).alias("rack"))


def _registrations(timeline: Timeline, *, whole: bool) -> DataFrame:
    """Every registered broker after each of its records."""
    rows = broker_events(timeline, whole=whole)
    registered = F.col("type") == REGISTERED
    directories = F.when(registered, F.coalesce(F.col("log_dirs"), F.array().cast("array<string>"))).when(
        F.size("log_dirs") > 0, F.col("log_dirs")
    )
    cordoned = F.when(registered | F.col("cordoned_log_dirs").isNotNull(), F.struct("cordoned_log_dirs"))
    known = {
        "registration": last_known(F.when(registered, F.struct(*WHOLE)), "broker_id"),
        "fenced": last_known("became_fenced", "broker_id"),
        "in_controlled_shutdown": last_known("became_shutting_down", "broker_id"),
        "log_dirs": last_known(directories, "broker_id"),
        "cordoned_log_dirs": last_known(cordoned, "broker_id")["cordoned_log_dirs"],
        "registered_offset": last_known(F.when(registered, F.col("offset")), "broker_id"),
    }
    rows = with_next(rows.withColumns(known), "broker_id").where(F.col("type") != UNREGISTERED)
    fields = {name: F.col("registration")[name] for name in WHOLE}
    migrating = F.coalesce(fields["is_migrating_zk_broker"], F.lit(False))
    registered_offset = F.when(F.col("registered_offset") >= 0, F.col("registered_offset"))
    return rows.withColumns(
        fields | {"is_migrating_zk_broker": migrating, "registered_offset": registered_offset}
    )


def broker_sessions(timeline: Timeline) -> DataFrame:
    """The table `broker_sessions`: one row a registration."""
    rows = broker_events(timeline, whole=True)
    order = Window.partitionBy("broker_id").orderBy("offset")
    registered = F.col("type") == REGISTERED
    edges = rows.where(F.col("type").isin(REGISTERED, UNREGISTERED)).withColumns(
        {
            "ended_offset": F.lead("offset").over(order),
            "ended_timestamp_ms": F.lead("timestamp_ms").over(order),
            "next_type": F.lead("type").over(order),
        }
    )
    sessions = edges.where(registered).select(
        "broker_id",
        "broker_epoch",
        "incarnation_id",
        "rack",
        F.when(F.col("offset") >= 0, F.col("offset")).alias("registered_offset"),
        F.when(F.col("offset") >= 0, F.col("timestamp_ms")).alias("registered_timestamp_ms"),
        "ended_offset",
        "ended_timestamp_ms",
        F.when(F.col("next_type") == REGISTERED, "registered again")
        .when(F.col("next_type") == UNREGISTERED, "unregistered")
        .alias("ended_by"),
    )

    unfenced = (F.col("became_fenced") == F.lit(False)) & (F.col("offset") >= 0)
    fenced = F.col("became_fenced") & ~registered
    stopping = F.col("became_shutting_down") & ~registered
    events = rows.groupBy("broker_id", "broker_epoch").agg(
        F.min(F.when(unfenced, F.col("offset"))).alias("unfenced_offset"),
        F.min(F.when(unfenced, F.col("timestamp_ms"))).alias("unfenced_timestamp_ms"),
        F.max(F.when(fenced, F.col("offset"))).alias("fenced_offset"),
        F.max(F.when(fenced, F.col("timestamp_ms"))).alias("fenced_timestamp_ms"),
        F.sum(F.when(fenced, 1).otherwise(0)).alias("fenced_count"),
        F.max(F.when(stopping, F.col("timestamp_ms"))).alias("controlled_shutdown_timestamp_ms"),
    )
    return sessions.join(events, ["broker_id", "broker_epoch"], "left")
