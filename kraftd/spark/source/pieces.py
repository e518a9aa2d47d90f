"""The shares of a log, or of a checkpoint, that tasks read: splits of its files, or Parquet files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from kraftd.spark.decoding.fields import source_schema
from kraftd.spark.inputs.planning import SPLIT_BYTES, Split
from kraftd.spark.inputs.storage import (
    join,
    list_directories,
    list_files,
    open_parquet,
    open_parquet_file,
)
from kraftd.spark.source.reading import Wanted, read_split

ROWS_PER_BATCH = 1 << 14
"""How many rows of a Parquet file are decoded at a time: memory holds a batch, not a row group."""
_PARQUET = ".parquet"


@dataclass(frozen=True)
class Piece:
    """A split; or a Parquet file with columns of `records`, of which one row group unless that is None."""

    source: Split | str
    row_group: int | None = None

    def read(
        self, columns: Sequence[str], types: Sequence[str], first: int, last: int, *, permissive: bool
    ) -> Iterator[pa.RecordBatch]:
        """The records of some types with offsets first to last."""
        if isinstance(self.source, Split):
            wanted = Wanted(first, last, types=frozenset(types))
            schema = pa.schema([source_schema().field(name) for name in columns])
            for batch in read_split(self.source, schema, wanted, permissive=permissive):
                yield batch.filter(batch["offset"].is_valid())
            return
        with open_parquet_file(self.source) as file:
            groups = range(file.num_row_groups) if self.row_group is None else [self.row_group]
            for batch in file.iter_batches(ROWS_PER_BATCH, groups, list(columns), use_threads=False):
                offsets = batch["offset"]
                wanted = pc.and_(pc.greater_equal(offsets, first), pc.less_equal(offsets, last))
                wanted = pc.and_(wanted, pc.is_in(batch["type"], pa.array(types)))
                yield batch.filter(wanted).select(list(columns))


def dataset_pieces(directory: str) -> list[Piece]:
    """The pieces of a dataset; a file that is too large for one task is divided."""
    found = []
    for name, size in list_files(directory):
        path = join(directory, name)
        if not name.endswith(_PARQUET):
            continue
        if size <= SPLIT_BYTES:
            found.append(Piece(path))
            continue
        for fragment in open_parquet(path).get_fragments():
            found += [Piece(path, each.id) for each in fragment.row_groups]
    for name in list_directories(directory):
        found += dataset_pieces(join(directory, name))
    return found
