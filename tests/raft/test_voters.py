"""Voter sets and their history by offset."""

from __future__ import annotations

from kraftd.raft.quorum.history import ControlRecordHistory
from kraftd.raft.quorum.voters import NO_VOTERS, VoterNode, VoterSet, replica_key
from kraftd.types import Endpoint, ReplicaKey
from kraftd.wire.batch import ControlRecordType, build_batch, build_control_batch
from kraftd.wire.codec import decode, encode_bytes
from tests.raft.world import bootstrap_batch, directory_id, key_of


def node(node_id: int, port: int = 9000, generation: int = 0) -> VoterNode:
    key = ReplicaKey(node_id, directory_id(node_id, generation))
    return VoterNode(key, (Endpoint("CONTROLLER", f"n{node_id}", port),), 0, 1)


def voters(*ids: int) -> VoterSet:
    return VoterSet.of(*(node(one) for one in ids))


def batch(offset: int, *sets: VoterSet) -> bytes:
    records = [(ControlRecordType.KRAFT_VOTERS, one.to_record(), 0) for one in sets]
    return build_control_batch(records, offset, 1, 0)


def test_voter_set_survives_a_round_trip_through_its_record() -> None:
    record = voters(3, 1, 2).to_record()
    again = VoterSet.from_record(decode(type(record), 0, memoryview(encode_bytes(record, 0))))
    assert again == voters(1, 2, 3)
    assert [voter.voter_id for voter in record.voters] == [1, 2, 3]


def test_static_voter_matches_by_id_and_a_dynamic_one_by_its_directory_too() -> None:
    static = VoterSet.from_static("CONTROLLER", {1: ("n1", 9000)})
    assert static.has_voter(key_of(1)) and static.is_only_voter(key_of(1))
    assert voters(1).has_voter(key_of(1))
    assert not voters(1).has_voter(ReplicaKey(1, directory_id(1, 9)))
    assert not voters(1).has_voter(ReplicaKey(1))


def test_sets_change_by_one_voter_and_are_never_empty() -> None:
    two = voters(1).with_voter(node(2))
    assert two == voters(1, 2)
    assert two is not None and two.with_voter(node(2)) is None
    assert two.without(key_of(1)) == voters(2)
    assert two.without(ReplicaKey(1, directory_id(1, 9))) is None
    assert voters(1).without(key_of(1)) is None
    assert not voters(1).needs_update(node(1)) and voters(1).needs_update(node(1, port=1))
    assert not voters(1).needs_update(node(1, port=1, generation=9))
    moved = voters(1).updated(node(1, port=1))
    assert moved is not None and moved.listeners(1)[0].port == 1
    assert voters(1).updated(node(1, generation=9)) is None
    assert voters(1).updated(node(1, generation=9), ignore_directory_id=True) is not None


def test_zero_directory_id_means_unknown() -> None:
    assert replica_key(1, bytes(16)) == ReplicaKey(1, None)


def test_records_apply_from_their_offset_on_and_truncation_undoes_them() -> None:
    history = ControlRecordHistory()
    history.read(bootstrap_batch(voters(1)), at_offset=-1)
    assert (history.voters, history.voters_offset, history.kraft_version) == (voters(1), -1, 1)
    assert history.read(batch(5, voters(1, 2)))
    assert history.read(batch(8, voters(1, 2, 3)))
    assert history.voters_at(4) == voters(1)
    assert history.voters_at(5) == history.voters_at(7) == voters(1, 2)
    assert (history.voters, history.previous_voters) == (voters(1, 2, 3), voters(1, 2))
    assert history.truncate_to(8)
    assert (history.voters, history.voters_offset) == (voters(1, 2), 5)
    assert not history.truncate_to(6)


def test_batches_of_the_controller_change_nothing() -> None:
    history = ControlRecordHistory(VoterSet.from_static("CONTROLLER", {1: ("n1", 9000)}))
    assert not history.read(build_batch([b"x"], 0, 1, 0))
    assert history.voters_offset is None and history.kraft_version == 0
    assert history.previous_voters == history.voters


def test_dropping_the_history_keeps_the_state_in_force_at_the_new_start() -> None:
    history = ControlRecordHistory()
    for offset, one in ((2, voters(1)), (5, voters(1, 2)), (8, voters(1, 2, 3))):
        history.read(batch(offset, one))
    history.forget_before(6)
    assert history.voters_at(5) == voters(1, 2)
    assert history.voters_at(4) == NO_VOTERS
    assert history.voters == voters(1, 2, 3)


def test_voters_before_the_first_record_are_kept_until_it_is_committed() -> None:
    history = ControlRecordHistory()
    for offset, one in ((5, voters(1, 2)), (8, voters(1, 2, 3))):
        history.read(batch(offset, one))
    history.forget_before(8)
    assert history.previous_voters == voters(1, 2)
    assert history.truncate_to(8)
    assert history.voters == voters(1, 2)
