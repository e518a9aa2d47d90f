"""`spark.read.format("kraft")`: segments of the metadata log, and checkpoints, as rows of their records.

A path of a checkpoint is read as its records, with offsets counted from 0; any other as the committed log.
With a narrower schema than the source's own, the omitted columns are not decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, ClassVar

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    Filter,
    InputPartition,
)
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from kraftd.spark.decoding.fields import source_schema
from kraftd.spark.errors import InputError
from kraftd.spark.inputs.checkpoints import checkpoint_splits
from kraftd.spark.inputs.layout import find_replicas
from kraftd.spark.inputs.replicas import committed_log
from kraftd.spark.inputs.storage import is_local
from kraftd.spark.source.options import SourceOptions, parse_options
from kraftd.spark.source.pushdown import narrowed
from kraftd.spark.source.reading import Wanted, read_split
from kraftd.spark.source.stream_source import KraftStreamReader
from kraftd.spark.source.table_source import TableFiles, TableReader, ask_for_copies, ask_for_table
from kraftd.spark.source.tasks import SplitPartition, plan_tasks

NAME = "kraft"
RECORDS = "records"


class KraftDataSource(DataSource):
    """The data source `kraft`."""

    address: ClassVar[str | None] = None
    """Where the driver answers questions for tables."""

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        self._table: TableFiles | None = None

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> StructType:
        table = self._find_table()
        return from_arrow_schema(source_schema()) if table is None else table.schema

    def reader(self, schema: StructType) -> DataSourceReader:
        table = self._find_table()
        if table is not None:
            return TableReader(table, schema)
        return KraftReader(parse_options(self.options), arrow_schema(schema), self._copy_of())

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        options = parse_options(self.options)
        if options.table is not None:
            raise InputError(f"table={options.table}: a stream has records alone")
        return KraftStreamReader(options, arrow_schema(schema), self._copy_of())

    def _find_table(self) -> TableFiles | None:
        """The table that the options name; None without one. It stays the same for the reads that follow."""
        if self._table is None and parse_options(self.options).table not in (None, RECORDS):
            self._table = ask_for_table(self.address, self.options)
        return self._table

    def _copy_of(self) -> Callable[[], None]:
        """Bring the copies of the paths up to date, if some are on other file systems."""
        if all(is_local(path) for path in parse_options(self.options).paths):
            return _nothing
        return partial(ask_for_copies, self.address, dict(self.options))


def _nothing() -> None:
    """There is nothing to copy."""


def source_of(address: str | None) -> type[KraftDataSource]:
    """The data source with the address of a driver. Defined in here, so that Spark pickles its attributes."""

    class Registered(KraftDataSource):
        pass

    Registered.address = address
    return Registered


class KraftReader(DataSourceReader):
    """A batch read."""

    def __init__(self, options: SourceOptions, schema: pa.Schema, copy: Callable[[], None]) -> None:
        """copy brings copies of the paths up to date."""
        self._options = options
        self._schema = schema
        self._copy = copy
        self._wanted = Wanted()

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        self._wanted = narrowed(self._wanted, filters)
        return filters

    def partitions(self) -> Sequence[InputPartition]:
        options = self._options
        wanted = self._wanted
        self._copy()
        replicas = find_replicas(options.paths)
        if len(replicas) == 1 and not replicas[0].segments and len(replicas[0].checkpoints) == 1:
            splits = checkpoint_splits(
                replicas[0].checkpoints[0], options.split_bytes, permissive=options.permissive
            )
            return [SplitPartition(split, wanted) for split in splits]
        log = committed_log(
            replicas,
            options.split_bytes,
            permissive=options.permissive,
            high_watermark=options.high_watermark,
        )
        end = log.end_offset if options.ending_offset is None else min(options.ending_offset, log.end_offset)
        start = log.end_offset if options.starting_offset == -1 else options.starting_offset or 0
        return plan_tasks(log.log.splits, wanted, start, end - 1, tail=True)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, SplitPartition)
        options = self._options
        yield from read_split(
            partition.split,
            self._schema,
            partition.wanted,
            permissive=options.permissive,
            columns=options.columns,
            show_secrets=options.show_secrets,
        )


def arrow_schema(schema: StructType) -> pa.Schema:
    """The columns to read, in Arrow's types. Raises InputError for one that the source does not have."""
    known: dict[str, Any] = {field.name: field for field in source_schema()}
    wanted = to_arrow_schema(schema, timezone="UTC")
    for field in wanted:
        if field.name not in known:
            raise InputError(f"column {field.name} is not known; known are {', '.join(known)}")
        if from_arrow_schema(pa.schema([known[field.name]])) != from_arrow_schema(pa.schema([field])):
            raise InputError(f"column {field.name} is {known[field.name].type}, not {field.type}")
    return pa.schema([known[field.name] for field in wanted])
