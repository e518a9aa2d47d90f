"""Connections that are held: their later requests wait until those before them have ended.

Apache Kafka reads one request of a connection after the other. Here they overlap. Four kinds hold back those
behind them: large ones, a Produce that waits for its log, one whose transaction is being verified, and those
that wait for the code of coordinators.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Generator

from kraftd.requests.events import FramesReceived

Work = Generator[None, None, None]


class Hold:
    """What a request has its connection held by, until it ends."""

    __slots__ = ("_end", "connection_id")

    def __init__(self, connection_id: int, end: Callable[[int], None]) -> None:
        self.connection_id = connection_id
        self._end: Callable[[int], None] | None = end

    def end(self) -> None:
        """Let later requests go on, unless another request holds them. To end twice is to end once."""
        end, self._end = self._end, None
        if end is not None:
            end(self.connection_id)

    def __repr__(self) -> str:
        return f"<Hold of connection {self.connection_id}{'' if self._end else ', ended'}>"


class Holds:
    """The held connections; `take_in` handles requests that waited, and `later` does work in slices."""

    def __init__(self, take_in: Callable[[FramesReceived], None], later: Callable[[Work], None]) -> None:
        self._take_in = take_in
        self._later = later
        self._behind: dict[int, deque[FramesReceived]] = {}  # by connection
        self.counts: Counter[int] = Counter()  # of holds, by connection; none is zero

    def hold(self, connection_id: int) -> Hold:
        """Have later requests of a connection wait."""
        self.counts[connection_id] += 1
        self._behind.setdefault(connection_id, deque())
        return Hold(connection_id, self._ended)

    def put_behind(self, event: FramesReceived, *, first: bool = False) -> bool:
        """Return whether these requests wait for one before them; if so, they are kept."""
        behind = self._behind.get(event.connection_id)
        if behind is None:
            return False
        if event.frames:
            behind.appendleft(event) if first else behind.append(event)
        return True

    def abandon(self, connection_id: int) -> None:
        """Drop the waiting requests of a closed connection."""
        self._behind.pop(connection_id, None)

    def _ended(self, connection_id: int) -> None:
        self.counts[connection_id] -= 1
        if self.counts[connection_id]:
            return
        del self.counts[connection_id]
        if self._behind.get(connection_id):
            self._later(self._catch_up(connection_id))
        else:
            self._behind.pop(connection_id, None)

    def _catch_up(self, connection_id: int) -> Work:
        """Handle the requests that waited, until one of them holds the connection."""
        while behind := self._behind.get(connection_id):
            self._take_in(behind.popleft())
            if connection_id in self.counts:
                return
            yield
        self._behind.pop(connection_id, None)

    def __repr__(self) -> str:
        return f"<Holds of {len(self.counts)} connections>"
