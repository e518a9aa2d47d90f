"""Voter sets: the voters, their endpoints, and the kraft.versions that they support (KIP-853).

A voter set comes from VotersRecords in the log (dynamic) or from controller.quorum.voters (static: directory
ids unknown, so that a voter matches by its node id alone).  Values; every change makes another set.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

from msgspec import Struct

from kraftd.messages.voters_record import Endpoint as RecordEndpoint
from kraftd.messages.voters_record import KRaftVersionFeature, Voter, VotersRecord
from kraftd.types import ZERO_UUID, Endpoint, ReplicaKey

Listeners = tuple[Endpoint, ...]


def listener_endpoint(listeners: Listeners, name: str) -> Endpoint | None:
    """The endpoint of the listener of that name; None if there is none."""
    for endpoint in listeners:
        if endpoint.listener == name:
            return endpoint
    return None


def bare(listeners: Listeners) -> Listeners:
    """The same endpoints, sorted, without what a VotersRecord cannot carry (the security protocol)."""
    return tuple(sorted(Endpoint(one.listener, one.host, one.port) for one in listeners))


@lru_cache(maxsize=4096)  # fetches of the same replicas need the same keys
def replica_key(replica_id: int, directory_id: bytes) -> ReplicaKey:
    """The replica key of a message's fields, in which the zero uuid means an unknown directory."""
    return ReplicaKey(replica_id, None if directory_id == ZERO_UUID else directory_id)


def matches(known: ReplicaKey, other: ReplicaKey) -> bool:
    """Return whether `other` is the replica that `known` names. Without a directory id, `known` matches by id
    alone.
    """
    return known.id == other.id and (known.directory_id is None or known.directory_id == other.directory_id)


class VoterNode(Struct, frozen=True):
    """One voter."""

    key: ReplicaKey
    listeners: Listeners
    min_kraft_version: int = 0
    max_kraft_version: int = 0

    def supports(self, kraft_version: int) -> bool:
        return self.min_kraft_version <= kraft_version <= self.max_kraft_version

    def __repr__(self) -> str:
        return f"<Voter {self.key} at {', '.join(map(repr, self.listeners))}>"


class VoterSet:
    """The voters of one moment, by node id."""

    __slots__ = ("_by_id",)

    def __init__(self, voters: Mapping[int, VoterNode] | None = None) -> None:
        self._by_id: dict[int, VoterNode] = dict(sorted((voters or {}).items()))

    @classmethod
    def of(cls, *voters: VoterNode) -> VoterSet:
        return cls({voter.key.id: voter for voter in voters})

    @classmethod
    def from_static(cls, listener_name: str, voters: Mapping[int, tuple[str, int]]) -> VoterSet:
        """controller.quorum.voters: node id to (host, port), all on the one quorum listener."""
        return cls(
            {
                node_id: VoterNode(ReplicaKey(node_id), (Endpoint(listener_name, host, port),))
                for node_id, (host, port) in voters.items()
            }
        )

    @classmethod
    def from_record(cls, record: VotersRecord) -> VoterSet:
        return cls.of(
            *(
                VoterNode(
                    replica_key(voter.voter_id, voter.voter_directory_id),
                    bare(tuple(Endpoint(one.name, one.host, one.port) for one in voter.endpoints)),
                    voter.kraft_version_feature.min_supported_version,
                    voter.kraft_version_feature.max_supported_version,
                )
                for voter in record.voters
            )
        )

    def to_record(self) -> VotersRecord:
        return VotersRecord(
            voters=[
                Voter(
                    voter.key.id,
                    voter.key.directory_id or ZERO_UUID,
                    [RecordEndpoint(one.listener, one.host, one.port) for one in voter.listeners],
                    KRaftVersionFeature(voter.min_kraft_version, voter.max_kraft_version),
                )
                for voter in self
            ]
        )

    # --- reading ---

    def __iter__(self) -> Iterator[VoterNode]:
        return iter(self._by_id.values())

    def __len__(self) -> int:
        return len(self._by_id)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VoterSet) and self._by_id == other._by_id

    def __hash__(self) -> int:
        return hash(tuple(self._by_id.values()))

    def __repr__(self) -> str:
        return f"<Voters {' '.join(repr(voter.key) for voter in self) or 'none'}>"

    @property
    def ids(self) -> list[int]:
        return list(self._by_id)

    def get(self, node_id: int) -> VoterNode | None:
        return self._by_id.get(node_id)

    def listeners(self, node_id: int) -> Listeners:
        """The endpoints of that voter; empty if it is none."""
        voter = self._by_id.get(node_id)
        return voter.listeners if voter else ()

    def has_voter(self, key: ReplicaKey) -> bool:
        voter = self._by_id.get(key.id)
        return voter is not None and matches(voter.key, key)

    def is_only_voter(self, key: ReplicaKey) -> bool:
        return len(self) == 1 and self.has_voter(key)

    def needs_update(self, node: VoterNode) -> bool:
        """Return whether this set holds that voter with other endpoints or versions."""
        voter = self._by_id.get(node.key.id)
        return voter is not None and matches(voter.key, node.key) and voter != node

    # --- changing ---

    def with_voter(self, node: VoterNode) -> VoterSet | None:
        """This set with one more voter; None if its id votes already."""
        if node.key.id in self._by_id:
            return None
        return VoterSet({**self._by_id, node.key.id: node})

    def without(self, key: ReplicaKey) -> VoterSet | None:
        """This set without that exact voter; None if it is not in it, or is the last."""
        voter = self._by_id.get(key.id)
        if voter is None or voter.key != key or len(self) == 1:
            return None
        return VoterSet({node_id: node for node_id, node in self._by_id.items() if node_id != key.id})

    def updated(self, node: VoterNode, *, ignore_directory_id: bool = False) -> VoterSet | None:
        """This set with a new description of that voter; None if it is not in it."""
        voter = self._by_id.get(node.key.id)
        if voter is None or not (ignore_directory_id or matches(voter.key, node.key)):
            return None
        return VoterSet({**self._by_id, node.key.id: node})


NO_VOTERS = VoterSet()
