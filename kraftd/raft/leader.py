"""Leading an epoch: its first records, appends, the high watermark, check-quorum, and notifying the voters.

Each append becomes one batch and is written at once. A sync begins as soon as none is under way, so that
appends that arrive meanwhile share the next (group commit without linger).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from kraftd.messages.begin_quorum_epoch_request import (
    BeginQuorumEpochRequest,
    LeaderEndpoint,
    PartitionData,
    TopicData,
)
from kraftd.messages.kraft_version_record import KRaftVersionRecord
from kraftd.messages.leader_change_message import LeaderChangeMessage, Voter
from kraftd.raft import fetch_answers
from kraftd.raft.effects import (
    AppendAborted,
    AppendAccepted,
    AppendCommitted,
    AppendRefused,
    HighWatermarkMoved,
    ReplicaWentBack,
)
from kraftd.raft.events import AppendId, AppendRequested, RequestId
from kraftd.raft.quorum.majority import majority
from kraftd.raft.quorum.progress import Progress
from kraftd.raft.replica import ConsensusBroken, Replica
from kraftd.raft.roles import Candidate, Leader, Resigned
from kraftd.raft.transitions import Cause
from kraftd.raft.voter_change import finish_voter_change
from kraftd.types import METADATA_PARTITION, METADATA_TOPIC, ZERO_UUID, ReplicaKey
from kraftd.wire.batch import ControlRecordType, batch_size_bytes, build_batch, build_control_batch
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.message import Message

COMMITTED = "committed"  # the key under which appends wait

ControlRecord = tuple[ControlRecordType, Message, int]


# --- coming and going ---------------------------------------------------------------------------------


def become_leader(replica: Replica) -> None:
    """Lead the epoch that was won; its first records are appended before any replica is notified (S8)."""
    role, log, config = replica.role, replica.log, replica.config
    assert isinstance(role, Candidate)
    if log.end_offset < replica.high_watermark:
        raise ConsensusBroken(f"{replica!r} is elected without records that were committed")
    progress = Progress(replica.key, replica.voters, replica.acknowledged)
    progress.local_synced(log.synced_end_offset)
    leader = Leader(progress, log.end_offset, replica.check_quorum_deadline_ms(), replica.now_ms)
    if replica.history.kraft_version == 0:
        leader.kraft_version_voters = replica.voters.updated(config.voter_node)
    replica.become(Cause.VOTES_WON, leader, leader_id=config.node_id, leader_listeners=config.listeners)
    replica.measured.leader_found(replica.now_ms)
    replica.drop_partial()
    append_control(replica, start_of_epoch_records(replica, role.votes.granting))


def start_of_epoch_records(replica: Replica, granting: Sequence[int]) -> list[ControlRecord]:
    """LeaderChange; with kraft.version 1 also KRaftVersion and Voters in two cases. Either no log has the
    voters yet (they come from the bootstrap checkpoint), or their address of this replica is wrong.
    """
    change = LeaderChangeMessage(
        leader_id=replica.config.node_id,
        voters=[Voter(node_id) for node_id in replica.voters.ids],
        granting_voters=[Voter(node_id) for node_id in granting],
    )
    records: list[ControlRecord] = [(ControlRecordType.LEADER_CHANGE, change, 0)]
    history = replica.history
    if history.kraft_version == 0:
        return records
    if history.voters_offset is None:
        raise ConsensusBroken(
            f"kraft.version is {history.kraft_version}, and no voters stand in log or checkpoint"
        )
    node = replica.config.voter_node
    if history.voters_offset == -1 or history.voters.needs_update(node):
        voters = history.voters.updated(node)
        assert voters is not None
        version = KRaftVersionRecord(kraft_version=history.kraft_version)
        records.append((ControlRecordType.KRAFT_VERSION, version, 0))
        records.append((ControlRecordType.KRAFT_VOTERS, voters.to_record(), 0))
    return records


@contextmanager
def leave_leadership(replica: Replica) -> Iterator[None]:
    """Surround a change of role: requests that waited for the old role are answered once the new one is
    durable.
    """
    was = replica.role
    yield
    if isinstance(was, Leader):
        replica.measured.leadership_ended()
        replica.acknowledged |= was.progress.acknowledged(replica.high_watermark)
        finish_voter_change(replica, was, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        fetch_answers.refuse_all(replica, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        for append_id in replica.appends.complete_all(COMMITTED):
            replica.emit(AppendAborted(append_id))


def resign(replica: Replica, leader: Leader) -> None:
    """Resign: accept and commit no more records of this epoch."""
    deadline_ms = replica.now_ms + replica.random_election_timeout_ms()
    others = set(leader.progress.voters) - {replica.config.node_id}
    successors = [one.key for one in leader.progress.by_descending_end()]
    with leave_leadership(replica):
        replica.become(
            Cause.RESIGNATION,
            Resigned(deadline_ms, others, successors),
            leader_id=replica.config.node_id,
            leader_listeners=replica.config.listeners,
        )


# --- appends ------------------------------------------------------------------------------------------


def append_control(replica: Replica, records: Sequence[ControlRecord]) -> int:
    """Append one control batch; its voters and kraft.version are in force at once. Returns its end offset."""
    log = replica.log
    base_offset = log.end_offset
    data = build_control_batch(records, base_offset, replica.epoch, replica.wall_ms)
    replica.append(data, base_offset, base_offset + len(records), replica.epoch)
    replica.read_control_records(data)
    _appended(replica, len(records))
    assert isinstance(replica.role, Leader)
    fetch_answers.voters_changed(replica, replica.role)
    return log.end_offset


def on_append_requested(replica: Replica, event: AppendRequested) -> None:
    """Write records of the controller, or refuse them."""
    if not _accepts_appends(replica, event.epoch):
        replica.emit(AppendRefused(event.append_id, ErrorCode.NOT_CONTROLLER))
        return
    batches = _cut(event.values, replica.config.max_batch_bytes, event.atomic)
    if batches is None:
        replica.emit(AppendRefused(event.append_id, ErrorCode.RECORD_LIST_TOO_LARGE))
        return
    base_offset = replica.log.end_offset
    end_offset = base_offset + len(event.values)
    replica.emit(AppendAccepted(event.append_id, base_offset, end_offset, replica.epoch))
    for values in batches:
        data = build_batch(values, base_offset, replica.epoch, replica.wall_ms)
        replica.append(data, base_offset, base_offset + len(values), replica.epoch)
        base_offset += len(values)
    _await_commit(replica, event.append_id)
    if event.values:
        _appended(replica, len(event.values))


def _accepts_appends(replica: Replica, epoch: int) -> bool:
    return isinstance(replica.role, Leader) and replica.epoch == epoch and not replica.shutting_down


def _cut(values: list[bytes], max_batch_bytes: int, atomic: bool) -> list[list[bytes]] | None:
    """The values cut into batches; None if they must be one batch and are too large for it."""
    if not values:
        return []
    if sum(map(len, values)) < max_batch_bytes // 2 and len(values) < max_batch_bytes // 80:
        return [values]
    if batch_size_bytes(values) <= max_batch_bytes:
        return [values]
    if atomic or len(values) == 1:
        return None
    middle = len(values) // 2
    first = _cut(values[:middle], max_batch_bytes, atomic)
    second = _cut(values[middle:], max_batch_bytes, atomic)
    return None if first is None or second is None else first + second


def _await_commit(replica: Replica, append_id: AppendId) -> None:
    leader, end_offset = replica.role, replica.log.end_offset
    assert isinstance(leader, Leader)
    if end_offset <= leader.high_watermark:
        replica.emit(AppendCommitted(append_id, end_offset))
    else:
        replica.appends.park(append_id, append_id, [(COMMITTED, end_offset)])


def _appended(replica: Replica, count: int) -> None:
    leader = replica.role
    assert isinstance(leader, Leader)
    replica.measured.leader_appended(replica.log.end_offset, count, replica.now_ms)
    replica.request_sync()
    fetch_answers.records_appended(replica, leader)


def on_records_synced(replica: Replica, leader: Leader, end_offset: int) -> None:
    """Count the leader's own log up to its new synced end."""
    if replica.synced(end_offset):
        leader.progress.local_synced(replica.log.synced_end_offset)
        advance_high_watermark(replica, leader)
    replica.request_sync()


# --- the high watermark -------------------------------------------------------------------------------


def advance_high_watermark(replica: Replica, leader: Leader) -> None:
    """Commit what a majority of the voters has synced, once it reaches into the epoch.

    The leader counts as one voter: if its own disk is the slowest, the others commit without it. Records of
    older epochs commit only together with one of this epoch (S8).
    """
    offset = leader.progress.committable()
    if offset is None:
        return
    offset = min(offset, replica.log.end_offset)
    if offset <= leader.epoch_start_offset or offset <= leader.high_watermark:
        return
    leader.high_watermark = offset
    replica.measured.leader_committed(offset, replica.now_ms)
    replica.high_watermark = offset  # not below the old one, which was at most the epoch's start
    replica.emit(HighWatermarkMoved(offset))
    if not leader.announced:
        leader.announced = True
        replica.announce_leadership()
    for append_id in replica.appends.reach(COMMITTED, offset):
        replica.emit(AppendCommitted(append_id, offset))
    fetch_answers.high_watermark_moved(replica, leader)


# --- holding the quorum -------------------------------------------------------------------------------


def note_fetch_of_voter(replica: Replica, leader: Leader, key: ReplicaKey) -> None:
    """Note that another voter fetched.

    If a majority has fetched since last time, the leader may continue (S16).
    """
    if key.id == replica.config.node_id or not leader.progress.is_voter(key):
        return
    leader.fetched_voters.add(key.id)
    needed = majority(len(leader.progress.voters))
    if replica.config.node_id in leader.progress.voters:
        needed -= 1  # itself
    if len(leader.fetched_voters) >= needed:
        leader.fetched_voters.clear()
        leader.check_quorum_deadline_ms = replica.check_quorum_deadline_ms()


def note_older_epoch(replica: Replica, request_id: RequestId, key: ReplicaKey, epoch: int) -> None:
    """Report a request of an older epoch by a replica that has fetched in this one: its epoch went back."""
    leader = replica.role
    if not isinstance(leader, Leader):
        return
    one = leader.progress.find(key)
    if one is not None and one.end_offset is not None and key.id != replica.config.node_id:
        is_voter = leader.progress.is_voter(key)
        replica.emit(ReplicaWentBack(request_id, key, is_voter, one.acknowledged, replica.epoch, None, epoch))


def begin_quorum_epoch(replica: Replica, leader: Leader) -> None:
    """Send BeginQuorumEpoch to the voters that have not fetched for a while."""
    quiet_ms = replica.config.fetch_timeout_ms // 2
    for one in leader.progress.voters.values():
        if one.key.id != replica.config.node_id and replica.now_ms - one.last_fetch_ms >= quiet_ms:
            replica.send(replica.voter_destination(one.key.id), _begin_request(replica, one.key))
    leader.begin_deadline_ms = replica.now_ms + quiet_ms


def _begin_request(replica: Replica, voter: ReplicaKey) -> BeginQuorumEpochRequest:
    partition = PartitionData(
        METADATA_PARTITION, voter.directory_id or ZERO_UUID, replica.config.node_id, replica.epoch
    )
    return BeginQuorumEpochRequest(
        replica.config.cluster_id,
        voter.id,
        [TopicData(METADATA_TOPIC, [partition])],
        [LeaderEndpoint(one.listener, one.host, one.port) for one in replica.config.listeners],
    )
