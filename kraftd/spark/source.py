"""`spark.read.format("kraft")`: segments of the metadata log, and checkpoints, as rows of their records.

A path of a checkpoint is read as its records, with offsets counted from 0; any other as the committed log.
With a narrower schema than the source's own, the omitted columns are not decoded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

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

from kraftd.spark.checkpoints import checkpoint_splits
from kraftd.spark.errors import InputError
from kraftd.spark.fields import source_schema
from kraftd.spark.layout import find_replicas
from kraftd.spark.options import SourceOptions, parse_options
from kraftd.spark.pushdown import narrowed
from kraftd.spark.reading import Wanted, read_split
from kraftd.spark.replicas import committed_log
from kraftd.spark.stream import KraftStreamReader
from kraftd.spark.tasks import SplitPartition, plan_tasks

NAME = "kraft"


class KraftDataSource(DataSource):
    """The data source `kraft`."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> StructType:
        return from_arrow_schema(source_schema())

    def reader(self, schema: StructType) -> DataSourceReader:
        return KraftReader(parse_options(self.options), arrow_schema(schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return KraftStreamReader(parse_options(self.options), arrow_schema(schema))


class KraftReader(DataSourceReader):
    """A batch read."""

    def __init__(self, options: SourceOptions, schema: pa.Schema) -> None:
        self._options = options
        self._schema = schema
        self._wanted = Wanted()

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        self._wanted = narrowed(self._wanted, filters)
        return filters

    def partitions(self) -> Sequence[InputPartition]:
        options = self._options
        wanted = self._wanted
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
    wanted = to_arrow_schema(schema)
    for field in wanted:
        if field.name not in known:
            raise InputError(f"column {field.name} is not known; known are {', '.join(known)}")
        if from_arrow_schema(pa.schema([known[field.name]])) != from_arrow_schema(pa.schema([field])):
            raise InputError(f"column {field.name} is {known[field.name].type}, not {field.type}")
    return pa.schema([known[field.name] for field in wanted])
