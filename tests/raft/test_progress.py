"""The leader's view of each replica's progress: which are caught up, successors, and the text form."""

from __future__ import annotations

from kraftd.raft.quorum.history import ControlRecordHistory
from kraftd.raft.quorum.progress import LIVE_REPLICA_MS, OBSERVER_SESSION_MS, Progress, ReplicaProgress
from kraftd.raft.quorum.voters import VoterNode, VoterSet
from kraftd.types import ReplicaKey
from tests.raft.world import directory_id, node_config

NODES = [node_config(one).voter_node for one in range(4)]


def progress(*ids: int) -> Progress:
    """Replica 0's view of the voters with these ids."""
    return Progress(NODES[0].key, VoterSet.of(*(NODES[one] for one in ids)))


def observer(node_id: int) -> ReplicaKey:
    return ReplicaKey(node_id, directory_id(node_id))


def test_a_replica_at_the_end_of_the_log_is_caught_up_now() -> None:
    one = ReplicaProgress(observer(9))
    one.fetched(5, 6, 100)
    assert one.last_caught_up_ms == -1
    one.fetched(6, 6, 200)
    assert one.last_caught_up_ms == 200


def test_a_replica_at_the_last_fetchs_log_end_was_caught_up_at_that_time() -> None:
    one = ReplicaProgress(observer(9))
    one.fetched(0, 1, 100)
    one.fetched(1, 5, 200)
    assert one.last_caught_up_ms == 100
    one.fetched(4, 9, 300)
    assert one.last_caught_up_ms == 100


def test_a_fetch_of_an_empty_log_does_not_count_as_caught_up() -> None:
    one = ReplicaProgress(observer(9))
    one.fetched(0, 1, 100)
    one.last_fetch_leader_end_offset = 0
    one.fetched(0, 5, 200)
    assert one.last_caught_up_ms == -1


def test_an_observer_may_join_once_it_has_been_caught_up_and_still_fetches() -> None:
    leader = progress(0, 1)
    key = observer(9)
    assert not leader.is_caught_up(key, 10)
    leader.fetched(key, 5, 5, 0)
    assert not leader.is_caught_up(key, 10), "no fetch is of the time 0"
    leader.fetched(key, 5, 5, 1)
    assert leader.is_caught_up(key, 3_600_000)
    assert not leader.is_caught_up(key, 3_600_001)


def test_the_most_caught_up_succeed_first_and_silent_voters_last() -> None:
    leader = progress(0, 1, 2, 3)
    leader.fetched(NODES[2].key, 0, 5, 10)
    leader.fetched(NODES[3].key, 4, 5, 10)
    assert [one.key.id for one in leader.by_descending_end()] == [3, 2, 1]
    leader.fetched(NODES[1].key, 4, 5, 10)
    assert [one.key.id for one in leader.by_descending_end()] == [1, 3, 2]


def test_silent_observers_are_forgotten_and_the_leader_itself_never() -> None:
    leader = progress(1, 2)
    leader.local_synced(7)
    leader.fetched(observer(9), 5, 7, 1000)
    leader.forget_silent_observers(1000 + OBSERVER_SESSION_MS - 1)
    assert set(leader.observers) == {NODES[0].key, observer(9)}
    leader.forget_silent_observers(1000 + OBSERVER_SESSION_MS)
    assert set(leader.observers) == {NODES[0].key}


def test_the_slowest_live_replica_excludes_silent_ones_and_the_leader() -> None:
    leader = progress(0, 1)
    leader.local_synced(3)
    assert leader.slowest_live_end(0) is None
    leader.fetched(NODES[1].key, 9, 9, 1000)
    leader.fetched(observer(9), 0, 9, 2000)
    assert leader.slowest_live_end(2000) == 0
    assert leader.slowest_live_end(1999 + LIVE_REPLICA_MS) == 0
    assert leader.slowest_live_end(2000 + LIVE_REPLICA_MS) is None


def test_without_a_record_kraft_version_is_0() -> None:
    assert ControlRecordHistory().kraft_version_at(10) == 0
    assert ControlRecordHistory().kraft_version == 0


def test_a_voter_supports_the_versions_from_its_lowest_to_its_highest() -> None:
    node = VoterNode(NODES[1].key, NODES[1].listeners, 1, 2)
    assert [version for version in range(4) if node.supports(version)] == [1, 2]


def test_equal_voter_sets_are_one_key() -> None:
    one, same, other = VoterSet.of(*NODES[:2]), VoterSet.of(*NODES[:2]), VoterSet.of(*NODES[:3])
    assert {one: "a"}[same] == "a"
    assert len({one, same, other}) == 2


def test_voters_and_progress_have_a_repr_of_one_line() -> None:
    leader = progress(0, 1)
    leader.fetched(NODES[1].key, 4, 5, 10)
    leader.fetched(observer(9), 4, 5, 10)
    assert repr(leader) == "<Progress voters 0:None 1:4, 1 observers>"
    assert repr(leader.voters[1]) == f"<Replica {NODES[1].key} end 4, fetched at 10>"
    voters, key = VoterSet.of(*NODES[:2]), NODES[1].key
    assert repr(NODES[1]) == f"<Voter {key} at CONTROLLER://n1:9001>"
    assert repr(voters) == f"<Voters {NODES[0].key} {key}>"
    assert repr(VoterSet.of()) == "<Voters none>"


def test_a_leader_that_does_not_vote_stands_among_the_observers() -> None:
    leader = progress(1, 2)
    leader.local_synced(7)
    assert [(one.key, one.end_offset) for one in leader.observers.values()] == [(NODES[0].key, 7)]


def test_a_voter_that_is_removed_becomes_an_observer_with_what_is_known_of_it() -> None:
    leader = progress(0, 1, 2)
    leader.fetched(NODES[2].key, 4, 5, 10)
    leader.set_voters(VoterSet.of(NODES[0], NODES[1]))
    (left,) = leader.observers.values()
    assert (left.key, left.end_offset, left.last_fetch_ms, left.listeners) == (NODES[2].key, 4, 10, ())
    assert leader.voters[1].listeners == NODES[1].listeners
    leader.set_voters(VoterSet.of(*NODES[:3]))
    assert not leader.observers
    assert (leader.voters[2].end_offset, leader.voters[2].listeners) == (4, NODES[2].listeners)


def test_a_replica_that_has_never_fetched_is_in_no_state_at_all() -> None:
    one = ReplicaProgress(NODES[1].key)
    assert (one.end_offset, one.last_fetch_ms, one.last_caught_up_ms, one.listeners) == (None, -1, -1, ())
    assert one.last_fetch_leader_end_offset == -1
