"""Reads records for share groups: what is in memory at once, the rest in a thread."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from kraftd.broker_node.effects import ReadForShares, ShareRead
from kraftd.broker_node.events import ShareRecords, SharesRead
from kraftd.ground.event import Event
from kraftd.ground.pace import Pace, at_once
from kraftd.host.broker_logs.aborted import aborted_among
from kraftd.host.broker_logs.broker_logs import BrokerLogs
from kraftd.host.ports import Ports
from kraftd.log.data.data_log import DataLog
from kraftd.log.data.reading import ColdRead, run_cold
from kraftd.log.disk import Disk
from kraftd.log.errors import CorruptStorage, StorageError
from kraftd.log.partition_log import OffsetOutOfRange
from kraftd.wire.error_code import ErrorCode

READS_A_CALLBACK = 64

Found = dict[int, ShareRecords | ErrorCode]  # by the place of the read


class ShareReads:
    """`step` steps the node with what was read."""

    def __init__(self, logs: BrokerLogs, disk: Disk, ports: Ports, step: Callable[[Event], None]) -> None:
        self._logs = logs
        self._disk = disk
        self._ports = ports
        self._step = step

    def __repr__(self) -> str:
        return f"<ShareReads of {self._logs!r}>"

    def read(self, effect: ReadForShares) -> None:
        """Read; SharesRead comes back in a later callback."""
        self._read_some(effect, 0, {}, {})

    def _read_some(
        self, effect: ReadForShares, first: int, found: Found, cold: dict[int, tuple[DataLog, ColdRead]]
    ) -> None:
        after = first + READS_A_CALLBACK
        for at, read in enumerate(effect.reads[first:after], first):
            log = self._logs.find_log(read.topic_id, read.topic, read.partition)
            if log is None:
                found[at] = ErrorCode.NOT_LEADER_OR_FOLLOWER
                continue
            try:
                data = log.read(read.offset, read.max_bytes, read.end_offset, cached_only=True)
                if data is None:
                    cold[at] = log, log.cold_read(read.offset, read.max_bytes, read.end_offset)
                else:
                    found[at] = records_of(log, read, data)
            except (StorageError, OffsetOutOfRange) as error:
                found[at] = error_of(error)
        if after < len(effect.reads):
            self._ports.timer.call_soon(self._read_some, effect, after, found, cold)
        elif cold:
            self._ports.work_threads.run(
                partial(self._run_cold, cold),
                partial(self._cold_read, effect, found, cold),
                partial(self._cold_failed, effect, found, cold),
            )
        else:
            self._ports.timer.call_soon(self._done, effect, found)

    def _done(self, effect: ReadForShares, found: Found) -> None:
        self._step(SharesRead(effect.request_id, tuple(found[at] for at in range(len(effect.reads)))))

    def _run_cold(
        self, cold: dict[int, tuple[DataLog, ColdRead]]
    ) -> dict[int, bytes | memoryview | Exception]:
        """In a thread: the records, or why there are none."""
        read: dict[int, bytes | memoryview | Exception] = {}
        for at, (_, one) in cold.items():
            try:
                read[at] = run_cold(self._disk, one)
            except Exception as error:
                read[at] = error
        return read

    def _cold_read(
        self,
        effect: ReadForShares,
        found: Found,
        cold: dict[int, tuple[DataLog, ColdRead]],
        read: dict[int, bytes | memoryview | Exception],
    ) -> None:
        for at, data in read.items():
            log, began = cold[at]
            if log.cut_count != began.cut_count:
                found[at] = ShareRecords(b"")  # truncated or cleaned meanwhile: the next fetch reads it
            elif isinstance(data, Exception):
                found[at] = error_of(data)
            else:
                try:
                    found[at] = records_of(log, effect.reads[at], data)
                except StorageError as error:
                    found[at] = error_of(error)
        self._done(effect, found)

    def _cold_failed(
        self,
        effect: ReadForShares,
        found: Found,
        cold: dict[int, tuple[DataLog, ColdRead]],
        error: Exception,
    ) -> None:
        found.update(dict.fromkeys(cold, error_of(error)))
        self._done(effect, found)


def records_of(log: DataLog, read: ShareRead, data: bytes | memoryview) -> ShareRecords:
    """The records, with the aborted transactions in them if they are wanted. Raises CorruptStorage."""
    if not read.wants_aborted or not len(data):
        return ShareRecords(data)
    aborted = at_once(aborted_among(log, read.offset, data, Pace()))
    return ShareRecords(data, tuple((one.producer_id, one.first_offset) for one in aborted))


def error_of(error: Exception) -> ErrorCode:
    if isinstance(error, OffsetOutOfRange):
        return ErrorCode.OFFSET_OUT_OF_RANGE
    damaged = isinstance(error, CorruptStorage)
    return ErrorCode.CORRUPT_MESSAGE if damaged else ErrorCode.KAFKA_STORAGE_ERROR
