"""Defects of the consensus core, and the worlds that show them."""

from __future__ import annotations

from typing import Any

from msgspec import structs

from kraftd.fetch.purgatory import Purgatory
from kraftd.raft import answers, checks, election, fetch_answers, follower, leader, quorum_epochs
from kraftd.raft import core as raft_core
from kraftd.raft import reconfiguration as reconfig
from kraftd.raft.effects import ShutdownCompleted
from kraftd.raft.events import AppendRequested
from kraftd.raft.log_view import LogView
from kraftd.raft.quorum.majority import Votes
from kraftd.raft.quorum.progress import ReplicaProgress
from kraftd.raft.replica import Replica
from kraftd.raft.roles import Candidate, Resigned
from kraftd.simulation.schedule import MS, SECOND
from kraftd.types import OffsetAndEpoch
from kraftd.wire.error_code import ErrorCode
from tests.simulation.mutants.planted import FAST, Planted
from tests.simulation.mutants.replicas import (
    answer_twice,
    commit_old_epochs,
    count_observers,
    count_one_vote_less,
    count_unsynced,
    fetch_unsynced,
    forget_a_parked_fetch,
    forget_at_the_deadline,
    keep_the_diverging_tail,
    lead_the_same_epoch_again,
    refuse_no_parked_fetch,
    truncate_below_the_mark,
    trust_the_leaders_mark,
    vote_for_any_candidate,
    vote_twice,
)


def vote_before_it_is_durable(patch: Any) -> None:
    """S3: a vote is sent, but not written."""
    patch.setattr(Replica, "persist_election", lambda self: None)


def forget_what_was_acknowledged(patch: Any) -> None:
    """K2: a replica that fetches from below what it had acknowledged counts as one that never had more."""
    fetched = ReplicaProgress.fetched

    def forgetful(self: ReplicaProgress, offset: int, leader_end_offset: int, now_ms: int) -> bool:
        self.acknowledged = 0
        return fetched(self, offset, leader_end_offset, now_ms)

    patch.setattr(ReplicaProgress, "fetched", forgetful)


def count_what_went_back(patch: Any) -> None:
    """K3: a voter that returns with less counts at once, up to where it returns."""
    patch.setattr(ReplicaProgress, "counted_offset", property(lambda self: self.end_offset))


def hold_on_without_a_quorum(patch: Any) -> None:
    """S16: a leader keeps leading although no voter fetches from it."""
    patch.setattr(Replica, "check_quorum_deadline_ms", lambda self: self.now_ms + 3_600_000)


def heed_other_clusters(patch: Any) -> None:
    """S17: a replica ignores the cluster id."""
    patch.setattr(checks, "cluster_id", lambda replica, cluster_id: ErrorCode.NONE)


def change_voters_at_will(patch: Any) -> None:
    """S13: a change of the voters does not wait for the previous one."""

    def whenever(replica: Replica) -> None:
        replica.role.voter_change = None  # type: ignore[union-attr]

    patch.setattr(reconfig, "_not_now", whenever)


def acknowledge_at_once(patch: Any) -> None:
    """C2: an append is acknowledged before it is committed."""
    from kraftd.raft.effects import AppendCommitted

    def at_once(replica: Replica, append_id: Any) -> None:
        replica.emit(AppendCommitted(append_id, replica.log.end_offset))

    patch.setattr(leader, "_await_commit", at_once)


def never_give_an_append_up(patch: Any) -> None:
    """L2: a leader that loses its epoch does not abort the appends that wait for their commit."""
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
    """L5: a replica makes no backoff after an answer without progress."""
    from kraftd.raft.connections import Connections

    patch.setattr(Connections, "back_off", lambda self, node_id, now_ms: self.reset(node_id))
    patch.setattr(fetch_answers, "answer", _always(fetch_answers.answer))


def _always(answer: Any) -> Any:
    def at_once(*arguments: Any, may_park: bool) -> bool:
        return bool(answer(*arguments, may_park=False))

    return at_once


def swallow_an_append(patch: Any) -> None:
    """L2: every fifth request to append is neither accepted nor refused."""
    requested = leader.on_append_requested

    def most(replica: Replica, event: Any) -> None:
        if event.append_id % 5:
            requested(replica, event)

    patch.setitem(raft_core._ON_REPORT, AppendRequested, most)


def never_end(patch: Any) -> None:
    """L6: a shutdown never completes."""
    poll = quorum_epochs.poll_shutdown

    def endless(replica: Replica) -> None:
        poll(replica)
        replica.effects = [one for one in replica.effects if not isinstance(one, ShutdownCompleted)]

    patch.setattr(raft_core.quorum_epochs, "poll_shutdown", endless)


def start_no_election(patch: Any) -> None:
    """L1: no voter starts an election unless it is the only one."""
    patch.setattr(Replica, "may_be_elected", property(lambda self: len(self.voters) == 1 and self.is_voter))


def lead_on_after_a_restart(patch: Any) -> None:
    """S1: a leader that was killed leads its epoch again."""
    start = election.start

    def start_as_leader(replica: Replica) -> None:
        start(replica)
        if isinstance(replica.role, Resigned):
            replica.role = Candidate(Votes((), replica.config.node_id), replica.now_ms + 1_000)
            leader.become_leader(replica)

    patch.setattr(raft_core.election, "start", start_as_leader)


def commit_before_truncating(patch: Any) -> None:
    """S6: a follower takes the leader's high watermark from an answer with a diverging epoch."""
    take_in = follower._take_in

    def eager(replica: Replica, role: Any, partition: Any) -> bool:
        if partition.diverging_epoch.epoch >= 0:
            role.leader_high_watermark = max(role.leader_high_watermark, partition.high_watermark)
            follower.follow_high_watermark(replica, role)
        return take_in(replica, role, partition)

    patch.setattr(follower, "_take_in", eager)


def commit_what_is_synced_here(patch: Any) -> None:
    """S7: a follower takes the end of its synced log as the high watermark."""
    follow = follower.follow_high_watermark

    def ahead(replica: Replica, role: Any) -> None:
        role.leader_high_watermark = replica.log.synced_end_offset
        follow(replica, role)

    patch.setattr(follower, "follow_high_watermark", ahead)


def welcome_every_election(patch: Any) -> None:
    """S15: a pre-vote is granted although the leader is alive."""
    patch.setattr(election, "grants_pre_vote", lambda replica: True)


def point_at_the_fetch_position(patch: Any) -> None:
    """S18: the answer to a fetch that diverges names the fetch's own position."""
    locate = LogView.locate

    def here(self: LogView, offset: int, epoch: int) -> Any:
        at = locate(self, offset, epoch)
        if at.fit.value == "diverging":
            return at._replace(at=OffsetAndEpoch(offset, epoch))
        return at

    patch.setattr(LogView, "locate", here)


def show_what_is_uncommitted(patch: Any) -> None:
    """S21: an observer reads up to the end of the leader's log, as voters do."""
    patch.setattr(fetch_answers, "readable_end", lambda replica, *, is_voter: replica.log.end_offset)


def park_fetches_that_know_less(patch: Any) -> None:
    """S19, KIP-1166: a leader ignores the high watermark of a fetch."""
    answer = fetch_answers.answer

    def blind(replica: Replica, role: Any, fetch: Any, *arguments: Any, may_park: bool) -> bool:
        fetch = structs.replace(fetch, high_watermark=1 << 62)
        return answer(replica, role, fetch, *arguments, may_park=may_park)

    patch.setattr(fetch_answers, "answer", blind)


def forget_a_commit(patch: Any) -> None:
    """S19: one of the answers that wait for a commit is not sent."""
    reach = Purgatory.reach

    def forgetful(self: Any, key: Any, position: int) -> list[Any]:
        found = list(reach(self, key, position))
        return found[1:] if key == leader.COMMITTED else found

    patch.setattr(Purgatory, "reach", forgetful)


def open_a_session(patch: Any) -> None:
    """S20: an answer names a fetch session that the node does not have."""
    fetch = answers.fetch

    def in_session(*arguments: Any, **options: Any) -> Any:
        message, partition = fetch(*arguments, **options)
        message.session_id = 7
        return message, partition

    patch.setattr(answers, "fetch", in_session)


def never_finish_a_voter_change(patch: Any) -> None:
    """L3: a committed change of the voters still counts as under way."""
    patch.setattr(reconfig, "poll_voter_change", lambda replica, role: None)


ALL: dict[Any, Planted] = {
    lead_on_after_a_restart: Planted("S1", faults=("kill", "power loss"), voter_count=3, sync_us=FAST),
    count_one_vote_less: Planted("S14", "S1", voter_count=4),
    vote_twice: Planted("S3", "S14"),
    vote_before_it_is_durable: Planted("S2", "S3"),
    keep_the_diverging_tail: Planted("S4", "S6", "S7"),
    vote_for_any_candidate: Planted("S5", "S6", "S9"),
    commit_before_truncating: Planted("S6", "S9"),
    count_observers: Planted("S7", observer_count=5, voter_count=3),
    count_unsynced: Planted("S7"),
    commit_what_is_synced_here: Planted("S7", voter_count=3),
    trust_the_leaders_mark: Planted("S7", "S12", "S9"),
    lead_the_same_epoch_again: Planted("S2"),
    commit_old_epochs: Planted("S8"),
    truncate_below_the_mark: Planted("S9"),
    fetch_unsynced: Planted("S12"),
    change_voters_at_will: Planted("S13", dynamic=True, voter_count=3),
    welcome_every_election: Planted("S15", voter_count=3, old_versions=False, faults=()),
    hold_on_without_a_quorum: Planted("S16"),
    forget_what_was_acknowledged: Planted("K2"),
    count_what_went_back: Planted(
        "K3",
        voter_count=5,
        observer_count=0,
        controllers=False,
        safety_us=4 * SECOND,
        delay_us=(5 * MS, 100 * MS),
        sync_us=(2 * MS, 100 * MS),
        loss=0.01,
        duplication=0.2,
        keeps_cut_messages=True,
        act_gap_us=10 * MS,
        fault_gap_us=200 * MS,
        faults=("reset connections", "slow sync", "one-way partition"),
    ),
    heed_other_clusters: Planted("S17"),
    point_at_the_fetch_position: Planted("S18", voter_count=3, faults=("isolate leader", "kill")),
    answer_twice: Planted("S19"),
    forget_a_parked_fetch: Planted("S19"),
    forget_at_the_deadline: Planted("S19"),
    refuse_no_parked_fetch: Planted("S19"),
    park_fetches_that_know_less: Planted("S19"),
    forget_a_commit: Planted("S19"),
    never_give_an_append_up: Planted("S19", "L2", voter_count=3, faults=("isolate leader",)),
    open_a_session: Planted("S20"),
    show_what_is_uncommitted: Planted("S21", voter_count=3, observer_count=2),
    acknowledge_at_once: Planted("C2", "S19"),
    start_no_election: Planted("L1", voter_count=3, safety_us=2 * SECOND),
    swallow_an_append: Planted("L2", controllers=False, safety_us=2 * SECOND),
    never_finish_a_voter_change: Planted("L3", dynamic=True, voter_count=3, auto_join=False, faults=()),
    ask_again_at_once: Planted("L5", voter_count=2, observer_count=0, safety_us=SECOND),
    never_end: Planted("L6", safety_us=2 * SECOND),
}
