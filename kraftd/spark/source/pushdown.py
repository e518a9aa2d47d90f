"""Filters of a query that reduce reading: on offset, timestamp_ms, timestamp, type and topic_id.

Spark applies every filter again, so filters here may pass too many rows, but must not drop wanted ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from kraftd.spark.source.reading import Wanted

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)


def narrowed(wanted: Wanted, filters: Sequence[Filter]) -> Wanted:
    """The wanted records, without those that the filters exclude."""
    for each in filters:
        column, value = getattr(each, "attribute", (None,)), getattr(each, "value", None)
        if column == ("offset",) and isinstance(value, int):
            first, last = _bounds(each, value, wanted.first_offset, wanted.last_offset)
            wanted = replace(wanted, first_offset=first, last_offset=last)
        elif column == ("timestamp",) and isinstance(value, datetime) and value.tzinfo is not None:
            filters_ms = [replace(each, attribute=("timestamp_ms",), value=_milliseconds(each, value))]
            wanted = narrowed(wanted, filters_ms)
        elif column == ("timestamp_ms",) and isinstance(value, int):
            first, last = _bounds(each, value, wanted.first_timestamp_ms, wanted.last_timestamp_ms)
            wanted = replace(wanted, first_timestamp_ms=first, last_timestamp_ms=last)
        elif column == ("type",) and (names := _names(each)) is not None:
            wanted = replace(wanted, types=names if wanted.types is None else wanted.types & names)
        elif column == ("topic_id",) and (names := _uuids(each)) is not None:
            wanted = replace(
                wanted, topic_ids=names if wanted.topic_ids is None else wanted.topic_ids & names
            )
    return wanted


def _milliseconds(each: Filter, value: datetime) -> int:
    """The time in milliseconds to compare with; between two of them, the one that drops no wanted row."""
    since = value - _EPOCH
    return -(-since // _MS) if isinstance(each, LessThan) else since // _MS


def _bounds(each: Filter, value: int, first: int, last: int) -> tuple[int, int]:
    if isinstance(each, EqualTo):
        return max(first, value), min(last, value)
    if isinstance(each, GreaterThan):
        return max(first, value + 1), last
    if isinstance(each, GreaterThanOrEqual):
        return max(first, value), last
    if isinstance(each, LessThan):
        return first, min(last, value - 1)
    if isinstance(each, LessThanOrEqual):
        return first, min(last, value)
    return first, last


def _names(each: Any) -> frozenset[str] | None:
    if isinstance(each, EqualTo) and isinstance(each.value, str):
        return frozenset((each.value,))
    if isinstance(each, In) and all(isinstance(value, str) for value in each.value):
        return frozenset(each.value)
    return None


def _uuids(each: Any) -> frozenset[str] | None:
    """The topic ids in a filter; a text that is no id matches nothing."""
    names = _names(each)
    return None if names is None else frozenset(name for name in names if len(name) == 22)
