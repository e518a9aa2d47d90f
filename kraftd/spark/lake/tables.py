"""What a lake's format does, and which column covers a change of each table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from kraftd.spark.errors import InputError
from kraftd.spark.inputs.storage import join, list_directories, list_files

_MARKS = {"delta": "_delta_log", "iceberg": "metadata"}
"""The folder that every table of a format has."""
FORMATS = tuple(_MARKS)
CATALOG_FILE = "catalog.db"
"""The SQLite catalog of Iceberg tables for which no other is named."""
APP = "kraftd"
END_OFFSET = "kraftd.end-offset"
MANY_FILES = 16
"""A table of more files is compacted."""
MANY_VALUES = 1000
"""A change of more values of its covering column replaces the whole table."""
RETENTION_HOURS = 7 * 24
"""How long files and snapshots stay that a commit has replaced: a reader may still use them."""

COVERS = {
    "topic_history": "topic_id",
    "topics": "topic_id",
    "partition_history": "topic_id",
    "partitions": "topic_id",
    "partition_changes": "offset",
    "isr_history": "topic_id",
    "reassignments": "topic_id",
    "broker_history": "broker_id",
    "brokers": "broker_id",
    "broker_sessions": "broker_id",
    "config_history": "resource_name",
    "configs": "resource_name",
    "acl_history": "id",
    "acls": "id",
    "quota_history": "key",
    "quotas": "key",
    "features": "name",
    "scram_users": "name",
    "producer_ids": "next_producer_id",
    "elections": "offset",
    "partition_intervals": "topic_id",
    "interval_totals": "name",
    "leader_moves": "offset",
    "isr_churn": "topic_id",
    "audit": "offset",
    "snapshots": "path",
}
"""A commit that takes rows away replaces all rows with the values of this column that changed."""


@dataclass(frozen=True)
class Cover:
    """The rows that have one of some values in a column."""

    column: str
    values: tuple[Any, ...]


class Lake(Protocol):
    """Tables of one format below a directory. Every change is one commit, whole or not at all."""

    def end_offset(self, name: str) -> int | None:
        """The offset up to which the last commit of a table was made; None without a table."""

    def rows(self, name: str) -> pa.Table:
        """The rows of a table."""

    def files(self, name: str) -> list[str]:
        """The Parquet files of a table."""

    def append(self, name: str, rows: pa.RecordBatchReader, end_offset: int) -> None:
        """Add rows, and make the table if there is none."""

    def replace(self, name: str, rows: pa.RecordBatchReader, end_offset: int, cover: Cover | None) -> None:
        """Put rows in the place of those of a cover, or of all rows."""

    def compact(self, name: str) -> None:
        """Merge files, if they are many, and drop what was replaced long ago."""


def refuse_other_files(directory: str, kind: str, names: Sequence[str]) -> None:
    """Raises InputError if the place of a table holds something else than a table of that format."""
    for name in names:
        place = join(directory, name)
        folders = list_directories(place)
        if (folders or list_files(place)) and _MARKS[kind] not in folders:
            raise InputError(f"{place} is no {kind} table: give another --output, or move it away")


def refuse_tables_of_a_lake(directory: str, names: Sequence[str]) -> None:
    """Raises InputError if a dataset would replace a table that has versions."""
    for name in names:
        place = join(directory, name)
        for kind, mark in _MARKS.items():
            if mark in list_directories(place):
                raise InputError(f"{place} is a table of {kind}: give --format {kind}, or another --output")
