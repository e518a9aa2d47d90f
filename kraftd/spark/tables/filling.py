"""Partitions after each of their records, by Arrow and numpy: a tenth of what Spark's windows cost.

A field that a record omits has the value of the partition's last record that names it. So a column of the
result is the column of the records at other places, and is copied once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraftd.named_tuple import NamedTuple
from kraftd.spark.decoding.fields import record_schema
from kraftd.spark.inputs.extent import BEFORE_THE_LOG
from kraftd.types import DIRECTORY_MIGRATING, uuid_text

PLACE = ("offset", "epoch", "timestamp_ms", "batch_offset", "type")
KEY = ("topic_id", "partition_id")
TYPES = ("PartitionRecord", "PartitionChangeRecord")
KEPT = (
    "isr",
    "replicas",
    "removing_replicas",
    "adding_replicas",
    "directories",
    "eligible_leader_replicas",
    "last_known_elr",
)
"""What a change leaves as it was where it says nothing of it, beside the leader and its recovery state."""
COLUMNS = (
    *PLACE,
    *KEY,
    "leader",
    "leader_recovery_state",
    "leader_epoch",
    "partition_epoch",
    *KEPT,
)
"""What is read of a partition's records."""
OMITTED = {"leader": -2, "leader_recovery_state": -1}
"""The values with which a change says nothing of a field."""
ELRS = ("eligible_leader_replicas", "last_known_elr")
OLD = "old_"
_MIGRATING = uuid_text(DIRECTORY_MIGRATING)
EARLIER, IN_CHECKPOINT, IN_LOG = 0, 1, 2
"""The origins of records: the log before the checkpoint, the checkpoint, the log behind it."""
CLEARED = "ClearElrRecord"
_NOWHERE = -1
_LONGS = ("leader_epoch", "partition_epoch", "next_offset", "next_ms")


def filled_schema(names: Sequence[str]) -> pa.Schema:
    """The schema of columns of `fill`."""
    whole = record_schema()
    kinds = [pa.int64() if name in _LONGS else whole.field(name.removeprefix(OLD)).type for name in names]
    return pa.schema(list(zip(names, kinds, strict=True)))


class Clears(NamedTuple):
    """The ClearElrRecords, and the topics that they may mean: topic_id, name and removed_offset."""

    records: pa.Table
    topics: pa.Table


def fill(records: pa.Table, names: Sequence[str], *, last: bool, clears: Clears | None = None) -> pa.Table:
    """Partitions after each of their records; with last true after the last one alone.

    records are all those of some partitions, in any order, with their `origin`. One of a checkpoint has the
    offset and time of the partition's last earlier record. `old_*` is the value before, `next_*` the place
    of the next record.
    """
    records = _dated(records)
    if clears is not None:
        records = pa.concat_tables([records, *_cleared(records, clears)], promote_options="default")
    filling = Filling(records)
    if clears is not None:
        had = np.logical_or.reduce([filling.sizes_before(name) > 0 for name in ELRS])
        kept = ~filling.are(CLEARED) | had
        filling = Filling(records.take(pa.array(filling.order[kept])))
    places = filling.ends if last else np.arange(len(filling.order))
    schema = filled_schema(names)
    return pa.Table.from_arrays([filling.column(name, places) for name in names], schema.names).cast(schema)


def _dated(records: pa.Table) -> pa.Table:
    """The records of the checkpoint and of the log behind it. What is older dates those of the checkpoint."""
    origins = records["origin"].to_numpy()
    records = records.drop_columns(["origin"])
    if not (origins != IN_LOG).any():
        return records
    base, earlier = (records.filter(pa.array(origins == each)) for each in (IN_CHECKPOINT, EARLIER))
    base = _with(base, "offset", pa.array(np.full(len(base), BEFORE_THE_LOG)))
    if len(earlier) and len(base):
        order = [(name, "ascending") for name in (*KEY, "offset")]
        earlier = earlier.select([*KEY, "offset", "timestamp_ms"]).sort_by(order)
        told = earlier.group_by(list(KEY), use_threads=False).aggregate(
            [("offset", "last"), ("timestamp_ms", "last")]
        )
        place = pa.array(np.arange(len(base)))
        dated = base.select(list(KEY)).append_column("place", place).join(told, list(KEY), use_threads=False)
        dated = dated.sort_by("place")
        for name in ("offset", "timestamp_ms"):
            base = _with(base, name, pc.coalesce(dated[f"{name}_last"], base[name]))
    return pa.concat_tables([base, records.filter(pa.array(origins == IN_LOG))])


def _with(rows: pa.Table, name: str, values: pa.Array) -> pa.Table:
    return rows.set_column(rows.schema.get_field_index(name), rows.schema.field(name), values)


def _cleared(records: pa.Table, clears: Clears) -> Iterator[pa.Table]:
    """A record for each partition that a ClearElrRecord means, whether it has an ELR or not."""
    firsts = records.group_by(list(KEY), use_threads=False).aggregate([("offset", "min")])
    known = firsts.join(clears.topics, "topic_id", join_type="inner", use_threads=False)
    for clear in clears.records.to_pylist():
        meant = pc.and_kleene(
            pc.less(known["offset_min"], clear["offset"]),
            pc.fill_null(pc.greater(known["removed_offset"], clear["offset"]), True),
        )
        if clear["topic_name"]:
            meant = pc.and_(meant, pc.equal(known["name"], clear["topic_name"]))
        found = known.filter(meant).select(list(KEY))
        values = clear | {name: [] for name in ELRS}
        for name in (*PLACE, *ELRS):
            one = pa.array([values[name]], records.schema.field(name).type)
            found = found.append_column(name, one.take(pa.array(np.zeros(len(found), np.int64))))
        yield found


class Filling:
    """Records in the order of partition and offset; places are those in this order, -1 is none."""

    def __init__(self, records: pa.Table) -> None:
        self._records = records.combine_chunks()
        offsets = self._numbers("offset")
        topics = self._array("topic_id").dictionary_encode().indices.to_numpy().astype(np.int64)
        keys = (topics << 32) | self._numbers("partition_id")
        self.order: Any = np.lexsort((offsets, keys))
        keys = keys[self.order]
        is_first: Any = np.ones(len(keys), bool)
        is_first[1:] = keys[1:] != keys[:-1]
        self._places: Any = np.arange(len(keys))
        self._is_first = is_first
        self._starts: Any = np.maximum.accumulate(np.where(is_first, self._places, 0))
        self._next: Any = np.append(self._places[1:], _NOWHERE) if len(keys) else self._places
        self._next[:-1][is_first[1:]] = _NOWHERE

    def __repr__(self) -> str:
        return f"<Filling of {len(self.order)} records>"

    @property
    def ends(self) -> Any:
        """The place of each partition's last record."""
        return np.flatnonzero(self._next == _NOWHERE)

    def are(self, kind: str) -> Any:
        """Which records are of a type."""
        return pc.equal(self._array("type"), kind).to_numpy(zero_copy_only=False)[self.order]

    def sizes_before(self, name: str) -> Any:
        """How long a list is before each record; 0 for one that is not known."""
        sizes = pc.fill_null(pc.list_value_length(self._told(name)), 0).to_numpy()[self.order]
        known = self._before(self._known(name))
        return np.where(known == _NOWHERE, 0, sizes[known])

    def column(self, name: str, places: Any) -> pa.Array:
        """A column of the result, at some places."""
        special: dict[str, Callable[[Any], pa.Array]] = {
            "directories": self._directories,
            "leader_epoch": lambda places: self._epochs("leader_epoch", self._names_leader, places),
            "partition_epoch": lambda places: self._epochs("partition_epoch", ~self._is_new, places),
            "next_offset": lambda places: self._take("offset", self._next[places]),
            "next_ms": lambda places: self._take("timestamp_ms", self._next[places]),
        }
        if name in special:
            return special[name](places)
        if name.startswith(OLD):
            name = name.removeprefix(OLD)
            return self._take(name, self._before(self._known(name))[places])
        if name in KEPT or name in OMITTED:
            return self._take(name, self._known(name)[places])
        return self._take(name, places)

    @cached_property
    def _is_new(self) -> Any:
        return self.are("PartitionRecord")

    @cached_property
    def _names_leader(self) -> Any:
        """Which changes make a new leader epoch: those that name a leader, be it the same one."""
        return ~self._is_new & self._is_told("leader")

    def _known(self, name: str) -> Any:
        """Where each record's value is: the place of the partition's last record that names it."""
        return self._last(self._is_told(name))

    def _last(self, marks: Any) -> Any:
        """The last marked place of the same partition, up to each place."""
        found = np.maximum.accumulate(np.where(marks, self._places, _NOWHERE))
        return np.where(found < self._starts, _NOWHERE, found)

    def _before(self, known: Any) -> Any:
        """What was known before each record, from what is known after it."""
        found = np.full_like(known, _NOWHERE)
        found[1:] = known[:-1]
        found[self._is_first] = _NOWHERE
        return found

    def _is_told(self, name: str) -> Any:
        told = self._told(name)
        if name in OMITTED:
            is_told = pc.fill_null(pc.not_equal(told, OMITTED[name]), False)
        else:
            is_told = pc.is_valid(told)
        return is_told.to_numpy(zero_copy_only=False)[self.order]

    def _told(self, name: str) -> pa.Array:
        """The values of the records; a new partition without an ELR has an empty one."""
        found = self._array(name)
        if name in ELRS and found.null_count:
            is_new = pc.equal(self._array("type"), "PartitionRecord")
            none = pc.and_(is_new, pc.is_null(found))
            found = pc.if_else(none, pa.scalar([], found.type), found)
        return found

    def _take(self, name: str, places: Any) -> pa.Array:
        return self._told(name).take(self._rows(places))

    def _rows(self, places: Any) -> pa.Array:
        """The rows of the records at places; null for none."""
        return pa.array(self.order[places], mask=places == _NOWHERE)

    def _epochs(self, name: str, changes: Any, places: Any) -> pa.Array:
        """An epoch: that of the last PartitionRecord, and the changes since."""
        counts = np.cumsum(changes)
        since = self._last(self._is_new)
        told = self._numbers(name)[self.order]
        found = told[since] + counts - counts[since]
        return pa.array(found[places], mask=since[places] == _NOWHERE)

    def _directories(self, places: Any) -> pa.Array:
        """The directory of each replica: a record without directories is of a version before KIP-858."""
        told = self._take("directories", self._known("directories")[places])
        replicas = self._take("replicas", self._known("replicas")[places])
        is_known = pc.fill_null(pc.not_equal(told.flatten(), _MIGRATING), False).to_numpy(
            zero_copy_only=False
        )
        counts: Any = np.append(0, np.cumsum(is_known))
        sizes = pc.fill_null(pc.list_value_length(told), 0).to_numpy()
        ends = np.cumsum(sizes)
        are_unknown = counts[ends] == counts[ends - sizes]
        if not are_unknown.any():
            return told
        rows = np.flatnonzero(are_unknown)
        lengths = pc.list_value_length(replicas.take(pa.array(rows)))
        offsets: Any = np.append(0, np.cumsum(pc.fill_null(lengths, 0).to_numpy())).astype(np.int32)
        unknown = pa.ListArray.from_arrays(
            pa.array(offsets),
            pa.repeat(_MIGRATING, int(offsets[-1])),
            type=told.type,
            mask=pc.is_null(lengths),
        )
        sources = np.arange(len(told))
        sources[rows] = len(told) + np.arange(len(rows))
        return pa.concat_arrays([told, unknown]).take(pa.array(sources))

    def _numbers(self, name: str) -> Any:
        found = self._array(name)
        return pc.fill_null(found.cast(pa.int64()), 0).to_numpy()

    def _array(self, name: str) -> pa.Array:
        chunks = self._records[name].chunks
        return chunks[0] if chunks else pa.array([], self._records.schema.field(name).type)
