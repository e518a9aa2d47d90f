"""The first checks of every raft request and response: cluster, topic partition, voter key, epoch, leader."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from kraftd.raft.quorum.voters import Listeners
from kraftd.raft.replica import Replica
from kraftd.raft.roles import Follower, Leader
from kraftd.types import METADATA_PARTITION, METADATA_TOPIC, ZERO_UUID, Endpoint
from kraftd.wire.error_code import ErrorCode

# No quorum reaches this epoch: a message with a higher one is wrong, and following it would leave no epochs.
LARGEST_EPOCH = 2_000_000_000

NONE = ErrorCode.NONE


class _Partition(Protocol):
    partition_index: int


class _AnsweredPartition(_Partition, Protocol):
    error_code: int
    leader_id: int
    leader_epoch: int


P_co = TypeVar("P_co", bound=_Partition, covariant=True)
A_co = TypeVar("A_co", bound=_AnsweredPartition, covariant=True)


class _Topic(Protocol[P_co]):
    topic_name: str

    @property
    def partitions(self) -> Sequence[P_co]: ...


class _NodeEndpoint(Protocol):
    node_id: int
    host: str
    port: int


class ElectionResponse(Protocol[A_co]):
    """The answers to Vote, BeginQuorumEpoch and EndQuorumEpoch."""

    error_code: int

    @property
    def topics(self) -> Sequence[_Topic[A_co]]: ...

    @property
    def node_endpoints(self) -> Sequence[_NodeEndpoint]: ...


def cluster_id(replica: Replica, requested_id: str | None) -> ErrorCode:
    """Refuse a request that names another cluster (S17). One that names none is accepted, as in Kafka."""
    if requested_id is not None and requested_id != replica.config.cluster_id:
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    return NONE


def only_partition(topics: Sequence[_Topic[P_co]]) -> P_co | None:
    """The metadata partition, if the message holds no other partition."""
    if len(topics) != 1 or topics[0].topic_name != METADATA_TOPIC or len(topics[0].partitions) != 1:
        return None
    partition = topics[0].partitions[0]
    return partition if partition.partition_index == METADATA_PARTITION else None


def cluster_and_topic(
    replica: Replica, requested_id: str | None, topics: Sequence[_Topic[_Partition]]
) -> ErrorCode:
    error = cluster_id(replica, requested_id)
    if error:
        return error
    return ErrorCode.NONE if only_partition(topics) is not None else ErrorCode.INVALID_REQUEST


def voter_only(replica: Replica, remote_id: int, epoch: int) -> ErrorCode:
    """Check a request between voters: its epoch is neither older nor impossible, and it names its sender."""
    if epoch < replica.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    return ErrorCode.INVALID_REQUEST if remote_id < 0 or epoch > LARGEST_EPOCH else ErrorCode.NONE


def leader_only(replica: Replica, epoch: int) -> ErrorCode:
    """Check a request to the leader of an epoch."""
    if epoch < replica.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if epoch > replica.epoch:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    if not isinstance(replica.role, Leader):
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return ErrorCode.BROKER_NOT_AVAILABLE if replica.shutting_down else NONE


def reader_without_leader(replica: Replica, replica_id: int, epoch: int) -> bool:
    """Return whether a request is of a reader that names no leader epoch, and no leader answers this
    replica.
    """
    return replica_id == epoch == -1 and not replica.shutting_down and knows_no_live_leader(replica)


def knows_no_live_leader(replica: Replica) -> bool:
    """Return whether this replica neither leads nor follows a leader that answers."""
    role = replica.role
    if isinstance(role, Follower):
        # Only a follower that starts no election itself is still one after its deadline.
        silent = replica.now_ms >= role.fetch_deadline_ms
        return not role.has_fetched or role.connection_lost or silent
    return not isinstance(role, Leader)


def is_meant_for(replica: Replica, voter_id: int, directory_id: bytes) -> bool:
    """Return whether a voter key in a request is this replica's. A key that is missing or has no directory id
    matches.
    """
    if voter_id < 0:
        return True
    return voter_id == replica.config.node_id and directory_id in (ZERO_UUID, replica.config.directory_id)


def reported_leader(
    replica: Replica, leader_id: int, endpoints: Sequence[_NodeEndpoint]
) -> tuple[int | None, Listeners]:
    """The leader that a response names, and its endpoints: from the response, else from the voter set."""
    if leader_id < 0:
        return None, ()
    for node in endpoints:
        if node.node_id == leader_id:
            return leader_id, (Endpoint(replica.config.listener_name, node.host, node.port),)
    return leader_id, replica.voters.listeners(leader_id)
