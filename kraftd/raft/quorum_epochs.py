"""Leaving: resignation, graceful shutdown, and the messages to other voters about them (KIP-595).

BeginQuorumEpoch (53) v0-1 and EndQuorumEpoch (54) v0-1.  Errors: INCONSISTENT_CLUSTER_ID, INVALID_REQUEST for
the whole request; FENCED_LEADER_EPOCH, INVALID_REQUEST (no leader id, or a second leader of an epoch) and
INVALID_VOTER_KEY (BeginQuorumEpoch meant for another replica) for the partition.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from kraftd.ground.destination import Destination
from kraftd.messages.begin_quorum_epoch_request import BeginQuorumEpochRequest
from kraftd.messages.begin_quorum_epoch_response import BeginQuorumEpochResponse
from kraftd.messages.end_quorum_epoch_request import (
    EndQuorumEpochRequest,
    PartitionData,
    ReplicaInfo,
    TopicData,
)
from kraftd.messages.end_quorum_epoch_response import EndQuorumEpochResponse
from kraftd.raft import answers, checks, fetch_answers
from kraftd.raft.becoming import learn, move_leader, partition_answered
from kraftd.raft.effects import ShutdownCompleted
from kraftd.raft.events import RequestReceived
from kraftd.raft.quorum.voters import Listeners
from kraftd.raft.replica import Replica
from kraftd.raft.roles import Follower, Leader, Resigned, Unattached
from kraftd.raft.transitions import Cause
from kraftd.types import METADATA_PARTITION, METADATA_TOPIC, ZERO_UUID, Endpoint
from kraftd.wire.error_code import ErrorCode


class _Named(Protocol):
    name: str
    host: str
    port: int


def _listeners(replica: Replica, leader_id: int, endpoints: Sequence[_Named]) -> Listeners:
    """The leader's endpoints, from the request, else from the voter set."""
    if endpoints:
        return tuple(Endpoint(one.name, one.host, one.port) for one in endpoints)
    return replica.voters.listeners(leader_id)


# --- another leader begins or ends its epoch --------------------------------------------------------------


def on_begin_quorum_epoch_request(
    replica: Replica, request: RequestReceived, message: BeginQuorumEpochRequest
) -> None:
    """Follow the leader that announces itself."""
    error = checks.cluster_and_topic(replica, message.cluster_id, message.topics)
    if error:
        answers.respond(replica, request, BeginQuorumEpochResponse(error_code=error))
        return
    partition = message.topics[0].partitions[0]
    error = checks.voter_only(replica, partition.leader_id, partition.leader_epoch)
    if not error:
        listeners = _listeners(replica, partition.leader_id, message.leader_endpoints)
        if not learn(replica, partition.leader_epoch, partition.leader_id, listeners):
            error = ErrorCode.INVALID_REQUEST
        elif not checks.is_meant_for(replica, message.voter_id, partition.voter_directory_id):
            error = ErrorCode.INVALID_VOTER_KEY
        elif message.leader_endpoints and replica.leader_id == partition.leader_id:
            move_leader(replica, listeners)
    answers.respond(replica, request, answers.begin_quorum_epoch(replica, request, error))


def on_begin_quorum_epoch_response(
    replica: Replica, source: Destination, response: BeginQuorumEpochResponse
) -> bool:
    partition = partition_answered(replica, response)
    return partition if isinstance(partition, bool) else True


def on_end_quorum_epoch_request(
    replica: Replica, request: RequestReceived, message: EndQuorumEpochRequest
) -> None:
    """The leader resigns: start an election after a wait that depends on this replica's place among its
    successors.
    """
    error = checks.cluster_and_topic(replica, message.cluster_id, message.topics)
    if error:
        answers.respond(replica, request, EndQuorumEpochResponse(error_code=error))
        return
    partition = message.topics[0].partitions[0]
    error = checks.voter_only(replica, partition.leader_id, partition.leader_epoch)
    if not error:
        listeners = _listeners(replica, partition.leader_id, message.leader_endpoints)
        if not learn(replica, partition.leader_epoch, partition.leader_id, listeners):
            error = ErrorCode.INVALID_REQUEST
        elif isinstance(replica.role, Follower) and replica.leader_id == partition.leader_id:
            replica.role.fetch_deadline_ms = replica.now_ms + _succession_wait_ms(replica, partition)
            replica.role.connection_lost = True  # it will not lead again: grant any pre-vote
    answers.respond(replica, request, answers.end_quorum_epoch(replica, request, error))


def _succession_wait_ms(replica: Replica, partition: PartitionData) -> int:
    """No wait for the first of the preferred successors, then a backoff that doubles from place to place."""
    candidates = [(one.candidate_id, one.candidate_directory_id) for one in partition.preferred_candidates]
    if not candidates:
        candidates = [(candidate_id, ZERO_UUID) for candidate_id in partition.preferred_successors]
    longest_ms = replica.config.election_backoff_max_ms
    own = ((replica.config.node_id, ZERO_UUID), (replica.config.node_id, replica.config.directory_id))
    place = next((i for i, candidate in enumerate(candidates) if candidate in own), len(candidates))
    if place == 0:
        return 0
    if place >= len(candidates):
        return longest_ms
    return min(longest_ms, (longest_ms >> (len(candidates) - 1)) << (place - 1))


# --- this replica ends its epoch ----------------------------------------------------------------------


def end_quorum_epoch_request(replica: Replica, role: Resigned) -> EndQuorumEpochRequest:
    partition = PartitionData(
        METADATA_PARTITION,
        replica.config.node_id,
        replica.epoch,
        tuple(key.id for key in role.successors),
        [ReplicaInfo(key.id, key.directory_id or ZERO_UUID) for key in role.successors],
    )
    return EndQuorumEpochRequest(replica.config.cluster_id, [TopicData(METADATA_TOPIC, [partition])])


def on_end_quorum_epoch_response(
    replica: Replica, source: Destination, response: EndQuorumEpochResponse
) -> bool:
    partition = partition_answered(replica, response)
    if isinstance(partition, bool):
        return partition
    if isinstance(replica.role, Resigned):
        replica.role.unacknowledged.discard(source.node_id)
    return True


def poll_resigned(replica: Replica, role: Resigned) -> int | None:
    """Notify the voters. After an election timeout, raise the epoch and become an unattached voter that may
    start an election at once.
    """
    if not replica.shutting_down and replica.now_ms >= role.deadline_ms:
        fresh = Unattached(replica.now_ms if replica.may_be_elected else None)
        replica.become(Cause.ELECTION_TIMEOUT, fresh, epoch=replica.epoch + 1)
        return None
    for node_id in sorted(role.unacknowledged):
        replica.send(replica.voter_destination(node_id), end_quorum_epoch_request(replica, role))
    return None if replica.shutting_down else role.deadline_ms


# --- shutdown -----------------------------------------------------------------------------------------


def poll_shutdown(replica: Replica) -> None:
    """Complete a graceful shutdown as soon as no other replica needs this one.

    That is so if it does not vote and has notified its followers, or if another leads. It is also so if it is
    alone and has synced and committed everything.
    """
    if replica.shutdown_deadline_ms is None or replica.shut_down:
        return
    if replica.is_only_voter:
        done = replica.log.synced_end_offset >= replica.log.end_offset
        if done and isinstance(replica.role, Leader):
            fetch_answers.high_watermark_moved(replica, replica.role)  # no fetch stays parked
    else:
        another = replica.leader_id is not None and replica.leader_id != replica.config.node_id
        role = replica.role
        in_office = isinstance(role, Leader) or (isinstance(role, Resigned) and bool(role.unacknowledged))
        done = another or (not replica.is_voter and not in_office)
    if done or replica.now_ms >= replica.shutdown_deadline_ms:
        replica.shut_down = True
        replica.emit(ShutdownCompleted(done))
