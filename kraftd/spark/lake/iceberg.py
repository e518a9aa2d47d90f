"""Iceberg tables, by PyIceberg: no JVM takes part."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pyarrow as pa
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError
from pyiceberg.expressions import AlwaysTrue, In
from pyiceberg.table import Table

from kraftd.spark.errors import InputError
from kraftd.spark.inputs.storage import is_local, join
from kraftd.spark.lake.tables import CATALOG_FILE, END_OFFSET, MANY_FILES, RETENTION_HOURS, Cover

NAMESPACE = "kraft"
_PROPERTIES = {
    "format-version": "2",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
}


class IcebergLake:
    """The tables kraft.<name>, at DIRECTORY/<name>/. The end offset is a property of each snapshot.

    Without a catalog of PyIceberg's configuration, DIRECTORY/catalog.db (SQLite) is it.
    """

    def __init__(self, directory: str, catalog: str | None = None) -> None:
        self._directory = directory
        self._catalog = _catalog(directory, catalog)
        self._catalog.create_namespace_if_not_exists(NAMESPACE)

    def __repr__(self) -> str:
        return f"<IcebergLake {self._directory}>"

    def end_offset(self, name: str) -> int | None:
        table = self._open(name)
        snapshot = None if table is None else table.current_snapshot()
        if snapshot is None or snapshot.summary is None:
            return None
        text = snapshot.summary[END_OFFSET]
        return None if text is None else int(text)

    def rows(self, name: str) -> pa.Table:
        return self._catalog.load_table((NAMESPACE, name)).scan().to_arrow()

    def files(self, name: str) -> list[str]:
        return _files(self._catalog.load_table((NAMESPACE, name)))

    def append(self, name: str, rows: pa.RecordBatchReader, end_offset: int) -> None:
        table = self._open(name)
        if table is None:
            location = join(self._directory, name)
            table = self._catalog.create_table(
                (NAMESPACE, name), rows.schema, location=location, properties=_PROPERTIES
            )
        with _told(name):
            table.append(rows, {END_OFFSET: str(end_offset)})

    def replace(self, name: str, rows: pa.RecordBatchReader, end_offset: int, cover: Cover | None) -> None:
        where = AlwaysTrue() if cover is None else In(cover.column, cover.values)
        with _told(name):
            table = self._catalog.load_table((NAMESPACE, name))
            table.overwrite(rows, where, {END_OFFSET: str(end_offset)})

    def compact(self, name: str) -> None:
        table = self._catalog.load_table((NAMESPACE, name))
        if len(_files(table)) <= MANY_FILES:
            return
        end_offset = self.end_offset(name)
        assert end_offset is not None, name
        self.replace(name, table.scan().to_arrow_batch_reader(), end_offset, None)
        before = datetime.now(UTC) - timedelta(hours=RETENTION_HOURS)
        with _told(name):
            table.refresh().maintenance.expire_snapshots().older_than(before).commit()

    def _open(self, name: str) -> Table | None:
        try:
            return self._catalog.load_table((NAMESPACE, name))
        except NoSuchTableError:
            return None


def _catalog(directory: str, name: str | None) -> Catalog:
    if name is not None:
        return load_catalog(name)
    if not is_local(directory):
        raise InputError(
            f"--output {directory}: an Iceberg table that is not on a local disk needs --catalog NAME, a "
            "catalog of PyIceberg's configuration"
        )
    os.makedirs(directory, exist_ok=True)
    file = join(directory, CATALOG_FILE)
    return SqlCatalog(NAMESPACE, uri=f"sqlite:///{file}", warehouse=f"file://{directory}")


def _files(table: Table) -> list[str]:
    return [task.file.file_path.removeprefix("file://") for task in table.scan().plan_files()]


@contextmanager
def _told(name: str) -> Iterator[None]:
    """Report a commit that failed in a line; nothing of it is in the table."""
    try:
        yield
    except CommitFailedException as error:
        raise InputError(f"Iceberg table {name}: another run has written to it: {error}") from None
