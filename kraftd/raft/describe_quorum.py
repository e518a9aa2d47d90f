"""DescribeQuorum (55), v0-2: the leader's view of voters and observers (KIP-595, KIP-836, KIP-853).

Errors: UNKNOWN_TOPIC_OR_PARTITION for every partition if the request names another than the metadata
partition; NOT_LEADER_OR_FOLLOWER for it. The leader reports the current time as its own fetch times. All
times are of its wall clock.
"""

from __future__ import annotations

from collections.abc import Iterable

from kraftd.messages.describe_quorum_request import DescribeQuorumRequest
from kraftd.messages.describe_quorum_response import (
    DescribeQuorumResponse,
    Listener,
    Node,
    PartitionData,
    ReplicaState,
    TopicData,
)
from kraftd.raft import answers, checks
from kraftd.raft.events import RequestReceived
from kraftd.raft.quorum.progress import ReplicaProgress
from kraftd.raft.replica import Replica
from kraftd.raft.roles import Leader
from kraftd.types import METADATA_PARTITION, METADATA_TOPIC, ZERO_UUID
from kraftd.wire.error_code import ErrorCode


def on_describe_quorum_request(
    replica: Replica, request: RequestReceived, message: DescribeQuorumRequest
) -> None:
    version = request.version
    if checks.only_partition(message.topics) is None:
        topics = [
            TopicData(
                topic.topic_name,
                [
                    _failed(one.partition_index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                    for one in topic.partitions
                ],
            )
            for topic in message.topics
        ]
        answers.respond(replica, request, DescribeQuorumResponse(topics=topics))
        return
    leader = replica.role
    if not isinstance(leader, Leader):
        partition = _failed(METADATA_PARTITION, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        response = DescribeQuorumResponse(topics=[TopicData(METADATA_TOPIC, [partition])])
        answers.respond(replica, request, response)
        return
    leader.progress.forget_silent_observers(replica.now_ms)
    partition = PartitionData(
        METADATA_PARTITION,
        leader_id=replica.config.node_id,
        leader_epoch=replica.epoch,
        high_watermark=leader.high_watermark,
        current_voters=_states(replica, leader.progress.voters.values(), version),
        observers=_states(replica, leader.progress.observers.values(), version),
    )
    response = DescribeQuorumResponse(topics=[TopicData(METADATA_TOPIC, [partition])])
    if version >= 2:
        response.nodes = [
            Node(one.key.id, [Listener(at.listener, at.host, at.port) for at in one.listeners])
            for one in leader.progress.voters.values()
        ]
    answers.respond(replica, request, response)


def _failed(index: int, error: ErrorCode) -> PartitionData:
    return PartitionData(index, error, error.message)


def _states(replica: Replica, replicas: Iterable[ReplicaProgress], version: int) -> list[ReplicaState]:
    states, ahead_ms = [], replica.wall_ahead_ms
    for one in replicas:
        is_leader = one.key.id == replica.config.node_id
        state = ReplicaState(
            replica_id=one.key.id,
            log_end_offset=-1 if one.end_offset is None else one.end_offset,
            last_fetch_timestamp=replica.wall_ms if is_leader else _wall(one.last_fetch_ms, ahead_ms),
            last_caught_up_timestamp=replica.wall_ms if is_leader else _wall(one.last_caught_up_ms, ahead_ms),
        )
        if version >= 2:
            state.replica_directory_id = one.key.directory_id or ZERO_UUID
        states.append(state)
    return states


def _wall(at_ms: int, ahead_ms: int) -> int:
    """A time of the replica's own clock as one of the wall clock; -1, for unknown, stays."""
    return at_ms if at_ms < 0 else at_ms + ahead_ms
