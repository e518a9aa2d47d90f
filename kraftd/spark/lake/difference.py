"""What changed in a table since its last commit, row by row."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from kraftd.spark.inputs.storage import open_parquet
from kraftd.spark.lake.tables import MANY_VALUES, Cover
from kraftd.spark.writing import replace_dataset


@dataclass(frozen=True)
class Difference:
    """The rows of one commit: added to a table, or in the place of those of a cover, None of all rows."""

    rows: pa.RecordBatchReader
    replaces: bool = False
    cover: Cover | None = None


def difference_here(old: pa.Table, new: pa.Table, column: str) -> Difference | None:
    """What a small table's commit changes; None for nothing."""
    held, wanted = _counted(old), _counted(new)
    gone, added = held - wanted, wanted - held
    if not gone and not added:
        return None
    if not gone:
        left = Counter(added)
        places = []
        for at, row in enumerate(new.to_pylist()):
            if left[_key(row)] > 0:
                left[_key(row)] -= 1
                places.append(at)
        return Difference(new.take(places).to_reader())
    texts = set(gone) | set(added)
    values = {row[column] for table in (old, new) for row in table.to_pylist() if _key(row) in texts}
    cover = _cover(column, values)
    if cover is None:
        return Difference(new.to_reader(), replaces=True)
    return Difference(new.filter(pc.is_in(new[column], pa.array(cover.values))).to_reader(), True, cover)


def difference_by_spark(
    session: SparkSession, files: list[str], dataset: str, column: str, schema: pa.Schema, scratch: str
) -> Difference | None:
    """The same for a table of any size, whose new rows are a dataset; scratch is for the added rows."""
    new = session.read.parquet(dataset)
    old = session.read.schema(new.schema).parquet(*(name.replace("s3://", "s3a://") for name in files))
    gone = old.exceptAll(new)
    if gone.isEmpty():
        replace_dataset(new.exceptAll(old), scratch)
        added = reader_of(scratch, schema)
        return None if open_parquet(scratch).count_rows() == 0 else Difference(added)
    changed = gone.select(column).unionByName(new.exceptAll(old).select(column)).distinct()
    cover = _cover(column, {row[0] for row in changed.limit(MANY_VALUES + 1).collect()})
    if cover is None:
        return Difference(reader_of(dataset, schema), replaces=True)
    wanted = pc.field(column).isin(list(cover.values))
    return Difference(reader_of(dataset, schema, wanted), True, cover)


def reader_of(dataset: str, schema: pa.Schema, wanted: pc.Expression | None = None) -> pa.RecordBatchReader:
    """The rows of a dataset in a schema; Spark writes times in a form of its own."""
    batches = open_parquet(dataset).to_batches(columns=schema.names, filter=wanted)
    cast = (
        found
        for batch in batches
        if batch.num_rows
        for found in pa.Table.from_batches([batch]).cast(schema).to_batches()
    )
    return pa.RecordBatchReader.from_batches(schema, cast)


def _cover(column: str, values: set[Any]) -> Cover | None:
    if None in values or len(values) > MANY_VALUES:
        return None
    return Cover(column, tuple(sorted(values)))


def _counted(rows: pa.Table) -> Counter[str]:
    return Counter(map(_key, rows.to_pylist()))


def _key(row: dict[str, Any]) -> str:
    return repr(row)
