"""Configs: their state, their history, and what a topic took with it when it was removed."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kraftd.history.names import RESOURCE_TYPES
from kraftd.spark.tables.names import name_of
from kraftd.spark.tables.topics import CREATED, REMOVED
from kraftd.spark.tables.validity import current, validity, with_next
from kraftd.spark.timeline import Timeline

TOPIC, BROKER = 2, 4
CONFIG_SPANS = "config_spans"
"""The name under which several tables share the history of configs."""
KEY = ("resource_type", "resource_name", "name")


def configs(timeline: Timeline) -> DataFrame:
    """The state table `configs`: a null value takes a key away, and a topic takes its configs with it."""
    rows = current(timeline, "config_history", lambda: _history(timeline, whole=False))
    return rows.select(*_columns(), F.col("valid_from_offset").alias("changed_offset"))


def config_history(timeline: Timeline) -> DataFrame:
    """The table `config_history`: one row for each time that a config was set, until it was set again,
    deleted, or removed with its topic.
    """
    return timeline.shared(CONFIG_SPANS, lambda: _history(timeline, whole=True))


def gone_configs(timeline: Timeline) -> DataFrame:
    """The configs that existed when their topic was removed, and were not set again since."""
    rows = _steps(timeline, whole=False)
    newest = F.max(F.when(~F.col("is_removal"), F.col("offset"))).over(Window.partitionBy(*KEY))
    rows = rows.withColumn("newest", newest).where(_is_set() & (F.col("offset") == F.col("newest")))
    return rows.where("next_offset IS NOT NULL").select(
        "resource_name", "name", "value", F.col("next_offset").alias("removed_offset")
    )


def _history(timeline: Timeline, *, whole: bool) -> DataFrame:
    return _steps(timeline, whole=whole).where(_is_set()).select(*_columns(), *validity())


def _columns() -> list[Column]:
    kind = name_of("resource_type", RESOURCE_TYPES).alias("resource_type_name")
    return [F.col("resource_type"), kind, *map(F.col, ("resource_name", "name", "value"))]


def _is_set() -> Column:
    return ~F.col("is_removal") & F.col("value").isNotNull()


def _steps(timeline: Timeline, *, whole: bool) -> DataFrame:
    """The records of configs, and for each config of a topic one row a removal of a topic of that name."""
    read = timeline.history if whole else timeline.state
    rows = read(["offset", "timestamp_ms", *KEY, "value"], ["ConfigRecord"], dated_by=KEY)
    rows = rows.withColumn("is_removal", F.lit(False))
    of_topics = rows.where(F.col("resource_type") == TOPIC).select(*KEY).distinct()
    removed = of_topics.join(_removals(timeline, whole=whole), "resource_name").select(
        "offset",
        "timestamp_ms",
        *KEY,
        F.lit(None).cast("string").alias("value"),
        F.lit(True).alias("is_removal"),
    )
    return with_next(rows.select(*removed.columns).unionByName(removed), *KEY)


def _removals(timeline: Timeline, *, whole: bool) -> DataFrame:
    """The name, offset and time of each removal of a topic, as far as the log has it."""
    columns, types = ["offset", "timestamp_ms", "type", "topic_id", "name"], [CREATED, REMOVED]
    rows = (timeline.history if whole else timeline.state)(columns, types)
    earlier = timeline.before(columns, types, whole=whole)
    rows = rows if earlier is None else rows.unionByName(earlier)
    removed = F.col("type") == REMOVED
    lives = rows.groupBy("topic_id").agg(
        F.max("name").alias("resource_name"),
        F.max(F.when(removed, F.col("offset"))).alias("offset"),
        F.max(F.when(removed, F.col("timestamp_ms"))).alias("timestamp_ms"),
    )
    return lives.where("offset IS NOT NULL").drop("topic_id")
