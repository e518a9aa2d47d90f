"""The tables of coordinators as Parquet, made by processes side by side: a file each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from pyspark.sql import SparkSession

from kraftd.groups.records import CoordinatorRecord, decode_record, decode_transaction_record
from kraftd.history.points import Point
from kraftd.messages.legacy_offset_commit_key import LegacyOffsetCommitKey
from kraftd.messages.offset_commit_key import OffsetCommitKey
from kraftd.spark.coordinators.groups import Groups
from kraftd.spark.coordinators.log_ends import LogEnds
from kraftd.spark.coordinators.offsets import CommittedOffsets
from kraftd.spark.coordinators.partitions import OFFSETS, TRANSACTIONS, BrokerDirectories, PartitionFiles
from kraftd.spark.coordinators.records import Marker, read_partition
from kraftd.spark.coordinators.transactions import Transactions
from kraftd.spark.errors import InputError
from kraftd.spark.inputs.storage import delete_directory, join, list_files
from kraftd.spark.parquet import PartFile, commit
from kraftd.spark.replay.processes import core_count, in_processes
from kraftd.spark.tables.columns import Rows, as_table, schema_of

MOST_ROWS = 10_000
"""Rows of a table that wait to be written together."""
Found = Iterator[dict[str, Rows]]


def write_coordinator_tables(
    directories: BrokerDirectories,
    target: str,
    names: Sequence[str],
    as_of: Point | None = None,
    *,
    session: SparkSession | None = None,
    step: Callable[[str], None] = lambda _: None,
) -> None:
    """Write tables below a directory, each in place of the one that was there; step is called after each.

    as_of is a time. Without a session the directory is on a local disk. Raises InputError.
    """
    if as_of is not None and as_of.offset is not None:
        raise InputError(
            f"--as-of {as_of.offset} is an offset of the metadata log, of which the tables "
            f"{', '.join(names)} are not made: give a time"
        )
    partitions = [*directories.coordinators(OFFSETS), *directories.coordinators(TRANSACTIONS)]
    for name in names:
        delete_directory(_unfinished(target, name))
    count = min(core_count(), len(partitions)) or 1
    until_ms = None if as_of is None else as_of.time_ms
    work = partial(_write, partitions, directories, target, names, until_ms, count)
    for _ in in_processes(work, count):
        pass
    for name in names:
        files = [file for file, _ in list_files(_unfinished(target, name))]
        commit(session, _unfinished(target, name), join(target, name), files)
        step(name)


def _write(
    partitions: Sequence[PartitionFiles],
    directories: BrokerDirectories,
    target: str,
    names: Sequence[str],
    until_ms: int | None,
    processes: int,
    process: int,
) -> Iterator[None]:
    """Write the rows of every so many partitions to one file a table."""
    files = {name: PartFile(_unfinished(target, name), process, schema_of(name)) for name in names}
    waiting: dict[str, Rows] = {name: [] for name in names}
    ends = LogEnds(directories)
    for number in range(process, len(partitions), processes):
        each = partitions[number]
        rows_of = _of_groups if each.topic == OFFSETS else _of_transactions
        for found in rows_of(each, ends, until_ms):
            for name in found.keys() & waiting.keys():
                waiting[name] += found[name]
                if len(waiting[name]) >= MOST_ROWS:
                    files[name].write(as_table(name, waiting[name]))
                    waiting[name] = []
    for name, file in files.items():
        file.write(as_table(name, waiting[name]))
        file.close()
    yield


def _of_groups(files: PartitionFiles, ends: LogEnds, until_ms: int | None) -> Found:
    """The rows of a partition of ``__consumer_offsets``, by table."""
    offsets, groups = CommittedOffsets(files.partition, ends), Groups(files.partition)
    for place, record in read_partition(files, _group_record, until_ms):
        if isinstance(record, Marker):
            yield {"offset_commits": offsets.end(place, is_commit=record.is_commit)}
        elif isinstance(record.key, OffsetCommitKey | LegacyOffsetCommitKey):
            value: Any = record.value
            yield {"offset_commits": offsets.add(place, record.key, value)}
        else:
            yield {"rebalances": groups.add(place, record)}
    yield {
        "offset_commits": offsets.pending(),
        "committed_offsets": offsets.committed(until_ms),
        "groups": groups.rows(),
    }


def _of_transactions(files: PartitionFiles, _ends: LogEnds, until_ms: int | None) -> Found:
    """The rows of a partition of ``__transaction_state``, by table."""
    transactions = Transactions(files.partition)
    for place, record in read_partition(files, decode_transaction_record, until_ms):
        if isinstance(record, CoordinatorRecord):
            key: Any = record.key
            value: Any = record.value
            yield {"transactions": transactions.add(place, key, value)}
    yield {"transactions": transactions.open(), "transactional_ids": transactions.ids()}


def _group_record(key: memoryview | None, value: memoryview | None) -> CoordinatorRecord:
    return decode_record(key, value)[1]


def _unfinished(target: str, name: str) -> str:
    return join(target, f"{name}.unfinished")
