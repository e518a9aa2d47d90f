"""Following: fetch from the leader, append and sync its records, truncate where the logs diverge.

An unattached replica and an observer fetch the same way, from a node that may know the leader.  The next
fetch is sent only when the records of the last one are synced, because the leader counts its offset as synced
(S12).
"""

from __future__ import annotations

from collections.abc import Iterator

from kraftd.ground.destination import Destination
from kraftd.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from kraftd.messages.fetch_response import FetchResponse, PartitionData
from kraftd.raft import checks, new_voter, snapshots
from kraftd.raft.becoming import become_prospective, move_leader, on_common_response
from kraftd.raft.effects import HighWatermarkMoved, LocateBatch, TruncateLog
from kraftd.raft.events import BatchLocated
from kraftd.raft.reconfiguration import join_or_update
from kraftd.raft.replica import STAGGER_MS, CommittedIsLost, Replica
from kraftd.raft.roles import Follower
from kraftd.raft.transitions import Cause
from kraftd.types import METADATA_PARTITION, METADATA_TOPIC, METADATA_TOPIC_ID, OffsetAndEpoch
from kraftd.wire.batch import Batch, CorruptBatch, iter_batches

# --- sending fetches
# -------------------------------------------------------------------------------------------


def fetch_request(replica: Replica) -> FetchRequest:
    """The next Fetch. After a start it carries what was committed before, until the leader's log is known to
    hold it: a leader that has lost committed records learns it there.

    Such a fetch does not wait: a leader would park it if it names the leader's own high watermark, and the
    start would wait for a new record.
    """
    config, log, role = replica.config, replica.log, replica.role
    is_marked = max(replica.high_watermark, 0) < replica.committed_before
    shows_mark = is_marked and isinstance(role, Follower) and not role.continues
    partition = FetchPartition(
        partition=METADATA_PARTITION,
        current_leader_epoch=replica.epoch,
        fetch_offset=log.end_offset,
        last_fetched_epoch=log.last_epoch,
        partition_max_bytes=0,
        replica_directory_id=config.directory_id,
        high_watermark=replica.committed if shows_mark else replica.high_watermark,
    )
    return FetchRequest(
        cluster_id=config.cluster_id,
        replica_state=ReplicaState(config.node_id),
        max_wait_ms=0 if shows_mark else config.fetch_max_wait_ms,
        max_bytes=config.fetch_max_bytes,
        topics=[FetchTopic(METADATA_TOPIC, METADATA_TOPIC_ID, [partition])],
    )


def _may_fetch(replica: Replica) -> bool:
    """Return whether to fetch now: everything fetched is synced, a truncation is durable, and no fetch is in
    flight. While a snapshot is named, which replaces the log, an answer could be of the log before it.
    """
    log, partial = replica.log, replica.partial
    return (
        log.synced_end_offset >= log.end_offset
        and not (partial is not None and partial.finishing)
        and replica.locating is None
        and not replica.truncation_waits
        and not replica.connections.any_in_flight(replica.now_ms)
    )


def fetch_from_any_server(replica: Replica) -> None:
    """Fetch from a ready bootstrap server, whose answer names the leader. The known leader's address, which
    does not answer, is used only if there is no other server.
    """
    if not _may_fetch(replica):
        return
    servers, leader = replica.bootstrap_destinations(), replica.leader_destination()
    if leader is not None:
        servers = [one for one in servers if (one.host, one.port) != (leader.host, leader.port)] or servers
    if not servers:
        return
    first = replica.rng.below(len(servers))
    for index in range(len(servers)):
        server = servers[(first + index) % len(servers)]
        if replica.connections.is_ready(server.node_id, replica.now_ms):
            replica.send(server, fetch_request(replica))
            return


def fetch_from_leader(replica: Replica, role: Follower) -> None:
    """Fetch from the leader; from another voter while the leader does not answer."""
    leader, now_ms = replica.leader_destination(), replica.now_ms
    if leader is None:
        fetch_from_any_server(replica)
        return
    if replica.connections.has_timed_out(leader.node_id, now_ms):
        replica.connections.reset(leader.node_id)
        fetch_from_any_server(replica)
    elif replica.connections.is_backing_off(leader.node_id, now_ms):
        fetch_from_any_server(replica)
    elif role.download is not None:
        if not role.download.finishing and not replica.connections.any_in_flight(now_ms):
            replica.send(leader, snapshots.fetch_snapshot_request(replica, role.download))
    elif _may_fetch(replica):
        replica.send(leader, fetch_request(replica))


# --- answers to fetches -----------------------------------------------------------------------------------


def on_fetch_response(replica: Replica, source: Destination, response: FetchResponse) -> bool:
    """Handle a fetch response. Returns whether its sender may be asked again at once."""
    if response.error_code:
        return False
    topics = response.responses
    if len(topics) != 1 or topics[0].topic_id != METADATA_TOPIC_ID or len(topics[0].partitions) != 1:
        return False
    partition = topics[0].partitions[0]
    if partition.partition_index != METADATA_PARTITION:
        return False
    reported = checks.reported_leader(replica, partition.current_leader.leader_id, response.node_endpoints)
    epoch, leader = replica.epoch, replica.leader_id
    if replica.new_voter is not None and not epoch:
        return new_voter.on_leader_named(replica, partition.current_leader.leader_epoch, *reported)
    handled = on_common_response(
        replica, partition.error_code, partition.current_leader.leader_epoch, *reported
    )
    if handled is not None:
        if response.node_endpoints and (partition.current_leader.leader_epoch, reported[0]) == (
            epoch,
            leader,
        ):
            move_leader(replica, reported[1])  # another node reported it: the old address does not answer
        return handled and (replica.epoch, replica.leader_id) != (epoch, leader)
    role = replica.role
    if partition.error_code or not isinstance(role, Follower) or _names_half_a_snapshot(partition):
        return False
    if source.node_id != replica.leader_id and response.node_endpoints:
        move_leader(replica, reported[1])  # only the leader itself answers so
    leads_on = _take_in(replica, role, partition)
    _note_leader_answer(replica, role)
    return leads_on


def _names_half_a_snapshot(partition: PartitionData) -> bool:
    """Return whether a response names an epoch without an offset or the reverse, and is thus ignored."""
    snapshot = partition.snapshot_id
    return partition.diverging_epoch.epoch < 0 and (snapshot.epoch < 0) != (snapshot.end_offset < 0)


def _take_in(replica: Replica, role: Follower, partition: PartitionData) -> bool:
    """Apply an answer: truncate, begin a download, or append its records. Returns false if there is nothing
    to do, and the same fetch at once would get the same answer.
    """
    diverging, snapshot = partition.diverging_epoch, partition.snapshot_id
    if diverging.epoch >= 0:
        _truncate(replica, OffsetAndEpoch(diverging.end_offset, diverging.epoch))
    elif snapshot.epoch >= 0:
        return snapshots.begin_download(replica, role, OffsetAndEpoch(snapshot.end_offset, snapshot.epoch))
    else:
        replica.drop_partial()
        role.continues = True
        if partition.records is not None and len(partition.records):
            append_fetched(replica, memoryview(partition.records))
        role.leader_high_watermark = max(role.leader_high_watermark, partition.high_watermark)
        role.leader_log_start_offset = max(role.leader_log_start_offset, partition.log_start_offset)
        follow_high_watermark(replica, role)
    return True


def _truncate(replica: Replica, diverging: OffsetAndEpoch) -> None:
    """Truncate the log where it diverges from the leader's (S9: never below what is committed).

    The leader's batches need not begin where this log's do, so the batch to begin with is located first.
    """
    offset = replica.log.truncation_offset(diverging)
    divergence = min(offset, diverging.offset)
    if divergence < replica.committed:
        raise CommittedIsLost(replica, f"is asked to truncate to {offset}", divergence)
    if offset < replica.log.end_offset:
        replica.locating = offset
        replica.emit(LocateBatch(offset))


def on_batch_located(replica: Replica, event: BatchLocated) -> None:
    """Truncate the log before the batch that holds the offset, unless the log or the leader has changed."""
    if event.offset != replica.locating:
        return
    replica.locating = None
    offset = event.base_offset
    if not replica.log.start_offset <= offset < replica.log.end_offset:
        return
    if offset < replica.committed:
        happened = f"is asked to truncate to {event.offset}, in a batch from {offset} on,"
        raise CommittedIsLost(replica, happened, offset)
    replica.log.truncate_to(offset)
    replica.truncated()
    replica.emit(TruncateLog(offset, replica.leader_id_or_none, replica.epoch))
    if replica.history.truncate_to(offset):
        replica.voters_changed()
    replica.sync_truncation()


def append_fetched(replica: Replica, data: memoryview) -> None:
    """Append the first batches as long as they continue the log and are whole and sound; drop the rest.

    A leader may cut its last batch short. Batches of a later epoch than this replica's belong to a leader
    that it does not follow yet.
    """
    start_offset = replica.log.end_offset
    position = base_offset = end_offset = run_start = 0
    run_epoch = -1
    for batch in _sound_batches(replica, data):
        header = batch.header
        if header.leader_epoch != run_epoch:
            if position > run_start:
                replica.append(data[run_start:position], base_offset, end_offset, run_epoch)
            run_start, run_epoch, base_offset = position, header.leader_epoch, header.base_offset
        end_offset, position = header.next_offset, position + header.size_bytes
    if position > run_start:
        replica.append(data[run_start:position], base_offset, end_offset, run_epoch)
    if position:
        replica.measured.fetched.record(end_offset - start_offset, replica.now_ms)
        replica.request_sync()
        replica.read_control_records(data[:position])


def _sound_batches(replica: Replica, data: memoryview) -> Iterator[Batch]:
    expected_offset, epoch = replica.log.end_offset, replica.log.last_epoch
    try:
        for batch in iter_batches(data):
            header = batch.header
            if header.base_offset != expected_offset or not epoch <= header.leader_epoch <= replica.epoch:
                return
            yield batch
            expected_offset, epoch = header.next_offset, header.leader_epoch
    except CorruptBatch:
        return


def follow_high_watermark(replica: Replica, role: Follower) -> None:
    """Commit up to the leader's high watermark, as far as it is synced here; it never goes back (S7)."""
    offset = min(role.leader_high_watermark, replica.log.synced_end_offset)
    if offset > max(replica.high_watermark, 0):
        replica.high_watermark = offset
        replica.emit(HighWatermarkMoved(offset))
    if replica.new_voter is not None:
        new_voter.on_high_watermark(replica, role)


def _note_leader_answer(replica: Replica, role: Follower) -> None:
    role.fetch_deadline_ms = replica.fetch_deadline_ms()
    role.has_fetched = True
    role.connection_lost = False
    replica.without_log.clear()
    if replica.new_voter is not None:
        new_voter.on_leader_answer(replica, replica.new_voter)
    replica.quick_rounds = 0


def on_records_synced(replica: Replica, end_offset: int) -> None:
    replica.synced(end_offset)
    if isinstance(replica.role, Follower):
        follow_high_watermark(replica, replica.role)
    replica.request_sync()


# --- losing the leader --------------------------------------------------------------------------------


def on_connection_lost(replica: Replica, node_id: int) -> None:
    """Ask for pre-votes soon, not after the fetch timeout: the leader's process or the link to it is gone.

    The voters start one after another by id, so that one gets a pre-vote request before it starts an
    election itself. A replica whose own link broke learns that from the others' refusals, and doubles its
    wait each time.
    """
    role = replica.role
    if not isinstance(role, Follower) or node_id != replica.leader_id or not replica.may_be_elected:
        return
    role.connection_lost = True
    wait_ms = replica.stagger_ms() + (STAGGER_MS << min(replica.quick_rounds, 12)) - STAGGER_MS
    replica.quick_rounds += 1
    role.fetch_deadline_ms = min(role.fetch_deadline_ms, replica.now_ms + wait_ms)


# --- time ---------------------------------------------------------------------------------------------


def poll_follower(replica: Replica, role: Follower) -> int | None:
    """Fetch; a voter becomes prospective when the leader has been silent for the fetch timeout."""
    if replica.shutting_down:
        return None
    if replica.may_be_elected and replica.now_ms >= role.fetch_deadline_ms:
        become_prospective(replica, Cause.FETCH_TIMEOUT)
        return None
    new = replica.new_voter
    if new is not None and not new_voter.may_fetch(replica, new):
        return role.fetch_deadline_ms
    if not join_or_update(replica, role):
        fetch_from_leader(replica, role)
    deadlines = [role.fetch_deadline_ms] if replica.may_be_elected else []
    if role.update_voter_deadline_ms > replica.now_ms:
        deadlines.append(role.update_voter_deadline_ms)
    return min(deadlines, default=None)
