"""Periods in which something was so, and times as TIMESTAMP.

A period begins with the record that made it so, at `valid_from_offset` and `valid_from_ms`. It ends with the
record that ended it, at `valid_to_offset` and `valid_to_ms`. A beginning of null is older than the log; an
end of null means that it was still so at the last record that was read.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, StructType

from kraftd.spark.decoding.fields import MAX_TIMESTAMP_MS
from kraftd.spark.tables.columns import is_time
from kraftd.spark.timeline import Timeline, in_log

NEXT = ("next_offset", "next_ms")


def with_next(rows: DataFrame, *keys: str) -> DataFrame:
    """The rows with the place of the next record of the same key, null for the last one."""
    order = Window.partitionBy(*keys).orderBy("offset")
    return rows.withColumns(
        {"next_offset": F.lead("offset").over(order), "next_ms": F.lead("timestamp_ms").over(order)}
    )


def valid_from() -> list[Column]:
    """The beginning of a period, from `offset` and `timestamp_ms`; null for a record of a checkpoint."""
    return [
        in_log("offset").alias("valid_from_offset"),
        F.when(F.col("offset") >= 0, F.col("timestamp_ms")).alias("valid_from_ms"),
    ]


def validity(offset: str | Column = "next_offset", ms: str | Column = "next_ms") -> list[Column]:
    """The four columns of a period, of which the end is given."""
    ends = [F.col(end) if isinstance(end, str) else end for end in (offset, ms)]
    return [*valid_from(), ends[0].alias("valid_to_offset"), ends[1].alias("valid_to_ms")]


def lasted() -> Column:
    """How long a period of known beginning and end lasted, in milliseconds."""
    return F.col("valid_to_ms") - F.col("valid_from_ms")


def current(timeline: Timeline, name: str, make: Callable[[], DataFrame]) -> DataFrame:
    """What of a history table still holds: of the written one if it tells the state, else of what make
    returns.
    """
    made = timeline.made.get(name) if timeline.replays_history else None
    return (make() if made is None else made).where("valid_to_offset IS NULL")


def with_timestamps(rows: DataFrame) -> DataFrame:
    """The rows with a TIMESTAMP after each time in milliseconds, named without `_ms`; also within structs.

    What has one already, as `records` does, keeps it.
    """
    columns: list[Column] = []
    for field in rows.schema.fields:
        columns.append(_with_inner(F.col(field.name), field.dataType).alias(field.name))
        if is_time(field.name) and field.name.removesuffix("_ms") not in rows.columns:
            columns.append(_timestamp(F.col(field.name)).alias(field.name.removesuffix("_ms")))
    return rows.select(*columns)


def _with_inner(column: Column, kind: DataType) -> Column:
    if not isinstance(kind, ArrayType) or not isinstance(kind.elementType, StructType):
        return column
    names = kind.elementType.names
    if not any(is_time(name) for name in names):
        return column

    def whole(item: Column) -> Column:
        fields: list[Column] = []
        for name in names:
            fields.append(item[name].alias(name))
            if is_time(name):
                fields.append(_timestamp(item[name]).alias(name.removesuffix("_ms")))
        return F.struct(*fields)

    return F.transform(column, whole)


def _timestamp(ms: Column) -> Column:
    return F.timestamp_millis(F.when(ms.between(0, MAX_TIMESTAMP_MS), ms))
