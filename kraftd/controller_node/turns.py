"""Work between requests, a part in each event loop callback: the node requests one callback at a time."""

from __future__ import annotations

from kraftd.controller_node.effects import TakeTurn
from kraftd.requests.outbox import Outbox


class Turns:
    """The request for the next event loop callback, a turn: at most one is open."""

    __slots__ = ("_asked", "_outbox")

    def __init__(self, outbox: Outbox) -> None:
        self._asked = False
        self._outbox = outbox

    def ask(self) -> None:
        """Request a turn, because there is more to do."""
        if not self._asked:
            self._asked = True
            self._outbox.emit(TakeTurn())

    def came(self) -> None:
        """Note that the requested turn begins."""
        self._asked = False

    def __repr__(self) -> str:
        return f"<Turns, {'one' if self._asked else 'none'} asked for>"
