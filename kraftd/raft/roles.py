"""The data of each state, which a replica discards when it leaves the state."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import ClassVar

from kraftd.raft.quorum.majority import Votes
from kraftd.raft.quorum.progress import Progress
from kraftd.raft.quorum.voters import Listeners, VoterSet
from kraftd.raft.transitions import State
from kraftd.types import OffsetAndEpoch, ReplicaKey
from kraftd.wire.message import Message


class Unattached:
    """Knows the epoch, and perhaps its leader's id, but not its endpoints. `deadline_ms` is None for an
    observer.
    """

    state: ClassVar = State.UNATTACHED
    __slots__ = ("deadline_ms",)

    def __init__(self, deadline_ms: int | None) -> None:
        self.deadline_ms = deadline_ms


class Prospective:
    """Asks for pre-votes (KIP-996)."""

    state: ClassVar = State.PROSPECTIVE
    __slots__ = ("deadline_ms", "votes")

    def __init__(self, votes: Votes, deadline_ms: int) -> None:
        self.votes = votes
        self.deadline_ms = deadline_ms


class Candidate:
    """A candidate for leader in a new epoch. `refused`: a voter has refused, which brought the deadline
    forward.
    """

    state: ClassVar = State.CANDIDATE
    __slots__ = ("deadline_ms", "refused", "votes")

    def __init__(self, votes: Votes, deadline_ms: int) -> None:
        self.votes = votes
        self.deadline_ms = deadline_ms
        self.refused = False


class Download:
    """A snapshot download; `finishing` from its last byte until the runner has named the file.

    It outlives its leader and its process. `tail` holds the last bytes before `position`. `unchecked` are
    those of them to compare with another leader's copy before more is written.
    """

    __slots__ = ("finishing", "position", "size_bytes", "snapshot_id", "tail", "unchecked")

    def __init__(self, snapshot_id: OffsetAndEpoch, position: int = 0, tail: bytes = b"") -> None:
        self.snapshot_id = snapshot_id
        self.position = position
        self.size_bytes = -1
        self.finishing = False
        self.tail = self.unchecked = tail

    @property
    def next_position(self) -> int:
        """The position at which the next piece begins."""
        return self.position - len(self.unchecked)

    def __repr__(self) -> str:
        return f"<Download {self.snapshot_id} at {self.position} of {self.size_bytes}>"


class Follower:
    """Fetches from the leader of its epoch.

    `has_fetched`: the leader has answered a fetch, so it counts as alive for pre-votes. `connection_lost`
    undoes that: the leader's connection broke, and no message has arrived since. `continues`: the leader has
    answered that its log holds all of this one.
    """

    state: ClassVar = State.FOLLOWER
    __slots__ = (
        "connection_lost",
        "continues",
        "download",
        "fetch_deadline_ms",
        "has_fetched",
        "has_updated_leader",
        "leader_high_watermark",
        "leader_log_start_offset",
        "update_voter_deadline_ms",
    )

    def __init__(self, fetch_deadline_ms: int, update_voter_deadline_ms: int) -> None:
        self.fetch_deadline_ms = fetch_deadline_ms
        self.update_voter_deadline_ms = update_voter_deadline_ms
        self.has_fetched = False
        self.has_updated_leader = False
        self.connection_lost = False
        self.continues = False
        self.leader_high_watermark = -1
        self.leader_log_start_offset = -1
        self.download: Download | None = None


class VoterChange:
    """The change of the voter set that is under way (KIP-853), and the request that waits for it.

    `end_offset` is None while the new voter is probed with ApiVersions, then the end of its VotersRecord.
    `request_id` is None once it was answered early.
    """

    __slots__ = (
        "deadline_ms",
        "end_offset",
        "is_add",
        "key",
        "listeners",
        "request_id",
        "respond_early",
        "version",
    )

    def __init__(
        self,
        key: ReplicaKey,
        request_id: Hashable,
        version: int,
        deadline_ms: int,
        *,
        is_add: bool,
        listeners: Listeners = (),
        respond_early: bool = False,
    ) -> None:
        self.key = key
        self.request_id: Hashable | None = request_id
        self.version = version
        self.deadline_ms = deadline_ms
        self.is_add = is_add
        self.listeners = listeners
        self.respond_early = respond_early
        self.end_offset: int | None = None


class Leader:
    """Leads its epoch.

    `high_watermark` is -1 until a majority has passed the epoch's start. `fetched_voters` have fetched since
    the last check-quorum. It was elected at `since_ms`, and the next BeginQuorumEpoch round is at
    `begin_deadline_ms`. `kraft_version_voters` collects what the voters of a static quorum report by
    UpdateRaftVoter, for the upgrade to kraft.version 1. `empty_fetches` are the answers to fetches that found
    nothing (`fetch_answers.nothing`).
    """

    state: ClassVar = State.LEADER
    __slots__ = (
        "announced",
        "begin_deadline_ms",
        "check_quorum_deadline_ms",
        "empty_fetches",
        "epoch_start_offset",
        "fetched_voters",
        "high_watermark",
        "kraft_version_voters",
        "progress",
        "resign_requested",
        "since_ms",
        "voter_change",
    )

    def __init__(
        self,
        progress: Progress,
        epoch_start_offset: int,
        check_quorum_deadline_ms: int,
        since_ms: int,
    ) -> None:
        self.progress = progress
        self.epoch_start_offset = epoch_start_offset
        self.check_quorum_deadline_ms = check_quorum_deadline_ms
        self.begin_deadline_ms = self.since_ms = since_ms
        self.high_watermark = -1
        self.fetched_voters: set[int] = set()
        self.announced = False
        self.resign_requested = False
        self.voter_change: VoterChange | None = None
        self.kraft_version_voters: VoterSet | None = None
        self.empty_fetches: dict[tuple[int, str], tuple[int, int, Message]] = {}


class Resigned:
    """Was the leader of this epoch and will not be again; notifies the other voters until `deadline_ms`."""

    state: ClassVar = State.RESIGNED
    __slots__ = ("deadline_ms", "successors", "unacknowledged")

    def __init__(self, deadline_ms: int, unacknowledged: set[int], successors: list[ReplicaKey]) -> None:
        self.deadline_ms = deadline_ms
        self.unacknowledged = unacknowledged
        self.successors = successors


class NewVoter:
    """What such a voter has learned of the others: `empty` were seen in epoch 0, `living` only in later ones.

    The first election does not wait for the `excused`. If `rejoins` is set, this replica does not follow a
    living quorum: it is to be formatted under a fresh directory id.
    """

    __slots__ = ("empty", "excused", "living", "others", "rejoins")

    def __init__(self, others: Iterable[int], excused: Iterable[int] = (), *, rejoins: bool = False) -> None:
        self.others = frozenset(others)
        self.excused = frozenset(excused)
        self.rejoins = rejoins
        self.empty: set[int] = set()
        self.living: set[int] = set()

    @property
    def awaited(self) -> list[int]:
        """The voters that have not shown whether they have a log."""
        return sorted(self.others - self.excused - self.empty - self.living)

    @property
    def may_found(self) -> bool:
        """Return whether no other voter has a log."""
        return not self.living and self.others <= self.empty | self.excused

    def note(self, voter_id: int, epoch: int) -> None:
        """Note the epoch of a voter. One that was in epoch 0 had no log, whatever it has now."""
        if voter_id in self.others and voter_id not in self.empty:
            (self.living if epoch else self.empty).add(voter_id)

    def __repr__(self) -> str:
        return f"<NewVoter, empty {sorted(self.empty)}, living {sorted(self.living)}>"


Role = Unattached | Prospective | Candidate | Follower | Leader | Resigned
