"""Where a reader of a partition stands, and what it must know to read on (KIP-232, KIP-320). No IO.

    WAITING    for metadata whose leader epoch is at least that of the position
    VALIDATING the leader is new: it is asked where the position's epoch ends, before anything is read of it
    FETCHING   records may be asked of the leader

Every record that was read moves the position and gives it its leader epoch.
"""

from __future__ import annotations

import enum

from kraftd.client.failures import Truncated
from kraftd.client.metadata_cache import UNKNOWN_EPOCH, Leader


class State(enum.Enum):
    WAITING = "waiting for metadata"
    VALIDATING = "validating"
    FETCHING = "fetching"


class Position:
    """A position in one partition.

    offset is the next that is read; epoch that of the record before it, -1 where it is not known: then
    nothing can be validated.
    """

    def __init__(self, partition: str, offset: int, epoch: int = UNKNOWN_EPOCH) -> None:
        self.partition = partition
        self.offset = offset
        self.epoch = epoch
        self.state = State.WAITING
        self.leader: Leader | None = None

    def __repr__(self) -> str:
        return (
            f"<Position {self.partition}@{self.offset} epoch {self.epoch}, {self.state.value}, {self.leader}>"
        )

    def metadata_changed(self, leader: Leader | None) -> State:
        """Take in who leads as the cache has it. Metadata older than the position changes nothing."""
        if leader is None or leader.id < 0 or 0 <= leader.epoch < self.epoch:
            self.state, self.leader = State.WAITING, None
        elif leader != self.leader or self.state is State.WAITING:
            # An old node that tells no epochs can be asked for none either.
            needed = self.epoch != UNKNOWN_EPOCH and leader.epoch != UNKNOWN_EPOCH
            same_epoch = self.leader is not None and self.leader.epoch == leader.epoch
            if not (same_epoch and self.state is State.FETCHING):
                self.state = State.VALIDATING if needed else State.FETCHING
            self.leader = leader
        return self.state

    def validated(self, leader: Leader, epoch: int, end_offset: int) -> State:
        """Take in the leader's answer to OffsetForLeaderEpoch: the largest epoch up to the position's that it
        knows, and where that ends.

        An answer of a leader that is not the current one any more changes nothing. Raises Truncated.
        """
        if leader != self.leader or self.state is not State.VALIDATING:
            return self.state
        if epoch < 0 or end_offset < 0:  # it knows no epoch up to that one: all of it is gone
            raise Truncated(self.partition, self.offset, 0, UNKNOWN_EPOCH)
        if end_offset < self.offset or epoch != self.epoch:
            raise Truncated(self.partition, self.offset, min(end_offset, self.offset), epoch)
        self.state = State.FETCHING
        return self.state

    def diverged(self, epoch: int, end_offset: int) -> None:
        """Take in a diverging epoch of a fetch's answer (Fetch v12+). Raises Truncated."""
        raise Truncated(self.partition, self.offset, min(end_offset, self.offset), epoch)

    def read(self, next_offset: int, epoch: int) -> None:
        """Records up to before next_offset were read, the last one of that leader epoch."""
        if next_offset < self.offset:
            raise ValueError(f"{self!r} does not go back to {next_offset}")
        self.offset, self.epoch = next_offset, epoch

    def leader_unsure(self) -> None:
        """The leader refused, or was not reached: wait for metadata before anything else is asked."""
        self.state, self.leader = State.WAITING, None

    def seek(self, offset: int, epoch: int = UNKNOWN_EPOCH) -> None:
        """Stand elsewhere, such as at a committed offset with its epoch."""
        self.offset, self.epoch = offset, epoch
        self.leader_unsure()
