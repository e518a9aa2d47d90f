"""Parquet that tasks write themselves, by Arrow: decoded columns never become rows of Spark, which would cost
far more than the decoding (docs/spark.md has figures).

A task writes a file under a name of its attempt and reports it to the driver. A dataset is the reported
files: those of failed or superseded attempts are deleted before the directory gets its name.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from kraftd.spark.decoding.arrays import return_freed_memory
from kraftd.spark.decoding.fields import DAMAGE
from kraftd.spark.inputs.small_logs import COMPRESSION, COMPRESSION_LEVEL, SMALL_BYTES, SUCCESS
from kraftd.spark.inputs.storage import (
    delete_directory,
    delete_files,
    is_local,
    join,
    list_files,
    open_output,
    open_parquet,
    replace_directory,
    write_bytes,
)
from kraftd.spark.source.reading import read_split
from kraftd.spark.source.tasks import SplitPartition
from kraftd.spark.writing import delete, move

ROW_GROUP_ROWS = 1 << 17
ROW_GROUP_BYTES = 32 << 20
EMPTY = "part-empty"


@dataclass(frozen=True)
class Job:
    """The settings of every task of a dataset."""

    directory: str
    schema: pa.Schema
    permissive: bool
    columns: bool = True


@dataclass(frozen=True)
class Part:
    """A file that a task wrote, and how many rows it holds."""

    name: str
    rows: int


def write_splits(session: SparkSession | None, tasks: Sequence[SplitPartition], job: Job) -> int:
    """Write the rows of tasks as one dataset, which replaces an existing one; returns its rows.

    In mode PERMISSIVE a schema without `damage` leaves rows of damage out. Without a session this process
    writes, to a local disk.
    """
    unfinished = replace(job, directory=f"{job.directory}.unfinished")
    if session is None:
        delete_directory(unfinished.directory)
    else:
        delete(session, unfinished.directory)
    numbered = list(enumerate(tasks))
    parts: list[Part] = []
    if session is None or sum(task.split.end - task.split.start for task in tasks) <= SMALL_BYTES:
        # Starting a worker costs more than decoding these bytes.
        parts = [write_part(number, task, unfinished) for number, task in numbered]
    else:
        slices = session.sparkContext.parallelize(numbered, len(numbered))

        def write(task: tuple[int, SplitPartition]) -> Part:
            return_freed_memory()
            return write_part(*task, unfinished)

        parts = slices.map(write).collect()
    if not any(part.rows for part in parts):
        parts.append(_write_file(f"{EMPTY}.parquet", iter(()), unfinished))
    commit(session, unfinished.directory, job.directory, [part.name for part in parts])
    return sum(part.rows for part in parts)


def write_dataset(rows: pa.Table, directory: str, session: SparkSession | None = None) -> None:
    """Write rows as a dataset of one file, which replaces an existing one.

    Without a session the directory is one that Arrow can rename, on a local disk.
    """
    unfinished = f"{directory}.unfinished"
    delete_directory(unfinished)
    name = join(unfinished, f"part-000000-{uuid.uuid4().hex}.parquet")
    with open_output(name) as stream, _writer(stream, rows.schema) as writer:
        writer.write_table(rows, ROW_GROUP_ROWS)
    _finish(session, unfinished, directory)


def merge_datasets(
    paths: Sequence[str], schema: pa.Schema, directory: str, session: SparkSession | None = None
) -> None:
    """Write the rows of datasets, one after the other, as one dataset of one file.

    A dataset's files follow each other by name. Memory holds the rows of one row group.
    """
    unfinished = Job(f"{directory}.unfinished", schema, permissive=False)
    delete_directory(unfinished.directory)
    files = (join(path, name) for path in paths for name, _ in list_files(path) if name != SUCCESS)
    rows = (batch for file in files for batch in _batches(file, schema))
    name = f"part-000000-{uuid.uuid4().hex}.parquet"
    if _write_file(name, rows, unfinished).rows == 0:
        _write_file(f"{EMPTY}.parquet", iter(()), unfinished)
    _finish(session, unfinished.directory, directory)


def _batches(file: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of a Parquet file, without reading ahead."""
    found = open_parquet(file).to_batches(
        columns=schema.names, batch_readahead=0, fragment_readahead=0, use_threads=False
    )
    for batch in found:
        yield from pa.Table.from_batches([batch]).cast(schema).to_batches()


class PartFile:
    """A file of a dataset on a local disk that grows by tables."""

    def __init__(self, directory: str, number: int, schema: pa.Schema) -> None:
        name = f"part-{number:06d}-{uuid.uuid4().hex}.parquet"
        self._stream = open_output(join(directory, name))
        self._writer = _writer(self._stream, schema)

    def write(self, rows: pa.Table) -> None:
        """Add rows, in row groups of their own."""
        if len(rows):
            self._writer.write_table(rows, ROW_GROUP_ROWS)

    def close(self) -> None:
        self._writer.close()
        self._stream.close()


def commit(session: SparkSession | None, unfinished: str, directory: str, names: Collection[str]) -> None:
    """Replace a directory by another one, which keeps only the named files."""
    delete_files(unfinished, [name for name, _ in list_files(unfinished) if name not in names])
    _finish(session, unfinished, directory)


def _finish(session: SparkSession | None, unfinished: str, directory: str) -> None:
    write_bytes(join(unfinished, SUCCESS), b"")
    if session is None or is_local(directory):
        replace_directory(unfinished, directory)  # a tenth of what a rename by the JVM costs
    else:
        move(session, unfinished, directory)


def write_part(number: int, task: SplitPartition, job: Job) -> Part:
    """Read a split into a file of its own; none for a split without wanted rows."""
    read = job.schema
    if job.permissive and DAMAGE.name not in read.names:
        read = read.append(DAMAGE)
    batches = read_split(task.split, read, task.wanted, permissive=job.permissive, columns=job.columns)
    found = (rows for batch in batches if (rows := _kept(batch, job.schema)).num_rows)
    return _write_file(f"part-{number:06d}-{uuid.uuid4().hex}.parquet", found, job)


def _kept(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The rows to write: without damage unless the schema has it."""
    if len(rows.schema) > len(schema):
        rows = rows.filter(rows.column(DAMAGE.name).is_null()).select(schema.names)
    return rows


def _write_file(name: str, batches: Iterator[pa.RecordBatch], job: Job) -> Part:
    """A file of some batches, in row groups of bounded size."""
    first = next(batches, None)
    if first is None and not name.startswith(EMPTY):
        return Part(name, 0)
    written = 0
    waiting: list[pa.RecordBatch] = []
    with open_output(join(job.directory, name)) as stream, _writer(stream, job.schema) as writer:
        for rows in () if first is None else chain((first,), batches):
            waiting.append(rows)
            written += rows.num_rows
            held = sum(each.num_rows for each in waiting), sum(each.nbytes for each in waiting)
            if held[0] >= ROW_GROUP_ROWS or held[1] >= ROW_GROUP_BYTES:
                writer.write_table(pa.Table.from_batches(waiting))
                waiting = []
        if waiting:
            writer.write_table(pa.Table.from_batches(waiting))
    return Part(name, written)


def _writer(stream: pa.NativeFile, schema: pa.Schema) -> pq.ParquetWriter:
    return pq.ParquetWriter(stream, schema, compression=COMPRESSION, compression_level=COMPRESSION_LEVEL)
