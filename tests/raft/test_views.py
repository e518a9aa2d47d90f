"""Voters and observers as one replica sees them, and the windows of metrics."""

from __future__ import annotations

from math import isnan

from kraftd.raft.measured import Measured
from kraftd.raft.replica_views import ReplicaView
from kraftd.raft.roles import Leader
from kraftd.recent import WINDOW_MS, Recent
from tests.raft.lone import EPOCH, Lone, fetch
from tests.raft.world import START_MS, key_of

LEADS = EPOCH + 1
END = 11


def test_a_leader_sees_voters_then_observers_by_id() -> None:
    lone = Lone(voters=(1, 2, 3)).lead()
    elected = lone.now_ms
    for replica, offset, epoch in ((2, END, LEADS), (9, 10, 4), (7, END, LEADS)):
        lone.now_ms += 1
        lone.ask(fetch(replica, LEADS, offset, epoch))
    at = lone.now_ms
    assert lone.core.replicas(at + 5) == [
        ReplicaView(key_of(1), True, True, END, at + 5, at + 5, at + 5),
        ReplicaView(key_of(2), True, False, END, at - 2, at - 2, at - 2),
        ReplicaView(key_of(3), True, False, behind_since_ms=elected),
        ReplicaView(key_of(7), False, False, END, at, at, at),
        ReplicaView(key_of(9), False, False, 10, at - 1, None, elected),
    ]


def test_a_replica_that_does_not_lead_sees_the_voters_and_its_own_log() -> None:
    lone = Lone().follow(2)
    assert lone.core.replicas(lone.now_ms) == [
        ReplicaView(key_of(1), True, False, 10),
        ReplicaView(key_of(2), True, True),
        ReplicaView(key_of(3), True, False),
    ]


def test_a_fetch_at_the_time_0_is_one() -> None:
    lone = Lone().lead()
    role = lone.core._replica.role
    assert isinstance(role, Leader)
    role.progress.fetched(key_of(2), END, END, 0)
    assert lone.core.replicas(lone.now_ms)[1] == ReplicaView(key_of(2), True, False, END, 0, 0, role.since_ms)


def test_windows_keep_values_for_one_to_two_windows() -> None:
    recent = Recent()
    assert isnan(recent.average(0)) and isnan(recent.maximum(0)) and recent.per_second(0) == 0
    recent.record(2, 0)
    recent.record(6, WINDOW_MS - 1)
    recent.record(1, WINDOW_MS)
    now_ms = 2 * WINDOW_MS - 1
    assert (recent.average(now_ms), recent.maximum(now_ms)) == (3, 6)
    assert recent.per_second(now_ms) == 9 / ((2 * WINDOW_MS - 1) / 1000)
    now_ms = 2 * WINDOW_MS
    assert (recent.average(now_ms), recent.maximum(now_ms)) == (1, 1)
    assert recent.per_second(now_ms) == 1 / (WINDOW_MS / 1000)
    assert isnan(recent.average(3 * WINDOW_MS)) and isnan(recent.maximum(3 * WINDOW_MS))


def test_values_below_zero_have_a_maximum_too() -> None:
    recent = Recent()
    recent.record(-5, START_MS)
    recent.record(-3, START_MS)
    assert (recent.average(START_MS), recent.maximum(START_MS)) == (-4, -3)


def test_a_batch_that_commits_counts_the_time_of_one_of_its_records() -> None:
    measured = Measured()
    measured.leader_appended(10, 4, 1_000)
    measured.leader_appended(12, 2, 1_000)
    measured.leader_committed(9, 1_100)
    assert isnan(measured.commits.average(1_100))
    measured.leader_committed(10, 1_100)
    assert measured.commits.average(1_100) == 100 / 4
    measured.leadership_ended()
    measured.leader_committed(12, 1_200)
    assert measured.commits.average(1_200) == 100 / 4
