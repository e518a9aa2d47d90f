"""Work between requests, a piece in each event loop callback: the node asks for one callback at a time."""

from __future__ import annotations

from kraftd.controller_node.effects import TakeTurn
from kraftd.requests.outbox import Outbox


class Turns:
    """Return whether a turn has been asked for."""

    __slots__ = ("_asked", "_outbox")

    def __init__(self, outbox: Outbox) -> None:
        self._asked = False
        self._outbox = outbox

    def ask(self) -> None:
        """There is more to do, in another turn."""
        if not self._asked:
            self._asked = True
            self._outbox.emit(TakeTurn())

    def came(self) -> None:
        """The turn that was asked for begins."""
        self._asked = False

    def __repr__(self) -> str:
        return f"<Turns, {'one' if self._asked else 'none'} asked for>"
