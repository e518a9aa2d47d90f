"""What all logs of a broker share, so that an idle one costs little: the disk, open files, memory, work."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kraftd.log.data.open_files import OpenFiles
from kraftd.log.data.tails import TailBudget
from kraftd.log.disk import Disk
from kraftd.named_tuple import NamedTuple


class Deletion(NamedTuple):
    """Files that are to be removed from due_ms on, and the directory that holds nothing else, if it goes."""

    due_ms: int
    paths: Sequence[str]
    directory: str | None = None


class LogResources:
    """draw(n) returns a random number below n, for the jitter of rolling. A driver takes the rest: unflushed
    are the logs of which a flush is due, cut those that were truncated, whose recovery points are to be
    written soon. It removes the deletions in time, in a thread. Two more let work that is done again and
    again follow what has changed. uncheckpointed are the paths of directories whose recovery points or log
    starts have changed since they were written. rolled are the logs that had more than one segment.
    """

    def __init__(
        self,
        disk: Disk,
        files: OpenFiles | None = None,
        tails: TailBudget | None = None,
        draw: Callable[[int], int] = lambda below: 0,
    ) -> None:
        self.disk = disk
        self.files = OpenFiles(disk) if files is None else files
        self.tails = TailBudget() if tails is None else tails
        self.draw = draw
        self.unflushed: dict[object, None] = {}  # in the order in which they became so
        self.cut: set[object] = set()
        self.uncheckpointed: set[str] = set()
        self.rolled: dict[object, None] = {}
        self.deletions: list[Deletion] = []

    def __repr__(self) -> str:
        return f"<LogResources {self.files!r}, {self.tails!r}>"
