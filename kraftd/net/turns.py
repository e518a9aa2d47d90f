"""Turns of connections at the event loop: requests of one callback after the other, for a few milliseconds.

Many connections with pipelined requests would otherwise be served one after the other in a single turn of
the loop. A peer whose request comes behind them would wait for all. Within a turn of the loop, requests are
handled at once for MAX_TURN_NS. What comes later waits: next is the sender that has had least time, and of
its connections the one that has. This is start-time fair queueing (Goyal, Vin and Cheng, 1996), in two
levels. So a peer that asks now and then goes before all connections that keep the loop busy. Many
connections of one sender get no more time than one of another.

The bytes of large requests take time as well: a system hands over megabytes of each connection in one turn of
the loop. Once a turn is over, connections that receive them rest, and MAX_READERS go on in each later turn.
Those with very large requests also rest while others do: that bounds a turn better, and costs throughput.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from heapq import heappop, heappush
from time import monotonic_ns, thread_time_ns
from typing import Protocol

MAX_TURN_NS = 5_000_000
MAX_READERS = 8
MAX_EAGER_BYTES = 2_097_152  # more than a Produce of ordinary batches
MAX_AHEAD_NS = (
    2_000_000  # of a connection's time: a collection of garbage, say, costs it one round of the others
)


MAX_IDLE_SENDERS = 1_000  # without a request that waits, whose time is remembered


class Waiter(Protocol):
    """A connection whose requests wait. `served_ns` belongs to Turns: its time so far, on their clock."""

    served_ns: int

    @property
    def sender(self) -> Hashable:
        """Whose connection it is, at which listener: what shares time with others of it."""

    def take_turn(self) -> None:
        """Handle some of the requests."""


class _Sender:
    """The waiting connections of a sender: a heap by the time that each has had, on a clock of their own."""

    __slots__ = ("clock_ns", "is_queued", "served_ns", "waiting")

    def __init__(self) -> None:
        self.served_ns = 0  # on the clock of all senders
        self.clock_ns = 0
        self.waiting: list[tuple[int, int, int, Waiter]] = []
        self.is_queued = False


class Turns:
    """The connections whose requests wait; `schedule` runs a function in the loop's next turn.

    Turns end by `now_ns`. What a connection is charged is `spent_ns`, the time of the processor.
    """

    def __init__(
        self,
        schedule: Callable[[Callable[[], None]], object],
        now_ns: Callable[[], int] = monotonic_ns,
        spent_ns: Callable[[], int] = thread_time_ns,
    ) -> None:
        self._schedule = schedule
        self._now_ns = now_ns
        self._spent_ns = spent_ns
        self._ends_ns = self._marks_ns = -MAX_TURN_NS  # until when requests are handled at once
        self._marked = False  # the loop has not gone round since
        self._scheduled = False
        self._senders: dict[Hashable, _Sender] = {}
        self._waiting: list[tuple[int, int, int, _Sender]] = []  # a heap of senders
        self._resting: deque[Callable[[], object]] = deque()  # they go on by a call
        self._number = 0  # keeps the order of those that have had the same time
        self._clock_ns = 0  # the time of the last sender before its turn: others begin with it
        self._serving: Waiter | None = None
        self._again = False  # it has more requests

    def over(self) -> bool:
        """Return whether requests have taken their time; then the caller waits for the next turn.

        The loop does not say when a turn begins: a mark that it runs in its next turn does. Once the time is
        over, requests go on at once if the loop has gone round since the second half of it.
        """
        now_ns = self._now_ns()
        if now_ns < self._marks_ns:
            return False
        if now_ns < self._ends_ns:
            self._marks_ns = self._ends_ns
            self._mark()
            return False
        if self._waiting or self._marked:
            return True
        self._start(now_ns)
        return False

    def _start(self, now_ns: int) -> None:
        self._ends_ns = now_ns + MAX_TURN_NS
        self._marks_ns = now_ns + MAX_TURN_NS // 2
        self._mark()

    def _mark(self) -> None:
        if not self._marked:
            self._marked = True
            self._schedule(self._gone_round)

    def _gone_round(self) -> None:
        self._marked = False

    def has_ended(self) -> bool:
        """Return whether the turn that is under way has taken its time. Unlike `over`, it begins no other."""
        return self._now_ns() >= self._ends_ns

    def wait(self, waiter: Waiter) -> None:
        """Let a connection take a later turn."""
        if waiter is self._serving:
            self._again = True
        else:
            self._add(waiter)
            self._schedule_turn()

    def over_for_bytes(self, request_bytes: int) -> bool:
        """Return whether a connection that receives a request of that size has to `rest`."""
        return self.over() or (bool(self._resting) and request_bytes > MAX_EAGER_BYTES)

    def rest(self, go_on: Callable[[], object]) -> None:
        """Have a connection go on with the bytes of a large request in a later turn."""
        self._resting.append(go_on)
        self._schedule_turn()

    def _add(self, waiter: Waiter) -> None:
        self._number += 1
        key, served_ns = waiter.sender, waiter.served_ns
        sender = self._senders.get(key)
        if sender is None:
            sender = self._senders[key] = _Sender()
        heappush(sender.waiting, (max(served_ns, sender.clock_ns), served_ns, self._number, waiter))
        self._queue(sender)

    def _queue(self, sender: _Sender) -> None:
        if not sender.is_queued:
            sender.is_queued = True
            self._number += 1
            served_ns = sender.served_ns
            heappush(self._waiting, (max(served_ns, self._clock_ns), served_ns, self._number, sender))

    def _begin(self) -> None:
        """A new turn of the loop: let connections go on, until its time is over."""
        self._scheduled = False
        waiting = self._waiting
        self._start(self._now_ns())
        spent_ns = self._spent_ns()
        while waiting and self._now_ns() < self._ends_ns:
            self._clock_ns, _, _, sender = heappop(waiting)
            sender.clock_ns, _, _, waiter = heappop(sender.waiting)
            self._serving, self._again = waiter, False
            try:
                waiter.take_turn()
            finally:
                self._serving = None
                sender.is_queued = False
            began_ns, spent_ns = spent_ns, self._spent_ns()
            charged_ns = min(spent_ns - began_ns, MAX_AHEAD_NS)
            waiter.served_ns = sender.clock_ns + charged_ns
            sender.served_ns = self._clock_ns + charged_ns
            if self._again:
                self._add(waiter)
            elif sender.waiting:
                self._queue(sender)
        if len(self._senders) > MAX_IDLE_SENDERS + len(waiting):
            self._senders = {key: one for key, one in self._senders.items() if one.waiting}
        resting = self._resting
        for _ in range(min(MAX_READERS, len(resting))):
            resting.popleft()()
        if waiting or resting:
            self._schedule_turn()

    def _schedule_turn(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._schedule(self._begin)

    def __repr__(self) -> str:
        return f"<Turns, {len(self._waiting)} senders wait, {len(self._resting)} connections rest>"
