"""Fetch (1), v4-18, as the leader of the metadata log serves it (KIP-595, KIP-853, KIP-1166).

Errors of the whole request: INCONSISTENT_CLUSTER_ID, INVALID_REQUEST (any other topic or partition; the topic
is named by its id, so versions below 13 end here).  Of the partition: INVALID_REQUEST (negative offsets,
epochs or waiting times), FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, NOT_LEADER_OR_FOLLOWER,
BROKER_NOT_AVAILABLE (shutting down); each with the current leader, and its endpoint from v17 on.

A reader (replica id -1) that names no leader epoch (-1) gets INVALID_REQUEST, as from Kafka. While no leader
answers this replica, it serves the reader at once, with what it knows is committed: for kraftd's commands.

Sizes: MaxBytes is the limit, but at least one whole batch is returned. PartitionMaxBytes is ignored (raft
clients send 0).
"""

from __future__ import annotations

from kraftd.messages.fetch_request import FetchRequest
from kraftd.messages.fetch_response import EpochEndOffset, FetchResponse, SnapshotId
from kraftd.raft import answers, checks, fetch_answers
from kraftd.raft.effects import ReplicaWentBack, RespondRecords
from kraftd.raft.events import RequestReceived
from kraftd.raft.fetch_answers import ReceivedFetch
from kraftd.raft.leader import advance_high_watermark, note_fetch_of_voter, note_older_epoch
from kraftd.raft.log_view import DIVERGING, SNAPSHOT, VALID
from kraftd.raft.quorum.voters import replica_key
from kraftd.raft.replica import Replica
from kraftd.raft.roles import Leader
from kraftd.types import METADATA_PARTITION, METADATA_TOPIC_ID
from kraftd.wire.error_code import ErrorCode


def on_fetch_request(replica: Replica, request: RequestReceived, message: FetchRequest) -> None:
    error = checks.cluster_id(replica, message.cluster_id)
    topics = message.topics
    if not error and (
        len(topics) != 1
        or topics[0].topic_id != METADATA_TOPIC_ID
        or len(topics[0].partitions) != 1
        or topics[0].partitions[0].partition != METADATA_PARTITION
    ):
        error = ErrorCode.INVALID_REQUEST
    if error:
        answers.respond(replica, request, FetchResponse(error_code=error))
        return
    partition = topics[0].partitions[0]
    replica_id = message.replica_id if message.replica_id != -1 else message.replica_state.replica_id
    if checks.reader_without_leader(replica, replica_id, partition.current_leader_epoch):
        _answer_reader(replica, request, message)
        return
    if (
        message.max_wait_ms < 0
        or partition.fetch_offset < 0
        or partition.last_fetched_epoch < 0
        or partition.last_fetched_epoch > partition.current_leader_epoch
    ):
        error = ErrorCode.INVALID_REQUEST
    else:
        error = checks.leader_only(replica, partition.current_leader_epoch)
    if error:
        if error is ErrorCode.FENCED_LEADER_EPOCH:
            key = replica_key(replica_id, partition.replica_directory_id)
            note_older_epoch(replica, request.request_id, key, partition.current_leader_epoch)
        answers.respond(replica, request, answers.fetch(replica, request.version, request.listener, error)[0])
        return
    leader = replica.role
    assert isinstance(leader, Leader)
    fetch = ReceivedFetch(
        request.request_id,
        request.version,
        request.listener,
        replica_key(replica_id, partition.replica_directory_id),
        partition.fetch_offset,
        partition.last_fetched_epoch,
        message.max_bytes,
        partition.high_watermark,
        replica.now_ms + message.max_wait_ms,
    )
    is_voter = leader.progress.is_voter(fetch.key)
    position = replica.log.locate(fetch.offset, fetch.last_fetched_epoch)
    went_back = None
    if position.fit is VALID and replica_id >= 0:
        if replica_id == replica.config.node_id:  # a replica does not fetch from itself
            fetch_answers.refuse(replica, fetch, ErrorCode.UNKNOWN_SERVER_ERROR)
            return
        # Its position is in this log, and it has synced up to there (S12).
        went_back = leader.progress.fetched(fetch.key, fetch.offset, replica.log.end_offset, replica.now_ms)
        if is_voter:
            note_fetch_of_voter(replica, leader, fetch.key)
            advance_high_watermark(replica, leader)
    elif replica_id >= 0:
        shared = fetch.offset if position.fit is SNAPSHOT else min(fetch.offset, position.at.offset)
        went_back = leader.progress.parted(fetch.key, fetch.offset, shared)
    if went_back is not None:
        _report_went_back(replica, fetch, went_back.acknowledged, is_voter=is_voter)
    end_offset = fetch_answers.readable_end(replica, is_voter=is_voter)
    if not fetch_answers.answer(
        replica, leader, fetch, position, end_offset, may_park=message.max_wait_ms > 0
    ):
        fetch_answers.park(replica, leader, fetch)


def _report_went_back(replica: Replica, fetch: ReceivedFetch, acknowledged: int, *, is_voter: bool) -> None:
    replica.emit(
        ReplicaWentBack(
            fetch.request_id,
            fetch.key,
            is_voter,
            acknowledged,
            replica.epoch,
            fetch.offset,
            fetch.last_fetched_epoch,
        )
    )


def _answer_reader(replica: Replica, request: RequestReceived, message: FetchRequest) -> None:
    """Answer with committed records, or with the snapshot to read first."""
    wanted = message.topics[0].partitions[0]
    offset, high_watermark = wanted.fetch_offset, replica.high_watermark
    response, partition = answers.fetch(
        replica, request.version, request.listener, ErrorCode.NONE, high_watermark
    )
    fit, at = replica.log.locate(max(offset, 0), max(wanted.last_fetched_epoch, 0))
    if fit is DIVERGING:
        partition.diverging_epoch = EpochEndOffset(at.epoch, at.offset)
    elif fit is SNAPSHOT:
        partition.snapshot_id = SnapshotId(at.offset, at.epoch)
    elif 0 <= offset < high_watermark:
        replica.emit(
            RespondRecords(
                request.request_id, response, request.version, offset, high_watermark, message.max_bytes
            )
        )
        return
    answers.respond(replica, request, response)
