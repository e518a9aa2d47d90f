"""Large requests that wait for their turn, and what their senders have spent: fair by principal and address.

A large request is charged before it is decoded, by its bytes, and before its work begins, by its elements.
Slices of work beyond that are charged as they run. The charge is to its principal, and to its address. Each
has an allowance that refills with time. The next large request of one whose allowance is spent waits. The
answer says for how long, as with Kafka's quotas. Small requests never wait. An address has twice the
allowance, so one principal does not spend that of others at its address.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from kraftd.security.principals import ANONYMOUS, Principal
from kraftd.wire.message import Message

Sender = tuple[Principal, str]  # with its address

ALLOWANCE_US = 2_000_000  # of work that a principal may have done at once
REFILL_US_PER_MS = 250  # a quarter of the event loop
ADDRESS_TIMES = 2  # as much as a principal
COST_US_PER_BYTE = 0.02  # to receive and decode it
COST_US_PER_ELEMENT = 2.0  # to authorize, refuse and answer it
COST_US_PER_UNREAD = 0.1  # to refuse one without decoding it
MAX_ACCOUNTS = 20_000  # to remember; above it, the one that was charged longest ago is forgotten


class Job:
    """A large frame: its sender and size, how it becomes a call, and what serves that call.

    `read()` returns the call, or raises; it touches nothing but the frame, so a thread can run it.
    `take(job, outcome)` is called with the call or the exception. `held` says whether it waits while its
    sender's allowance is spent: one that a broker carries does not, since others' requests are behind it.
    """

    __slots__ = ("connection_id", "held", "prepaid_us", "read", "sender", "size_bytes", "take", "under_way")

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
        self.prepaid_us = 0.0  # of slices that were charged before
        self.under_way = 0  # pieces of work that are not done

    def __repr__(self) -> str:
        principal, host = self.sender
        return f"<Job of {principal} at {host}, {self.size_bytes} bytes>"


class WorkShares:
    """The spent work of each principal and each address, in microseconds; time refills their allowances."""

    def __init__(self) -> None:
        # By a principal or an address, or both for ANONYMOUS; with its time in ms; charged last, last.
        self._spent: dict[Hashable, tuple[float, int]] = {}

    def charge(self, sender: Sender, work_us: float, now_ms: int) -> None:
        """Note work that was done, or is about to be done, for a sender."""
        for account, times in _accounts(sender):
            spent_us = self._spent_of(account, times, now_ms) + work_us
            self._spent.pop(account, None)
            if len(self._spent) >= MAX_ACCOUNTS:
                del self._spent[next(iter(self._spent))]
            self._spent[account] = spent_us, now_ms

    def wait_ms(self, sender: Sender, now_ms: int) -> int:
        """How long the sender's next large request has to wait."""
        wait_ms = 0
        for account, times in _accounts(sender):
            over_us = self._spent_of(account, times, now_ms) - ALLOWANCE_US * times
            if over_us > 0:
                wait_ms = max(wait_ms, 1 + int(over_us // (REFILL_US_PER_MS * times)))
        return wait_ms

    def _spent_of(self, account: Hashable, times: int, now_ms: int) -> float:
        spent_us, at_ms = self._spent.get(account, (0.0, now_ms))
        return max(0.0, spent_us - max(0, now_ms - at_ms) * REFILL_US_PER_MS * times)

    def __repr__(self) -> str:
        return f"<WorkShares of {len(self._spent)} principals and addresses>"


def cost_us(message: Message) -> float:
    """What the elements of a message cost; those within elements are not counted."""
    found = (getattr(message, name) for name in message.__struct_fields__)
    count = sum(len(field) for field in found if type(field) in (list, tuple))
    return count * COST_US_PER_ELEMENT


def _accounts(sender: Sender) -> tuple[tuple[Hashable, int], ...]:
    """What a sender's work is charged to, with its multiple of the allowance."""
    principal, host = sender
    # All clients without a login are one principal, but not one sender.
    return (sender if principal == ANONYMOUS else principal, 1), (host, ADDRESS_TIMES)
