"""Deadlines to the millisecond, and the state at the moment in which they come."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec import structs

from kraftd.fetch.purgatory import Purgatory
from kraftd.messages.fetch_snapshot_response import FetchSnapshotResponse
from kraftd.messages.quorum_state_data import QuorumStateData
from kraftd.raft.config import DurableState
from kraftd.raft.core import RaftCore
from kraftd.raft.effects import RespondSnapshot, ShutdownCompleted
from kraftd.raft.events import ConnectionLost, RecordsSynced, ResignRequested, ShutdownRequested
from kraftd.raft.replica import STAGGER_MS
from kraftd.raft.roles import Follower, Leader
from kraftd.raft.transitions import State
from kraftd.types import OffsetAndEpoch
from tests.raft.lone import EPOCH, Lone, begin, end, fetch, fetch_answer, partition_of, vote, vote_answer
from tests.raft.test_odd_answers import snapshot_of
from tests.raft.world import START_MS, SeededRandomness, directory_id, node_config

LEADS = EPOCH + 1
END = 11


def role_of(lone: Lone) -> Any:
    return lone.core._replica.role


def prospective() -> Lone:
    lone = Lone()
    lone.become_prospective()
    return lone


def candidate() -> Lone:
    lone = Lone()
    lone.become_candidate()
    return lone


def resigned() -> Lone:
    lone = Lone().lead()
    lone.step(ResignRequested(LEADS))
    return lone


# --- leading ------------------------------------------------------------------------------------------


def test_a_leader_without_fetches_resigns_in_the_moment_of_its_deadline() -> None:
    lone = Lone(request_timeout_ms=100_000).lead()
    deadline_ms = role_of(lone).check_quorum_deadline_ms
    lone.wait(deadline_ms - 1 - lone.now_ms)
    assert lone.core.is_leader
    lone.wait(1)
    assert lone.core.state is State.RESIGNED


def test_a_voter_is_notified_of_the_leader_half_a_fetch_timeout_later() -> None:
    lone = Lone(request_timeout_ms=100).lead()
    role, quiet_ms = role_of(lone), lone.config.fetch_timeout_ms // 2
    assert isinstance(role, Leader)
    role.begin_deadline_ms = lone.now_ms + quiet_ms
    lone.ask(fetch(3, LEADS, END, LEADS))
    lone.now_ms += 1
    lone.ask(fetch(2, LEADS, END, LEADS))
    lone.wait(quiet_ms - 1)
    assert lone.receivers("BeginQuorumEpoch") == [3]
    assert role.begin_deadline_ms == lone.now_ms + quiet_ms
    (send,) = lone.sent("BeginQuorumEpoch")
    assert send.message == begin_of_replica_1()


def begin_of_replica_1() -> Any:
    """BeginQuorumEpoch of replica 1 to voter 3, when it leads the next epoch."""
    message = begin(1, LEADS)
    message.voter_id = 3
    message.topics[0].partitions[0].voter_directory_id = directory_id(3)
    return message


def test_a_resigned_leader_names_its_cluster_epoch_and_successors() -> None:
    lone = Lone().lead()
    lone.ask(fetch(3, LEADS, END, LEADS))
    lone.step(ResignRequested(LEADS))
    sent = lone.sent("EndQuorumEpoch")
    expected = end(1, LEADS, successors=(3, 2))
    expected.leader_endpoints = []
    assert [one.message for one in sent] == [expected, expected]


# --- elections ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", [prospective, candidate, resigned])
def test_a_higher_epoch_does_not_prolong_the_election_timeout(state: Callable[[], Lone]) -> None:
    lone = state()
    deadline_ms = role_of(lone).deadline_ms
    lone.now_ms += 1
    lone.ask(vote(2, EPOCH + 9, last=(1, 1)))
    assert (lone.core.state, lone.core.epoch) == (State.UNATTACHED, EPOCH + 9)
    assert role_of(lone).deadline_ms == deadline_ms


def test_a_higher_epoch_begins_a_followers_election_timeout() -> None:
    lone = Lone().follow()
    lone.ask(vote(2, EPOCH + 9, last=(1, 1)))
    timeout_ms = lone.config.election_timeout_ms
    assert timeout_ms <= role_of(lone).deadline_ms - lone.now_ms < 2 * timeout_ms


def test_an_election_timeout_of_0_is_over_at_once() -> None:
    assert Lone(election_timeout_ms=0).core._replica.random_election_timeout_ms() == 0


def test_a_vote_for_replica_0_outlives_a_restart() -> None:
    voted = QuorumStateData(leader_epoch=EPOCH, voted_id=0, voted_directory_id=directory_id(0))
    lone = Lone(voted, voters=(0, 1, 2))
    assert not partition_of(lone.ask(vote(2))).vote_granted
    assert partition_of(lone.ask(vote(0))).vote_granted


def test_voters_that_do_not_answer_are_searched_at_bootstrap_servers__kip1347() -> None:
    lone = Lone(request_timeout_ms=100)
    replica = lone.core._replica
    replica.config = structs.replace(replica.config, bootstrap_servers=(("m", 1),))
    lone.become_prospective()
    assert lone.receivers("Vote") == [2, 3]
    lone.wait(99)
    assert lone.receivers("Vote") == []
    lone.wait(1)
    assert lone.receivers("Vote") == [-2, 2, 3]


def test_waits_after_lost_connections_double_until_the_epoch_ends() -> None:
    lone, waits_ms = Lone(voters=(0, 1, 2)), list[int]()
    for epoch in (EPOCH, EPOCH, EPOCH, EPOCH + 1):
        lone.ask(begin(2, epoch))
        role = role_of(lone)
        assert isinstance(role, Follower)
        role.fetch_deadline_ms = lone.now_ms + 1_000
        lone.step(ConnectionLost(2))
        waits_ms.append(role.fetch_deadline_ms - lone.now_ms)
    assert waits_ms == [STAGGER_MS, 2 * STAGGER_MS, 4 * STAGGER_MS, STAGGER_MS]


@pytest.mark.parametrize("leader", [2, 3])
def test_a_resignation_without_endpoints_is_of_the_leader_that_the_voters_name(leader: int) -> None:
    lone = Lone()
    message = end(leader, EPOCH + 1)
    message.leader_endpoints = []
    lone.ask(message)
    assert (lone.core.epoch, lone.core.leader_id) == (EPOCH + 1, leader)
    at = lone.core._replica.leader_destination()
    assert at is not None and (at.host, at.port) == (f"n{leader}", 9000 + leader)


# --- following ----------------------------------------------------------------------------------------


def test_a_new_follower_may_not_move_its_log_start() -> None:
    assert Lone().follow().core.log_start_limit == -1
    assert Lone().core.log_start_limit == -1


def test_an_observer_waits_for_its_fetches_alone() -> None:
    lone = Lone(voters=(2, 3), fetch_timeout_ms=2_000, request_timeout_ms=10_000).follow()
    lone.wait(5_000)
    due_ms = lone.core.deadline_ms()
    assert due_ms is not None and due_ms > lone.now_ms


def test_the_leader_0_is_learned_from_a_fetch() -> None:
    lone = Lone(voters=(0, 1, 2))
    (send,) = lone.sent("Fetch")
    lone.answer(send, fetch_answer(EPOCH, leader=0))
    assert (lone.core.leader_id, lone.core.state) == (0, State.FOLLOWER)


def test_a_refusal_that_names_the_leader_leads_to_it_at_once() -> None:
    lone = Lone()
    first, _ = lone.become_prospective()
    lone.answer(first, vote_answer(EPOCH, False, leader=2, error=8))  # BROKER_NOT_AVAILABLE
    assert lone.receivers("Fetch") == [2]


def test_fetches_leave_the_size_of_a_partition_to_the_leader() -> None:
    (send,) = Lone().follow().sent("Fetch")
    message: Any = send.message
    assert message.topics[0].partitions[0].partition_max_bytes == 0


# --- snapshots ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("position", "rest_bytes"), [(0, 100), (80, 20)])
def test_a_piece_ends_with_the_snapshot(position: int, rest_bytes: int) -> None:
    lone = Lone(snapshots={OffsetAndEpoch(8, 4): 100}).lead()
    message: Any = snapshot_of(OffsetAndEpoch(8, 4), LEADS)
    message.topics[0].partitions[0].position = position
    lone.ask(message)
    (answer,) = (one for one in lone.effects if isinstance(one, RespondSnapshot))
    assert answer.max_bytes == rest_bytes


def test_a_refused_piece_has_no_bytes() -> None:
    answer = Lone().follow().ask(snapshot_of(OffsetAndEpoch(8, 4), EPOCH))
    assert isinstance(answer, FetchSnapshotResponse)
    assert partition_of(answer).unaligned_records == b""
    assert partition_of(Lone().follow().ask(fetch(3, EPOCH, 10, 4))).records == b""


# --- leaving ------------------------------------------------------------------------------------------


def test_a_shutdown_ends_in_the_moment_of_its_deadline() -> None:
    lone = Lone()
    lone.step(ShutdownRequested(500))
    lone.wait(499)
    assert not lone.core._replica.shut_down
    lone.wait(1)
    assert ShutdownCompleted(False) in lone.effects


@pytest.mark.parametrize("state", [prospective, candidate, resigned])
def test_a_replica_that_leaves_has_no_election_timeout_to_wait_for(state: Callable[[], Lone]) -> None:
    lone = state()
    lone.step(ShutdownRequested(60_000))
    lone.wait(10_000)
    due_ms = lone.core.deadline_ms()
    assert due_ms is not None and due_ms > lone.now_ms


# --- the start ----------------------------------------------------------------------------------------


def test_a_core_that_has_not_started_waits_for_nothing() -> None:
    core = RaftCore(node_config(1), DurableState(), SeededRandomness(1), Purgatory(), Purgatory())
    assert core.deadline_ms() is None
    assert core.step(RecordsSynced(0), START_MS) == []
    assert core.deadline_ms() is None
