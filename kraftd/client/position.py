"""The position of a partition's reader, and what it must know to read on (KIP-232, KIP-320). No IO.

    WAITING    for metadata whose leader epoch is at least that of the position
    VALIDATING the leader is new: it is asked for the end of the position's epoch before any fetch
    FETCHING   records may be fetched from the leader

Every record that is read moves the position and sets its leader epoch.
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

    offset is the next one to read; epoch that of the record before it, -1 if unknown: then nothing can be
    validated.
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

    @property
    def is_ready(self) -> bool:
        """Return whether records may be fetched from the leader now."""
        return self.state is State.FETCHING

    def metadata_changed(self, leader: Leader | None) -> State:
        """Store the cache's leader. Metadata older than the position changes nothing."""
        if leader is None or leader.id < 0 or 0 <= leader.epoch < self.epoch:
            self.state, self.leader = State.WAITING, None
        elif leader != self.leader or self.state is State.WAITING:
            # An old node without epochs cannot be asked for one.
            needed = self.epoch != UNKNOWN_EPOCH and leader.epoch != UNKNOWN_EPOCH
            same_epoch = self.leader is not None and self.leader.epoch == leader.epoch
            if not (same_epoch and self.state is State.FETCHING):
                self.state = State.VALIDATING if needed else State.FETCHING
            self.leader = leader
        return self.state

    def validated(self, leader: Leader, epoch: int, end_offset: int) -> State:
        """Handle the leader's answer to OffsetForLeaderEpoch: the largest epoch up to the position's that it
        knows, and its end.

        An answer of a former leader changes nothing. Raises Truncated.
        """
        if leader != self.leader or self.state is not State.VALIDATING:
            return self.state
        if epoch < 0 or end_offset < 0:  # it knows no epoch up to that one: all records are gone
            raise Truncated(self.partition, self.offset, 0, UNKNOWN_EPOCH)
        if end_offset < self.offset or epoch != self.epoch:
            raise Truncated(self.partition, self.offset, min(end_offset, self.offset), epoch)
        self.state = State.FETCHING
        return self.state

    def diverged(self, epoch: int, end_offset: int) -> None:
        """Handle a diverging epoch in a fetch's answer (Fetch v12+). Raises Truncated."""
        raise Truncated(self.partition, self.offset, min(end_offset, self.offset), epoch)

    def read(self, next_offset: int, epoch: int) -> None:
        """Note that records before next_offset were read; the last one has that leader epoch."""
        if next_offset < self.offset:
            raise ValueError(f"{self!r} does not go back to {next_offset}")
        self.offset, self.epoch = next_offset, epoch

    def leader_unsure(self) -> None:
        """Wait for new metadata, because the leader refused or was not reached."""
        self.state, self.leader = State.WAITING, None
