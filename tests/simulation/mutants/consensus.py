"""Defects of the consensus core."""

from __future__ import annotations

from typing import Any

from kraftd.fetch.purgatory import Purgatory
from kraftd.raft import (
    checks,
    election,
    fetch_answers,
    fetching,
    follower,
    leader,
    majority,
    progress,
    resigning,
    snapshots,
)
from kraftd.raft import core as raft_core
from kraftd.raft import reconfiguration as reconfig
from kraftd.raft.effects import ShutdownCompleted
from kraftd.raft.log_view import LogView
from kraftd.raft.replica import Replica
from kraftd.wire.error_code import ErrorCode


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
    """S3: a vote that was given is forgotten when the next candidate asks."""

    def grants(replica: Replica, candidate: Any, up_to_date: bool) -> bool:
        granted = up_to_date and replica.state.value in ("unattached", "prospective")
        if granted:
            replica.voted = None
        return granted

    patch.setattr(election, "grants_vote", grants)


def vote_before_it_is_durable(patch: Any) -> None:
    """S3: the vote is told, and not written."""
    patch.setattr(Replica, "persist_election", lambda self: None)


def vote_for_anybody(patch: Any) -> None:
    """S5: the candidate's log is not looked at."""
    judge = election._judge

    def blind(replica: Replica, voter_id: int, asked: Any) -> Any:
        asked.last_offset, asked.last_offset_epoch = 1 << 40, max(0, asked.replica_epoch - 1)
        return judge(replica, voter_id, asked)

    patch.setattr(election, "_judge", blind)


def count_unsynced(patch: Any) -> None:
    """S7: the leader counts what it has appended."""

    def on_append(replica: Replica, _count: int) -> None:
        replica.ask_sync()
        role: Any = replica.role
        role.progress.local_synced(replica.log.end_offset)
        replica.log.synced_end_offset = replica.log.end_offset
        leader.advance_high_watermark(replica, role)
        fetch_answers.records_appended(replica, role)

    patch.setattr(leader, "_appended", on_append)


def fetch_unsynced(patch: Any) -> None:
    """S12: a follower fetches on before what it has is synced."""
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
    patch.setattr(fetching, "advance_high_watermark", early)


def truncate_below_the_mark(patch: Any) -> None:
    """S9: a follower whose log parts from the leader's drops everything."""
    from kraftd.raft.effects import TruncateLog

    def truncate(replica: Replica, diverging: Any) -> None:
        if replica.log.end_offset > replica.log.start_offset:
            replica.log.truncate_to(replica.log.start_offset)
            replica.truncated()
            replica.emit(TruncateLog(replica.log.start_offset))

    patch.setattr(follower, "_truncate", truncate)


def keep_the_diverging_tail(patch: Any) -> None:
    """S4: the offset alone decides whether a follower continues the log."""
    locate = LogView.locate

    def by_offset(self: LogView, offset: int, epoch: int) -> Any:
        at = locate(self, offset, epoch)
        if at.fit.value == "diverging" and offset <= self.end_offset:
            return at._replace(fit=type(at.fit).VALID)
        return at

    patch.setattr(LogView, "locate", by_offset)


def take_another_for_the_snapshot(patch: Any) -> None:
    """S10: a snapshot of what is not committed yet counts as one."""

    def high_watermark(self: Any) -> int:
        return self._replica.log.synced_end_offset

    patch.setattr(raft_core.RaftCore, "high_watermark", property(high_watermark))


def hold_on_without_a_quorum(patch: Any) -> None:
    """S16: a leader that nobody fetches from goes on."""
    patch.setattr(Replica, "check_quorum_deadline_ms", lambda self: self.now_ms + 3_600_000)


def heed_other_clusters(patch: Any) -> None:
    """S17: the cluster id is not looked at."""
    patch.setattr(checks, "cluster_id", lambda replica, cluster_id: ErrorCode.NONE)


def change_voters_at_will(patch: Any) -> None:
    """S13: a change of the voters does not wait for the one before."""

    def whenever(replica: Replica) -> None:
        replica.role.voter_change = None  # type: ignore[union-attr]

    patch.setattr(reconfig, "_not_now", whenever)


def answer_twice(patch: Any) -> None:
    """S19: who was woken is answered, and answered again."""

    original = fetch_answers.wake

    def wake(replica: Replica, role: Any, fetches: list[Any]) -> None:
        original(replica, role, fetches)
        original(replica, role, fetches)

    patch.setattr(fetch_answers, "wake", wake)


def forget_a_parked_fetch(patch: Any) -> None:
    """S19: the high watermark moves, and one of those that wait is not told."""
    complete_all = Purgatory.complete_all

    def forgetful(self: Any, key: Any) -> list[Any]:
        return complete_all(self, key)[1:]

    patch.setattr(Purgatory, "complete_all", forgetful)


def forget_at_the_deadline(patch: Any) -> None:
    """S19: nobody looks at the clock for parked fetches."""
    patch.setattr(Purgatory, "expire", lambda self, now_ms: [])
    patch.setattr(Purgatory, "deadline_ms", lambda self: None)


def refuse_nobody(patch: Any) -> None:
    """S19: the leadership ends, and who is parked waits for nothing."""
    patch.setattr(fetch_answers, "refuse_all", lambda replica, error: None)


def acknowledge_at_once(patch: Any) -> None:
    """C2: an append is acknowledged before it is committed."""
    from kraftd.raft.effects import AppendCommitted

    def at_once(replica: Replica, append_id: Any) -> None:
        replica.emit(AppendCommitted(append_id, replica.log.end_offset))

    patch.setattr(leader, "_await_commit", at_once)


def never_give_an_append_up(patch: Any) -> None:
    """L2: a leader that loses its epoch says nothing of the appends that wait."""
    from contextlib import contextmanager

    @contextmanager
    def silently(replica: Replica) -> Any:
        role = replica.role
        yield
        if type(role).__name__ == "Leader":
            fetch_answers.refuse_all(replica, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            replica.appends.complete_all(leader.COMMITTED)

    from kraftd.raft import becoming

    patch.setattr(leader, "leave_leadership", silently)
    patch.setattr(becoming, "leave_leadership", silently)


def ask_again_at_once(patch: Any) -> None:
    """L5: no backoff after an answer that leads nowhere."""
    from kraftd.raft.connections import Connections

    patch.setattr(Connections, "back_off", lambda self, node_id, now_ms: self.reset(node_id))
    patch.setattr(fetch_answers, "answer", _always(fetch_answers.answer))


def _always(answer: Any) -> Any:
    def at_once(*arguments: Any, may_park: bool) -> bool:
        return bool(answer(*arguments, may_park=False))

    return at_once


def never_end(patch: Any) -> None:
    """L6: a shutdown is not completed."""
    poll = resigning.poll_shutdown

    def endless(replica: Replica) -> None:
        poll(replica)
        replica.effects = [one for one in replica.effects if not isinstance(one, ShutdownCompleted)]

    patch.setattr(raft_core.resigning, "poll_shutdown", endless)


def never_stand(patch: Any) -> None:
    """L1: nobody stands for leader, unless it is alone."""
    patch.setattr(Replica, "may_stand", property(lambda self: len(self.voters) == 1 and self.is_voter))


def never_download(patch: Any) -> None:
    """L4: a replica that needs a snapshot does not fetch it."""
    patch.setattr(snapshots, "begin_download", lambda replica, role, snapshot_id: False)


ALL = {
    count_observers: "S7",
    count_one_vote_less: ("S1", "S5"),
    vote_twice: "S3",
    vote_before_it_is_durable: ("S2", "S3"),
    vote_for_anybody: ("S5", "S6", "S9"),
    count_unsynced: "S7",
    fetch_unsynced: "S12",
    commit_old_epochs: "S8",
    truncate_below_the_mark: "S9",
    keep_the_diverging_tail: ("S4", "S6", "S7"),
    take_another_for_the_snapshot: ("S10", "S7"),
    hold_on_without_a_quorum: "S16",
    heed_other_clusters: "S17",
    change_voters_at_will: "S13",
    answer_twice: "S19",
    forget_a_parked_fetch: "S19",
    forget_at_the_deadline: "S19",
    refuse_nobody: "S19",
    acknowledge_at_once: "C2",
    never_give_an_append_up: "L2",
    ask_again_at_once: "L5",
    never_end: "L6",
    never_stand: "L1",
    never_download: "L4",
}
