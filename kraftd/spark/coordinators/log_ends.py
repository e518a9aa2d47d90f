"""Where the logs of partitions ended at a time, so that lag has a past."""

from __future__ import annotations

from array import array
from bisect import bisect_right

from kraftd.spark.coordinators.partitions import BrokerDirectories, TopicPartition
from kraftd.spark.coordinators.records import read_headers
from kraftd.wire.batch import BatchHeader


class LogEnds:
    """The ends of the logs in brokers' directories, each read when it is first asked for.

    The time of a batch is the newest time in it or in a batch before it. These are the producers' times, or
    the broker's if the topic has `message.timestamp.type=LogAppendTime`.
    """

    def __init__(self, directories: BrokerDirectories) -> None:
        self._directories = directories
        self._read: dict[TopicPartition, _Ends | None] = {}

    def at(self, place: TopicPartition, time_ms: int | None) -> int | None:
        """The end offset at a time, or now for None. None if the log is not here, or began later."""
        if place not in self._read:
            self._read[place] = self._ends_of(place)
        found = self._read[place]
        return None if found is None else found.at(time_ms)

    def _ends_of(self, place: TopicPartition) -> _Ends | None:
        files = self._directories.find(*place)
        if files is None:
            return None
        ends = _Ends(files.end_offset)
        for header in read_headers(files):
            ends.add(header)
        return ends


class _Ends:
    """Two columns of numbers: the newest time so far, and the end offset of the log by then."""

    def __init__(self, end_offset: int | None) -> None:
        self._end_offset = end_offset
        self._begins_empty = True
        self._times = array("q")
        self._ends = array("q")

    def add(self, header: BatchHeader) -> None:
        """The next batch."""
        newest_ms = header.max_timestamp_ms
        if not self._times:
            self._begins_empty = header.base_offset == 0
        elif newest_ms <= self._times[-1]:
            self._ends[-1] = header.next_offset
            return
        self._times.append(newest_ms)
        self._ends.append(header.next_offset)

    def at(self, time_ms: int | None) -> int | None:
        if time_ms is None:
            return self._end_offset if self._end_offset is not None else self._ends[-1] if self._ends else 0
        place = bisect_right(self._times, time_ms)
        if place:
            return self._ends[place - 1]
        return 0 if self._begins_empty else None
