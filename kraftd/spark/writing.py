"""Writes a data frame as a dataset that replaces an existing one, completely or not at all."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from kraftd.spark.errors import InputError
from kraftd.spark.inputs.small_logs import is_small, write_file


def replace_dataset(rows: DataFrame, path: str) -> None:
    """Write Parquet beside path and put it in its place. A failure leaves the dataset that was there."""
    unfinished = f"{path}.unfinished"
    if is_small(rows.sparkSession):
        delete(rows.sparkSession, unfinished)
        write_file(rows, unfinished)
        move(rows.sparkSession, unfinished, path)
        return
    rows.write.mode("overwrite").parquet(unfinished)
    move(rows.sparkSession, unfinished, path)


def move(session: SparkSession, source: str, target: str) -> None:
    """Replace a directory by another one."""
    delete(session, target)
    path = _java(session).org.apache.hadoop.fs.Path
    if not _file_system(session, target).rename(path(source), path(target)):
        raise InputError(f"{target}: {source} could not be moved there")


def delete(session: SparkSession, path: str) -> None:
    """Delete a directory with all it holds; nothing where there is none."""
    _file_system(session, path).delete(_java(session).org.apache.hadoop.fs.Path(path), True)


def list_directories(session: SparkSession, path: str) -> list[str]:
    """The names of the directories in a directory; none where there is none."""
    system = _file_system(session, path)
    place = _java(session).org.apache.hadoop.fs.Path(path)
    if not system.exists(place):
        return []
    return sorted(entry.getPath().getName() for entry in system.listStatus(place) if entry.isDirectory())


def size_below(session: SparkSession, path: str) -> int:
    """The bytes of all files below a directory."""
    place = _java(session).org.apache.hadoop.fs.Path(path)
    return int(_file_system(session, path).getContentSummary(place).getLength())


def _java(session: SparkSession) -> Any:
    return session.sparkContext._jvm


def _file_system(session: SparkSession, path: str) -> Any:
    settings = session.sparkContext._jsc.hadoopConfiguration()
    return _java(session).org.apache.hadoop.fs.Path(path).getFileSystem(settings)
