"""Answering fetches, those that were parked included (KIP-595, KIP-1166).

Two keys in the purgatory: fetches of voters wait for the log end, those of observers for the high watermark;
every move of the high watermark wakes both.

A voter may write a record while the leader itself still syncs it. That halves the time to commit, and a slow
disk of the leader holds up no commit. It is safe: the leader counts itself only up to its synced end. If it
loses a tail in a crash, it never leads that epoch again.

An observer reads committed records only, and the answer with the records also has the high watermark that
covers them: one wake-up instead of two. An observer below Fetch v18 does not send the high watermark that it
knows. If it got a record before the commit, its next fetch would park although the high watermark has moved.
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


class ReceivedFetch(Struct, frozen=True, gc=False):
    """A Fetch that passed all checks: its replica, its position, how to answer it, and its deadline."""

    request_id: RequestId
    version: int
    listener: str
    key: ReplicaKey
    offset: int
    last_fetched_epoch: int
    max_bytes: int
    high_watermark: int
    deadline_ms: int


def readable_end(replica: Replica, *, is_voter: bool) -> int:
    """The offset up to which another replica may read: for a voter the log end, for an observer the high
    watermark.
    """
    return replica.log.end_offset if is_voter else replica.high_watermark


def park(replica: Replica, leader: Leader, fetch: ReceivedFetch) -> None:
    """Park a fetch until there is something to answer, or until its deadline."""
    queue = BY_VOTER if leader.progress.is_voter(fetch.key) else BY_OBSERVER
    replica.fetches.park(fetch.request_id, fetch, [(queue, fetch.offset + 1)], fetch.deadline_ms)


def answer(
    replica: Replica,
    leader: Leader,
    fetch: ReceivedFetch,
    position: Position,
    end_offset: int,
    *,
    may_park: bool,
) -> bool:
    """Answer a fetch by its position, up to `end_offset` (`readable_end`): with records, a diverging epoch, a
    snapshot id, a higher high watermark, or nothing.

    Returns false, without an answer, if there is nothing and the fetch may be parked.
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
    """A leader's answer without news, by far the most frequent: all fetches share one object while its
    content is the same, so it must not be changed.
    """
    high_watermark, log_start_offset = leader.high_watermark, replica.log.start_offset
    known = leader.empty_fetches.get((version, listener))
    if known is not None and known[0] == high_watermark and known[1] == log_start_offset:
        return known[2]
    message, _ = answers.fetch(replica, version, listener, ErrorCode.NONE, high_watermark)
    leader.empty_fetches[version, listener] = (high_watermark, log_start_offset, message)
    return message


def wake(replica: Replica, leader: Leader, fetches: list[ReceivedFetch]) -> None:
    """Answer fetches that left the purgatory; they count as fetched now."""
    for fetch in fetches:
        if fetch.key.id >= 0:
            leader.progress.waited(fetch.key, fetch.offset, replica.log.end_offset, replica.now_ms)
        end_offset = readable_end(replica, is_voter=leader.progress.is_voter(fetch.key))
        position = replica.log.locate(fetch.offset, fetch.last_fetched_epoch)
        answer(replica, leader, fetch, position, end_offset, may_park=False)


def records_appended(replica: Replica, leader: Leader) -> None:
    """Wake the voters' fetches: voters may read up to the log end at once."""
    wake(replica, leader, replica.fetches.reach(BY_VOTER, replica.log.end_offset))


def voters_changed(replica: Replica, leader: Leader) -> None:
    """Wake an observer that has become a voter: it may read up to the log end, and the commit of that change
    may need it.
    """
    for fetch in replica.fetches.complete_all(BY_OBSERVER):
        if leader.progress.is_voter(fetch.key):
            wake(replica, leader, [fetch])
        else:
            park(replica, leader, fetch)


def high_watermark_moved(replica: Replica, leader: Leader) -> None:
    """Notify every replica, also those with older versions of Fetch (KIP-1166)."""
    for queue in (BY_VOTER, BY_OBSERVER):
        wake(replica, leader, replica.fetches.complete_all(queue))


def expire(replica: Replica) -> None:
    """Answer the fetches whose waiting time is over, with nothing."""
    for fetch in replica.fetches.expire(replica.now_ms):
        leader = replica.role
        if isinstance(leader, Leader):
            end_offset = readable_end(replica, is_voter=leader.progress.is_voter(fetch.key))
            position = replica.log.locate(fetch.offset, fetch.last_fetched_epoch)
            answer(replica, leader, fetch, position, end_offset, may_park=False)
        else:
            refuse(replica, fetch, ErrorCode.NOT_LEADER_OR_FOLLOWER)


def refuse(replica: Replica, fetch: ReceivedFetch, error: ErrorCode) -> None:
    message, _ = answers.fetch(replica, fetch.version, fetch.listener, error)
    replica.emit(Respond(fetch.request_id, message, fetch.version))


def refuse_all(replica: Replica, error: ErrorCode) -> None:
    """Refuse parked fetches at the end of a leadership: their replicas must look for the next leader."""
    for queue in (BY_VOTER, BY_OBSERVER):
        for fetch in replica.fetches.complete_all(queue):
            refuse(replica, fetch, error)
