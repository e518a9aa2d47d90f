"""`spark.readStream.format("kraft")`: the committed log as it grows, with exact offsets.

An offset is the next log offset to read and the epoch of the record before it. A torn tail is read once it is
whole. The query ends with an error if the log no longer holds records that were read, or a later leader's
records have replaced them. The log of a single replica may be truncated so; that of a majority cannot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from kraftd.spark.errors import InputError
from kraftd.spark.inputs.layout import find_replicas
from kraftd.spark.inputs.replicas import CommittedLog, committed_log, epoch_at, epochs_of
from kraftd.spark.source.options import SourceOptions
from kraftd.spark.source.reading import Wanted, read_split
from kraftd.spark.source.tasks import plan_tasks

Offset = dict[str, Any]


class KraftStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A stream of the records of one log."""

    def __init__(self, options: SourceOptions, schema: pa.Schema, copy: Callable[[], None]) -> None:
        """copy brings copies of the paths up to date."""
        self._options = options
        self._copy = copy
        self._schema = schema
        self._target: int | None = None

    def getDefaultReadLimit(self) -> ReadLimit:
        limit = self._options.max_rows
        return ReadAllAvailable() if limit is None else ReadMaxRows(limit)

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = self._read_log().end_offset

    def initialOffset(self) -> Offset:
        log = self._read_log()
        wanted = self._options.starting_offset
        if wanted is None:
            return _offset(log, log.start_offset)
        return _offset(log, log.end_offset if wanted == -1 else wanted)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        log = self._read_log()
        first = int(start["offset"])
        _check_continues(log, start)
        end = log.end_offset if self._target is None else min(log.end_offset, self._target)
        if isinstance(limit, ReadMaxRows):
            end = min(end, first + limit.max_rows)
        return start if end <= first else _offset(log, end)

    def reportLatestOffset(self) -> Offset | None:
        log = self._read_log()
        return _offset(log, log.end_offset)

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        first, stop = int(start["offset"]), int(end["offset"])
        if stop <= first:
            return []
        log = self._read_log()
        _check_continues(log, start)
        if log.end_offset < stop:
            raise InputError(
                f"{log.replica.path}: offset {log.end_offset}: the log ends before offset {stop}, up to "
                "which it "
                "was read. Give the directory that the stream was started with"
            )
        return plan_tasks(log.log.splits, Wanted(), first, stop - 1)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        part: Any = partition
        options = self._options
        yield from read_split(
            part.split,
            self._schema,
            part.wanted,
            permissive=options.permissive,
            columns=options.columns,
            show_secrets=options.show_secrets,
        )

    def _read_log(self) -> CommittedLog:
        options = self._options
        self._copy()
        return committed_log(
            find_replicas(options.paths),
            options.split_bytes,
            permissive=options.permissive,
            high_watermark=options.high_watermark,
        )


def _offset(log: CommittedLog, offset: int) -> Offset:
    epoch = epoch_at(epochs_of(log.log), offset - 1)
    return {
        "offset": offset,
        "epoch": -1 if epoch is None else epoch,
        "cluster_id": log.replica.cluster_id or "",
    }


def _check_continues(log: CommittedLog, start: Offset) -> None:
    """Raises InputError unless the log goes on where a stream stopped."""
    offset, epoch, cluster_id = int(start["offset"]), int(start["epoch"]), start.get("cluster_id", "")
    path = log.replica.path
    if cluster_id and log.replica.cluster_id not in (None, cluster_id):
        raise InputError(f"{path}: belongs to cluster {log.replica.cluster_id}, the stream to {cluster_id}")
    if offset < log.start_offset:
        raise InputError(
            f"{path}: offset {log.start_offset}: the log begins here, but offset {offset} is the next "
            "to read. "
            "Segments were deleted before they were read: begin anew, with the checkpoint before"
        )
    found = epoch_at(epochs_of(log.log), offset - 1) if offset <= log.end_offset else epoch
    if epoch >= 0 and offset > log.start_offset and found != epoch:
        raise InputError(
            f"{path}: offset {offset - 1}: epoch {found} is where epoch {epoch} was read: a later "
            "leader replaced "
            "records. Give the directories of a majority, whose records are never replaced, and begin anew"
        )
