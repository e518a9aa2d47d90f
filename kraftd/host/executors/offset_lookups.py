"""Searches the logs of a broker by time, some logs in each event loop callback."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice

from kraftd.broker_node.effects import FindOffsets, LogLookup
from kraftd.broker_node.events import Found, OffsetsFound
from kraftd.ground.event import Event
from kraftd.host.executors.answering_executor import Around
from kraftd.host.ports import Timer
from kraftd.log import timestamps
from kraftd.log.data.data_log import DataLog
from kraftd.log.data.time_search import max_timestamp, offset_for_timestamp
from kraftd.log.errors import StorageError
from kraftd.log.offset_checkpoint import TopicPartition
from kraftd.log.partition_log import PartitionLog
from kraftd.log_dirs.directories import LogDirectories
from kraftd.types import METADATA_TOPIC
from kraftd.wire.error_code import ErrorCode

LOOKUPS_PER_CALLBACK = 30  # an index interval and a batch of each are read

Results = list[Found | ErrorCode | None]
Failed = Callable[[TopicPartition, DataLog, StorageError], None]


class OffsetLookups:
    """`step` steps the node with the results; `failed` is called for a log that cannot be read."""

    def __init__(
        self,
        directories: LogDirectories,
        metadata_log: PartitionLog,
        timer: Timer,
        around: Around,
        step: Callable[[Event], None],
        failed: Failed,
    ) -> None:
        self._directories = directories
        self._metadata_log = metadata_log
        self._timer = timer
        self._around = around
        self._step = step
        self._failed = failed

    def __repr__(self) -> str:
        return f"<OffsetLookups in {self._directories!r}>"

    def find(self, effect: FindOffsets) -> None:
        """Search from the next callback on; OffsetsFound comes back."""
        self._later(effect, iter(effect.lookups), [])

    def _later(self, effect: FindOffsets, lookups: Iterator[LogLookup], found: Results) -> None:
        self._timer.call_soon(self._around, effect, partial(self._search, effect, lookups, found))

    def _search(self, effect: FindOffsets, lookups: Iterator[LogLookup], found: Results) -> None:
        for one in islice(lookups, LOOKUPS_PER_CALLBACK):
            found.append(self._in_metadata(one) if one.topic == METADATA_TOPIC else self._in_log(one))
        if len(found) < len(effect.lookups):
            self._later(effect, lookups, found)
        else:
            self._timer.call_soon(self._step, OffsetsFound(effect.request_id, tuple(found)))

    def _in_log(self, lookup: LogLookup) -> Found | ErrorCode | None:
        key = lookup.topic, lookup.partition
        log = self._directories.logs.get(key)
        if log is None:
            return ErrorCode.KAFKA_STORAGE_ERROR
        try:
            record = (
                max_timestamp(log) if lookup.wants_maximum else offset_for_timestamp(log, lookup.target_ms)
            )
        except StorageError as error:
            self._failed(key, log, error)
            return ErrorCode.KAFKA_STORAGE_ERROR
        return None if record is None else Found(record.offset, record.timestamp_ms, record.leader_epoch)

    def _in_metadata(self, lookup: LogLookup) -> Found | ErrorCode | None:
        log = self._metadata_log
        try:
            if lookup.wants_maximum:
                found = timestamps.max_timestamp(log, lookup.end_offset)
            else:
                found = timestamps.offset_for_timestamp(log, lookup.target_ms, lookup.end_offset)
        except StorageError:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if found is None:
            return None
        epoch = log.epochs.epoch_of(found[1])
        return Found(found[1], found[0], -1 if epoch is None else epoch)
