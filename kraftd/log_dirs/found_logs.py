"""What a start finds in the log directories besides logs that are as they should be."""

from __future__ import annotations

from kraftd.log.data.data_log import DataLog
from kraftd.log.data.opening import Found
from kraftd.log.errors import StorageError
from kraftd.log_dirs.log_opening import LogOpening
from kraftd.named_tuple import NamedTuple
from kraftd.types import Uuid


class Damaged(NamedTuple):
    """A log that could not be opened, and what the checkpoints say of it, which is kept. topic_id is None if
    it is not known. `opening` opens it again if only room was lacking.
    """

    parent: str
    name: str
    topic_id: Uuid | None
    error: StorageError
    found: Found
    opening: LogOpening | None = None

    @property
    def directory(self) -> str:
        """The path of the log's directory."""
        return f"{self.parent}/{self.name}"


class FoundLog(NamedTuple):
    """A log that was opened at the start, and its producers as the loader's caller keeps them."""

    log: DataLog
    producers: object | None = None
