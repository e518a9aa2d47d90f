"""The in-sync replicas of a partition as its leader has them: committed, or with one proposal on its way
(KIP-497).

A proposal may or may not become true. So the high watermark respects the maximal ISR, which has the members
of both outcomes. min.insync.replicas counts the committed one.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from functools import lru_cache
from typing import Self

from kraftd.partition.effects import ProposedMember, ProposeIsr
from kraftd.wire.error_code import ErrorCode

RECOVERED = 0

# The controller's partition epoch is the proposal's, and nothing was changed.
_REFUSED = {ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA}
# The state here is out of date: newer metadata will come.
_OUT_OF_DATE = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.INVALID_UPDATE_VERSION,
    ErrorCode.INVALID_REQUEST,
    ErrorCode.NEW_LEADER_ELECTED,
}


class AfterError(enum.Enum):
    """What follows an error for a proposal."""

    FORGOTTEN = "forgotten"
    WAITING = "waiting"  # for newer metadata; no further proposal meanwhile
    SENT_AGAIN = "sent again"


class InSyncReplicas:
    """The ISR, and the proposal that is on its way. Partitions that have proposed nothing share one: see
    `unproposed`.
    """

    __slots__ = ("_number", "committed", "leader_recovery_state", "maximal", "pending")

    def __init__(self) -> None:
        self._number = 0
        self.committed: tuple[int, ...] = ()
        self.maximal: tuple[int, ...] = ()
        self.leader_recovery_state = RECOVERED
        self.pending: ProposeIsr | None = None

    def __repr__(self) -> str:
        pending = f", {self.pending.isr} proposed" if self.pending else ""
        return f"<ISR {self.committed}{pending}>"

    @property
    def has_proposed(self) -> bool:
        """Return whether the numbers of its proposals are in use: it belongs to one partition."""
        return self._number > 0

    def copy(self) -> Self:
        """One for a partition that will propose."""
        own = type(self)()
        own.commit(self.committed, self.leader_recovery_state)
        return own

    def commit(self, isr: tuple[int, ...], leader_recovery_state: int = RECOVERED) -> None:
        """Take an ISR from the metadata, or from a controller's answer; a proposal that is on its way is
        moot."""
        self.committed = self.maximal = isr
        self.leader_recovery_state = leader_recovery_state
        self.pending = None

    def propose(
        self,
        isr: tuple[int, ...],
        leader_epoch: int,
        partition_epoch: int,
        broker_epoch_of: Callable[[int], int],
    ) -> ProposeIsr:
        """Propose another ISR; none may be on its way."""
        assert self.pending is None, "one proposal at a time"
        self._number += 1
        members = tuple(ProposedMember(member, broker_epoch_of(member)) for member in isr)
        proposal = ProposeIsr(
            self._number, leader_epoch, partition_epoch, self.leader_recovery_state, members
        )
        self.pending = proposal
        added = tuple(member for member in isr if member not in self.committed)
        self.maximal = self.committed + added
        return proposal

    def is_current(self, number: int) -> bool:
        """Return whether this proposal is the one in flight."""
        return self.pending is not None and self.pending.number == number

    def failed(self, error: ErrorCode) -> AfterError:
        """Note an error for the proposal that is on its way."""
        if error in _REFUSED:
            self.pending = None
            self.maximal = self.committed
            return AfterError.FORGOTTEN
        return AfterError.WAITING if error in _OUT_OF_DATE else AfterError.SENT_AGAIN


@lru_cache(1 << 12)
def unproposed(isr: tuple[int, ...], leader_recovery_state: int = RECOVERED) -> InSyncReplicas:
    """That of partitions that have proposed nothing: very many idle ones need few. It is not changed."""
    found = InSyncReplicas()
    found.commit(isr, leader_recovery_state)
    return found
