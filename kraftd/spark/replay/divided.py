"""A log's partitions in groups, each replayed alone, so that memory holds the rows of one group.

What the groups have in common, the records of topics, brokers, configs and the like, is replayed once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraftd.named_tuple import NamedTuple
from kraftd.spark.decoding.fields import DAMAGE, record_schema, source_schema
from kraftd.spark.errors import InputError
from kraftd.spark.inputs.checkpoints import checkpoint_splits
from kraftd.spark.inputs.extent import LOG, Extent
from kraftd.spark.inputs.layout import CheckpointFile
from kraftd.spark.inputs.planning import Split
from kraftd.spark.replay.brokers import broker_events
from kraftd.spark.replay.configs import config_history
from kraftd.spark.replay.source import Replay
from kraftd.spark.replay.topics import topic_lives
from kraftd.spark.source.reading import Wanted, read_split
from kraftd.spark.tables.columns import Rows
from kraftd.spark.tables.filling import COLUMNS, KEY, TYPES

GROUP_RECORDS = 20_000
"""Records of partitions that are replayed together; more only if they are of one partition."""
MAX_OTHERS = 100_000
"""Most records of all but partitions: their rows are held in memory."""
CHANGE = "PartitionChangeRecord"
_IDLE = "NoOpRecord"


_PLACES = ("offset", "epoch", "timestamp_ms")


class _Source(NamedTuple):
    """The records of a log, or of a checkpoint: those about partitions, and all others.

    places are those of all its records, damage is what mode PERMISSIVE could not decode.
    """

    partitions: pa.Table
    others: pa.Table
    places: pa.Table
    damage: Rows


class Divided:
    """An extent's records: `count` groups of those of partitions, and `base`, a replay of all others.

    `unread` has the checkpoints that cannot be read, by path: none of those from which the extent begins.
    """

    def __init__(self, extent: Extent, sources: dict[str, _Source], unread: dict[str, InputError]) -> None:
        self.extent = extent
        self.unread = unread
        self._sources = sources
        newest_ms = pc.max(self.places["timestamp_ms"]).as_py()
        others = {key: source.others for key, source in sources.items()}
        self.base = Replay(extent, others, {"newest_ms": newest_ms})
        topic_lives(self.base, whole=True)
        config_history(self.base)
        broker_events(self.base, whole=True)
        self._order, self._starts = _groups([source.partitions for source in sources.values()])

    def __repr__(self) -> str:
        return f"<Divided {self.extent}, {self.count} groups>"

    @property
    def count(self) -> int:
        return len(self._starts) - 1

    @property
    def places(self) -> pa.Table:
        """Offset, epoch and timestamp_ms of all records of the log."""
        return self._sources[LOG].places

    @property
    def damage(self) -> Rows:
        """The rows of the table `damaged`."""
        return [row for source in self._sources.values() for row in source.damage]

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


def divide(extent: Extent, checkpoints: Sequence[CheckpointFile] = ()) -> Divided | None:
    """Read the records of an extent, and more of its checkpoints; None if there are too many others than
    those of partitions. Raises InputError.
    """
    permissive = extent.permissive
    log = _read(extent.source.log.splits, Wanted(last_offset=extent.end_offset - 1), permissive)
    if log is None:
        return None
    found, unread = {LOG: log}, {}
    bases = (extent.state_checkpoint, extent.first_checkpoint, *extent.unsound_checkpoints)
    for checkpoint in dict.fromkeys((*bases, *checkpoints)):
        if checkpoint is None:
            continue
        try:
            source = _read(checkpoint_splits(checkpoint, permissive=permissive), Wanted(), permissive)
        except InputError as error:
            if checkpoint in bases:
                raise
            unread[checkpoint.path] = error
            continue
        if source is None:
            return None
        found[checkpoint.path] = source
    return Divided(extent, found, unread)


def _read(splits: Iterable[Split], wanted: Wanted, permissive: bool) -> _Source | None:
    whole = record_schema()
    schema = source_schema() if permissive else whole
    partitions, others, places = [], [], []
    damage: Rows = []
    count = 0
    for split in splits:
        for batch in read_split(split, schema, wanted, permissive=permissive):
            if permissive:
                damage += batch[DAMAGE.name].drop_null().to_pylist()
                batch = batch.filter(batch["offset"].is_valid()).select(whole.names)
            is_partition = pc.is_in(batch["type"], pa.array(TYPES))
            is_other = pc.and_(pc.invert(is_partition), pc.not_equal(batch["type"], _IDLE))
            partitions.append(batch.filter(is_partition).select(list(COLUMNS)))
            others.append(batch.filter(is_other))
            places.append(batch.select(list(_PLACES)))
            count += others[-1].num_rows
            if count > MAX_OTHERS:
                return None
    return _Source(_table(partitions, COLUMNS), _table(others, whole.names), _table(places, _PLACES), damage)


def _table(batches: Sequence[pa.RecordBatch], names: Iterable[str]) -> pa.Table:
    return pa.Table.from_batches(batches, pa.schema([record_schema().field(name) for name in names]))


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
