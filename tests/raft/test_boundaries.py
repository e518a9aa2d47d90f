"""Boundary cases that no story reaches: a zero, an equal offset, a repeated or missing notification."""

from __future__ import annotations

from kraftd.ground.destination import Destination
from kraftd.messages.fetch_snapshot_response import FetchSnapshotResponse, PartitionSnapshot, TopicSnapshot
from kraftd.messages.fetch_snapshot_response import LeaderIdAndEpoch as SnapshotLeader
from kraftd.messages.fetch_snapshot_response import SnapshotId as PieceId
from kraftd.messages.quorum_state_data import QuorumStateData
from kraftd.raft.connections import Connections
from kraftd.raft.effects import AppendCommitted, BeginSnapshot, PersistElection, RespondRecords, TruncateLog
from kraftd.raft.events import KRaftVersionUpgradeRequested, SnapshotFinished
from kraftd.raft.quorum.voters import VoterSet
from kraftd.raft.transitions import State
from kraftd.recent import Recent
from kraftd.types import METADATA_TOPIC, OffsetAndEpoch
from kraftd.wire.error_code import ErrorCode
from tests.raft.lone import EPOCH, Lone, begin, fetch, fetch_answer, vote, vote_answer
from tests.raft.world import bootstrap_batch, node_config

LEADS = EPOCH + 1
END = 11


def test_backing_off_from_one_node_keeps_the_requests_to_others() -> None:
    connections = Connections(2000, 20)
    send_id = connections.sent(Destination(2, "n2", 9002), fetch(1, 1, 0, 0), 0)
    connections.back_off(3, 0)
    connections.reset(3)
    sent = connections.answered(send_id)
    assert sent is not None and sent.destination.node_id == 2
    assert repr(sent) == f"<Sent FetchRequest to {sent.destination}>"


def test_a_prospective_that_grants_a_vote_restarts_its_timeout() -> None:
    lone = Lone()
    lone.become_prospective()
    lone.ask(vote(2, EPOCH))
    assert lone.persisted[0].voted_id == 2
    assert lone.core.state is State.PROSPECTIVE
    lone.wait(900)
    assert (lone.core.state, lone.receivers("Vote")) == (State.PROSPECTIVE, [])


def test_a_log_that_diverges_from_its_first_epoch_on_is_truncated_to_zero() -> None:
    lone = Lone().follow()
    (send,) = lone.sent("Fetch")
    lone.answer(send, fetch_answer(EPOCH, diverging=OffsetAndEpoch(0, 0)))
    assert TruncateLog(0, 2, EPOCH) in lone.effects


def test_an_upgrade_to_the_kraft_version_in_force_commits_at_once() -> None:
    lone = Lone().lead()
    lone.sync()
    lone.ask(fetch(2, LEADS, END, LEADS))
    lone.step(KRaftVersionUpgradeRequested("upgrade", 1, LEADS))
    assert AppendCommitted("upgrade", END) in lone.effects


def test_a_sync_counts_only_below_every_truncation_since_it_began() -> None:
    replica = Lone().core._replica
    replica.append(b"", 10, 12, EPOCH)
    replica.request_sync()
    for cut, end in ((4, 9), (6, 12)):
        replica.log.truncate_to(cut)
        replica.truncated()
        replica.append(b"", cut, end, EPOCH)
    assert replica.log.synced_end_offset == 4
    replica.synced(12)
    assert replica.log.synced_end_offset == 4


def test_an_observer_whose_snapshot_makes_it_a_voter_may_start_an_election() -> None:
    lone = Lone(QuorumStateData(leader_id=-1, leader_epoch=EPOCH), voters=(2, 3))
    assert lone.core.state is State.UNATTACHED
    voters = VoterSet.of(*(node_config(one).voter_node for one in (1, 2, 3)))
    lone.step(SnapshotFinished(OffsetAndEpoch(20, EPOCH), 100, (bootstrap_batch(voters),)))
    lone.wait_for(State.PROSPECTIVE)


def test_a_snapshot_that_ends_at_the_log_start_is_not_fetched() -> None:
    lone = Lone(log_start=5).follow()
    (send,) = lone.sent("Fetch")
    lone.answer(send, fetch_answer(EPOCH, snapshot=OffsetAndEpoch(5, 4)))
    assert not [one for one in lone.effects if isinstance(one, BeginSnapshot)]
    later = Lone(log_start=5).follow()
    (send,) = later.sent("Fetch")
    later.answer(send, fetch_answer(EPOCH, snapshot=OffsetAndEpoch(6, 4)))
    assert BeginSnapshot(OffsetAndEpoch(6, 4)) in later.effects


def test_a_leader_that_fails_to_serve_a_snapshot_is_not_asked_again_at_once() -> None:
    lone = Lone().follow()
    (send,) = lone.sent("Fetch")
    lone.answer(send, fetch_answer(EPOCH, snapshot=OffsetAndEpoch(50, EPOCH)))
    (sent,) = lone.sent("FetchSnapshot")
    failed = PartitionSnapshot(
        0, ErrorCode.UNKNOWN_SERVER_ERROR, PieceId(50, EPOCH), SnapshotLeader(2, EPOCH)
    )
    lone.answer(sent, FetchSnapshotResponse(topics=[TopicSnapshot(METADATA_TOPIC, [failed])]))
    assert lone.receivers("FetchSnapshot") == []


def test_the_repr_of_an_answer_shows_its_offsets() -> None:
    lone = Lone().lead()
    lone.sync()
    lone.ask(fetch(2, LEADS, 10, 4))
    (records,) = (one for one in lone.effects if isinstance(one, RespondRecords))
    assert "[10, 11)" in repr(records)
    assert not any(isinstance(one, PersistElection) for one in lone.effects)


def test_a_second_refusal_of_one_candidacy_lengthens_no_wait() -> None:
    lone = Lone(voters=(1, 2, 3, 4, 5))
    for send in lone.become_prospective()[:2]:
        lone.answer(send, vote_answer(EPOCH, True))
    assert lone.core.state is State.CANDIDATE
    for send in lone.sent("Vote")[:2]:
        lone.answer(send, vote_answer(lone.core.epoch, False))
    assert lone.core._replica.split_votes == 1
    lone.ask(begin(3, lone.core.epoch))
    assert lone.core._replica.split_votes == 0


def test_the_first_window_of_a_metric_begins_at_its_first_value() -> None:
    recent = Recent()
    recent.record(10, 1_000)
    assert recent.per_second(31_500) == 10 / 30.5
