"""Calls that another node must answer: sent, sent again, given up.

How a call is sent, and what its answer becomes, is in `to_controller` and `to_broker`.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from msgspec import Struct, field

from kraftd.answers.effects import Answered
from kraftd.requests.boundary import Boundary
from kraftd.requests.call import Call
from kraftd.wire.error_code import ErrorCode

RETRY_MS = 50


class Progress(Enum):
    """The progress of a request to another node."""

    SENT = "sent"
    LATER = "later"  # there is no node to ask yet
    NO_OTHER = "no other"  # every node has been asked
    SETTLED = "settled"  # the call needs nothing more


class PassedOn(Struct, eq=False):
    """A call that another node answers. `send` sends it; `on_answer` returns whether the answer settles it.

    `give_up` answers the call without the other node: where it is given, nothing is sent again.
    When a node has not answered within `next_after_ms`, the next is asked as well: the first answer counts.
    """

    call: Call
    until_ms: int
    send: Callable[[int], Progress]
    on_answer: Callable[[Answered], bool]
    next_after_ms: int | None
    give_up: Callable[[], None] | None = None
    send_at_ms: int | None = None
    under_way: set[int] = field(default_factory=set)


class PassingOn:
    """Calls that wait for other nodes, and the ids of the requests that were sent for them."""

    def __init__(self, boundary: Boundary, timeout_ms: int) -> None:
        self._boundary = boundary
        self._timeout_ms = timeout_ms
        self._waiting: dict[PassedOn, None] = {}  # in order of arrival
        self._under_way: dict[int, PassedOn] = {}
        self._last_id = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def __repr__(self) -> str:
        return f"<PassingOn, {len(self)} calls wait for other nodes>"

    def deadline_ms(self) -> int | None:
        """When the next node must be asked, or a call given up."""
        return min(map(_due_ms, self._waiting)) if self._waiting else None

    def begin(
        self,
        call: Call,
        now_ms: int,
        send: Callable[[int], Progress],
        on_answer: Callable[[Answered], bool],
        next_after_ms: int | None = None,
        give_up: Callable[[], None] | None = None,
        timeout_ms: int | None = None,
    ) -> None:
        """Begin to have a call answered by the node that `send` finds.

        COORDINATOR_NOT_AVAILABLE if every node was asked and none has answered.
        """
        call.settled = True
        until_ms = now_ms + (self._timeout_ms if timeout_ms is None else timeout_ms)
        passed = PassedOn(call, until_ms, send, on_answer, next_after_ms, give_up)
        self._waiting[passed] = None
        self._send(passed, now_ms)

    def _send(self, passed: PassedOn, now_ms: int) -> None:
        self._last_id += 1
        passed.send_at_ms = None
        try:
            progress = passed.send(self._last_id)
        except Exception as error:
            self._forget(passed)
            passed.call.settled = False
            self._boundary.guard(passed.call, error)
            return
        match progress:
            case Progress.SENT:
                passed.under_way.add(self._last_id)
                self._under_way[self._last_id] = passed
                if passed.next_after_ms is not None:
                    passed.send_at_ms = now_ms + passed.next_after_ms
            case Progress.LATER:
                passed.send_at_ms = now_ms + RETRY_MS
            case Progress.NO_OTHER:
                if not passed.under_way:
                    self._forget(passed)
                    self._boundary.refuse(passed.call, ErrorCode.COORDINATOR_NOT_AVAILABLE)
            case Progress.SETTLED:
                self._forget(passed)

    def _forget(self, passed: PassedOn) -> None:
        del self._waiting[passed]
        for request_id in passed.under_way:
            del self._under_way[request_id]

    def answered(self, event: Answered, now_ms: int) -> None:
        """Handle the other node's answer, or its absence: then that node, or the next, is asked again."""
        passed = self._under_way.pop(event.request_id, None)
        if passed is None:
            return
        passed.under_way.discard(event.request_id)
        if event.message is not None and self._is_done(passed, event):
            self._forget(passed)
        elif passed.give_up is not None:
            self._forget(passed)
            passed.give_up()
        else:
            passed.send_at_ms = now_ms + RETRY_MS

    def _is_done(self, passed: PassedOn, event: Answered) -> bool:
        """Return whether the answer settles the call; an unusable one does."""
        try:
            return passed.on_answer(event)
        except Exception as error:
            passed.call.settled = False
            self._boundary.guard(passed.call, error)
            return True

    def run_due(self, now_ms: int) -> None:
        """Send each due request to its next node, or refuse it."""
        for passed in [one for one in self._waiting if _due_ms(one) <= now_ms]:
            if passed.until_ms <= now_ms:
                self._forget(passed)
                if passed.give_up is not None:
                    passed.give_up()
                else:
                    self._boundary.refuse(passed.call, ErrorCode.REQUEST_TIMED_OUT)
            else:
                self._send(passed, now_ms)

    def closed(self, connection_id: int) -> None:
        """Forget the calls of that connection."""
        for passed in [one for one in self._waiting if one.call.connection_id == connection_id]:
            self._forget(passed)


def _due_ms(passed: PassedOn) -> int:
    return passed.until_ms if passed.send_at_ms is None else min(passed.send_at_ms, passed.until_ms)
