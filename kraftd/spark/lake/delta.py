"""Delta Lake tables, by delta-rs: no JVM takes part."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import DeltaError

from kraftd.spark.errors import InputError
from kraftd.spark.inputs.storage import join
from kraftd.spark.lake.tables import APP, END_OFFSET, MANY_FILES, RETENTION_HOURS, Cover


class DeltaLake:
    """The tables DIRECTORY/<name>/. The end offset is the version of the application's transaction."""

    def __init__(self, directory: str) -> None:
        self._directory = directory

    def __repr__(self) -> str:
        return f"<DeltaLake {self._directory}>"

    def end_offset(self, name: str) -> int | None:
        table = self._open(name)
        return None if table is None else table.transaction_version(APP)

    def rows(self, name: str) -> pa.Table:
        return self._known(name).to_pyarrow_table()

    def files(self, name: str) -> list[str]:
        return list(self._known(name).file_uris())

    def append(self, name: str, rows: pa.RecordBatchReader, end_offset: int) -> None:
        with _told(name):
            write_deltalake(
                self._path(name), rows, mode="append", name=name, commit_properties=_properties(end_offset)
            )

    def replace(self, name: str, rows: pa.RecordBatchReader, end_offset: int, cover: Cover | None) -> None:
        with _told(name):
            write_deltalake(
                self._path(name),
                rows,
                mode="overwrite",
                predicate=None if cover is None else _predicate(cover),
                commit_properties=_properties(end_offset),
            )

    def compact(self, name: str) -> None:
        table = self._known(name)
        if len(table.file_uris()) > MANY_FILES:
            with _told(name):
                table.optimize.compact()
                table.vacuum(RETENTION_HOURS, dry_run=False)

    def _path(self, name: str) -> str:
        return join(self._directory, name)

    def _open(self, name: str) -> DeltaTable | None:
        path = self._path(name)
        return DeltaTable(path) if DeltaTable.is_deltatable(path) else None

    def _known(self, name: str) -> DeltaTable:
        table = self._open(name)
        assert table is not None, name
        return table


def _properties(end_offset: int) -> CommitProperties:
    return CommitProperties(
        custom_metadata={END_OFFSET: str(end_offset)}, app_transactions=[Transaction(APP, end_offset)]
    )


def _predicate(cover: Cover) -> str:
    values = ", ".join(_literal(value) for value in cover.values)
    return f"{cover.column} IN ({values})"


def _literal(value: object) -> str:
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else json.dumps(value)


@contextmanager
def _told(name: str) -> Iterator[None]:
    """Report a commit that failed in a line; nothing of it is in the table."""
    try:
        yield
    except DeltaError as error:
        raise InputError(f"Delta table {name}: {str(error).splitlines()[0]}") from None
