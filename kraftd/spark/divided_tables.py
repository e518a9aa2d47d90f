"""The tables of a log of some hundred thousand records, without Spark: processes replay groups of partitions.

A process writes one file a table, group by group. What concerns all partitions is put together here: the
causes of moves, the totals of intervals, the order of `audit`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from kraftd.named_tuple import NamedTuple
from kraftd.spark.cluster_tables import DAMAGED, RECORDS, write_small_tables
from kraftd.spark.decoding.fields import DAMAGE, record_schema
from kraftd.spark.inputs.extent import Extent
from kraftd.spark.inputs.input_log import is_small_log
from kraftd.spark.inputs.layout import Replica
from kraftd.spark.inputs.replicas import CommittedLog
from kraftd.spark.inputs.small_logs import DIVIDED_BYTES
from kraftd.spark.inputs.storage import delete_directory, join, list_files, open_parquet
from kraftd.spark.parquet import Job, PartFile, commit, write_dataset, write_splits
from kraftd.spark.replay import audit, intervals, moves, partitions, reassignments, topics
from kraftd.spark.replay.catalog import table as replayed_table
from kraftd.spark.replay.divided import Divided, divide
from kraftd.spark.replay.processes import core_count, in_processes
from kraftd.spark.replay.source import Replay
from kraftd.spark.source.reading import Wanted
from kraftd.spark.source.tasks import plan_tasks
from kraftd.spark.tables.columns import Row, Rows, as_table, schema_of

_BY_GROUP: dict[str, Callable[[Replay], Rows]] = {
    "partition_history": partitions.partition_history,
    "partitions": partitions.partitions,
    "partition_changes": partitions.partition_changes,
    "isr_history": partitions.isr_history,
    "reassignments": reassignments.reassignments,
    "partition_intervals": intervals.partition_intervals,
    "isr_churn": moves.isr_churn,
    "audit": audit.of_partitions,
}
"""The tables whose rows of a group need no other group; of `audit` some of the rows."""
_OF_ALL = ("topics", "interval_totals", "leader_moves")
_TOTALS = ("kind", "scope", "name")


class Found(NamedTuple):
    """What a group adds to what concerns all partitions."""

    sizes: moves.Sizes
    totals: Rows
    counts: dict[str, int]


class DividedTables:
    """The tables of an extent below a local directory, each in place of the one that was there."""

    def __init__(self, divided: Divided, extent: Extent, replicas: Sequence[Replica], target: str) -> None:
        self._divided = divided
        self._extent = extent
        self._replicas = replicas
        self._target = target
        self._processes = min(core_count(), divided.count) or 1
        self._all = Found({}, [], {})

    def write(self, names: Sequence[str], step: Callable[[str], None]) -> None:
        """step is called after each table."""
        if RECORDS in names:
            tasks = plan_tasks(self._extent.source.log.splits, Wanted(), 0, self._extent.end_offset - 1)
            write_splits(
                None, tasks, Job(join(self._target, RECORDS), record_schema(), self._extent.permissive)
            )
            step(RECORDS)
        by_group = [name for name in _BY_GROUP if name in names]
        if "leader_moves" in names and "partition_changes" not in names:
            by_group.append("partition_changes")
        if by_group or not set(_OF_ALL).isdisjoint(names):
            self._write_groups(by_group, names, step)
        for name in names:
            if name not in (RECORDS, *_BY_GROUP):
                self._write_one(name)
                step(name)

    def _write_groups(self, names: Sequence[str], wanted: Sequence[str], step: Callable[[str], None]) -> None:
        for name in names:
            delete_directory(self._unfinished(name))
        for found in in_processes(partial(self._groups, names), self._processes):
            moves.add_sizes(self._all.sizes, found.sizes)
            self._all.totals.extend(found.totals)
            for topic_id, count in found.counts.items():
                self._all.counts[topic_id] = self._all.counts.get(topic_id, 0) + count
        if "leader_moves" in wanted:
            self._write_moves()
        for name in names:
            if name == "audit":
                self._write_audit()
            elif name in wanted:
                self._commit(name)
            else:
                delete_directory(self._unfinished(name))
            if name in wanted:
                step(name)

    def _groups(self, names: Sequence[str], process: int) -> Iterator[Found]:
        """Write the rows of every so many groups to one file a table."""
        files = {name: PartFile(self._unfinished(name), process, schema_of(name)) for name in names}
        for number in range(process, self._divided.count, self._processes):
            replay = self._divided.group(number)
            for name, file in files.items():
                file.write(as_table(name, _BY_GROUP[name](replay)))
            sizes = moves.sizes_of(partitions.partition_changes(replay))
            yield Found(sizes, intervals.interval_totals(replay), topics.partition_counts(replay))
        for file in files.values():
            file.close()

    def _write_moves(self) -> None:
        base = self._divided.base
        sides = moves.events_beside(base, self._divided.change_offsets())
        causes = moves.Causes(sides, moves.parts_of_events(base, self._all.sizes))
        delete_directory(self._unfinished("leader_moves"))
        for _ in in_processes(partial(self._moves, causes), self._processes):
            pass

    def _moves(self, causes: moves.Causes, process: int) -> Iterator[None]:
        file = PartFile(self._unfinished("leader_moves"), process, schema_of("leader_moves"))
        changes = self._unfinished("partition_changes")
        for number, (name, _) in enumerate(list_files(changes)):
            if number % self._processes != process:
                continue
            moved = pc.field("old_leader") != pc.field("new_leader")
            for batch in open_parquet(join(changes, name)).to_batches(filter=moved, use_threads=False):
                file.write(as_table("leader_moves", moves.moves_of(batch.to_pylist(), causes)))
        file.close()
        yield

    def _write_audit(self) -> None:
        parts = open_parquet(self._unfinished("audit")).to_table()
        rows = pa.concat_tables([as_table("audit", audit.of_things(self._divided.base)), parts])
        write_dataset(rows.sort_by("offset"), join(self._target, "audit"))

    def _write_one(self, name: str) -> None:
        if name == "leader_moves":
            self._commit(name)
            return
        base = self._divided.base
        if name == DAMAGED:
            rows = pa.Table.from_pylist(self._divided.damage, pa.schema(list(DAMAGE.type)))
        elif name == "interval_totals":
            rows = as_table(name, _summed(self._all.totals))
        else:
            base.shared("partition_counts", lambda _: self._all.counts)
            rows = replayed_table(name, base, self._replicas)
        write_dataset(rows, join(self._target, name))

    def _commit(self, name: str) -> None:
        files = [file for file, _ in list_files(self._unfinished(name))]
        commit(None, self._unfinished(name), join(self._target, name), files)

    def _unfinished(self, name: str) -> str:
        """Where a table's files are written: `audit` and `partition_changes` are read from there."""
        return join(self._target, f"{name}.unfinished")


def need_no_spark(log: CommittedLog) -> bool:
    """Return whether `write_tables_here` may write the tables of a log."""
    return is_small_log(log, DIVIDED_BYTES)


def write_tables_here(
    extent: Extent,
    replicas: Sequence[Replica],
    target: str,
    names: Sequence[str],
    step: Callable[[str], None],
) -> bool:
    """Write tables without Spark; step is called after each. False, and nothing, if the log needs it.

    The log is one that `need_no_spark`, and target is a local directory.
    """
    if is_small_log(extent.source):
        write_small_tables(extent, replicas, target, names, step)
        return True
    return write_divided_tables(extent, replicas, target, names, step)


def write_divided_tables(
    extent: Extent,
    replicas: Sequence[Replica],
    target: str,
    names: Sequence[str],
    step: Callable[[str], None],
) -> bool:
    """Write tables of a log; step is called after each. False, and nothing, if it needs Spark."""
    divided = divide(extent)
    if divided is None:
        return False
    DividedTables(divided, extent, replicas, target).write(names, step)
    return True


def _summed(totals: Rows) -> Rows:
    """The totals of all groups: no partition is in two of them."""
    found: dict[tuple[str, ...], Row] = {}
    for row in totals:
        total = found.setdefault(tuple(row[name] for name in _TOTALS), row)
        if total is not row:
            for name in ("intervals", "partitions", "duration_ms"):
                total[name] += row[name]
            total["longest_ms"] = max(total["longest_ms"], row["longest_ms"])
    return list(found.values())
