"""A leader remembers what each replica has acknowledged: one that returns with less is reported, and does not
count until it has caught up.
"""

from __future__ import annotations

import pytest

from kraftd.raft.effects import HighWatermarkMoved, ReplicaWentBack
from kraftd.raft.events import AppendRequested, LogStartMoved, ResignRequested, SnapshotTaken
from kraftd.raft.quorum.progress import Progress
from kraftd.raft.quorum.voters import VoterSet
from kraftd.types import OffsetAndEpoch, ReplicaKey
from tests.raft.lone import EPOCH, LOG_END, Lone, fetch, partition_of, vote
from tests.raft.world import directory_id, node_config

LEADS = EPOCH + 1
END = 11  # of the leader's log, with the first record of its epoch


def voter(node_id: int) -> ReplicaKey:
    return ReplicaKey(node_id, directory_id(node_id))


def leader(*, static: bool = False) -> Lone:
    """A leader of epoch 6, whose log ends at 16: it has synced and committed the records before 11."""
    lone = Lone(static=static).lead()
    lone.sync()
    lone.ask(fetch(2, LEADS, END, LEADS))
    assert moves(lone) == [END]
    lone.step(AppendRequested("a", [b"x"] * 5, LEADS))
    return lone


def moves(lone: Lone) -> list[int]:
    return [one.high_watermark for one in lone.effects if isinstance(one, HighWatermarkMoved)]


def reported(lone: Lone) -> list[ReplicaWentBack]:
    return [one for one in lone.effects if isinstance(one, ReplicaWentBack)]


@pytest.mark.parametrize("static", [False, True])
def test_a_voter_that_went_back_does_not_count_until_it_has_caught_up(static: bool) -> None:
    lone = leader(static=static)
    lone.ask(fetch(2, LEADS, 16, LEADS))
    lone.ask(fetch(2, LEADS, 13, LEADS))
    key = ReplicaKey(2, None if static else directory_id(2))
    (found,) = reported(lone)
    assert (found.key.id, found.is_voter, found.acknowledged) == (2, True, 16)
    assert (found.leader_epoch, found.offset, found.epoch) == (LEADS, 13, LEADS)
    lone.sync()
    assert moves(lone) == [], "13 is on the disks of two voters, but one of them lost records"
    assert [one.key for one in lone.core.replicas(lone.now_ms) if one.is_short] == [key]
    lone.ask(fetch(2, LEADS, 15, LEADS))
    assert (moves(lone), reported(lone)) == ([], [])
    lone.ask(fetch(2, LEADS, 16, LEADS))
    assert (moves(lone), reported(lone)) == ([16], [])
    assert not any(one.is_short for one in lone.core.replicas(lone.now_ms))


def test_a_voter_that_goes_back_again_while_it_catches_up_is_reported_again() -> None:
    lone = leader()
    for offset, count in ((16, 0), (13, 1), (14, 0), (13, 1), (13, 0)):
        lone.ask(fetch(2, LEADS, offset, LEADS))
        assert len(reported(lone)) == count


@pytest.mark.parametrize(("offset", "epoch"), [(30, 3), (9, 2)], ids=["diverging", "of an unknown epoch"])
def test_a_voter_that_returns_with_another_log_went_back(offset: int, epoch: int) -> None:
    lone = leader()
    lone.ask(fetch(2, LEADS, 16, LEADS))
    lone.ask(fetch(2, LEADS, offset, epoch))
    (found,) = reported(lone)
    assert (found.acknowledged, found.offset, found.epoch) == (16, offset, epoch)
    lone.ask(fetch(2, LEADS, offset, epoch))
    assert reported(lone) == []
    lone.sync()
    assert moves(lone) == []


def test_a_log_that_diverges_before_it_has_acknowledged_anything_did_not_go_back() -> None:
    lone = leader()
    lone.ask(fetch(3, LEADS, 30, 3))
    assert reported(lone) == []
    lone.ask(fetch(3, LEADS, 10, 4))
    assert reported(lone) == []


def test_a_voter_that_waits_for_a_snapshot_did_not_go_back() -> None:
    lone = leader()
    lone.sync()
    lone.ask(fetch(3, LEADS, END, LEADS))
    lone.ask(fetch(2, LEADS, 16, LEADS))
    lone.step(SnapshotTaken(OffsetAndEpoch(16, LEADS), 100))
    lone.step(LogStartMoved(16))
    answer = partition_of(lone.ask(fetch(3, LEADS, END, LEADS)))
    assert (answer.snapshot_id.end_offset, reported(lone)) == (16, [])
    lone.ask(fetch(3, LEADS, END - 1, LOG_END.epoch))
    assert [one.acknowledged for one in reported(lone)] == [END]


def test_a_parked_fetch_does_not_count_for_a_replica_that_has_since_gone_back() -> None:
    lone = leader()
    lone.ask(fetch(2, LEADS, 16, LEADS, high_watermark=END, max_wait_ms=500))
    lone.ask(fetch(2, LEADS, 13, LEADS))
    lone.step(AppendRequested("b", [b"y"], LEADS))
    lone.sync()
    assert moves(lone) == []


def test_a_parked_fetch_that_another_has_overtaken_shows_nothing() -> None:
    lone = leader()
    lone.sync()
    lone.ask(fetch(3, LEADS, 16, LEADS, high_watermark=16, max_wait_ms=500))
    lone.step(AppendRequested("b", [b"y"], LEADS))
    lone.sync()
    lone.ask(fetch(3, LEADS, 17, LEADS, high_watermark=17, max_wait_ms=500))
    lone.ask(fetch(3, LEADS, 17, LEADS, high_watermark=17, max_wait_ms=400))
    lone.wait(600)
    assert reported(lone) == []


def test_a_leader_elected_again_remembers_the_committed_records_of_each_voter() -> None:
    lone = leader()
    lone.sync()
    lone.ask(fetch(2, LEADS, 16, LEADS))
    assert moves(lone) == [16]
    lone.step(AppendRequested("b", [b"y"], LEADS))
    lone.ask(fetch(2, LEADS, 17, LEADS))
    lone.step(ResignRequested(LEADS))
    lone.lead()
    lone.sync()
    epoch = lone.core.epoch
    lone.ask(fetch(2, epoch, 16, LEADS))
    assert reported(lone) == [], "what was not committed may be gone"
    lone.ask(fetch(3, epoch, LOG_END.offset, LOG_END.epoch))
    assert reported(lone) == [], "this voter has acknowledged nothing"
    lone.ask(fetch(2, epoch, 20, LEADS + 1))
    assert reported(lone) == [], "it may hold what was committed before the records that diverge"
    lone.ask(fetch(2, epoch, 15, LEADS))
    assert [one.acknowledged for one in reported(lone)] == [16]


def test_an_observer_that_went_back_is_reported_as_an_observer() -> None:
    lone = leader()
    for offset in (END, LOG_END.offset):
        lone.ask(fetch(9, LEADS, offset, LEADS if offset == END else LOG_END.epoch))
    assert [(one.key.id, one.is_voter) for one in reported(lone)] == [(9, False)]


@pytest.mark.parametrize("pre_vote", [None, False, True], ids=["fetch", "vote", "pre-vote"])
def test_a_request_of_an_epoch_before_the_one_it_fetched_in_is_reported(pre_vote: bool | None) -> None:
    lone = leader()
    for node_id, count in ((3, 0), (2, 1)):
        if pre_vote is None:
            lone.ask(fetch(node_id, EPOCH, LOG_END.offset, LOG_END.epoch))
        else:
            lone.ask(vote(node_id, EPOCH, pre_vote=pre_vote))
        found = reported(lone)
        assert len(found) == count, "3 has not fetched in this epoch, so it may not know it"
    assert (found[0].offset, found[0].epoch, found[0].leader_epoch) == (None, EPOCH, LEADS)
    lone.ask(fetch(2, LEADS, END, LEADS))
    assert reported(lone) == []


def test_a_replica_that_does_not_lead_reports_no_older_epoch() -> None:
    lone = Lone().follow()
    lone.ask(fetch(2, EPOCH - 1, 5, 4))
    lone.ask(vote(2, EPOCH - 1, last=(5, 3)))
    assert reported(lone) == []


def test_voters_that_went_back_are_no_part_of_a_majority() -> None:
    nodes = VoterSet.of(*(node_config(one).voter_node for one in (1, 2, 3)))
    progress = Progress(voter(1), nodes, {voter(2): 20})
    progress.local_synced(30)
    assert progress.fetched(voter(2), 19, 30, 1) is progress.voters[2]
    assert progress.committable() is None
    assert progress.fetched(voter(3), 10, 30, 1) is None
    assert progress.committable() == 10
    assert progress.fetched(voter(2), 20, 30, 1) is None
    assert progress.committable() == 20
    assert progress.acknowledged(15) == {voter(2): 15, voter(3): 10}
