"""Work between requests, one slice in each event loop callback: the node requests one callback at a time."""

from __future__ import annotations

from kraftd.requests.effects import ScheduleSlice
from kraftd.requests.outbox import Outbox


class NextSlice:
    """The request for the next slice's callback: at most one is open."""

    __slots__ = ("_outbox", "_scheduled")

    def __init__(self, outbox: Outbox) -> None:
        self._scheduled = False
        self._outbox = outbox

    def schedule(self) -> None:
        """Request the next slice, because there is more to do."""
        if not self._scheduled:
            self._scheduled = True
            self._outbox.emit(ScheduleSlice())

    def started(self) -> None:
        """Note that the requested slice begins."""
        self._scheduled = False

    def __repr__(self) -> str:
        return f"<NextSlice, {'scheduled' if self._scheduled else 'not scheduled'}>"
