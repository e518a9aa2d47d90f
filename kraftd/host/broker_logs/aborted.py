"""The aborted transactions among records that were read from a log."""

from __future__ import annotations

from kraftd.ground.pace import Pace, Slices
from kraftd.log.data.data_log import DataLog
from kraftd.log.data.transaction_index import AbortedTransaction
from kraftd.wire.primitives import Buffer
from kraftd.wire.records import ENGINE

_HEADERS_AT_ONCE = 1_000
_HEADERS_A_US = 2  # for the pace


def aborted_among(log: DataLog, offset: int, data: Buffer, pace: Pace) -> Slices[list[AbortedTransaction]]:
    """The aborted transactions with records in the batches that were read from an offset on.

    A read may end long before what it asked for: its limits are those of bytes and of a segment. Raises
    CorruptStorage.
    """
    if not log.segments_with_aborted(offset):
        return []
    at, end_offset = 0, offset
    while at < len(data):
        headers, at, _ = ENGINE.batch_headers(data, at, _HEADERS_AT_ONCE, False)
        if not headers:
            break
        end_offset = headers[-1].next_offset
        if pace.spent(len(headers) // _HEADERS_A_US):
            yield
    return log.aborted_transactions(offset, end_offset)
