"""The point in time of a read: an offset or a time becomes the end of a timeline."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from kraftd.history.points import Point, parse_point
from kraftd.spark.errors import InputError
from kraftd.spark.inputs.checkpoints import read_header
from kraftd.spark.inputs.extent import Extent
from kraftd.spark.inputs.input_log import is_small_log
from kraftd.spark.inputs.replicas import CommittedLog
from kraftd.spark.source.reading import Wanted, read_split
from kraftd.spark.timeline import Timeline

Note = Callable[[str], None]
"""Takes a text for the user."""
ON_COMMAND_LINE, IN_PYTHON, IN_SPARK = "--as-of ", "as_of=", "asOf="
"""How a caller spells the point, in front of its value: messages name what the caller wrote."""
_TIMES = ("offset", "timestamp_ms")
AnyExtent = TypeVar("AnyExtent", bound=Extent)


def point_of(as_of: Point | str | int | datetime | None, spelling: str = IN_PYTHON) -> Point | None:
    """The point that a caller names: an offset, a time, or either as text (`4711`, `2h`, ISO 8601).

    Raises InputError for any other text, and for a time in the future.
    """
    if as_of is None or isinstance(as_of, Point):
        return as_of
    if isinstance(as_of, datetime):
        as_of = (as_of if as_of.tzinfo else as_of.replace(tzinfo=UTC)).isoformat()
    try:
        return parse_point(str(as_of), time.time())
    except ValueError as error:
        raise InputError(f"{spelling}{as_of}: {error}") from None


def check_offset(log: CommittedLog, as_of: Point | None, spelling: str = ON_COMMAND_LINE) -> None:
    """Raises InputError for an offset that no committed record has yet."""
    if as_of is not None and as_of.offset is not None and as_of.offset >= log.end_offset:
        raise InputError(
            f"{log.replica.path}: {spelling}{as_of.offset} is beyond the end: the log is committed to "
            f"offset {log.end_offset - 1}"
        )


def make_timeline(
    session: SparkSession, log: CommittedLog, as_of: Point | None, mode: str, note: Note
) -> Timeline:
    """The timeline up to and including an offset or a time. Raises InputError for one outside the log."""
    check_offset(log, as_of)
    timeline = Timeline(session, log, log.end_offset, permissive=mode == "permissive")
    return extent_at(timeline, as_of, note)


def extent_at(
    extent: AnyExtent, as_of: Point | None, note: Note, spelling: str = ON_COMMAND_LINE
) -> AnyExtent:
    """The extent of a whole log, cut at a point. Raises InputError for one outside the log."""
    if as_of is None or as_of == Point():
        return extent
    offset = as_of.offset
    if offset is None:
        offset = _offset_at(extent, as_of.time_ms or 0, note, spelling)
    if offset < extent.first_state_offset:
        raise _too_early(extent, f"{spelling}{offset}")
    return extent.until(min(extent.end_offset, offset + 1))


def _too_early(extent: Extent, as_of: str) -> InputError:
    return InputError(
        f"{extent.source.replica.path}: {as_of} lies before offset {extent.first_state_offset}, "
        "the first at which the log and its oldest checkpoint tell the state"
    )


def _offset_at(extent: Extent, time_ms: int, note: Note, spelling: str) -> int:
    """The last offset before the first record that is later than a time.

    Raises InputError for a time before the first record, or before the end of the first checkpoint.
    """
    text = spelling + datetime.fromtimestamp(time_ms / 1000, UTC).isoformat()
    if extent.first_checkpoint is not None:
        known_ms = read_header(extent.first_checkpoint).last_contained_log_timestamp_ms
        if known_ms is not None and time_ms < known_ms:
            raise _too_early(extent, text)
    if not extent.source.replica.segments:
        return extent.end_offset - 1
    later, newest_ms = _first_later(extent, time_ms)
    if later is None:
        if newest_ms is not None:
            newest = datetime.fromtimestamp(newest_ms / 1000, UTC).isoformat()
            note(f"{text} is after the last record, of {newest}: the whole log is read")
        return extent.end_offset - 1
    offset = later - 1
    if offset < 0:
        raise InputError(f"{extent.source.replica.path}: {text} is before the first record")
    note(f"{text} is offset {offset}")
    return offset


def _first_later(extent: Extent, time_ms: int) -> tuple[int | None, int | None]:
    """The first offset whose record is later than a time, and the newest time; each None if there is none."""
    if not isinstance(extent, Timeline) or (is_small_log(extent.source) and not extent.is_staged):
        return _first_later_here(extent, time_ms)
    later = F.min(F.when(F.col("timestamp_ms") > time_ms, F.col("offset")))
    found = extent.log(_TIMES).agg(later.alias("later"), F.max("timestamp_ms").alias("newest_ms")).first()
    return (None, None) if found is None else (found["later"], found["newest_ms"])


def _first_later_here(extent: Extent, time_ms: int) -> tuple[int | None, int | None]:
    """The same of a small log, which this process reads itself."""
    schema = pa.schema([(name, pa.int64()) for name in _TIMES])
    wanted = Wanted(last_offset=extent.end_offset - 1)
    batches = [
        batch
        for split in extent.source.log.splits
        for batch in read_split(split, schema, wanted, permissive=extent.permissive)
    ]
    rows = pa.Table.from_batches(batches, schema)
    later = rows.filter(pc.greater(rows["timestamp_ms"], time_ms))
    return pc.min(later["offset"]).as_py(), pc.max(rows["timestamp_ms"]).as_py()
