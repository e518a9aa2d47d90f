"""Answers with records of the log: how a host reads them, and puts them into an answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kraftd.host.ports import Log
from kraftd.log.errors import CorruptStorage
from kraftd.log.partition_log import PartitionLog
from kraftd.raft.effects import RespondRecords
from kraftd.requests.call import Call
from kraftd.requests.effects import RecordsOf
from kraftd.wire.primitives import Buffer

UNREADABLE = "the log could not be read"


def read_records(log: PartitionLog, read: RecordsOf | RespondRecords, lines: Log) -> Buffer | None:
    """The records of a partition; None if they are damaged, which is logged. Raises OffsetOutOfRange."""
    try:
        return log.read(read.offset, read.max_bytes, read.end_offset)
    except CorruptStorage as error:
        lines.error(UNREADABLE, error=str(error))
        return None


def respond_filled(
    call: Call,
    fill: Callable[[], list[Any]],
    respond: Callable[[Call, list[Any]], None],
    failed: Callable[[Call, Exception], None],
) -> None:
    """Answer with the data that `fill` puts into the answer; a fault fails only that call, as one in its
    handler does.
    """
    try:
        parts = fill()
    except Exception as error:
        failed(call, error)
    else:
        respond(call, parts)
