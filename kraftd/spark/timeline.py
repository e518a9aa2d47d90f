"""The records behind a cluster's state at an offset, as data frames.

Where the log covers an offset, the log is the truth: a checkpoint only replaces what is older than the log.
Mode PERMISSIVE starts from the newest sound checkpoint instead, because the log before it may have holes.
Records of aborted or unfinished metadata transactions (KIP-868) are in `log` and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, reduce
from threading import RLock

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from kraftd.spark.checkpoints import checkpoint_splits, is_sound
from kraftd.spark.decode import LAST_OFFSET
from kraftd.spark.errors import InputError
from kraftd.spark.fields import record_schema, source_schema
from kraftd.spark.layout import CheckpointFile
from kraftd.spark.parquet import Job, write_splits
from kraftd.spark.reading import Wanted
from kraftd.spark.replicas import CommittedLog
from kraftd.spark.small import in_one_task
from kraftd.spark.source import NAME
from kraftd.spark.storage import join
from kraftd.spark.tasks import plan_tasks
from kraftd.spark.writing import replace_dataset

MARKERS = ("BeginTransactionRecord", "EndTransactionRecord", "AbortTransactionRecord")
BEFORE_THE_LOG = -1
"""The offset that records of a checkpoint are given: they are older than all that the log holds."""


class Timeline:
    """A committed log up to below end_offset, and the checkpoints that fit it."""

    def __init__(
        self,
        session: SparkSession,
        log: CommittedLog,
        end_offset: int,
        *,
        permissive: bool = False,
        checkpoints_below: int | None = None,
        base: CheckpointFile | None = None,
    ) -> None:
        """checkpoints_below leaves out the checkpoints from this end offset on.

        base is a checkpoint to start from, without regard to the log before it.
        """
        self.session = session
        self.source = log
        self.end_offset = end_offset
        self.permissive = permissive
        self._mode = "PERMISSIVE" if permissive else "FAILFAST"
        self._below = log.end_offset + 1 if checkpoints_below is None else checkpoints_below
        self._base = base
        self._staged: dict[str, DataFrame] | None = None
        self._directory: str | None = None
        self._sharing = RLock()
        self.records_path: str | None = None
        """The dataset of the decoded log, once it is staged."""
        self.made: dict[str, DataFrame] = {}
        self._check_start()

    def __repr__(self) -> str:
        path, start = self.source.replica.path, self.source.start_offset
        return f"<Timeline of {path}, offsets {start} to {self.end_offset - 1}>"

    @property
    def is_staged(self) -> bool:
        """Return whether reads use what `stage` decoded."""
        return self._staged is not None

    @property
    def cluster_id(self) -> str | None:
        return self.source.replica.cluster_id

    def log(self, columns: Sequence[str], types: Sequence[str] | None = None, start: int = 0) -> DataFrame:
        """Rows of the log from offset start on; of some types, unless types is None."""
        if self._staged is None:
            rows = self._read(self.source.replica.path, columns, start)
        else:
            within = (F.col("offset") >= start) & (F.col("offset") < self.end_offset)
            rows = self._staged["log"].where(within)
        return _of_types(rows, types).select(*columns)

    def damage(self) -> DataFrame:
        """The parts of the log, and of the checkpoints that are read, that mode PERMISSIVE could not decode.
        Such a row has no offset.
        """
        if self._staged is None:
            found = [self._read(self.source.replica.path, ["damage"], 0)]
        else:
            found = [rows.select("damage") for rows in self._staged.values()]
        rows = reduce(DataFrame.unionByName, found)
        return rows.where("damage IS NOT NULL").select("damage.*")

    def until(
        self, end_offset: int, *, checkpoints_below: int | None = None, base: CheckpointFile | None = None
    ) -> Timeline:
        """The same timeline up to below a lower offset; staged data is shared."""
        found = Timeline(
            self.session,
            self.source,
            end_offset,
            permissive=self.permissive,
            checkpoints_below=checkpoints_below,
            base=base,
        )
        found._staged, found.records_path = self._staged, self.records_path
        return found

    def write_log(self, path: str, start: int = 0, *, damage: bool = False) -> int:
        """Write the records from start on, with the columns of `records`, as a dataset; returns how many.

        damage keeps the rows of mode PERMISSIVE, in one column more.
        """
        schema = source_schema() if damage else record_schema()
        tasks = plan_tasks(self.source.log.splits, Wanted(), start, self.end_offset - 1, tail=damage)
        return write_splits(self.session, tasks, Job(path, schema, self.permissive))

    def stage(self, directory: str, records: str | None = None) -> None:
        """Decode once, into Parquet in a directory that the workers share; later reads use it.

        records is a dataset that holds the whole log already. The caller deletes the directory.
        """
        if records is None:
            records = join(directory, "log")
            self.write_log(records, damage=self.permissive)
        self.records_path = records
        staged = {"log": self._staged_rows(records, source_schema())}
        bases = [self.state_checkpoint, self.first_checkpoint, *self.unsound_checkpoints]
        for checkpoint in dict.fromkeys(bases):
            if checkpoint is not None:
                path = join(directory, str(len(staged)))
                splits = checkpoint_splits(checkpoint, permissive=self.permissive)
                tasks = plan_tasks(splits, Wanted(), 0, LAST_OFFSET)
                write_splits(self.session, tasks, Job(path, source_schema(), self.permissive))
                staged[checkpoint.path] = self._staged_rows(path, source_schema())
        self._staged = staged
        self._directory = directory

    def shared(self, name: str, make: Callable[[], DataFrame]) -> DataFrame:
        """What several tables are made from. Of a staged timeline it is written once, beside the records.

        Threads that need it wait for the one that writes it.
        """
        with self._sharing:
            if name not in self.made:
                if self._directory is None:
                    return make()
                path = join(self._directory, name)
                replace_dataset(make(), path)
                self.keep(name, path)
            return self.made[name]

    def keep(self, name: str, path: str) -> None:
        """Remember that a table of this timeline was written, so that others are made from it."""
        self.made[name] = in_one_task(self.session.read.parquet(path))

    def _staged_rows(self, path: str, schema: pa.Schema) -> DataFrame:
        return in_one_task(self.session.read.schema(from_arrow_schema(schema)).parquet(path))

    def state(
        self, columns: Sequence[str], types: Sequence[str], *, dated_by: Sequence[str] = ()
    ) -> DataFrame:
        """The history that yields the state: `state_checkpoint`, and the log behind it.

        dated_by are the columns of a key. With them, a record of the checkpoint has the offset and time of
        the key's last record in the log before the checkpoint.
        """
        return self._history(self.state_checkpoint, columns, types, dated_by)

    def before(self, columns: Sequence[str], types: Sequence[str], *, whole: bool) -> DataFrame | None:
        """The records of the log before the checkpoint of `history` (whole) or `state`; None without any."""
        return self._before(self.first_checkpoint if whole else self.state_checkpoint, columns, types)

    def history(
        self, columns: Sequence[str], types: Sequence[str], *, dated_by: Sequence[str] = ()
    ) -> DataFrame:
        """The whole known history: the checkpoint at which the log begins, and the log."""
        return self._history(self.first_checkpoint, columns, types, dated_by)

    @property
    def replays_history(self) -> bool:
        """Return whether `history` ends with the state, and dates it as well as `state` does."""
        first = self.first_checkpoint
        if self._base is not None or self.state_checkpoint != first:
            return False
        return first is None or self.source.start_offset >= first.end_offset

    @cached_property
    def state_checkpoint(self) -> CheckpointFile | None:
        """The checkpoint to which the records of the log are applied, None for a log from offset 0.

        In mode PERMISSIVE, the newest one within the end. It skips damaged ones as long as another one, or
        the whole log, can replace them.
        """
        if self._base is not None or not self.permissive:
            return self._base or self.first_checkpoint
        found = [each for each in self.checkpoints() if each.end_offset <= self.end_offset]
        unsound = [each for each in self.unsound_checkpoints if each != self.first_checkpoint]
        found = [each for each in found if each not in unsound]
        return found[-1] if found else None

    @cached_property
    def unsound_checkpoints(self) -> list[CheckpointFile]:
        """In mode PERMISSIVE the damaged checkpoints within the end."""
        if not self.permissive:
            return []
        found = [each for each in self.checkpoints() if each.end_offset <= self.end_offset]
        return [each for each in found if not is_sound(each)]

    @cached_property
    def first_checkpoint(self) -> CheckpointFile | None:
        """The checkpoint that replaces records older than the log; None for a log from offset 0."""
        if self.source.log.plans and self.source.start_offset == 0:
            return None
        return next(iter(self.checkpoints()), None)

    @property
    def first_state_offset(self) -> int:
        """The first offset at which the state is known; -1, before any record, for a log from offset 0."""
        first = self.first_checkpoint
        return (self.source.start_offset if first is None else first.end_offset) - 1

    def checkpoints(self) -> list[CheckpointFile]:
        """The checkpoints whose end lies within the log, without the bootstrap checkpoint of offset 0."""
        start = self.source.start_offset
        return [
            each
            for each in self.source.replica.checkpoints
            if each.end_offset > 0 and start <= each.end_offset < self._below
        ]

    def _before(
        self, checkpoint: CheckpointFile | None, columns: Sequence[str], types: Sequence[str]
    ) -> DataFrame | None:
        log = self.source.log
        if checkpoint is None or self._base is not None or not log.plans:
            return None
        if log.start_offset >= checkpoint.end_offset:
            return None
        columns = list(dict.fromkeys(["offset", *columns]))
        return self._without_aborted(self.log(columns, types).where(F.col("offset") < checkpoint.end_offset))

    def _history(
        self,
        checkpoint: CheckpointFile | None,
        columns: Sequence[str],
        types: Sequence[str],
        dated_by: Sequence[str] = (),
    ) -> DataFrame:
        columns = list(dict.fromkeys(["offset", *columns]))
        start = 0 if checkpoint is None else checkpoint.end_offset
        rows = self._without_aborted(self.log(columns, types, start))
        if checkpoint is None:
            return rows
        held = None if self._staged is None else self._staged.get(checkpoint.path)
        if held is None:
            held = self._read_checkpoint(checkpoint, columns)
        base = _of_types(held, types).select(*columns)
        base = base.withColumn("offset", F.lit(BEFORE_THE_LOG).cast("long"))
        earlier = self._before(checkpoint, [*columns, "timestamp_ms", "type"], types) if dated_by else None
        return (base if earlier is None else _dated(base, earlier, dated_by)).unionByName(rows)

    def _read(self, path: str, columns: Sequence[str], start: int) -> DataFrame:
        reader = self.session.read.format(NAME).schema(_schema([*columns, "type"]))
        reader = reader.option("endingOffset", str(self.end_offset)).option("startingOffset", str(start))
        reader = reader.option("highWatermark", str(self.source.end_offset))
        return reader.option("mode", self._mode).load(path)

    def _read_checkpoint(self, checkpoint: CheckpointFile, columns: Sequence[str]) -> DataFrame:
        reader = self.session.read.format(NAME).schema(_schema([*columns, "type"]))
        return reader.option("mode", self._mode).load(checkpoint.path)

    def _without_aborted(self, rows: DataFrame) -> DataFrame:
        if self._aborted is None:
            return rows
        first, last = F.col("aborted_first"), F.col("aborted_last")
        within = (F.col("offset") >= first) & (F.col("offset") <= last)
        return rows.join(F.broadcast(self._aborted), within, "left_anti")

    @cached_property
    def _aborted(self) -> DataFrame | None:
        """First and last offset of each transaction that was aborted or is not ended; None where there is
        none.

        Only the markers, two records a transaction, are sorted in one task.
        """
        order = Window.orderBy("offset")
        markers = (
            self.log(["offset", "type"], MARKERS)
            .withColumn("next_type", F.lead("type").over(order))
            .withColumn("next_offset", F.lead("offset").over(order))
        )
        failed = F.col("next_type").isNull() | (F.col("next_type") != "EndTransactionRecord")
        found = markers.where((F.col("type") == "BeginTransactionRecord") & failed).select(
            F.col("offset").alias("aborted_first"),
            F.coalesce("next_offset", F.lit((1 << 63) - 1)).alias("aborted_last"),
        )
        return None if found.isEmpty() else found

    def _check_start(self) -> None:
        """Raises InputError if records older than the log are missing everywhere."""
        replica, start = self.source.replica, self.source.start_offset
        if not replica.segments:
            if not self.permissive:
                name = replica.checkpoints[-1]
                raise InputError(
                    f"{name.path}: offset {name.end_offset}: a checkpoint without its log. Give the "
                    "directory with its segments; mode PERMISSIVE reads the checkpoint alone"
                )
        elif start > 0 and self.first_checkpoint is None and not self.permissive:
            raise InputError(
                f"{replica.segments[0].path}: byte 0, offset {start}: the log begins here and no "
                "checkpoint holds what came before: segments or the checkpoint are missing"
            )


def _dated(base: DataFrame, earlier: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The records of a checkpoint, with the offset and time of the last earlier record of the same key."""
    told = earlier.groupBy(*[_key(base, name).alias(f"told_{name}") for name in keys]).agg(
        F.max("offset").alias("told_offset"), F.max_by("timestamp_ms", "offset").alias("told_timestamp_ms")
    )
    same = [_key(base, name).eqNullSafe(F.col(f"told_{name}")) for name in keys]
    known = {"offset": F.coalesce("told_offset", "offset")}
    if "timestamp_ms" in base.columns:
        known["timestamp_ms"] = F.coalesce("told_timestamp_ms", "timestamp_ms")
    return base.join(told, same, "left").withColumns(known).select(*base.columns)


def _key(rows: DataFrame, name: str) -> Column:
    """A column to compare; an array is a set."""
    is_array = dict(rows.dtypes)[name].startswith("array")
    return F.sort_array(name) if is_array else F.col(name)


def _of_types(rows: DataFrame, types: Sequence[str] | None) -> DataFrame:
    return rows if types is None else rows.where(F.col("type").isin(list(types)))


def _schema(columns: Sequence[str]) -> object:
    whole = source_schema()
    return from_arrow_schema(pa.schema([whole.field(name) for name in dict.fromkeys(columns)]))


def last_known(column: Column | str, *keys: str, before: bool = False) -> Column:
    """The last value that is not null, by offset within the keys; with before, without the row itself."""
    window = Window.partitionBy(*keys).orderBy("offset")
    window = window.rowsBetween(Window.unboundedPreceding, -1 if before else 0)
    return F.last(column, ignorenulls=True).over(window)


def in_log(name: str) -> Column:
    """An offset, null for a record of a checkpoint."""
    return F.when(F.col(name) >= 0, F.col(name))


def latest(rows: DataFrame, *keys: str) -> DataFrame:
    """The row of the highest offset of each key."""
    fields = [name for name in rows.columns if name not in keys]
    newest = rows.groupBy(*keys).agg(F.max_by(F.struct(*fields), "offset").alias("newest"))
    return newest.select(*keys, "newest.*")
