"""`spark.read.format("kraft").option("table", NAME)`: the files of a table that the driver made, as rows."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TypedDict

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import (
    DataSourceReader,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
)
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from kraftd.spark.errors import InputError
from kraftd.spark.inputs.storage import open_parquet, use_copies

_SIMPLE = (bool, int, float, str)
_OPERATIONS = {
    EqualTo: pc.equal,
    GreaterThan: pc.greater,
    GreaterThanOrEqual: pc.greater_equal,
    LessThan: pc.less,
    LessThanOrEqual: pc.less_equal,
}


class Answer(TypedDict, total=False):
    """What the driver answers: an error; the table's schema (Spark's JSON), files and offset; or copies."""

    error: str
    schema: str
    files: list[str]
    as_of: int
    copies: dict[str, str]


@dataclass(frozen=True)
class TableFiles:
    """A table that the driver made."""

    schema: StructType
    files: tuple[str, ...]


def ask_for_table(address: str | None, options: Mapping[str, str]) -> TableFiles:
    """Have the driver make a table. Raises InputError."""
    if address is None:
        raise InputError("option table needs kraftd.spark.register(spark) in the driver's Python process")
    found = _ask(address, options)
    return TableFiles(StructType.fromJson(json.loads(found["schema"])), tuple(found["files"]))


def ask_for_copies(address: str | None, options: Mapping[str, str]) -> None:
    """Have the driver copy what lies on Hadoop's file systems, and read the copies. Raises InputError.

    Without a driver to ask, Arrow reads the paths.
    """
    if address is not None:
        use_copies(_ask(address, options)["copies"])


def _ask(address: str, options: Mapping[str, str]) -> Answer:
    """The driver's answer. Raises InputError for an error."""
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as connection:
        try:
            connection.connect(address)
            connection.sendall(json.dumps({key: options[key] for key in options}).encode() + b"\n")
            found: Answer = json.loads(b"".join(iter(lambda: connection.recv(1 << 16), b"")))
        except (OSError, ValueError) as error:
            raise InputError(f"the driver that registered the source has ended: {error}") from None
    if "error" in found:
        raise InputError(found["error"])
    return found


@dataclass
class FilePartition(InputPartition):
    """One task's share: a file, and the condition for its rows."""

    path: str
    condition: pc.Expression | None


class TableReader(DataSourceReader):
    """Reads the files of a table; simple filters skip row groups and rows."""

    def __init__(self, found: TableFiles, schema: StructType) -> None:
        for field in schema:
            if field.name not in found.schema.names:
                raise InputError(
                    f"column {field.name} is not known; known are {', '.join(found.schema.names)}"
                )
        self._found = found
        self._schema = to_arrow_schema(schema, timezone="UTC")
        self._condition: pc.Expression | None = None

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Spark applies every filter again, so conditions here may be fewer."""
        for each in filters:
            condition = _condition(each)
            if condition is not None:
                self._condition = condition if self._condition is None else self._condition & condition
        return filters

    def partitions(self) -> Sequence[InputPartition]:
        return [FilePartition(path, self._condition) for path in self._found.files]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, FilePartition)
        file = open_parquet(partition.path)
        for batch in file.to_batches(columns=self._schema.names, filter=partition.condition):
            yield from pa.Table.from_batches([batch]).cast(self._schema).to_batches()


def _condition(each: Filter) -> pc.Expression | None:
    """A filter in Arrow's form; None for one that is left to Spark."""
    attribute: tuple[str, ...] = getattr(each, "attribute", ())
    if len(attribute) != 1:
        return None
    field, value = pc.field(attribute[0]), getattr(each, "value", None)
    if type(each) in _OPERATIONS and isinstance(value, _SIMPLE):
        return _OPERATIONS[type(each)](field, pc.scalar(value))
    if isinstance(each, In) and all(isinstance(one, _SIMPLE) for one in each.value):
        return field.isin(list(each.value))
    if isinstance(each, IsNull):
        return field.is_null()
    if isinstance(each, IsNotNull):
        return field.is_valid()
    return None
