"""The comparisons of `comparisons`, without Spark."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from kraftd.spark.decoding.fields import record_schema, source_schema
from kraftd.spark.inputs.extent import Extent
from kraftd.spark.inputs.layout import CheckpointFile, Replica
from kraftd.spark.inputs.replicas import CommittedLog, committed_log
from kraftd.spark.replay.catalog import TABLES
from kraftd.spark.replay.configs import gone_configs
from kraftd.spark.replay.source import Replay
from kraftd.spark.source.reading import Wanted, read_split
from kraftd.spark.source.tasks import plan_tasks
from kraftd.spark.tables.columns import COLUMNS, Row, Rows
from kraftd.spark.tables.configs import TOPIC
from kraftd.spark.validation.findings import (
    OF_THE_LOG,
    SETS,
    STATE,
    checkpoint_text,
    epoch_text,
    note_stale_configs,
    replica_text,
)

RANGE_OFFSETS = 100_000
"""Offsets of two replicas that are compared at a time."""
_CONFIG = ("resource_name", "name", "value")


def checkpoint_difference(
    replay: Replay, checkpoint: CheckpointFile, note: Callable[[str], None]
) -> str | None:
    """The first row, by table, that a checkpoint and the replayed prefix do not share."""
    prefix, made = sides(replay, checkpoint)
    found = (table_difference(prefix, made, checkpoint, name, note) for name in STATE)
    return next((difference for difference in found if difference is not None), None)


def sides(replay: Replay, checkpoint: CheckpointFile) -> tuple[Replay, Replay]:
    """The replays of the log up to a checkpoint, and of the checkpoint alone."""
    extent, end = replay.extent, checkpoint.end_offset
    made = Extent(extent.source, end, permissive=extent.permissive, base=checkpoint)
    prefix = Extent(extent.source, end, permissive=extent.permissive, checkpoints_below=end)
    return replay.at(prefix), replay.at(made)


def table_difference(
    prefix: Replay, made: Replay, checkpoint: CheckpointFile, name: str, note: Callable[[str], None]
) -> str | None:
    """The first row of a table that only one side has."""
    ours, theirs = TABLES[name](prefix), TABLES[name](made)
    if name == "configs":
        theirs = _without_stale_configs(theirs, prefix, checkpoint, note)
    mine, others = _plain(name, ours), _plain(name, theirs)
    for one, other, where in ((mine, others, "only the log"), (others, mine, "only the checkpoint")):
        rest = one - other
        if rest:
            return checkpoint_text(checkpoint, where, name, min(rest))
    return None


def _without_stale_configs(
    theirs: Rows, prefix: Replay, checkpoint: CheckpointFile, note: Callable[[str], None]
) -> Rows:
    """The configs of a checkpoint without the stale ones, of which the first few are noted."""
    gone = {tuple(row[name] for name in _CONFIG): row["removed_offset"] for row in gone_configs(prefix)}
    stale: list[tuple[Any, ...]] = []
    kept = []
    for row in theirs:
        key = tuple(row[name] for name in _CONFIG)
        if row["resource_type"] == TOPIC and key in gone:
            stale.append((*key, gone[key]))
        else:
            kept.append(row)
    note_stale_configs(checkpoint, sorted(stale), note)
    return kept


def _plain(name: str, rows: Rows) -> Counter[str]:
    """The rows as text, without columns that only a log has, and with lists that are sets in order."""
    names = [column for column in COLUMNS[name].split() if column not in OF_THE_LOG]
    return Counter(_text({column: row[column] for column in names}) for row in rows)


def _text(row: Row) -> str:
    """The JSON that Spark makes of a row: without what is null."""
    kept = {
        name: sorted(value, key=repr) if name in SETS and value is not None else value
        for name, value in row.items()
        if value is not None
    }
    return json.dumps(kept, ensure_ascii=False, separators=(",", ":"))


def replica_difference(extent: Extent, other: Replica) -> str | None:
    """The first offset below the committed end at which two replicas hold different records.

    Memory holds a range of them at a time.
    """
    log = committed_log([other], permissive=extent.permissive)
    start = max(extent.source.start_offset, log.start_offset)
    end = min(extent.end_offset, log.end_offset)
    for first in range(start, end, RANGE_OFFSETS):
        last = min(first + RANGE_OFFSETS, end) - 1
        mine, yours = (_between(each, first, last, extent.permissive) for each in (extent.source, log))
        if mine.equals(yours):
            continue
        one, two = ({row["offset"]: repr(row) for row in each.to_pylist()} for each in (mine, yours))
        differing = [offset for offset in one.keys() | two.keys() if one.get(offset) != two.get(offset)]
        if differing:
            return replica_text(other, min(differing), extent.source.replica)
    return None


def _between(log: CommittedLog, first: int, last: int, permissive: bool) -> pa.Table:
    """The records from first to last, without the place that a batch has in a log."""
    names = [name for name in record_schema().names if name != "batch_offset"]
    batches = [
        batch
        for task in plan_tasks(log.log.splits, Wanted(), first, last)
        for batch in read_split(task.split, source_schema(), task.wanted, permissive=permissive)
    ]
    found = pa.Table.from_batches(batches, source_schema())
    return found.filter(found["offset"].is_valid()).select(names).sort_by("offset")


def unreadable(replay: Replay) -> str | None:
    """The first damaged place, or epoch that goes back. A torn tail is neither."""
    return first_damage(replay.extent, replay.damage().to_pylist()) or epochs_go_back(
        replay.extent, replay.records()
    )


def first_damage(extent: Extent, rows: Rows) -> str | None:
    """The first row of the table `damaged` that is no torn tail."""
    torn = extent.source.log.torn
    damage = [
        row for row in rows if torn is None or row["path"] != torn.path or row["position"] < torn.position
    ]
    if not damage:
        return None
    first = min(damage, key=lambda row: (row["path"], row["position"]))
    return f"{first['path']}: byte {first['position']}: {first['reason']}"


def epochs_go_back(extent: Extent, records: pa.Table) -> str | None:
    """The first record behind which the epoch is lower."""
    highest, place = -1, 0
    for offset, epoch in zip(records["offset"].to_pylist(), records["epoch"].to_pylist(), strict=True):
        if epoch < highest:
            return epoch_text(extent, place, highest)
        highest, place = epoch, offset
    return None
