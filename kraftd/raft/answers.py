"""Responses of the raft APIs, with what all of them carry: epoch, leader, and the leader's endpoint on the
listener on which the request arrived."""

from __future__ import annotations

from typing import Any, TypeVar

from kraftd.messages import (
    begin_quorum_epoch_response,
    end_quorum_epoch_response,
    fetch_response,
    fetch_snapshot_response,
    vote_response,
)
from kraftd.messages.begin_quorum_epoch_response import BeginQuorumEpochResponse
from kraftd.messages.end_quorum_epoch_response import EndQuorumEpochResponse
from kraftd.messages.fetch_response import FetchResponse
from kraftd.messages.fetch_snapshot_response import FetchSnapshotResponse
from kraftd.messages.update_raft_voter_response import CurrentLeader, UpdateRaftVoterResponse
from kraftd.messages.vote_response import VoteResponse
from kraftd.raft.effects import Respond
from kraftd.raft.events import RequestReceived
from kraftd.raft.quorum.voters import listener_endpoint
from kraftd.raft.replica import Replica
from kraftd.types import METADATA_PARTITION, METADATA_TOPIC, METADATA_TOPIC_ID, Endpoint
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.message import Message
from kraftd.wire.primitives import Buffer

R = TypeVar("R", bound=Message)


def respond(replica: Replica, request: RequestReceived, message: Message) -> None:
    replica.emit(Respond(request.request_id, message, request.version))


def leader_endpoint(replica: Replica, listener: str) -> Endpoint | None:
    """The leader's known endpoint on that listener."""
    if replica.leader_id is None:
        return None
    return listener_endpoint(replica.leader_listeners, listener)


def vote(replica: Replica, request: RequestReceived, error: ErrorCode, granted: bool) -> VoteResponse:
    return _of_epoch(vote_response, VoteResponse, replica, request, error, granted)


def begin_quorum_epoch(
    replica: Replica, request: RequestReceived, error: ErrorCode
) -> BeginQuorumEpochResponse:
    return _of_epoch(begin_quorum_epoch_response, BeginQuorumEpochResponse, replica, request, error)


def end_quorum_epoch(replica: Replica, request: RequestReceived, error: ErrorCode) -> EndQuorumEpochResponse:
    return _of_epoch(end_quorum_epoch_response, EndQuorumEpochResponse, replica, request, error)


def _of_epoch(
    module: Any, kind: type[R], replica: Replica, request: RequestReceived, error: ErrorCode, *more: object
) -> R:
    """A response of one partition, with the epoch and its leader."""
    leader_id = replica.leader_id_or_none
    partition = module.PartitionData(METADATA_PARTITION, error, leader_id, replica.epoch, *more)
    response: Any = kind(topics=[module.TopicData(METADATA_TOPIC, [partition])])
    endpoint = leader_endpoint(replica, request.listener)
    if endpoint is not None and request.version >= 1:
        response.node_endpoints = [module.NodeEndpoint(leader_id, endpoint.host, endpoint.port)]
    made: R = response
    return made


def fetch(
    replica: Replica, version: int, listener: str, error: ErrorCode, high_watermark: int = -1
) -> tuple[FetchResponse, fetch_response.PartitionData]:
    """A Fetch response without records, and its only partition, which the caller fills in."""
    module = fetch_response
    leader_id = replica.leader_id_or_none
    partition = module.PartitionData(
        partition_index=METADATA_PARTITION,
        error_code=error,
        high_watermark=high_watermark,
        log_start_offset=replica.log.start_offset,
        current_leader=module.LeaderIdAndEpoch(leader_id, replica.epoch),
        records=b"",
    )
    response = FetchResponse(
        responses=[module.FetchableTopicResponse(METADATA_TOPIC, METADATA_TOPIC_ID, [partition])]
    )
    if version >= 17:
        endpoint = leader_endpoint(replica, listener)
        if endpoint is not None:
            response.node_endpoints = [module.NodeEndpoint(leader_id, endpoint.host, endpoint.port)]
    return response, partition


def fetch_snapshot(
    replica: Replica,
    request: RequestReceived,
    error: ErrorCode,
    *,
    topic: str = METADATA_TOPIC,
    index: int = METADATA_PARTITION,
    with_leader: bool = True,
) -> tuple[FetchSnapshotResponse, fetch_snapshot_response.PartitionSnapshot]:
    """A FetchSnapshot response without bytes, and its only partition, which the caller fills in."""
    module = fetch_snapshot_response
    leader_id = replica.leader_id_or_none
    partition = module.PartitionSnapshot(index=index, error_code=error, unaligned_records=b"")
    if with_leader:
        partition.current_leader = module.LeaderIdAndEpoch(leader_id, replica.epoch)
    response = FetchSnapshotResponse(topics=[module.TopicSnapshot(topic, [partition])])
    endpoint = leader_endpoint(replica, request.listener)
    if endpoint is not None and request.version >= 1:
        response.node_endpoints = [module.NodeEndpoint(leader_id, endpoint.host, endpoint.port)]
    return response, partition


def fill_piece(response: Any, data: Buffer) -> None:
    """Put bytes that were read from a snapshot into a FetchSnapshot response of one partition."""
    response.topics[0].partitions[0].unaligned_records = data


def update_voter(replica: Replica, request: RequestReceived, error: ErrorCode) -> UpdateRaftVoterResponse:
    leader = CurrentLeader(replica.leader_id_or_none, replica.epoch)
    endpoint = leader_endpoint(replica, request.listener)
    if endpoint is not None:
        leader.host, leader.port = endpoint.host, endpoint.port
    return UpdateRaftVoterResponse(error_code=error, current_leader=leader)
