"""Bring the tables of a lake up to the end of a log, exactly once.

Every table gets one commit, or none if nothing of it changed. After a kill the next run finds what is there:
the decoded log continues behind its last part, `records` behind its last commit, and every other table is
compared with what it must be.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from kraftd.history.points import Point
from kraftd.spark.as_of import IN_PYTHON, ON_COMMAND_LINE, check_offset, extent_at, point_of
from kraftd.spark.cluster_tables import RECORDS, STAGING, write_staged_tables
from kraftd.spark.decoding.fields import record_schema
from kraftd.spark.errors import InputError
from kraftd.spark.inputs.extent import Extent
from kraftd.spark.inputs.input_log import Note, find_log, is_small_log, refuse_output_in_input, warn
from kraftd.spark.inputs.layout import Replica
from kraftd.spark.inputs.replicas import CommittedLog
from kraftd.spark.inputs.storage import absolute, is_local, join
from kraftd.spark.lake.difference import Difference, difference_by_spark, difference_here, reader_of
from kraftd.spark.lake.formats import open_lake
from kraftd.spark.lake.kept_log import KeptLog
from kraftd.spark.lake.tables import COVERS, FORMATS, Lake, refuse_other_files
from kraftd.spark.replay.catalog import table as replayed_table
from kraftd.spark.replay.source import Replay
from kraftd.spark.tables.catalog import NAMES, known_tables
from kraftd.spark.tables.columns import schema_of
from kraftd.spark.timeline import Timeline
from kraftd.spark.writing import delete

Step = Callable[[str], None]


@dataclass(frozen=True)
class Target:
    """Where tables go: the format is `delta` or `iceberg`, the catalog one of PyIceberg's configuration."""

    directory: str
    format: str
    catalog: str | None = None


def update_from(
    session: SparkSession,
    source: str | Sequence[str],
    target: Target,
    names: Sequence[str] | None,
    as_of: Point | str | int | datetime | None,
    high_watermark: int | None,
    scratch: str | None,
) -> int:
    """What `kraftd.spark.update_lake` does, which documents the arguments."""
    if target.format not in FORMATS:
        raise InputError(f"format={target.format}: {' and '.join(FORMATS)} are known")
    chosen = known_tables(names)
    point = point_of(as_of)
    inputs = [source] if isinstance(source, str) else source
    refuse_output_in_input(inputs, target.directory, NAMES)
    replicas, log = find_log(inputs, "failfast", high_watermark, warn, lambda: session, scratch)
    check_offset(log, point, IN_PYTHON)
    target = replace(target, directory=absolute(target.directory))
    try:
        end_offset = update_lake(
            target,
            log,
            replicas,
            chosen,
            point,
            session_of=lambda: session,
            note=warn,
            step=lambda _: None,
            spelling=IN_PYTHON,
        )
    finally:
        delete(session, join(target.directory, STAGING))
    return end_offset - 1


def update_lake(
    target: Target,
    log: CommittedLog,
    replicas: Sequence[Replica],
    names: Sequence[str],
    as_of: Point | None,
    *,
    session_of: Callable[[], SparkSession],
    note: Note,
    step: Step,
    small: bool = True,
    spelling: str = ON_COMMAND_LINE,
) -> int:
    """Bring tables up to a point of a log, the end by default; returns the first offset that they lack.

    session_of makes the session that large logs and other disks than local ones need; unless small, every
    log needs it. step is called after each table. Raises InputError.
    """
    refuse_other_files(target.directory, target.format, names)
    session = None if small and is_local(target.directory) else session_of()
    lake = open_lake(target.format, target.directory, target.catalog)
    kept = KeptLog(target.directory, log.replica.cluster_id, session)
    end_offset = extent_at(Extent(log, log.end_offset), as_of, note, spelling).end_offset
    if as_of is None:
        end_offset = max(end_offset, kept.end_offset)
    newest = max((lake.end_offset(name) or 0 for name in names), default=0)
    if end_offset < newest:
        raise InputError(
            f"{target.directory}: the tables are as of offset {newest - 1}, and never go back to "
            f"{end_offset - 1}: give a later {spelling.strip(' =')}, or a new output"
        )
    kept.append(log, end_offset)
    if RECORDS in names:
        _append_records(lake, kept, end_offset)
        step(RECORDS)
    rest = [name for name in names if name != RECORDS]
    if session is None and is_small_log(kept.as_log(end_offset)):
        replay = Replay(Extent(kept.as_log(end_offset), end_offset), kept.decoded())
        for name in rest:
            _publish_rows(lake, name, replayed_table(name, replay, replicas), end_offset)
            step(name)
        return end_offset
    _update_by_spark(session or session_of(), target, lake, kept, replicas, rest, end_offset, step)
    return end_offset


def _append_records(lake: Lake, kept: KeptLog, end_offset: int) -> None:
    since = lake.end_offset(RECORDS)
    if since is None or since < end_offset:
        offset = pc.field("offset")
        wanted = (offset >= (since or 0)) & (offset < end_offset)
        lake.append(RECORDS, reader_of(kept.path, record_schema(), wanted), end_offset)
        lake.compact(RECORDS)


def _publish_rows(lake: Lake, name: str, rows: pa.Table, end_offset: int) -> None:
    if lake.end_offset(name) is None:
        lake.append(name, rows.to_reader(), end_offset)
    else:
        _commit(lake, name, difference_here(lake.rows(name), rows, COVERS[name]), end_offset)


def _commit(lake: Lake, name: str, change: Difference | None, end_offset: int) -> None:
    if change is None:
        return
    if change.replaces:
        lake.replace(name, change.rows, end_offset, change.cover)
    else:
        lake.append(name, change.rows, end_offset)
    lake.compact(name)


def _update_by_spark(
    session: SparkSession,
    target: Target,
    lake: Lake,
    kept: KeptLog,
    replicas: Sequence[Replica],
    names: Sequence[str],
    end_offset: int,
    step: Step,
) -> None:
    """The tables of a large log: Spark makes them in OUT/.staging, and finds what changed."""
    staging = join(target.directory, STAGING)
    timeline = Timeline(session, kept.as_log(end_offset), end_offset)
    timeline.stage(staging, kept.path, kept.checkpoints())

    def publish(name: str) -> None:
        dataset, schema = join(staging, name), schema_of(name)
        if lake.end_offset(name) is None:
            lake.append(name, reader_of(dataset, schema), end_offset)
        else:
            added = join(staging, f"{name}.added")
            found = difference_by_spark(session, lake.files(name), dataset, COVERS[name], schema, added)
            _commit(lake, name, found, end_offset)
        step(name)

    write_staged_tables(timeline, replicas, staging, names, publish)
