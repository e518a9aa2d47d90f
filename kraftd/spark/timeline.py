"""The records behind a cluster's state at an offset, as data frames.

Where the log covers an offset, the log is the truth: a checkpoint only replaces what is older than the log.
Mode PERMISSIVE starts from the newest sound checkpoint instead, because the log before it may have holes.
Records of aborted or unfinished metadata transactions (KIP-868) are in `log` and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, reduce
from threading import RLock

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from kraftd.spark.decoding.decode import LAST_OFFSET
from kraftd.spark.decoding.fields import record_schema, source_schema
from kraftd.spark.inputs.checkpoints import checkpoint_splits
from kraftd.spark.inputs.extent import BEFORE_THE_LOG, LOG, MARKERS, Extent
from kraftd.spark.inputs.layout import CheckpointFile
from kraftd.spark.inputs.replicas import CommittedLog
from kraftd.spark.inputs.small_logs import in_one_task
from kraftd.spark.inputs.storage import join
from kraftd.spark.parquet import Job, write_splits
from kraftd.spark.source.batch_source import NAME
from kraftd.spark.source.pieces import Piece, dataset_pieces
from kraftd.spark.source.reading import Wanted
from kraftd.spark.source.tasks import plan_tasks
from kraftd.spark.writing import replace_dataset

GROUP_BYTES = 8 << 20
"""Bytes of a log whose partitions are replayed in one task."""
MAX_GROUPS = 1 << 14


class Timeline(Extent):
    """The records of an extent, in a session."""

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
        """The arguments are those of Extent; the session reads."""
        super().__init__(
            log, end_offset, permissive=permissive, checkpoints_below=checkpoints_below, base=base
        )
        self.session = session
        self._mode = "PERMISSIVE" if permissive else "FAILFAST"
        self._staged: dict[str, DataFrame] | None = None
        self._directory: str | None = None
        self._sharing = RLock()
        self._asked: set[str] = set()
        self.makes_several = False
        """Whether several tables will be made, so that what they share is written for the first one."""
        self.staged_paths: dict[str, str] = {}
        """The datasets of the decoded log (LOG) and of checkpoints, by path, once they are staged."""
        self.made: dict[str, DataFrame] = {}

    @property
    def is_staged(self) -> bool:
        """Return whether reads use what `stage` decoded."""
        return self._staged is not None

    @property
    def group_count(self) -> int:
        """In how many groups the records of partitions are replayed, so that one fits into memory."""
        sizes = [split.end - split.start for split in self.source.log.splits]
        sizes += [checkpoint.size_bytes for checkpoint in [self.state_checkpoint] if checkpoint is not None]
        return min(max(1, -(-sum(sizes) // GROUP_BYTES)), MAX_GROUPS)

    @property
    def records_path(self) -> str | None:
        """The dataset of the decoded log, once it is staged."""
        return self.staged_paths.get(LOG)

    def log(self, columns: Sequence[str], types: Sequence[str] | None = None, start: int = 0) -> DataFrame:
        """Rows of the log from offset start on; of some types, unless types is None."""
        if self._staged is None:
            rows = self._read(self.source.replica.path, columns, start)
        else:
            within = (F.col("offset") >= start) & (F.col("offset") < self.end_offset)
            rows = self._staged[LOG].where(within)
        return _of_types(rows, types).select(*columns)

    def pieces(self, checkpoint: CheckpointFile | None = None) -> list[Piece]:
        """The log, or a checkpoint that is staged, in shares for tasks."""
        held = self.staged_paths.get(LOG if checkpoint is None else checkpoint.path)
        if held is not None:
            return dataset_pieces(held)
        if checkpoint is None:
            return [Piece(split) for split in self.source.log.splits]
        return [Piece(split) for split in checkpoint_splits(checkpoint, permissive=self.permissive)]

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
        found._staged, found.staged_paths = self._staged, self.staged_paths
        return found

    def write_log(self, path: str, start: int = 0, *, damage: bool = False) -> int:
        """Write the records from start on, with the columns of `records`, as a dataset; returns how many.

        damage keeps the rows of mode PERMISSIVE, in one column more.
        """
        schema = source_schema() if damage else record_schema()
        tasks = plan_tasks(self.source.log.splits, Wanted(), start, self.end_offset - 1, tail=damage)
        return write_splits(self.session, tasks, Job(path, schema, self.permissive))

    def stage(
        self, directory: str, records: str | None = None, checkpoints: Mapping[str, str] | None = None
    ) -> None:
        """Decode once, into Parquet in a directory that the workers share; later reads use it.

        records is a dataset that holds the whole log already, and checkpoints has those of checkpoints by
        path. The caller deletes the directory.
        """
        if records is None:
            records = join(directory, "log")
            self.write_log(records, damage=self.permissive)
        self.staged_paths[LOG] = records
        staged = {LOG: self._staged_rows(records, source_schema())}
        bases = [self.state_checkpoint, self.first_checkpoint, *self.unsound_checkpoints]
        for checkpoint in dict.fromkeys(bases):
            if checkpoint is not None:
                path = (checkpoints or {}).get(checkpoint.path)
                if path is None:
                    path = join(directory, str(len(staged)))
                    splits = checkpoint_splits(checkpoint, permissive=self.permissive)
                    tasks = plan_tasks(splits, Wanted(), 0, LAST_OFFSET)
                    write_splits(self.session, tasks, Job(path, source_schema(), self.permissive))
                self.staged_paths[checkpoint.path] = path
                staged[checkpoint.path] = self._staged_rows(path, source_schema())
        self._staged = staged
        self._directory = directory

    def shared(
        self, name: str, make: Callable[[], DataFrame], make_part: Callable[[], DataFrame] | None = None
    ) -> DataFrame:
        """What several tables are made from. Of a staged timeline it is written once, beside the records.

        A first table gets it unwritten, unless `makes_several`: Spark leaves out what that table does not
        need, and so does make_part. Threads that need it wait for the one that writes it.
        """
        with self._sharing:
            if name not in self.made:
                if self._directory is None or not (self.makes_several or name in self._asked):
                    self._asked.add(name)
                    return (make_part or make)()
                path = join(self._directory, name)
                replace_dataset(make(), path)
                self.keep(name, path)
            return self.made[name]

    def keep(self, name: str, path: str, schema: StructType | None = None) -> None:
        """Remember that a table of this timeline was written, so that others are made from it.

        Without its schema Spark looks into a file, which is a job of its own.
        """
        reader = self.session.read if schema is None else self.session.read.schema(schema)
        self.made[name] = in_one_task(reader.parquet(path))

    def _staged_rows(self, path: str, schema: pa.Schema) -> DataFrame:
        reader = self.session.read.schema(from_arrow_schema(schema)).option("recursiveFileLookup", "true")
        return in_one_task(reader.parquet(path))

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

    def _before(
        self, checkpoint: CheckpointFile | None, columns: Sequence[str], types: Sequence[str]
    ) -> DataFrame | None:
        end_offset = self.earlier_end(checkpoint)
        if end_offset is None:
            return None
        columns = list(dict.fromkeys(["offset", *columns]))
        return self._without_aborted(self.log(columns, types).where(F.col("offset") < end_offset))

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
    def aborted(self) -> list[tuple[int, int]]:
        """First and last offset of each transaction that was aborted or is not ended."""
        return [] if self._aborted is None else [tuple(row) for row in self._aborted.collect()]

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
