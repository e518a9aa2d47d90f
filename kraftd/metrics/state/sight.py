"""The quorum as its leader describes it to another node, for that node's status page."""

from __future__ import annotations

from msgspec import Struct

from kraftd.messages.describe_quorum_response import PartitionData, ReplicaState

NEVER = -1


class Sight(Struct, frozen=True):
    """The leader's answer at `at_ms` of this node's clock; `quorum` is None if it did not answer.

    `lines` are what the leader says about nodes that are ahead, refused, started twice or at a wrong address.
    """

    leader_id: int
    at_ms: int
    quorum: PartitionData | None = None
    lines: tuple[str, ...] = ()
    failure: str = ""

    def ago(self, then_ms: int, now_ms: int) -> int | None:
        """Milliseconds since a time of the leader's clock, whose present is its own last fetch."""
        if self.quorum is None or then_ms == NEVER:
            return None
        leader_ms = max((one.last_fetch_timestamp for one in self.states()), default=then_ms)
        return max(0, leader_ms - then_ms) + max(0, now_ms - self.at_ms)

    def states(self) -> list[ReplicaState]:
        """The voters, then the observers."""
        return [] if self.quorum is None else [*self.quorum.current_voters, *self.quorum.observers]

    def __repr__(self) -> str:
        return f"<Sight of {self.leader_id}: {self.failure or f'{len(self.states())} replicas'}>"
