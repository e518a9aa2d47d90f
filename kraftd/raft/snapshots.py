"""Snapshots over the wire: FetchSnapshot (59), v0-1, on the leader's and on the follower's side (KIP-630).

Errors of the whole request: INCONSISTENT_CLUSTER_ID, INVALID_REQUEST (neither one topic nor one partition).
Of several partitions only the log's gets bytes, so it may use the others' shares of the size. A response
carries at most the smaller of MaxBytes and replica.fetch.response.max.bytes. Of the partition:
UNKNOWN_TOPIC_OR_PARTITION, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, NOT_LEADER_OR_FOLLOWER,
BROKER_NOT_AVAILABLE (shutting down), SNAPSHOT_NOT_FOUND (the bootstrap checkpoint too: it is never
replicated), POSITION_OUT_OF_RANGE. Readers without a leader: see `fetching`.
"""

from __future__ import annotations

from kraftd.ground.destination import Destination
from kraftd.messages.fetch_snapshot_request import (
    FetchSnapshotRequest,
    PartitionSnapshot,
    SnapshotId,
    TopicSnapshot,
)
from kraftd.messages.fetch_snapshot_response import FetchSnapshotResponse
from kraftd.messages.fetch_snapshot_response import PartitionSnapshot as PieceOfSnapshot
from kraftd.messages.fetch_snapshot_response import SnapshotId as ResponseSnapshotId
from kraftd.raft import answers, checks
from kraftd.raft.becoming import on_common_response
from kraftd.raft.config import TAIL_BYTES
from kraftd.raft.effects import (
    BeginSnapshot,
    FinishSnapshot,
    HighWatermarkMoved,
    ResetLog,
    RespondSnapshot,
    WriteSnapshot,
)
from kraftd.raft.events import (
    LogStartMoved,
    RequestReceived,
    SnapshotFinished,
    SnapshotRefused,
    SnapshotsDeleted,
    SnapshotTaken,
)
from kraftd.raft.leader import note_fetch_of_voter
from kraftd.raft.log_view import BOOTSTRAP_SNAPSHOT
from kraftd.raft.quorum.voters import replica_key
from kraftd.raft.replica import CommittedIsLost, ConsensusBroken, Replica
from kraftd.raft.roles import Download, Follower, Leader
from kraftd.types import METADATA_PARTITION, METADATA_TOPIC, OffsetAndEpoch
from kraftd.wire.error_code import ErrorCode

# --- serving ------------------------------------------------------------------------------------------


def on_fetch_snapshot_request(
    replica: Replica, request: RequestReceived, message: FetchSnapshotRequest
) -> None:
    error = checks.cluster_id(replica, message.cluster_id)
    partitions_requested = [(topic, partition) for topic in message.topics for partition in topic.partitions]
    if not error and (
        not partitions_requested or (len(message.topics) != 1 and len(message.topics[0].partitions) != 1)
    ):
        error = ErrorCode.INVALID_REQUEST
    if error:
        answers.respond(replica, request, FetchSnapshotResponse(error_code=error))
        return
    topic, requested = next(filter(_is_metadata, partitions_requested), partitions_requested[0])
    if not _is_metadata((topic, requested)):
        error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        response, _ = answers.fetch_snapshot(
            replica, request, error, topic=topic.name, index=requested.partition, with_leader=False
        )
        answers.respond(replica, request, response)
        return
    snapshot_id = OffsetAndEpoch(requested.snapshot_id.end_offset, requested.snapshot_id.epoch)
    size_bytes = replica.log.snapshots.get(snapshot_id)
    of_reader = checks.reader_without_leader(replica, message.replica_id, requested.current_leader_epoch)
    error = ErrorCode.NONE if of_reader else checks.leader_only(replica, requested.current_leader_epoch)
    if not error and (size_bytes is None or snapshot_id == BOOTSTRAP_SNAPSHOT):
        error = ErrorCode.SNAPSHOT_NOT_FOUND
    elif not error and size_bytes is not None and not 0 <= requested.position < size_bytes:
        error = ErrorCode.POSITION_OUT_OF_RANGE
    response, partition = answers.fetch_snapshot(replica, request, error)
    if error or size_bytes is None:
        answers.respond(replica, request, response)
        return
    if isinstance(replica.role, Leader):
        fetcher = replica_key(message.replica_id, requested.replica_directory_id)
        note_fetch_of_voter(replica, replica.role, fetcher)
    partition.snapshot_id = ResponseSnapshotId(snapshot_id.offset, snapshot_id.epoch)
    partition.size = size_bytes
    partition.position = requested.position
    # At least a byte, or no download would make progress.
    response_max_bytes = min(message.max_bytes, max(1, replica.config.fetch_response_max_bytes))
    max_bytes = max(0, min(response_max_bytes, size_bytes - requested.position))
    replica.emit(
        RespondSnapshot(
            request.request_id, response, request.version, snapshot_id, requested.position, max_bytes
        )
    )


def _is_metadata(requested: tuple[TopicSnapshot, PartitionSnapshot]) -> bool:
    topic, partition = requested
    return topic.name == METADATA_TOPIC and partition.partition == METADATA_PARTITION


# --- downloading --------------------------------------------------------------------------------------


def begin_download(replica: Replica, role: Follower, snapshot_id: OffsetAndEpoch) -> bool:
    """Fetch the snapshot that the leader names as needed before more of its log. Begin it, or resume a
    download from another leader or the last process.

    Snapshots of one id need not be equal byte for byte, so resuming begins with a comparison. Returns false
    if there is nothing to fetch: the snapshot is stored here, one is being named, or the log has since begun
    behind it. Raises CommittedIsLost for one that ends below the high watermark and is not of this log.
    """
    held, log = replica.partial, replica.log
    if snapshot_id.offset < replica.committed and not log.may_hold(snapshot_id):
        happened = f"is to go on from snapshot {snapshot_id} of another log"
        raise CommittedIsLost(replica, happened, log.start_offset, snapshot_id.offset)
    if snapshot_id in log.snapshots or (held is not None and held.finishing):
        return False
    if 0 < snapshot_id.offset <= log.start_offset:
        return False
    if held is not None and held.snapshot_id == snapshot_id:
        held.unchecked = held.tail
        replica.emit(BeginSnapshot(snapshot_id, held.position))
    else:
        replica.drop_partial()
        held = replica.partial = Download(snapshot_id)
        replica.emit(BeginSnapshot(snapshot_id))
    role.download = held
    return True


def fetch_snapshot_request(replica: Replica, download: Download) -> FetchSnapshotRequest:
    config, snapshot_id = replica.config, download.snapshot_id
    partition = PartitionSnapshot(
        METADATA_PARTITION,
        replica.epoch,
        SnapshotId(snapshot_id.offset, snapshot_id.epoch),
        download.next_position,
        config.directory_id,
    )
    return FetchSnapshotRequest(
        config.cluster_id,
        config.node_id,
        config.fetch_snapshot_max_bytes,
        [TopicSnapshot(METADATA_TOPIC, [partition])],
    )


def on_fetch_snapshot_response(
    replica: Replica, source: Destination, response: FetchSnapshotResponse
) -> bool:
    """Write the received piece; after the last one, request the naming.

    The download is abandoned if the leader no longer has the snapshot, or has it with other bytes: the answer
    to the next fetch names another.
    """
    if response.error_code or len(response.topics) != 1 or len(response.topics[0].partitions) != 1:
        return False
    piece = response.topics[0].partitions[0]
    if response.topics[0].name != METADATA_TOPIC or piece.index != METADATA_PARTITION:
        return False
    reported = checks.reported_leader(replica, piece.current_leader.leader_id, response.node_endpoints)
    handled = on_common_response(replica, piece.error_code, piece.current_leader.leader_epoch, *reported)
    if handled is not None:
        return handled
    role = replica.role
    if not isinstance(role, Follower) or role.download is None:
        return False
    snapshot = piece.snapshot_id
    if piece.error_code == ErrorCode.SNAPSHOT_NOT_FOUND or snapshot.end_offset < 0 or snapshot.epoch < 0:
        replica.drop_partial()
        _note_leader_answer(replica, role)
        return True
    moved = piece.error_code == ErrorCode.POSITION_OUT_OF_RANGE
    if piece.error_code and not moved:
        return False
    goes_on = not moved and _take_in(replica, role.download, piece)
    if not goes_on:
        replica.drop_partial()
    _note_leader_answer(replica, role)
    return goes_on


def _take_in(replica: Replica, download: Download, piece: PieceOfSnapshot) -> bool:
    """Compare the part of the piece that is on disk already, and write the rest. Returns false if it does not
    continue this snapshot.
    """
    data = memoryview(piece.unaligned_records or b"")
    piece_id = OffsetAndEpoch(piece.snapshot_id.end_offset, piece.snapshot_id.epoch)
    repeated = download.unchecked[: len(data)]
    if (
        not data
        or piece_id != download.snapshot_id
        or piece.position != download.next_position
        or piece.size < piece.position + len(data)
        or download.size_bytes not in (-1, piece.size)
        or data[: len(repeated)] != repeated
    ):
        return False
    download.size_bytes = piece.size
    download.unchecked = download.unchecked[len(repeated) :]
    data = data[len(repeated) :]
    if data:
        replica.emit(WriteSnapshot(download.snapshot_id, download.position, data))
        download.position += len(data)
        download.tail = (download.tail + bytes(data[-TAIL_BYTES:]))[-TAIL_BYTES:]
    if download.position >= piece.size and not download.unchecked:
        download.finishing = True
        replica.emit(FinishSnapshot(download.snapshot_id))
    return True


def _note_leader_answer(replica: Replica, role: Follower) -> None:
    role.fetch_deadline_ms = replica.fetch_deadline_ms()
    role.has_fetched = True
    role.connection_lost = False


def on_snapshot_finished(replica: Replica, event: SnapshotFinished) -> None:
    """Replace the log with the downloaded snapshot, in which everything is committed.

    A leader never does so (S11). A snapshot that ends at or below the high watermark is too late, and only
    kept.
    """
    role, log = replica.role, replica.log
    _end_download(replica)
    newer = (event.snapshot_id.epoch, event.snapshot_id.offset) > (log.last_epoch, log.end_offset)
    if isinstance(role, Leader) or not newer or event.snapshot_id.offset < replica.committed:
        log.add_snapshot(event.snapshot_id, event.size_bytes)
        return
    # Every later snapshot holds all committed records. Records behind it may be of another leader's log.
    keep_from = max(replica.committed, log.start_offset)
    log.reset_to(event.snapshot_id, event.size_bytes)
    replica.truncated()
    replica.emit(ResetLog(event.snapshot_id, keep_from, replica.leader_id_or_none, replica.epoch))
    replica.history.clear()
    for data in event.control_batches:
        replica.history.read(data, at_offset=event.snapshot_id.offset - 1)
    replica.voters_changed()
    replica.high_watermark = event.snapshot_id.offset
    replica.emit(HighWatermarkMoved(event.snapshot_id.offset))


def on_snapshot_refused(replica: Replica, event: SnapshotRefused) -> None:
    """Abandon a damaged download: the answer to the next fetch names the leader's snapshot."""
    _end_download(replica)


def _end_download(replica: Replica) -> None:
    replica.partial = None
    if isinstance(replica.role, Follower):
        replica.role.download = None


# --- snapshots made here ------------------------------------------------------------------------------------


def on_snapshot_taken(replica: Replica, event: SnapshotTaken) -> None:
    """Note a new snapshot. Raises ConsensusBroken if it holds uncommitted records, or names another epoch
    than the log (S10).
    """
    snapshot_id, log = event.snapshot_id, replica.log
    if snapshot_id.offset > replica.high_watermark:
        raise ConsensusBroken(f"{replica!r} took snapshot {snapshot_id} of what is not committed")
    end = log.end_offset_for_epoch(snapshot_id.epoch)
    if snapshot_id.offset > log.start_offset and (
        end.epoch != snapshot_id.epoch or snapshot_id.offset > end.offset
    ):
        raise ConsensusBroken(f"{replica!r} took snapshot {snapshot_id}, which is not of its log")
    log.add_snapshot(event.snapshot_id, event.size_bytes)


def on_snapshots_deleted(replica: Replica, event: SnapshotsDeleted) -> None:
    for snapshot_id in event.snapshot_ids:
        replica.log.drop_snapshot(snapshot_id)


def on_log_start_moved(replica: Replica, event: LogStartMoved) -> None:
    """Note a new log start. Raises ConsensusBroken if no snapshot ends there: records below would be lost
    (S10).
    """
    if all(one.offset != event.log_start_offset for one in replica.log.snapshots):
        raise ConsensusBroken(f"{replica!r} is to start at {event.log_start_offset}, where no snapshot ends")
    replica.log.move_start(event.log_start_offset)
    replica.history.forget_before(event.log_start_offset)
