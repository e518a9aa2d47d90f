"""The tables that a report is made of, as files; they are read in batches, however long the log is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyarrow import acero

from kraftd.spark.inputs.extent import Extent
from kraftd.spark.inputs.storage import join, open_parquet

Rows = list[dict[str, Any]]

NAMES = (
    "records",
    "topic_history",
    "partition_history",
    "partitions",
    "partition_changes",
    "partition_intervals",
    "interval_totals",
    "leader_moves",
    "isr_churn",
    "brokers",
    "broker_sessions",
    "elections",
    "audit",
)
"""The tables that a report needs."""


class WrittenTables:
    """The tables of an extent below a local directory."""

    def __init__(self, extent: Extent, directory: str) -> None:
        self.extent = extent
        self._directory = directory

    def __repr__(self) -> str:
        return f"<WrittenTables of {self.extent}>"

    def batches(
        self, name: str, columns: Sequence[str], where: ds.Expression | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a table that an expression, if there is one, admits."""
        found: Iterator[pa.RecordBatch] = self._dataset(name).to_batches(list(columns), where)
        return found

    def grouped(
        self,
        name: str,
        keys: Mapping[str, ds.Expression],
        sums: Sequence[tuple[str, str]],
        where: ds.Expression | None = None,
        more: Mapping[str, ds.Expression] | None = None,
    ) -> pa.Table:
        """A row for each combination of keys, with the sums.

        A sum is a column of the table, or one of more, and an aggregation of Arrow's, by which it is named:
        `lasted_ms_sum`. A column that is counted may be a key.
        """
        values = {**{column: ds.field(column) for column, _ in sums}, **(more or {})}
        read = {**values, **keys}
        scan = acero.Declaration("scan", acero.ScanNodeOptions(self._dataset(name), filter=where))
        steps = [scan]
        if where is not None:
            steps.append(acero.Declaration("filter", acero.FilterNodeOptions(where)))
        steps.append(acero.Declaration("project", acero.ProjectNodeOptions([*read.values()], [*read])))
        kind = "hash_" if keys else ""
        totals = [(column, f"{kind}{how}", None, f"{column}_{how}") for column, how in sums]
        steps.append(acero.Declaration("aggregate", acero.AggregateNodeOptions(totals, keys=[*keys])))
        return acero.Declaration.from_sequence(steps).to_table()

    def top(
        self,
        name: str,
        columns: Sequence[str],
        order: Sequence[tuple[str, str]],
        most: int,
        where: ds.Expression | None = None,
    ) -> Rows:
        """The first rows of a table in an order: (column, "ascending" or "descending"), ..."""
        found: pa.Table | None = None
        for batch in self.batches(name, columns, where):
            rows = pa.Table.from_batches([batch])
            found = first(rows if found is None else pa.concat_tables([found, rows]), order, most)
        return [] if found is None else found.to_pylist()

    def _dataset(self, name: str) -> ds.Dataset:
        return open_parquet(join(self._directory, name))


def first(rows: pa.Table, order: Sequence[tuple[str, str]], most: int) -> pa.Table:
    """The first rows in an order, of which nulls are the end."""
    return rows.take(pc.sort_indices(rows, sort_keys=list(order))[:most])
