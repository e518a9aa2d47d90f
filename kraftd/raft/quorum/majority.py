"""Quorum arithmetic: the size of a majority, the offset that a majority has reached, the count of an
election.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kraftd.raft.quorum.voters import matches
from kraftd.types import ReplicaKey


def majority(voter_count: int) -> int:
    """The smallest number of voters such that any two sets of that size overlap."""
    return voter_count // 2 + 1


def majority_offset(end_offsets: Sequence[int | None]) -> int | None:
    """The largest offset that a majority has reached, from one entry a voter; None if too few are known."""
    if len(end_offsets) == 1:
        return end_offsets[0]
    known = sorted([-1 if offset is None else offset for offset in end_offsets], reverse=True)
    if not known:
        return None
    reached = known[majority(len(known)) - 1]
    return None if reached < 0 else reached


class Votes:
    """The votes of one round, pre-vote or election, of the voters at its start."""

    __slots__ = ("_granted", "voters")

    def __init__(self, voters: Iterable[ReplicaKey], local_id: int) -> None:
        self.voters = {key.id: key for key in voters}
        self._granted: dict[int, bool] = {}
        self.record(local_id, True)

    def record(self, voter_id: int, granted: bool) -> None:
        """Count one answer. A replica that is no voter does not count, and a voter's first answer stands."""
        if voter_id in self.voters:
            self._granted.setdefault(voter_id, granted)

    def forget_refusal(self, key: ReplicaKey) -> None:
        """Forget this voter's refusal, for it may grant now. For pre-votes only."""
        voter = self.voters.get(key.id)
        if voter is not None and matches(voter, key) and self._granted.get(key.id) is False:
            del self._granted[key.id]

    @property
    def granting(self) -> list[int]:
        return sorted(voter_id for voter_id, granted in self._granted.items() if granted)

    @property
    def outstanding(self) -> list[ReplicaKey]:
        """Voters that have not answered."""
        return [key for voter_id, key in self.voters.items() if voter_id not in self._granted]

    @property
    def won(self) -> bool:
        return len(self.granting) >= majority(len(self.voters))

    @property
    def lost(self) -> bool:
        return len(self.granting) + len(self.outstanding) < majority(len(self.voters))

    def __repr__(self) -> str:
        return (
            f"<Votes {len(self.granting)} of {len(self.voters)} granted, {len(self.outstanding)} outstanding>"
        )
