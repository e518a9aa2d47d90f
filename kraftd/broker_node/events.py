"""Events of a broker node: what became of its effects on logs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from kraftd.ground.event import Event
from kraftd.named_tuple import NamedTuple
from kraftd.partition.effects import AppendBatches
from kraftd.partition.producers import ProducerStates
from kraftd.partition.views import EpochView
from kraftd.types import Uuid
from kraftd.wire.error_code import ErrorCode


class LogView(Protocol):
    """What the node reads of an open log, without a wait. `parent` is the path of its log directory."""

    @property
    def parent(self) -> str: ...
    @property
    def log_start(self) -> int: ...
    @property
    def log_end(self) -> int: ...
    @property
    def epochs(self) -> EpochView: ...
    @property
    def size_bytes(self) -> int: ...
    @property
    def segment_count(self) -> int: ...

    def bytes_between(self, offset: int, end_offset: int) -> int:
        """The bytes of the batches from an offset up to another, at most an index interval wrong."""

    def are_apart(self, offset: int, end_offset: int) -> bool:
        """Return whether an offset is in an older segment than an end at or behind it."""

    def batch_bytes(self, offset: int) -> int:
        """The size of the batch that holds an offset, or follows it; 0 if it is not in memory."""


class CoordinatorsLoaded(Event, frozen=True):
    """The code of the coordinators is loaded."""


class LogOpened(Event, frozen=True):
    """The log of a partition is open, in the directory of that id. `high_watermark` is the checkpoint's."""

    topic: str
    partition: int
    topic_id: Uuid
    log: LogView
    high_watermark: int
    producers: ProducerStates | None
    directory_id: Uuid | None = None

    def __repr__(self) -> str:
        return f"<LogOpened {self.topic}-{self.partition}: {self.log!r}>"


class LogsOpened(Event, frozen=True):
    """Logs that were opened in one slice. One event for all of them: each event asks every part of the node
    when it is due.
    """

    logs: tuple[LogOpened, ...]


class LogNotOpened(Event, frozen=True):
    """The log of a partition cannot be opened: its directory failed, or its files are damaged."""

    topic: str
    partition: int
    topic_id: Uuid
    reason: str = ""
    is_damaged: bool = False


class MoveBegun(Event, frozen=True):
    """A future log that is being filled, or why there is none. It was asked for, or found at a start."""

    topic: str
    partition: int
    future: LogView | None
    directory_id: Uuid | None = None
    error: ErrorCode = ErrorCode.NONE


class MovesBegun(Event, frozen=True):
    """The answer to a MoveLogs, after a MoveBegun for each."""

    request_id: int
    moves: tuple[MoveBegun, ...]


class FutureCaughtUp(Event, frozen=True):
    """A future log has all of its partition's log, and is durable as far as that is."""

    topic: str
    partition: int


class FutureLost(Event, frozen=True):
    """A future log is gone, as its directory failed."""

    topic: str
    partition: int


class LogReplaced(Event, frozen=True):
    """The future log has taken the place of a partition's log."""

    topic: str
    partition: int
    log: LogView


class LogTruncated(Event, frozen=True):
    """The log of a partition was truncated; its producers are as of its end."""

    topic: str
    partition: int
    log: LogView
    producers: ProducerStates

    def __repr__(self) -> str:
        return f"<LogTruncated {self.topic}-{self.partition}: {self.log!r}>"


class RecordsExpired(Event, frozen=True):
    """Retention has removed the records of a partition below an offset."""

    topic: str
    partition: int
    log_start: int


class LogsFailed(Event, frozen=True):
    """A log directory failed, with these partitions. All that failed so far are in `directory_ids`, with the
    reasons by path in `errors`.
    """

    partitions: tuple[tuple[str, int], ...]
    directory_ids: tuple[Uuid, ...]
    errors: dict[str, str]


class WriteEnded(Struct, frozen=True, gc=False):
    """Appends to one partition's log, which were one write. `error` is None if all of them are written."""

    topic: str
    partition: int
    appends: Sequence[AppendBatches]
    error: ErrorCode | None = None


class AppendsEnded(Event, frozen=True):
    """The appends of one step, in its order. `took_ms`: the time of all of them."""

    writes: Sequence[WriteEnded]
    took_ms: int = 0


class Found(NamedTuple):
    """A record: its offset, timestamp, leader epoch."""

    offset: int
    timestamp_ms: int
    leader_epoch: int


class OffsetsFound(Event, frozen=True):
    """The results of a FindOffsets: None where there is no record, an error where the log cannot tell."""

    request_id: int
    found: tuple[Found | ErrorCode | None, ...]


class DirectoryState(NamedTuple):
    """A log directory, and its disk: -1 bytes where `error` says that it cannot be looked at."""

    path: str
    total_bytes: int = -1
    usable_bytes: int = -1
    is_cordoned: bool = False
    error: ErrorCode | None = None


class DirectoriesDescribed(Event, frozen=True):
    """The answer to a DescribeDirectories, in the order of log.dirs."""

    request_id: int
    directories: tuple[DirectoryState, ...]


class ShareRecords(NamedTuple):
    """Whole batches, and the transactions that were aborted in them, by producer id and first offset."""

    data: bytes | memoryview
    aborted: tuple[tuple[int, int], ...] = ()


class PartitionRead(Event, frozen=True):
    """Whole batches from the offset of a ReadPartition on; `error` says why there are none, `is_damaged` that
    they are damaged.
    """

    topic: str
    partition: int
    leader_epoch: int
    data: bytes | memoryview
    error: str | None = None
    is_damaged: bool = False

    def __repr__(self) -> str:
        return f"<PartitionRead {self.topic}-{self.partition}, {len(self.data)} bytes>"


class SharesRead(Event, frozen=True):
    """The records of a ReadForShares, or an error for each partition that has none."""

    request_id: int
    found: tuple[ShareRecords | ErrorCode, ...]

    def __repr__(self) -> str:
        return f"<SharesRead {self.request_id}, {len(self.found)} partitions>"


class LogsLoaded(Event, frozen=True):
    """All logs that were on disk at the start are open, or known as damaged.

    `topic_ids` by topic and partition, of damaged logs too; None for an open log without one. `directories`
    are the ids of log.dirs by path.
    """

    topic_ids: dict[tuple[str, int], Uuid | None]
    directories: dict[str, Uuid | None]

    def __repr__(self) -> str:
        return f"<LogsLoaded {len(self.topic_ids)}>"
