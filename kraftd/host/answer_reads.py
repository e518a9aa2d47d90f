"""Answers with records of the log: how a host reads them, and puts them into an answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from kraftd.host.ports import Log
from kraftd.log.errors import CorruptStorage
from kraftd.log.partition_log import PartitionLog
from kraftd.requests.call import Call
from kraftd.wire.primitives import Buffer

UNREADABLE = "the log could not be read"


class RecordsToRead(Protocol):
    """An effect that answers with whole batches from `offset` on, none at or past `end_offset`."""

    @property
    def offset(self) -> int: ...

    @property
    def end_offset(self) -> int: ...

    @property
    def max_bytes(self) -> int: ...


class Fillable(Protocol):
    """An effect that answers a call with data from the disk."""

    @property
    def call(self) -> Call: ...

    def fill(self, data: Buffer) -> list[Buffer]: ...


def read_records(log: PartitionLog, effect: RecordsToRead, lines: Log) -> Buffer | None:
    """The records for an answer; None if they are damaged, which is logged. Raises OffsetOutOfRange."""
    try:
        return log.read(effect.offset, effect.max_bytes, effect.end_offset)
    except CorruptStorage as error:
        lines.error(UNREADABLE, error=str(error))
        return None


def respond_filled(
    effect: Fillable,
    data: Buffer,
    respond: Callable[[Call, list[Any]], None],
    failed: Callable[[Call, Exception], None],
) -> None:
    """Answer with the data read; a fault fails only that call, as one in its handler does."""
    try:
        parts = effect.fill(data)
    except Exception as error:
        failed(effect.call, error)
    else:
        respond(effect.call, parts)
