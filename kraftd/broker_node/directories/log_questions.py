"""What requests ask of the logs and their directories, which a thread answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kraftd.broker_node.effects import DescribeDirectories, FindOffsets, LogLookup, LogMove, MoveLogs
from kraftd.broker_node.events import (
    DirectoriesDescribed,
    DirectoryState,
    Found,
    MoveBegun,
    MovesBegun,
    OffsetsFound,
)
from kraftd.requests.call import Call
from kraftd.requests.outbox import Outbox
from kraftd.wire.error_code import ErrorCode

OffsetsThen = Callable[[tuple[Found | ErrorCode | None, ...]], None]
MovesThen = Callable[[tuple[MoveBegun, ...]], None]
DirectoriesThen = Callable[[tuple[DirectoryState, ...]], None]


class LogQuestions:
    """Questions that wait for their results. `guarded` continues a call with them."""

    def __init__(self, outbox: Outbox, guarded: Callable[[Call, Callable[[], None]], object]) -> None:
        self._outbox = outbox
        self._guarded = guarded
        self._waiting: dict[int, tuple[Call, Callable[[Any], None]]] = {}
        self._last = 0

    def __repr__(self) -> str:
        return f"<LogQuestions {len(self._waiting)} wait>"

    def find_offsets(self, call: Call, lookups: tuple[LogLookup, ...], then: OffsetsThen) -> None:
        """Search logs by time, and continue with the results."""
        self._outbox.emit(FindOffsets(self._await(call, then), lookups))

    def describe_directories(self, call: Call, then: DirectoriesThen) -> None:
        """Look at the log directories, and continue with the results."""
        self._outbox.emit(DescribeDirectories(self._await(call, then)))

    def move_logs(self, call: Call, moves: tuple[LogMove, ...], then: MovesThen) -> None:
        """Begin to copy logs to other directories, and continue with what was begun."""
        self._outbox.emit(MoveLogs(self._await(call, then), moves))

    def moves_begun(self, event: MovesBegun) -> None:
        """The future logs of a request."""
        self._go_on(event.request_id, event.moves)

    def offsets_found(self, event: OffsetsFound) -> None:
        """The results of a search."""
        self._go_on(event.request_id, event.found)

    def directories_described(self, event: DirectoriesDescribed) -> None:
        """The state of the directories."""
        self._go_on(event.request_id, event.directories)

    def _await(self, call: Call, then: Callable[[Any], None]) -> int:
        call.settled = True
        self._last += 1
        self._waiting[self._last] = call, then
        return self._last

    def _go_on(self, request_id: int, found: object) -> None:
        call, then = self._waiting.pop(request_id)
        self._guarded(call, lambda: then(found))
