"""The ports of a host: the daemon and the simulator supply these, and nothing else.

The disk is a port too: `kraftd.log.disk.Disk`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeVar

from kraftd.answers.effects import SendToNode
from kraftd.host.disk_job import DiskJob
from kraftd.host.snapshots.checkpointing import CheckpointMade, CheckpointOrder
from kraftd.named_tuple import NamedTuple
from kraftd.raft.effects import Send
from kraftd.replica.effects import SendToController
from kraftd.requests.call import Call
from kraftd.requests.effects import Answer, AuditLine, LogLine

T = TypeVar("T")


class Handle(Protocol):
    """An action that is planned."""

    def cancel(self) -> None: ...


class Timer(Protocol):
    """The clock and the event loop."""

    def now_ms(self) -> int:
        """Wall time at the start plus monotonic time since: the time of all timeouts."""

    def wall_ahead_ms(self) -> int:
        """How far the wall clock is ahead of now_ms() (negative: behind): 0 until it is set."""

    def call_soon(self, action: Callable[..., object], *arguments: Any) -> object:
        """Call a function in a later event loop callback, after those already planned."""

    def call_at(self, at_ms: int, action: Callable[..., object], *arguments: Any) -> Handle:
        """Call a function when now_ms() reaches at_ms."""


class DiskThread(Protocol):
    """A thread that does one job after the other, in order, so that the event loop never waits for the disk.

    A job that finds the disk full is retried every RETRY_MS. Any other exception ends the process.
    """

    def run(self, job: DiskJob[Any]) -> None: ...


class WorkThreads(Protocol):
    """Threads for reads and removals, which run in any order."""

    def run(
        self, work: Callable[[], T], done: Callable[[T], object], failed: Callable[[Exception], object]
    ) -> None:
        """Do the work; done or failed is called on the event loop."""


class Child(Protocol):
    """A child process."""

    @property
    def pid(self) -> int | None: ...

    def abandon(self) -> None:
        """End it without waiting; `ended` is called afterwards."""

    def kill(self) -> None:
        """End it and wait; `ended` is not called."""


class ProcessFailed(NamedTuple):
    """A child process ended without a result; the text says why."""

    text: str


class FilesChecked(NamedTuple):
    """The damage that was found, as rows of `metadata_dir.showing.dump.verify`; what could not be read."""

    rows: list[dict[str, Any]]
    error: str = ""


class Processes(Protocol):
    """Child processes for work that would block the event loop. They end with this process."""

    def make_checkpoint(
        self, order: CheckpointOrder, ended: Callable[[CheckpointMade | ProcessFailed], object]
    ) -> Child: ...

    def check_files(self, directory: str, end_offset: int, ended: Callable[[FilesChecked], object]) -> Child:
        """Read all files of a log up to end_offset and its checkpoints (`kraftd.host.upkeep.scrubbing`)."""


class PeerWire(Protocol):
    """The connections of a replica: to its peers, and from its clients."""

    def send(self, effect: Send) -> None: ...

    def refuse_request(self, event: Any) -> bool:
        """Refuse an event that is a request; return whether it is one."""

    def flush(self) -> None:
        """Send the answers of this step."""


class NodeWire(PeerWire, Protocol):
    """The connections of a controller."""

    def answer(self, effect: Answer) -> None: ...

    def respond(self, call: Call, parts: list[Any]) -> None:
        """Answer a call with these bytes."""

    def close(self, connection_id: int, reason: str) -> None: ...

    def mute(self, connection_id: int, is_muted: bool) -> None:
        """Read no further request of a connection, or go on once as many callers have allowed it."""

    def send_to_controller(self, effect: SendToController) -> None: ...


class AnswerWire(Protocol):
    """The connections of a node that answers from an image, and its ways to other nodes."""

    def is_open(self, connection_id: int) -> bool: ...

    def answer(self, effect: Answer) -> None: ...

    def respond(self, call: Call, parts: list[Any]) -> None:
        """Answer a call with these bytes."""

    def flush(self) -> None:
        """Send the answers so far."""

    def close(self, connection_id: int, reason: str) -> None: ...

    def mute(self, connection_id: int, is_muted: bool) -> None:
        """Read no further request of a connection, or go on once as many callers have allowed it."""

    def line(self, effect: LogLine) -> None: ...

    def audited(self, effect: AuditLine) -> None: ...

    def send_to_node(self, effect: SendToNode) -> None: ...

    def hand_over(self, call: Call) -> None:
        """Pass a call to this process's controller."""


class Log(Protocol):
    """Lines for the operator."""

    def debug(self, text: str, **fields: Any) -> Any: ...

    def info(self, text: str, **fields: Any) -> Any: ...

    def warning(self, text: str, **fields: Any) -> Any: ...

    def error(self, text: str, **fields: Any) -> Any: ...


class Ports(NamedTuple):
    """All ports. `failed` is called once, with the error that must end the process."""

    timer: Timer
    log_thread: DiskThread
    download_thread: DiskThread
    work_threads: WorkThreads
    log: Log
    failed: Callable[[BaseException], None]

    def wall_ms(self) -> int:
        """The time of the wall clock."""
        return self.timer.now_ms() + self.timer.wall_ahead_ms()


Effects = Iterable[Any]
