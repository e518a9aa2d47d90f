"""Large requests that wait for their turn, and what their senders have spent: fair by principal and address.

A sender is charged for a large request before it runs, by its bytes, and for each slice of work as it
runs. It has an allowance that refills with time. One whose allowance is spent waits with its next large
request. The answer says for how long, as with Kafka's quotas. Small requests never wait.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kraftd.security.principals import Principal

Sender = tuple[Principal, str]  # with its address

ALLOWANCE_US = 2_000_000  # of work that a sender may have done at once
REFILL_US_PER_MS = 250  # a quarter of the event loop
COST_US_PER_BYTE = 0.02  # to receive and decode it
MAX_SENDERS = 10_000  # to remember; above it, the one that was charged longest ago is forgotten


class Job:
    """A large frame: its sender and size, how it becomes a call, and who takes that.

    `read()` returns the call, or raises; it touches nothing but the frame, so a thread can run it.
    `take(job, outcome)` is called with the call or the exception. `held` says whether it waits while its
    sender's allowance is spent: one that a broker carries does not, since others' requests are behind it.
    """

    __slots__ = ("connection_id", "held", "read", "sender", "size_bytes", "take", "under_way")

    def __init__(
        self,
        sender: Sender,
        connection_id: int,
        size_bytes: int,
        read: Callable[[], Any],
        take: Callable[[Job, Any], None],
        *,
        held: bool = True,
    ) -> None:
        self.sender = sender
        self.connection_id = connection_id
        self.size_bytes = size_bytes
        self.read = read
        self.take = take
        self.held = held
        self.under_way = 0  # pieces of work that are not done

    def __repr__(self) -> str:
        principal, host = self.sender
        return f"<Job of {principal} at {host}, {self.size_bytes} bytes>"


class WorkShares:
    """The spent work of each sender, in microseconds; time refills its allowance."""

    def __init__(self) -> None:
        self._spent: dict[Sender, tuple[float, int]] = {}  # with its time in ms; charged last, last

    def charge(self, sender: Sender, work_us: float, now_ms: int) -> None:
        """Note work that was done, or is about to be done, for a sender."""
        spent_us = self._spent_by(sender, now_ms) + work_us
        self._spent.pop(sender, None)
        if len(self._spent) >= MAX_SENDERS:
            del self._spent[next(iter(self._spent))]
        self._spent[sender] = spent_us, now_ms

    def wait_ms(self, sender: Sender, now_ms: int) -> int:
        """How long the sender's next large request has to wait."""
        over_us = self._spent_by(sender, now_ms) - ALLOWANCE_US
        return 0 if over_us <= 0 else 1 + int(over_us // REFILL_US_PER_MS)

    def _spent_by(self, sender: Sender, now_ms: int) -> float:
        spent_us, at_ms = self._spent.get(sender, (0.0, now_ms))
        return max(0.0, spent_us - max(0, now_ms - at_ms) * REFILL_US_PER_MS)

    def __repr__(self) -> str:
        return f"<WorkShares of {len(self._spent)} senders>"
