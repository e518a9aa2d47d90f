"""The decoded log that a lake keeps: what was read once is never read again, and outlives its segments.

Below OUT/.kraftd/CLUSTER, log/FIRST-END/ has the records from FIRST to below END, as Parquet. And
base/END-EPOCH/ is the checkpoint at which the log began when it was first read. A directory gets its name
when it is complete, so a kill at any time leaves a log that can be continued.
"""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from kraftd.spark.decoding.decode import LAST_OFFSET
from kraftd.spark.decoding.fields import record_schema
from kraftd.spark.errors import InputError
from kraftd.spark.inputs.checkpoints import checkpoint_splits
from kraftd.spark.inputs.extent import LOG, Extent
from kraftd.spark.inputs.layout import CheckpointFile, Replica, SegmentFile
from kraftd.spark.inputs.planning import SegmentPlan, Split
from kraftd.spark.inputs.replicas import CommittedLog, ReplicaLog, epoch_at, epochs_of
from kraftd.spark.inputs.storage import delete_directory, join, list_directories, open_parquet
from kraftd.spark.parquet import Job, merge_datasets, write_splits
from kraftd.spark.source.reading import Wanted
from kraftd.spark.source.tasks import plan_tasks

DIRECTORY = ".kraftd"
_MANY_PARTS = 16
_RECORD_BYTES = 100
_PART = re.compile(r"(\d{20})-(\d{20})")
_BASE = re.compile(r"(\d+)-(\d+)")


class KeptLog:
    """The decoded log of a lake, in a directory. A session writes it where the disk is not a local one."""

    def __init__(self, target: str, cluster_id: str | None, session: SparkSession | None = None) -> None:
        """Raises InputError if the directory holds another cluster's log."""
        self.cluster_id = cluster_id
        self._session = session
        home = join(target, DIRECTORY)
        name = cluster_id or "unknown"
        others = [other for other in list_directories(home) if other != name]
        if others:
            raise InputError(f"{target} holds tables of cluster {others[0]}, the input is of cluster {name}")
        self._home = join(home, name)
        self.path = join(self._home, "log")
        self._bases = join(self._home, "base")
        self._parts = self._whole_parts()

    def __repr__(self) -> str:
        return f"<KeptLog {self.path}, offsets {self.start_offset} to {self.end_offset - 1}>"

    @property
    def start_offset(self) -> int:
        return self._parts[0][0] if self._parts else 0

    @property
    def end_offset(self) -> int:
        """The offset behind the last record, 0 of an empty log."""
        return self._parts[-1][1] if self._parts else 0

    def append(self, log: CommittedLog, end_offset: int) -> None:
        """Decode what a log holds beyond this one, up to below end_offset.

        Raises InputError if it does not continue this one.
        """
        start = self.end_offset if self._parts else log.start_offset
        if log.start_offset > start:
            raise InputError(
                f"{log.replica.path}: the log begins at offset {log.start_offset}, and the tables end at "
                f"offset {start - 1}: what is between them was deleted. Give a copy that has it, or a new "
                "--output"
            )
        if self._parts and start <= log.end_offset:
            known, found = self._last_epoch(), epoch_at(epochs_of(log.log), start - 1)
            if found is not None and known != found:
                raise InputError(
                    f"{log.replica.path}: offset {start - 1} is of epoch {found}, in the tables of epoch "
                    f"{known}: this is not the log that they were made from"
                )
        if not self._parts:
            self._keep_base(Extent(log, log.end_offset).first_checkpoint)
        if end_offset > start:
            tasks = plan_tasks(log.log.splits, Wanted(), start, end_offset - 1)
            path = join(self.path, _part_name(start, end_offset))
            write_splits(self._session, tasks, Job(path, record_schema(), False))
            self._parts = self._whole_parts()
        if len(self._parts) > _MANY_PARTS:
            self._merge()

    def rows(self, first: int = 0) -> pa.Table:
        """The records from an offset on, in order."""
        wanted = pc.field("offset") >= first
        found = open_parquet(self.path).to_table(record_schema().names, filter=wanted)
        return found.cast(record_schema()).sort_by("offset")

    def as_log(self, end_offset: int) -> CommittedLog:
        """This log up to below an offset, as if it were a replica's."""
        size_bytes = (end_offset - self.start_offset) * _RECORD_BYTES
        segment = SegmentFile(self.path, self.start_offset, size_bytes)
        split = Split(self.path, 0, size_bytes, self.start_offset, end_offset)
        plan = SegmentPlan(segment, (split,), end_offset, None, None)
        replica = Replica(self.path, self.cluster_id, None, None, (segment,), tuple(self._base()))
        return CommittedLog(ReplicaLog(replica, (plan,)), end_offset, ())

    def checkpoints(self) -> dict[str, str]:
        """The dataset of each checkpoint of `as_log`, by its path."""
        return {each.path: each.path for each in self._base()}

    def decoded(self) -> dict[str, pa.Table]:
        """The log and its checkpoint, as a replay takes them."""
        bases = {
            path: open_parquet(path).to_table(record_schema().names).cast(record_schema())
            for path in self.checkpoints()
        }
        return {LOG: self.rows(), **bases}

    def _merge(self) -> None:
        """Merge the newest parts, with each older one that holds no more offsets than those behind it.

        So the parts stay few, and a record is written again only as often as its part doubles.
        """
        first = len(self._parts) - 1
        while first and self._offsets(first - 1, first) <= self._offsets(first, len(self._parts)):
            first -= 1
        merged = [join(self.path, _part_name(*part)) for part in self._parts[first:]]
        if len(merged) > 1:
            name = _part_name(self._parts[first][0], self.end_offset)
            merge_datasets(merged, record_schema(), join(self.path, name), self._session)
            self._parts = self._whole_parts()

    def _offsets(self, first: int, end: int) -> int:
        """How many offsets the parts from a number to below another one hold."""
        return self._parts[end - 1][1] - self._parts[first][0]

    def _keep_base(self, checkpoint: CheckpointFile | None) -> None:
        if checkpoint is not None:
            tasks = plan_tasks(checkpoint_splits(checkpoint), Wanted(), 0, LAST_OFFSET)
            path = join(self._bases, f"{checkpoint.end_offset}-{checkpoint.epoch}")
            write_splits(self._session, tasks, Job(path, record_schema(), False))

    def _base(self) -> list[CheckpointFile]:
        found = []
        for name in list_directories(self._bases):
            match = _BASE.fullmatch(name)
            if match is not None:
                found.append(CheckpointFile(join(self._bases, name), int(match[1]), int(match[2]), 0))
        return found

    def _last_epoch(self) -> int:
        return int(self.rows(self.end_offset - 1)["epoch"][-1].as_py())

    def _whole_parts(self) -> list[tuple[int, int]]:
        """The parts that make up the log; others, unfinished or merged into one of these, are deleted."""
        found = []
        for name in list_directories(self.path):
            match = _PART.fullmatch(name)
            if match is not None:
                found.append((int(match[1]), -int(match[2])))
        kept: list[tuple[int, int]] = []
        for first, negative_end in sorted(found):
            if not kept or first >= kept[-1][1]:
                kept.append((first, -negative_end))
        names = [_part_name(*part) for part in kept]
        for name in list_directories(self.path):
            if name not in names:
                delete_directory(join(self.path, name))
        return kept


def _part_name(first: int, end: int) -> str:
    return f"{first:020d}-{end:020d}"
