"""A replica's configuration, which does not change, and its state on disk at the start."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, Protocol

from msgspec import Struct, field

from kraftd.messages.quorum_state_data import QuorumStateData
from kraftd.raft.log_view import LogView
from kraftd.raft.quorum.history import ControlRecordHistory
from kraftd.raft.quorum.voters import Listeners, VoterNode, bare
from kraftd.types import OffsetAndEpoch, ReplicaKey

MIN_KRAFT_VERSION = 0
MAX_KRAFT_VERSION = 1
MAX_BATCH_BYTES = 8 * 1024 * 1024
TAIL_BYTES = 64 * 1024  # of a resumed download, compared with the copy that it is resumed from


class Randomness(Protocol):
    """Where randomness comes from: a seeded generator in simulation."""

    def below(self, n: int) -> int:
        """An integer in [0, n), n at least 1."""
        ...


class Parking(Protocol):
    """The interface of a purgatory for the core (kraftd.fetch.purgatory.Purgatory). Each operation leaves it
    exactly once.
    """

    def park(
        self,
        parked_id: Hashable,
        operation: Any,
        conditions: Iterable[tuple[Hashable, int]],
        deadline_ms: int | None = None,
    ) -> None: ...

    def reach(self, key: Hashable, value: int) -> list[Any]: ...

    def complete_all(self, key: Hashable) -> list[Any]: ...

    def expire(self, now_ms: int) -> list[Any]: ...

    def abandon(self, parked_id: Hashable) -> Any: ...

    def deadline_ms(self) -> int | None: ...

    def __contains__(self, parked_id: object) -> bool: ...


class RaftConfig(Struct, frozen=True):
    """One replica's configuration; the times and sizes are Kafka's `controller.quorum.*` keys and defaults.

    `listeners` are this node's advertised controller endpoints. `listener_name` is the quorum's own listener,
    the first of controller.listener.names. `bootstrap_servers` are (host, port); without any the static
    voters are asked. A first election does not wait for the voters in `first_election_without`.
    If `rejoins` is set, a new voter of a living quorum does not fetch: it is to be formatted under a fresh
    directory id.
    """

    node_id: int
    directory_id: bytes
    cluster_id: str
    listeners: Listeners
    listener_name: str = "CONTROLLER"
    bootstrap_servers: tuple[tuple[str, int], ...] = ()
    election_timeout_ms: int = 1000
    fetch_timeout_ms: int = 2000
    election_backoff_max_ms: int = 1000
    request_timeout_ms: int = 2000
    retry_backoff_ms: int = 20
    fetch_max_wait_ms: int = 500
    fetch_max_bytes: int = 1024 * 1024
    fetch_snapshot_max_bytes: int = 1024 * 1024
    fetch_response_max_bytes: int = 10 * 1024 * 1024
    auto_join: bool = False
    first_election_without: frozenset[int] = frozenset()
    rejoins: bool = False
    max_batch_bytes: int = MAX_BATCH_BYTES  # of a batch that this replica appends as a leader
    can_become_voter: bool = True
    min_kraft_version: int = MIN_KRAFT_VERSION
    max_kraft_version: int = MAX_KRAFT_VERSION

    @property
    def key(self) -> ReplicaKey:
        return ReplicaKey(self.node_id, self.directory_id)

    @property
    def voter_node(self) -> VoterNode:
        """This replica as a VotersRecord describes it."""
        return VoterNode(self.key, bare(self.listeners), self.min_kraft_version, self.max_kraft_version)


class PartialSnapshot(Struct, frozen=True):
    """A download that the last process did not finish. `position` bytes of it are on disk; `tail` is the last
    TAIL_BYTES of them, or all if there are fewer.
    """

    snapshot_id: OffsetAndEpoch
    position: int
    tail: bytes


class DurableState(Struct):
    """The state on disk: `quorum-state` (None in a new directory), the log's bounds, and its control records.

    All records below `committed` were committed when the replica ran before.

    `history` has read the control records of the latest snapshot (or the bootstrap checkpoint), then those of
    the log. It also holds the static voters. `is_new`: the directory is new, or this replica has not caught
    up since it was.
    """

    election: QuorumStateData | None = None
    log: LogView = field(default_factory=LogView)
    history: ControlRecordHistory = field(default_factory=ControlRecordHistory)
    partial: PartialSnapshot | None = None
    committed: int = 0
    is_new: bool = False
