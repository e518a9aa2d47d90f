"""The tables of a cluster: as data frames for `kraftd.spark.tables`, as files for `kraftd-spark tables`.

Each table is made once, when it is first asked for, into a directory of its own.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from kraftd.history.points import Point
from kraftd.spark.as_of import check_offset, point_of, timeline_at
from kraftd.spark.errors import InputError
from kraftd.spark.fields import record_schema
from kraftd.spark.input_log import Note, find_log
from kraftd.spark.layout import Replica
from kraftd.spark.live import live_log
from kraftd.spark.session import register_source, session_for
from kraftd.spark.small import is_small
from kraftd.spark.storage import is_listener, join, paths_of
from kraftd.spark.tables.catalog import NAMES, WITHOUT_LOG, table
from kraftd.spark.timeline import Timeline
from kraftd.spark.writing import replace_dataset

RECORDS = "records"
DAMAGED = "damaged"
STAGING = ".staging"
SMALL_THREADS = 2
"""Tables of a small log that are made at once: a plan is made and run by one thread."""


class Tables(Mapping[str, DataFrame]):
    """The tables of docs/tables.md by name, as of one offset; `damaged` too in mode permissive.

    The data frames read what `close` deletes, or the end of the process.
    """

    def __init__(
        self, session: SparkSession, timeline: Timeline, replicas: Sequence[Replica], directory: str
    ) -> None:
        self._session = session
        self._timeline = timeline
        self._replicas = replicas
        self._directory = directory
        self._made: dict[str, DataFrame] = {}
        self._lock = threading.RLock()
        self._names = (*NAMES, DAMAGED) if timeline.permissive else NAMES
        self.close = weakref.finalize(self, shutil.rmtree, directory, ignore_errors=True)

    def __repr__(self) -> str:
        return f"<Tables of {self._timeline.source.replica.path} as of offset {self.as_of}>"

    def __enter__(self) -> Tables:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    @property
    def as_of(self) -> int:
        """The last offset that is read."""
        return self._timeline.end_offset - 1

    @property
    def cluster_id(self) -> str | None:
        return self._timeline.cluster_id

    def __getitem__(self, name: str) -> DataFrame:
        """A table. Raises KeyError for a name that is none."""
        if name not in self._names:
            raise KeyError(f"there is no table {name}; there are {', '.join(self._names)}")
        with self._lock:
            if name not in self._made:
                self._made[name] = self._make(name)
            return self._made[name]

    def path(self, name: str) -> str:
        """The directory with the Parquet files of a table. Raises KeyError."""
        if name == RECORDS:
            raise KeyError("records are read with format('kraft')")
        _ = self[name]
        return join(self._directory, name)

    def create_views(self, *names: str) -> None:
        """Make tables, all unless named, known to SQL as temporary views of their names."""
        for name in names or self._names:
            self[name].createOrReplaceTempView(name)

    def _make(self, name: str) -> DataFrame:
        if not self._timeline.is_staged and name not in WITHOUT_LOG - {RECORDS}:
            self._timeline.stage(join(self._directory, STAGING))
        if name == RECORDS:
            return self._records()
        path = join(self._directory, name)
        replace_dataset(table(name, self._timeline, self._replicas), path)
        self._timeline.keep(name, path)
        return self._session.read.parquet(path)

    def _records(self) -> DataFrame:
        schema = from_arrow_schema(record_schema())
        assert self._timeline.records_path is not None
        rows = self._session.read.schema(schema).parquet(self._timeline.records_path)
        return rows.where(F.col("offset") <= self.as_of)


def open_tables(
    session: SparkSession,
    source: str | Sequence[str],
    *,
    as_of: Point | str | int | datetime | None = None,
    mode: str = "failfast",
    high_watermark: int | None = None,
    scratch: str | None = None,
    note: Note | None = None,
) -> Tables:
    """What `kraftd.spark.tables` returns, which documents the arguments. note takes texts for the user."""
    if mode.lower() not in ("failfast", "permissive"):
        raise InputError(f"mode={mode}: failfast and permissive are known")
    mode, note = mode.lower(), note or _warn
    point = point_of(as_of)
    register_source(session)
    directory = tempfile.mkdtemp(prefix="kraftd-spark-", dir=scratch)
    try:
        if isinstance(source, str) and is_listener(source):
            timeline, replicas = _live_timeline(session, source, join(directory, "live"), mode)
        else:
            paths = paths_of([source] if isinstance(source, str) else source)
            replicas, log = find_log(paths, mode, high_watermark, note)
            run = session_for(session, log)
            timeline = Timeline(run, log, log.end_offset, permissive=mode == "permissive")
        check_offset(timeline.source, point)
        timeline = timeline_at(timeline, point, note)
    except BaseException:
        shutil.rmtree(directory, ignore_errors=True)
        raise
    return Tables(session, timeline, replicas, directory)


def write_tables(
    timeline: Timeline,
    replicas: Sequence[Replica],
    target: str,
    names: Sequence[str],
    step: Callable[[str], None],
) -> None:
    """Write tables below a directory, each in place of the one that was there; step is called after each.

    The decoded log lies in target/.staging, which the caller deletes.
    """
    rest = [name for name in names if name != RECORDS]
    records = None
    if RECORDS in names:
        records = join(target, RECORDS)
        timeline.write_log(records)
        step(RECORDS)
    if not WITHOUT_LOG.issuperset(rest):
        timeline.stage(join(target, STAGING), None if timeline.permissive else records)
        step("decoding")

    def write(name: str) -> str:
        replace_dataset(table(name, timeline, replicas), join(target, name))
        timeline.keep(name, join(target, name))
        return name

    if is_small(timeline.session):
        with ThreadPoolExecutor(SMALL_THREADS) as threads:
            for name in threads.map(write, rest):
                step(name)
    else:
        for name in rest:
            step(write(name))


def _live_timeline(
    session: SparkSession, servers: str, directory: str, mode: str
) -> tuple[Timeline, list[Replica]]:
    """The timeline of what a listener serves, decoded."""
    log, rows = live_log(session, servers, directory)
    timeline = Timeline(session_for(session, log), log, log.end_offset, permissive=mode == "permissive")
    timeline.stage(directory, rows)
    return timeline, [log.replica]


def _warn(text: str) -> None:
    warnings.warn(text, stacklevel=4)
