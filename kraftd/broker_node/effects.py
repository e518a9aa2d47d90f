"""Effects of a broker node, in addition to those of any node that answers from an image.

Those of one partition name it by topic and index, and are performed in order: a write before what depends on
it.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from kraftd.configdef.definition import Value
from kraftd.ground.effect import Effect
from kraftd.log.data.settings import DataLogSettings
from kraftd.partition.effects import AppendBatches
from kraftd.types import Uuid


class BrokerFailed(Effect, frozen=True):
    """The broker could not register, or report the loss of a directory, in time: the process must end."""

    reason: str


class LoadCoordinators(Effect, frozen=True):
    """Load the code of the coordinators: CoordinatorsLoaded comes back."""


class OpenLog(Effect, frozen=True):
    """Open the log of a partition, or make it: LogsOpened or LogNotOpened comes back.

    `is_new`: the partition, or this replica of it, was created just now. So its log may be made although a
    log directory is offline.
    """

    topic: str
    partition: int
    topic_id: Uuid
    directory_id: Uuid
    is_new: bool


class DeleteLog(Effect, frozen=True):
    """Delete the log of a partition that this broker does not host any more."""

    topic: str
    partition: int


class SetLogAside(Effect, frozen=True):
    """Rename the directory of a log that was found at the start, but is of no hosted partition.

    `topic_id`: of the topic that has the name now, if its partition is hosted.
    """

    topic: str
    partition: int
    topic_id: Uuid | None


class SetLog(Effect, frozen=True):
    """Let a log follow changed configs of its topic."""

    topic: str
    partition: int
    settings: DataLogSettings


class AppendToLog(Effect, frozen=True):
    """Write batches at the end of a partition's log: AppendsEnded comes back.

    Appends of one step to the same log share an effect, which grows until it is performed.
    """

    topic: str
    partition: int
    appends: list[AppendBatches]

    def __repr__(self) -> str:
        return f"<{self.appends!r} of {self.topic}-{self.partition}>"


class OfPartition(Effect, frozen=True):
    """Another effect of a partition on its log (`kraftd.partition.effects`)."""

    topic: str
    partition: int
    effect: Effect

    def __repr__(self) -> str:
        return f"<{self.effect!r} of {self.topic}-{self.partition}>"


class ReadPartition(Effect, frozen=True):
    """Read whole batches of a partition from an offset to its log end, for a coordinator that loads them:
    PartitionRead comes back.
    """

    topic: str
    partition: int
    offset: int
    max_bytes: int
    leader_epoch: int


class ShareRead(Struct, frozen=True, gc=False):
    """Whole batches from an offset on, none at or past `end_offset`, one at least and up to `max_bytes`."""

    topic: str
    partition: int
    topic_id: Uuid
    offset: int
    end_offset: int
    max_bytes: int
    wants_aborted: bool


class ReadForShares(Effect, frozen=True):
    """Read for a share group's member, which may then acquire some of it: SharesRead comes back."""

    request_id: int
    reads: tuple[ShareRead, ...]


class FindOffsets(Effect, frozen=True):
    """Look for timestamps in logs, from a thread: OffsetsFound comes back with as many results."""

    request_id: int
    lookups: tuple[LogLookup, ...]


class DescribeDirectories(Effect, frozen=True):
    """Look at the log directories and their disks, from a thread: DirectoriesDescribed comes back."""

    request_id: int


class SetCleaner(Effect, frozen=True):
    """Clean logs by these values of `log.cleaner.*` from now on."""

    values: Mapping[str, Value]


class CordonDirectories(Effect, frozen=True):
    """Put new logs into other directories than these, if there are any (KIP-1066)."""

    paths: frozenset[str]


class LogMove(Effect, frozen=True):
    """A log, and the directory of log.dirs to which it is to be copied."""

    topic: str
    partition: int
    path: str


class MoveLogs(Effect, frozen=True):
    """Begin to copy logs to other directories: MovesBegun comes back, and later a FutureCaughtUp for each."""

    request_id: int
    moves: tuple[LogMove, ...]


class CancelMove(Effect, frozen=True):
    """Delete the future log of a partition."""

    topic: str
    partition: int


class ReplaceLog(Effect, frozen=True):
    """Let the future log take the place of the log as soon as it has all of it: LogReplaced comes back."""

    topic: str
    partition: int


class LogLookup(Effect, frozen=True):
    """The first record of at least `target_ms` from the log start on. With `wants_maximum`: the first of the
    largest timestamp. Only what lies before `end_offset` counts.
    """

    topic: str
    partition: int
    target_ms: int
    wants_maximum: bool
    end_offset: int
