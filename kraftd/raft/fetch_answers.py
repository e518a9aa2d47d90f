"""Answering fetches, those that were parked included (KIP-595, KIP-1166).

Two keys in the purgatory: fetches of voters wait for the log end, those of observers for the synced end of
the leader's log; both are woken by every move of the high watermark.  A voter may so write a record while the
leader itself still syncs it, which halves the time to commit, and commits it without a leader whose disk is
slow.  That is safe: the leader counts itself only up to what it has synced, and having lost a tail it never
leads that epoch again.
"""

from __future__ import annotations

from msgspec import Struct

from kraftd.messages.fetch_response import EpochEndOffset, SnapshotId
from kraftd.raft import answers
from kraftd.raft.effects import Respond, RespondRecords
from kraftd.raft.events import RequestId
from kraftd.raft.log_view import DIVERGING, SNAPSHOT, VALID, Position
from kraftd.raft.replica import Replica
from kraftd.raft.roles import Leader
from kraftd.types import ReplicaKey
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.message import Message

BY_VOTER = "fetches of voters"
BY_OBSERVER = "fetches of observers"


class FetchAsked(Struct, frozen=True, gc=False):
    """A Fetch that passed all checks: who, from where, and how it is to be answered."""

    request_id: RequestId
    version: int
    listener: str
    key: ReplicaKey
    offset: int
    last_fetched_epoch: int
    max_bytes: int
    high_watermark: int


def queue_of(leader: Leader, key: ReplicaKey) -> str:
    return BY_VOTER if leader.progress.is_voter(key) else BY_OBSERVER


def readable_end(replica: Replica, leader: Leader, key: ReplicaKey) -> int:
    """The offset up to which that replica may read: a voter all, others what no crash takes back."""
    if leader.progress.is_voter(key):
        return replica.log.end_offset
    return max(replica.log.synced_end_offset, leader.high_watermark)


def answer(
    replica: Replica,
    leader: Leader,
    fetch: FetchAsked,
    position: Position,
    end_offset: int,
    *,
    may_park: bool,
) -> bool:
    """Answer with what there is at that position, up to `end_offset` (`readable_end`): records, a diverging
    epoch, a snapshot id, a higher high watermark, or nothing.

    Returns false, and answers nothing, when there is nothing and it may be parked for that.
    """
    fit, at = position
    high_watermark = leader.high_watermark
    has_records = fit is VALID and fetch.offset < end_offset
    if fit is VALID and not has_records:
        if may_park and fetch.high_watermark >= high_watermark:
            return False
        message = nothing(replica, leader, fetch.version, fetch.listener)
        replica.emit(Respond(fetch.request_id, message, fetch.version))
        return True
    message, partition = answers.fetch(replica, fetch.version, fetch.listener, ErrorCode.NONE, high_watermark)
    if fit is DIVERGING:
        partition.diverging_epoch = EpochEndOffset(at.epoch, at.offset)
    elif fit is SNAPSHOT:
        partition.snapshot_id = SnapshotId(at.offset, at.epoch)
    if has_records:
        replica.emit(
            RespondRecords(
                fetch.request_id, message, fetch.version, fetch.offset, end_offset, fetch.max_bytes
            )
        )
    else:
        replica.emit(Respond(fetch.request_id, message, fetch.version))
    return True


def nothing(replica: Replica, leader: Leader, version: int, listener: str) -> Message:
    """The answer of a leader that has nothing new, by far the most frequent of all: one object, as long as it
    would be the same, for whoever asks.  Nobody may change it."""
    high_watermark, log_start_offset = leader.high_watermark, replica.log.start_offset
    known = leader.empty_fetches.get((version, listener))
    if known is not None and known[0] == high_watermark and known[1] == log_start_offset:
        return known[2]
    message, _ = answers.fetch(replica, version, listener, ErrorCode.NONE, high_watermark)
    leader.empty_fetches[version, listener] = (high_watermark, log_start_offset, message)
    return message


def wake(replica: Replica, leader: Leader, fetches: list[FetchAsked]) -> None:
    """Answer fetches that left the purgatory for a reason; they count as fetches of this moment."""
    for fetch in fetches:
        end_offset = readable_end(replica, leader, fetch.key)
        if fetch.key.id >= 0:
            leader.progress.fetched(fetch.key, fetch.offset, end_offset, replica.now_ms)
        position = replica.log.locate(fetch.offset, fetch.last_fetched_epoch)
        answer(replica, leader, fetch, position, end_offset, may_park=False)


def records_appended(replica: Replica, leader: Leader) -> None:
    """Voters may read up to the log end at once."""
    wake(replica, leader, replica.fetches.reach(BY_VOTER, replica.log.end_offset))


def records_synced(replica: Replica, leader: Leader) -> None:
    wake(replica, leader, replica.fetches.reach(BY_OBSERVER, replica.log.synced_end_offset))


def high_watermark_moved(replica: Replica, leader: Leader) -> None:
    """Everybody hears of it, whatever the version of the request (KIP-1166)."""
    for queue in (BY_VOTER, BY_OBSERVER):
        wake(replica, leader, replica.fetches.complete_all(queue))


def expire(replica: Replica) -> None:
    """Answer the fetches that waited as long as they wanted to, with nothing."""
    for fetch in replica.fetches.expire(replica.now_ms):
        leader = replica.role
        if isinstance(leader, Leader):
            end_offset = readable_end(replica, leader, fetch.key)
            position = replica.log.locate(fetch.offset, fetch.last_fetched_epoch)
            answer(replica, leader, fetch, position, end_offset, may_park=False)
        else:
            refuse(replica, fetch, ErrorCode.NOT_LEADER_OR_FOLLOWER)


def refuse(replica: Replica, fetch: FetchAsked, error: ErrorCode) -> None:
    message, _ = answers.fetch(replica, fetch.version, fetch.listener, error)
    replica.emit(Respond(fetch.request_id, message, fetch.version))


def refuse_all(replica: Replica, error: ErrorCode) -> None:
    """The leadership is over: whoever is parked must look for the next leader."""
    for queue in (BY_VOTER, BY_OBSERVER):
        for fetch in replica.fetches.complete_all(queue):
            refuse(replica, fetch, error)
