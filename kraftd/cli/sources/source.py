"""The interface of a source of records, and the limit up to which a command reads it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Protocol

from kraftd.cli.failures import FAILED, CommandFailure
from kraftd.named_tuple import NamedTuple
from kraftd.types import time_text

if TYPE_CHECKING:
    from kraftd.types import OffsetAndEpoch
    from kraftd.wire.batch import Batch, BatchHeader
    from kraftd.wire.message import Message


class Limit(NamedTuple):
    """The last wanted offset, or the last wanted time, inclusive. With both None there is no limit."""

    offset: int | None = None
    time_ms: int | None = None

    def takes_checkpoint(self, snapshot_id: OffsetAndEpoch, timestamp_ms: int) -> bool:
        """Return whether all records that a checkpoint replaces are within the limit."""
        if self.offset is not None:
            return snapshot_id.offset - 1 <= self.offset
        return self.time_ms is None or timestamp_ms <= self.time_ms

    def count_of(self, header: BatchHeader) -> int:
        """How many records of a batch are within the limit."""
        if self.offset is not None:
            return max(0, min(header.record_count, self.offset - header.base_offset + 1))
        if self.time_ms is not None and header.base_timestamp_ms > self.time_ms:
            return 0
        return header.record_count

    def __str__(self) -> str:
        if self.offset is not None:
            return f"offset {self.offset}"
        if self.time_ms is None:
            return "now"
        text = time_text(self.time_ms)
        return f"time {self.time_ms} ms" if text == "-" else text


class Beginning(NamedTuple):
    """What the records start from: a checkpoint that replaces all before next_offset, or nothing.

    runs are the checkpoint's metadata records, some at a time; size_bytes is how much there is to read.
    """

    next_offset: int
    epoch: int
    timestamp_ms: int
    runs: Iterator[list[Message]]
    size_bytes: int


class Extent(NamedTuple):
    """The offsets that a source covers: as of `first` at the earliest, and up to the record before `end`."""

    first: int
    end: int

    def check(self, name: str, limit: Limit) -> None:
        """Raise CommandFailure for an offset at or beyond the end: no record has it yet."""
        if limit.offset is None or limit.offset < self.end:
            return
        has = f"the log has the offsets {self.first} to {self.end - 1}" if self.end else "the log is empty"
        raise CommandFailure(f"{name}: {limit} is beyond the end: {has}.", FAILED)


class Source(Protocol):
    """A cluster's records from a place. Every method may raise CommandFailure or StorageError."""

    name: str

    async def begin(self, limit: Limit, *, by_checkpoint: bool = False) -> Beginning:
        """Offset 0 if the log has it, else the newest checkpoint within the limit.

        The log is the truth about what it covers: a checkpoint may have stale configs. With by_checkpoint,
        the newest checkpoint in any case. Raises CommandFailure where the log covers no beginning.
        """

    async def begin_earliest(self) -> Beginning:
        """The beginning that lies farthest back."""

    async def extent(self) -> Extent:
        """The offsets that it covers now."""

    async def note(self) -> str | None:
        """How old the records are if they come from a node without a leader; else None."""

    def batches(self, start: int, *, follow: bool = False) -> AsyncIterator[Batch]:
        """The batches from an offset on: the existing ones, then, with follow, each new one."""

    async def close(self) -> None: ...


def not_covered(limit: Limit, earliest: int) -> str:
    """The error text if a log no longer reaches back that far."""
    return (
        f"{limit} is before what the log still covers: it begins with the checkpoint that ends at offset "
        f"{earliest}. Ask for offset {earliest - 1} or a later one."
    )
