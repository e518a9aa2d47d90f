"""Calls that came before the metadata was known: they are handled again once it is."""

from __future__ import annotations

from kraftd.requests.boundary import Boundary
from kraftd.requests.call import Call


class WaitingCalls:
    """The calls, in order of arrival."""

    __slots__ = ("_boundary", "_calls")

    def __init__(self, boundary: Boundary) -> None:
        self._boundary = boundary
        self._calls: list[Call] = []

    def __len__(self) -> int:
        return len(self._calls)

    def add(self, call: Call) -> None:
        """Have a call wait."""
        self._calls.append(call)

    def handle_all(self) -> None:
        """Handle all of them: the metadata is known."""
        if self._calls:
            calls, self._calls = self._calls, []
            for call in calls:
                self._boundary.handle(call)

    def abandon(self, connection_id: int) -> None:
        """Forget the calls of a lost connection."""
        if self._calls:
            self._calls = [call for call in self._calls if call.connection_id != connection_id]

    def __repr__(self) -> str:
        return f"<WaitingCalls {len(self._calls)}>"
