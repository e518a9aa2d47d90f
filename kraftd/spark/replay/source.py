"""The records of a small log as rows, in the order of the log, and ways to group them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from kraftd.spark.decoding.fields import DAMAGE, source_schema
from kraftd.spark.inputs.checkpoints import checkpoint_splits
from kraftd.spark.inputs.extent import BEFORE_THE_LOG, LOG, MARKERS, Extent
from kraftd.spark.inputs.layout import CheckpointFile
from kraftd.spark.inputs.planning import Split
from kraftd.spark.source.reading import Wanted, read_split
from kraftd.spark.tables.columns import Row, Rows

PLACE = ("offset", "timestamp_ms", "type")
T = TypeVar("T")


class Replay:
    """The records of an extent. What several tables need is made once (`shared`)."""

    def __init__(
        self,
        extent: Extent,
        decoded: Mapping[str, pa.Table] | None = None,
        shared: Mapping[str, Any] | None = None,
    ) -> None:
        """decoded are the log (LOG) and checkpoints, by path; else the extent's files are read.

        They have the columns of `records`, and may lack types of records. shared is what was made already,
        from more records than these.
        """
        self.extent = extent
        if decoded is None:
            wanted = Wanted(last_offset=extent.end_offset - 1)
            found = self._decode(extent.source.log.splits, wanted)
        else:
            found = decoded[LOG].filter(pc.less(decoded[LOG]["offset"], extent.end_offset)).sort_by("offset")
            found = found.append_column(DAMAGE, pa.nulls(len(found), DAMAGE.type))
        self.decoded = found
        """The log with the columns of the data source, rows of damage included."""
        self._checkpoints = dict(decoded or {})
        self._shared: dict[str, Any] = dict(shared or {})

    def __repr__(self) -> str:
        return f"<Replay of {self.extent}>"

    def within(self, decoded: Mapping[str, pa.Table]) -> Replay:
        """A replay of other records of the same extent, with all that was made of these."""
        return Replay(self.extent, decoded, self._shared)

    def at(self, extent: Extent) -> Replay:
        """A replay of another extent of the same log, for which nothing is decoded again."""
        return Replay(extent, {LOG: self.records(), **self._checkpoints})

    def shared(self, name: str, make: Callable[[Replay], T]) -> T:
        """What make returns, made once under that name."""
        if name not in self._shared:
            self._shared[name] = make(self)
        found: T = self._shared[name]
        return found

    @property
    def newest_ms(self) -> int | None:
        """The time of the newest record."""
        return self.shared("newest_ms", lambda replay: pc.max(replay.decoded["timestamp_ms"]).as_py())

    def log(self, columns: Sequence[str], types: Sequence[str] | None = None) -> Rows:
        """The rows of the log, also those of aborted transactions."""
        return _rows(self.decoded, columns, types)

    def history(self, columns: Sequence[str], types: Sequence[str], *, dated_by: Sequence[str] = ()) -> Rows:
        """The whole known history: the checkpoint at which the log begins, and the log behind it."""
        return self._behind(self.extent.first_checkpoint, columns, types, dated_by)

    def state(self, columns: Sequence[str], types: Sequence[str], *, dated_by: Sequence[str] = ()) -> Rows:
        """The history that yields the state.

        dated_by are the columns of a key. With them, a record of the checkpoint has the offset and time of
        the key's last record in the log before the checkpoint.
        """
        return self._behind(self.extent.state_checkpoint, columns, types, dated_by)

    def before(self, columns: Sequence[str], types: Sequence[str], *, whole: bool) -> Rows:
        """The records of the log before the checkpoint of `history` (whole) or `state`."""
        checkpoint = self.extent.first_checkpoint if whole else self.extent.state_checkpoint
        return self._before(checkpoint, columns, types)

    def records(self) -> pa.Table:
        """The table `records`."""
        return self.decoded.filter(self.decoded["offset"].is_valid()).drop_columns([DAMAGE.name])

    def damage(self) -> pa.Table:
        """The table `damaged`: what mode PERMISSIVE could not decode of the log and its checkpoints."""
        extent = self.extent
        bases = [extent.state_checkpoint, extent.first_checkpoint, *extent.unsound_checkpoints]
        held = [self._held(each) for each in dict.fromkeys(bases) if each is not None]
        found = pa.concat_tables([one.select([DAMAGE.name]) for one in (self.decoded, *held)])
        return pa.Table.from_batches(
            [
                pa.RecordBatch.from_struct_array(chunk)
                for chunk in found[DAMAGE.name].filter(found[DAMAGE.name].is_valid()).chunks
            ],
            pa.schema(list(DAMAGE.type)),
        )

    def _behind(
        self,
        checkpoint: CheckpointFile | None,
        columns: Sequence[str],
        types: Sequence[str],
        keys: Sequence[str],
    ) -> Rows:
        columns = list(dict.fromkeys((*PLACE, *columns)))
        rows = self._without_aborted(_rows(self.decoded, columns, types))
        if checkpoint is None:
            return rows
        base = _rows(self._held(checkpoint), columns, types)
        told: dict[Any, Row] = {}
        if keys:
            told = {key_of(row, keys): row for row in self._before(checkpoint, columns, types)}
        for row in base:
            same = told.get(key_of(row, keys))
            row["offset"] = BEFORE_THE_LOG if same is None else same["offset"]
            if same is not None:
                row["timestamp_ms"] = same["timestamp_ms"]
        return in_order(base) + [row for row in rows if row["offset"] >= checkpoint.end_offset]

    def _before(
        self, checkpoint: CheckpointFile | None, columns: Sequence[str], types: Sequence[str]
    ) -> Rows:
        end_offset = self.extent.earlier_end(checkpoint)
        if end_offset is None:
            return []
        columns = list(dict.fromkeys((*PLACE, *columns)))
        rows = self._without_aborted(_rows(self.decoded, columns, types))
        return [row for row in rows if row["offset"] < end_offset]

    def _held(self, checkpoint: CheckpointFile) -> pa.Table:
        if checkpoint.path not in self._checkpoints:
            splits = checkpoint_splits(checkpoint, permissive=self.extent.permissive)
            self._checkpoints[checkpoint.path] = self._decode(splits, Wanted())
        return self._checkpoints[checkpoint.path]

    def _decode(self, splits: Iterable[Split], wanted: Wanted) -> pa.Table:
        schema = source_schema()
        permissive = self.extent.permissive
        batches = [
            batch for split in splits for batch in read_split(split, schema, wanted, permissive=permissive)
        ]
        return pa.Table.from_batches(batches, schema)

    def _without_aborted(self, rows: Rows) -> Rows:
        if not self.aborted:
            return rows
        return [row for row in rows if not any(row["offset"] in one for one in self.aborted)]

    @cached_property
    def aborted(self) -> list[range]:
        """The offsets of each transaction that was aborted or is not ended."""
        markers = self.log(["offset", "type"], MARKERS)
        found = []
        for marker, following in and_next(markers):
            if marker["type"] != "BeginTransactionRecord":
                continue
            if following is None:
                found.append(range(marker["offset"], self.extent.end_offset))
            elif following["type"] != "EndTransactionRecord":
                found.append(range(marker["offset"], following["offset"] + 1))
        return found


def _rows(table: pa.Table, columns: Sequence[str], types: Sequence[str] | None) -> Rows:
    wanted = table["offset"].is_valid()
    if types is not None:
        wanted = pc.and_(wanted, pc.is_in(table["type"], pa.array(types)))
    found: Rows = table.filter(wanted).select(list(dict.fromkeys(columns))).to_pylist()
    return found


def key_of(row: Row, keys: Sequence[str]) -> tuple[Any, ...]:
    """The values of a key's columns; an array is a set."""
    return tuple(
        tuple(sorted(map(repr, value))) if isinstance(value := row[name], list) else value for name in keys
    )


def by_key(rows: Iterable[Row], *keys: str) -> dict[tuple[Any, ...], Rows]:
    """The rows of each key, in their order."""
    found: dict[tuple[Any, ...], Rows] = {}
    for row in rows:
        key = tuple([row[name] for name in keys])
        try:
            group = found.get(key)
        except TypeError:  # an array is no key
            key = key_of(row, keys)
            group = found.get(key)
        if group is None:
            found[key] = [row]
        else:
            group.append(row)
    return found


def and_next(items: Sequence[T]) -> Iterator[tuple[T, T | None]]:
    """Each item with the next one, null for the last one."""
    return zip(items, [*items[1:], None], strict=False)


def with_next(rows: Iterable[Row], *keys: str) -> Iterator[Row]:
    """The rows by key, with the place of the next record of the same key, null for the last one."""
    for group in by_key(rows, *keys).values():
        for row, following in and_next(group):
            row["next_offset"] = None if following is None else following["offset"]
            row["next_ms"] = None if following is None else following["timestamp_ms"]
            yield row


def in_order(rows: Iterable[Row]) -> Rows:
    return sorted(rows, key=lambda row: row["offset"])


def in_log(row: Row, name: str = "offset") -> Any:
    """A column of a record, null for a record of a checkpoint."""
    return row[name] if row["offset"] >= 0 else None


def validity(row: Row) -> Row:
    """The four columns of a period that ends at `next_offset`."""
    return {
        "valid_from_offset": in_log(row),
        "valid_from_ms": in_log(row, "timestamp_ms"),
        "valid_to_offset": row["next_offset"],
        "valid_to_ms": row["next_ms"],
    }


def passed(begin_ms: int | None, end_ms: int | None) -> int | None:
    """How long a period of known beginning and end lasted, in milliseconds."""
    return None if begin_ms is None or end_ms is None else end_ms - begin_ms


def lasted(period: Row) -> Row:
    """The column duration_ms of a period."""
    return {"duration_ms": passed(period["valid_from_ms"], period["valid_to_ms"])}


def current(rows: Iterable[Row]) -> Rows:
    """What of a history still holds."""
    return [row for row in rows if row["valid_to_offset"] is None]


def latest(rows: Iterable[Row], *keys: str) -> Rows:
    """The row of the highest offset of each key."""
    return [group[-1] for group in by_key(rows, *keys).values()]


def without(those: Collection[int], others: Collection[int]) -> list[int]:
    """The members of one short array that are not in the other, each once, in order."""
    if those == others or not those:
        return []
    return list(dict.fromkeys([one for one in those if one not in others]))
