"""The tables of a cluster: as data frames for `kraftd.spark.tables`, as files for `kraftd-spark tables`.

Each table is made once, when it is first asked for, into a directory of its own.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from kraftd.history.points import Point
from kraftd.spark.as_of import IN_PYTHON, check_offset, extent_at, point_of
from kraftd.spark.coordinators.choice import OF_GROUPS, OF_TRANSACTIONS, Choice, choose_tables
from kraftd.spark.coordinators.tables import write_coordinator_tables
from kraftd.spark.decoding.fields import record_schema
from kraftd.spark.errors import InputError
from kraftd.spark.inputs.extent import Extent
from kraftd.spark.inputs.input_log import Note, find_log, is_small_log, warn
from kraftd.spark.inputs.layout import Replica
from kraftd.spark.inputs.storage import is_listener, join, paths_of
from kraftd.spark.live import live_log
from kraftd.spark.parquet import write_dataset
from kraftd.spark.replay.catalog import WITHOUT_PARTITIONS, staged_replay
from kraftd.spark.replay.catalog import table as replayed_table
from kraftd.spark.replay.source import Replay
from kraftd.spark.session import register_source
from kraftd.spark.tables.catalog import NAMES, WITHOUT_LOG, table
from kraftd.spark.tables.configs import CONFIG_SPANS
from kraftd.spark.tables.topics import LIVES, lives_of
from kraftd.spark.timeline import Timeline
from kraftd.spark.writing import replace_dataset

RECORDS = "records"
DAMAGED = "damaged"
STAGING = ".staging"


class Tables(Mapping[str, DataFrame]):
    """The tables of docs/tables.md by name, as of one offset; `damaged` too in mode permissive.

    Brokers' directories have those of coordinators as well, as of a time, or of their first use.

    The data frames read what `close` deletes, or the end of the process.
    """

    def __init__(
        self,
        session: SparkSession,
        timeline: Timeline,
        replicas: Sequence[Replica],
        directory: str,
        choice: Choice,
        point: Point | None,
    ) -> None:
        self._session = session
        self._timeline = timeline
        self._replicas = replicas
        self._directory = directory
        self._replay: Replay | None = None
        self._made: dict[str, DataFrame] = {}
        self._lock = threading.RLock()
        self._choice = choice
        self._point = point
        self._names = (*NAMES, *([DAMAGED] if timeline.permissive else choice.coordinators))
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
            if name in self._choice.coordinators and name not in self._made:
                self._made.update(self._of_coordinators(name))
            elif name not in self._made:
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
        timeline = self._timeline
        is_small = is_small_log(timeline.source)
        needs_log = name not in WITHOUT_LOG - {RECORDS}
        if needs_log and not is_small and not timeline.is_staged:
            timeline.stage(join(self._directory, STAGING))
        if self._replay is None and (is_small or timeline.is_staged):
            self._replay = replay_of(timeline)
        if name == RECORDS and not is_small:
            return self._records()
        path = join(self._directory, name)
        if is_small:
            # No other table is made from it: so Spark has one plan a table, when it is read.
            assert self._replay is not None
            rows = replayed_table(name, self._replay, self._replicas)
            write_dataset(rows, path, self._session)
            return self._session.read.schema(from_arrow_schema(rows.schema)).parquet(path)
        if name in WITHOUT_PARTITIONS and self._replay is not None:
            _write_replayed(name, self._replay, self._replicas, path, timeline)
        else:
            replace_dataset(table(name, timeline, self._replicas), path)
            timeline.keep(name, path)
        return timeline.made[name]

    def _of_coordinators(self, name: str) -> dict[str, DataFrame]:
        """A table of coordinators, and those that are made with it."""
        names = OF_GROUPS if name in OF_GROUPS else OF_TRANSACTIONS
        assert self._choice.directories is not None
        write_coordinator_tables(
            self._choice.directories, self._directory, names, self._point, session=self._session
        )
        return {each: self._session.read.parquet(join(self._directory, each)) for each in names}

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
    spelling: str = IN_PYTHON,
) -> Tables:
    """What `kraftd.spark.tables` returns, which documents the arguments. note takes texts for the user,
    which spell the point as the caller did.
    """
    if mode.lower() not in ("failfast", "permissive"):
        raise InputError(f"mode={mode}: failfast and permissive are known")
    mode, note = mode.lower(), note or warn
    point = point_of(as_of, spelling)
    register_source(session)
    choice = Choice([], [], None)
    directory = tempfile.mkdtemp(prefix="kraftd-spark-", dir=scratch)
    try:
        if isinstance(source, str) and is_listener(source):
            timeline, replicas = _live_timeline(session, source, join(directory, "live"), mode)
        else:
            paths = paths_of([source] if isinstance(source, str) else source)
            replicas, log = find_log(paths, mode, high_watermark, note, lambda: session, scratch)
            choice = choose_tables(None, paths, point, "" if mode == "failfast" else mode)
            timeline = Timeline(session, log, log.end_offset, permissive=mode == "permissive")
        check_offset(timeline.source, point, spelling)
        timeline = extent_at(timeline, point, note, spelling)
    except BaseException:
        shutil.rmtree(directory, ignore_errors=True)
        raise
    return Tables(session, timeline, replicas, directory, choice, point)


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
    write_staged_tables(timeline, replicas, target, rest, step)


def write_staged_tables(
    timeline: Timeline,
    replicas: Sequence[Replica],
    target: str,
    names: Sequence[str],
    step: Callable[[str], None],
) -> None:
    """Write tables of a timeline that is staged, or that need no log; step is called after each."""
    replay = replay_of(timeline) if timeline.is_staged else None
    timeline.makes_several = len(set(names).difference(WITHOUT_PARTITIONS, WITHOUT_LOG)) > 1
    for name in names:
        path = join(target, name)
        if replay is not None and name in WITHOUT_PARTITIONS:
            _write_replayed(name, replay, replicas, path, timeline)
        else:
            replace_dataset(table(name, timeline, replicas), path)
            timeline.keep(name, path)
        step(name)


def replay_of(timeline: Timeline) -> Replay | None:
    """The replay of a small log; of any other the records of all but partitions, None if they are many."""
    is_small = is_small_log(timeline.source)
    if is_small and not timeline.is_staged:
        return Replay(timeline)
    return staged_replay(timeline, whole=is_small)


def _write_replayed(
    name: str, replay: Replay, replicas: Sequence[Replica], path: str, timeline: Timeline
) -> None:
    rows = replayed_table(name, replay, replicas)
    write_dataset(rows, path, timeline.session)
    timeline.keep(name, path, from_arrow_schema(rows.schema))
    if name == "config_history":
        timeline.made.setdefault(CONFIG_SPANS, timeline.made[name])
    elif name == "topic_history":
        timeline.made.setdefault(LIVES, lives_of(timeline.made[name]))


def write_small_tables(
    extent: Extent,
    replicas: Sequence[Replica],
    target: str,
    names: Sequence[str],
    step: Callable[[str], None],
) -> None:
    """Write tables of a small log below a local directory, without Spark; step is called after each."""
    replay = Replay(extent)
    for name in names:
        write_dataset(replayed_table(name, replay, replicas), join(target, name))
        step(name)


def _live_timeline(
    session: SparkSession, servers: str, directory: str, mode: str
) -> tuple[Timeline, list[Replica]]:
    """The timeline of what a listener serves, decoded."""
    log, rows = live_log(session, servers, directory)
    timeline = Timeline(session, log, log.end_offset, permissive=mode == "permissive")
    timeline.stage(directory, rows)
    return timeline, [log.replica]
