"""Planted defects, each in one function of the core, and the invariant that has to catch it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kraftd.fetch.purgatory import Purgatory
from kraftd.raft import election, fetch_answers, fetch_requests, follower, leader, snapshots
from kraftd.raft.effects import Respond, TruncateLog
from kraftd.raft.log_view import LogView
from kraftd.raft.quorum import majority, progress
from kraftd.raft.replica import Replica

Patch = Callable[[Any], None]  # takes pytest's monkeypatch


def count_observers(patch: Any) -> None:
    """S7: an observer's log end counts towards the majority."""

    def committable(self: progress.Progress) -> int | None:
        ends = [one.end_offset for one in [*self.voters.values(), *self.observers.values()]]
        return majority.majority_offset(sorted(-1 if e is None else e for e in ends)[-len(self.voters) :])

    patch.setattr(progress.Progress, "committable", committable)


def count_one_vote_less(patch: Any) -> None:
    """S1: half of the voters are a majority."""
    patch.setattr(majority.Votes, "won", property(lambda self: len(self.granting) * 2 >= len(self.voters)))


def vote_twice(patch: Any) -> None:
    """S3: a granted vote is forgotten when the next candidate asks."""

    def grants(replica: Replica, candidate: Any, up_to_date: bool) -> bool:
        granted = up_to_date and replica.state.value in ("unattached", "prospective")
        if granted:
            replica.voted = None
        return granted

    patch.setattr(election, "grants_vote", grants)


def vote_for_any_candidate(patch: Any) -> None:
    """S5: the candidate's log is ignored."""
    judge = election._judge

    def blind(replica: Replica, voter_id: int, partition: Any) -> Any:
        partition.last_offset, partition.last_offset_epoch = 1 << 40, max(0, partition.replica_epoch - 1)
        return judge(replica, voter_id, partition)

    patch.setattr(election, "_judge", blind)


def count_unsynced(patch: Any) -> None:
    """S7: the leader counts records that it has not synced."""

    def on_append(replica: Replica, _count: int) -> None:
        replica.request_sync()
        role: Any = replica.role
        role.progress.local_synced(replica.log.end_offset)
        replica.log.synced_end_offset = replica.log.end_offset
        leader.advance_high_watermark(replica, role)
        fetch_answers.records_appended(replica, role)

    patch.setattr(leader, "_appended", on_append)


def fetch_unsynced(patch: Any) -> None:
    """S12: a follower sends its next fetch before its records are synced."""
    patch.setattr(
        follower, "_may_fetch", lambda replica: not replica.connections.any_in_flight(replica.now_ms)
    )


def commit_old_epochs(patch: Any) -> None:
    """S8: records of older epochs commit by themselves."""
    advance = leader.advance_high_watermark

    def early(replica: Replica, role: Any) -> bool:
        start, role.epoch_start_offset = role.epoch_start_offset, -1
        try:
            return advance(replica, role)
        finally:
            role.epoch_start_offset = start

    patch.setattr(leader, "advance_high_watermark", early)
    patch.setattr(fetch_requests, "advance_high_watermark", early)


def trust_the_leaders_mark(patch: Any) -> None:
    """A follower commits records that it does not have."""

    def follow(replica: Replica, role: Any) -> None:
        replica.high_watermark = max(replica.high_watermark, role.leader_high_watermark)

    patch.setattr(follower, "follow_high_watermark", follow)


def lead_the_same_epoch_again(patch: Any) -> None:
    """A restarted leader may be elected in its old epoch, even if its log lost records."""

    def start(replica: Replica) -> None:
        replica.epoch, replica.leader_id, replica.voted = max(0, replica.epoch - 1), None, None
        replica.role = election.Unattached(replica.election_deadline_ms())
        replica.persist_election()

    patch.setattr(election, "start", start)


def keep_the_diverging_tail(patch: Any) -> None:
    """S4: the offset alone decides whether a follower continues the log."""
    locate = LogView.locate

    def by_offset(self: LogView, offset: int, epoch: int) -> Any:
        at = locate(self, offset, epoch)
        if at.fit.value == "diverging" and offset <= self.end_offset:
            return at._replace(fit=type(at.fit).VALID)
        return at

    patch.setattr(LogView, "locate", by_offset)


def truncate_below_the_mark(patch: Any) -> None:
    """S9: a follower whose log diverges from the leader's drops everything."""

    def truncate(replica: Replica, diverging: Any) -> None:
        if replica.log.end_offset > replica.log.start_offset:
            replica.log.truncate_to(replica.log.start_offset)
            replica.truncated()
            replica.emit(TruncateLog(replica.log.start_offset, replica.leader_id_or_none, replica.epoch))

    patch.setattr(follower, "_truncate", truncate)


def answer_twice(patch: Any) -> None:
    """S19: a woken fetch is answered twice."""

    original = fetch_answers.wake

    def wake(replica: Replica, role: Any, fetches: list[Any]) -> None:
        original(replica, role, fetches)
        original(replica, role, fetches)

    patch.setattr(fetch_answers, "wake", wake)


def forget_a_parked_fetch(patch: Any) -> None:
    """S19: the high watermark moves, and one of the waiting fetches is not notified."""
    complete_all = Purgatory.complete_all

    def forgetful(self: Any, key: Any) -> list[Any]:
        return complete_all(self, key)[1:]

    patch.setattr(Purgatory, "complete_all", forgetful)


def forget_at_the_deadline(patch: Any) -> None:
    """S19: parked fetches never expire."""
    patch.setattr(Purgatory, "expire", lambda self, now_ms: [])
    patch.setattr(Purgatory, "deadline_ms", lambda self: None)


def refuse_no_parked_fetch(patch: Any) -> None:
    """S19: the leadership ends, and parked fetches stay parked."""
    patch.setattr(fetch_answers, "refuse_all", lambda replica, error: None)


def answer_without_a_mark(patch: Any) -> None:
    """A woken fetch is answered without the new high watermark."""

    def wake(replica: Replica, role: Any, fetches: list[Any]) -> None:
        for fetch in fetches:
            message, _ = fetch_answers.answers.fetch(replica, fetch.version, fetch.listener, 0, -1)
            replica.emit(Respond(fetch.request_id, message, fetch.version))

    patch.setattr(fetch_answers, "wake", wake)


def go_on_without_comparing(patch: Any) -> None:
    """A download continues with any leader's copy."""
    begin = snapshots.begin_download

    def begin_download(replica: Replica, role: Any, snapshot_id: Any) -> bool:
        begun = begin(replica, role, snapshot_id)
        if role.download is not None:
            role.download.unchecked = b""
            role.download.size_bytes = -1
        return begun

    patch.setattr(snapshots, "begin_download", begin_download)
