"""A log's partitions in groups, each replayed alone, so that memory holds the rows of one group.

What the groups have in common, the records of topics, brokers, configs and the like, is replayed once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraftd.spark.decoding.fields import record_schema
from kraftd.spark.inputs.checkpoints import checkpoint_splits
from kraftd.spark.inputs.extent import LOG, Extent
from kraftd.spark.inputs.planning import Split
from kraftd.spark.replay.brokers import broker_events
from kraftd.spark.replay.configs import config_history
from kraftd.spark.replay.source import Replay
from kraftd.spark.replay.topics import topic_lives
from kraftd.spark.source.reading import Wanted, read_split
from kraftd.spark.tables.partitions import COLUMNS, KEY, TYPES

GROUP_RECORDS = 20_000
"""Records of partitions that are replayed together; more only if they are of one partition."""
MAX_OTHERS = 100_000
"""Most records of all but partitions: their rows are held in memory."""
CHANGE = "PartitionChangeRecord"
_IDLE = "NoOpRecord"


class _Source(NamedTuple):
    """The records of a log, or of a checkpoint: those about partitions, and all others."""

    partitions: pa.Table
    others: pa.Table


class Divided:
    """An extent's records: `count` groups of those of partitions, and `base`, a replay of all others."""

    def __init__(self, extent: Extent, sources: dict[str, _Source], newest_ms: int | None) -> None:
        self._extent = extent
        self._sources = sources
        others = {key: source.others for key, source in sources.items()}
        self.base = Replay(extent, others, {"newest_ms": newest_ms})
        topic_lives(self.base, whole=True)
        config_history(self.base)
        broker_events(self.base, whole=True)
        self._order, self._starts = _groups([source.partitions for source in sources.values()])

    def __repr__(self) -> str:
        return f"<Divided {self._extent}, {self.count} groups>"

    @property
    def count(self) -> int:
        return len(self._starts) - 1

    def change_offsets(self) -> list[int]:
        """The offsets of all changes of partitions, in order."""
        rows = self._sources[LOG].partitions
        found: list[int] = rows.filter(pc.equal(rows["type"], CHANGE))["offset"].to_pylist()
        return found

    def group(self, number: int) -> Replay:
        """The replay of a group's partitions, with all that base has made."""
        places = np.sort(self._order[self._starts[number] : self._starts[number + 1]])
        decoded, begin = {}, 0
        for key, source in self._sources.items():
            end = begin + len(source.partitions)
            own = places[(places >= begin) & (places < end)] - begin
            rows = source.partitions.take(pa.array(own))
            decoded[key] = pa.concat_tables([source.others, rows], promote_options="default")
            begin = end
        return self.base.within(decoded)


def divide(extent: Extent) -> Divided | None:
    """Read the records of a sound extent; None if there are too many others than those of partitions."""
    newest_ms: int | None = None
    found: dict[str, _Source] = {}
    wanted = {LOG: (extent.source.log.splits, Wanted(last_offset=extent.end_offset - 1))}
    for checkpoint in (extent.state_checkpoint, extent.first_checkpoint):
        if checkpoint is not None:
            wanted[checkpoint.path] = (checkpoint_splits(checkpoint), Wanted())
    for key, (splits, bounds) in wanted.items():
        partitions, others, count = [], [], 0
        for batch in _batches(splits, bounds):
            if key == LOG and batch.num_rows:
                newest = pc.max(batch["timestamp_ms"]).as_py()
                newest_ms = newest if newest_ms is None else max(newest, newest_ms)
            is_partition = pc.is_in(batch["type"], pa.array(TYPES))
            partitions.append(batch.filter(is_partition).select(list(COLUMNS)))
            is_other = pc.and_(pc.invert(is_partition), pc.not_equal(batch["type"], _IDLE))
            others.append(batch.filter(is_other))
            count += others[-1].num_rows
            if count > MAX_OTHERS:
                return None
        schema = record_schema()
        few = pa.schema([schema.field(name) for name in COLUMNS])
        found[key] = _Source(pa.Table.from_batches(partitions, few), pa.Table.from_batches(others, schema))
    return Divided(extent, found, newest_ms)


def _batches(splits: Iterable[Split], wanted: Wanted) -> Iterable[pa.RecordBatch]:
    for split in splits:
        yield from read_split(split, record_schema(), wanted, permissive=False)


def _groups(tables: Sequence[pa.Table]) -> tuple[Any, Any]:
    """The places of all rows in order of their partition, and where in this order each group begins."""
    if not sum(map(len, tables)):
        return np.zeros(0, np.int64), np.zeros(1, np.int64)
    keys = [_column(tables, name) for name in KEY]
    topics = keys[0].dictionary_encode().indices.to_numpy().astype(np.int64)
    partitions = (topics << 32) | keys[1].to_numpy()
    order = np.argsort(partitions, kind="stable")
    in_order = partitions[order]
    firsts = np.flatnonzero(np.concatenate(([True], in_order[1:] != in_order[:-1])))
    groups: Any = firsts // GROUP_RECORDS
    begins = firsts[np.concatenate(([True], groups[1:] != groups[:-1]))]
    return order, np.append(begins, len(order))


def _column(tables: Sequence[pa.Table], name: str) -> pa.Array:
    chunks = [chunk for table in tables for chunk in table[name].chunks]
    return pa.chunked_array(chunks).combine_chunks()
