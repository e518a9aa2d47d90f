"""A replica's metrics, by Kafka's names."""

from __future__ import annotations

from math import isnan

import pytest

from kraftd.messages.quorum_state_data import QuorumStateData
from kraftd.raft.events import AppendRequested, ResignRequested
from kraftd.raft.quorum.history import ControlRecordHistory
from kraftd.raft.quorum.voters import VoterNode, VoterSet
from kraftd.raft.transitions import State
from kraftd.recent import WINDOW_MS, Recent
from kraftd.types import Endpoint, uuid_text
from kraftd.wire.batch import build_batch
from tests.raft.lone import EPOCH, Lone, begin, fetch, fetch_answer, vote, vote_answer
from tests.raft.world import directory_id, key_of

LEADS = EPOCH + 1
NO_LEADER = uuid_text(bytes(16))


def test_metrics_of_a_replica_follow_its_state() -> None:
    lone = Lone()
    metrics = lone.core.metrics(lone.now_ms)
    assert (metrics.current_state, metrics.current_leader, metrics.current_vote) == ("unattached", -1, -1)
    assert metrics.current_vote_directory_id == NO_LEADER
    assert (metrics.current_epoch, metrics.high_watermark) == (EPOCH, -1)
    assert (metrics.log_end_offset, metrics.log_end_epoch, metrics.number_of_voters) == (10, 4, 3)
    assert isnan(metrics.election_latency_avg) and isnan(metrics.commit_latency_max)
    pre_votes = lone.become_prospective()
    assert lone.core.metrics(lone.now_ms).current_state == "prospective"
    lone.now_ms += 5
    lone.answer(pre_votes[0], vote_answer(EPOCH, True))
    metrics = lone.core.metrics(lone.now_ms)
    assert (metrics.current_state, metrics.current_vote) == ("candidate", 1)
    assert metrics.current_vote_directory_id == uuid_text(directory_id(1))
    lone.now_ms += 7
    lone.answer(lone.sent("Vote")[0], vote_answer(LEADS, True))
    metrics = lone.core.metrics(lone.now_ms)
    assert (metrics.current_state, metrics.current_leader, metrics.current_epoch) == ("leader", 1, LEADS)
    latencies = metrics.election_latency_avg, metrics.election_latency_max
    assert latencies == (7, 7)  # since the requests for votes
    assert (metrics.log_end_offset, metrics.log_end_epoch, metrics.high_watermark) == (11, LEADS, -1)
    lone.sync()
    lone.step(AppendRequested("a", [b"x"] * 4, LEADS))
    lone.sync()
    lone.now_ms += 20
    lone.ask(fetch(2, LEADS, 15, LEADS))
    lone.ask(fetch(9, LEADS, 15, LEADS))
    metrics = lone.core.metrics(lone.now_ms)
    assert (metrics.high_watermark, metrics.number_of_observers) == (15, 1)
    assert metrics.uncommitted_voter_change == 0
    assert (metrics.commit_latency_avg, metrics.commit_latency_max) == ((20 + 20 / 4) / 2, 20)
    assert 0 < metrics.append_records_rate <= 5 / 30
    assert metrics.fetch_records_rate == 0


def test_metrics_of_a_leader_end_with_its_leadership() -> None:
    lone = Lone().lead()
    names = set(lone.core.metrics(lone.now_ms).by_name())
    assert {"number-of-observers", "uncommitted-voter-change", "log-end-offset"} <= names
    lone.step(ResignRequested(LEADS))
    metrics = lone.core.metrics(lone.now_ms)
    assert names - set(metrics.by_name()) == {"number-of-observers", "uncommitted-voter-change"}
    assert metrics.current_state == "unattached"  # Kafka's name for a resigned replica
    lone.ask(begin(3, LEADS + 1))
    assert lone.core.metrics(lone.now_ms).current_leader == 3


def test_follower_measures_fetched_records_and_election_time() -> None:
    lone = Lone()
    lone.become_prospective()
    lone.now_ms += 11
    lone.ask(begin(2))
    records = bytes(build_batch([b"a"] * 6, 10, EPOCH, 0))
    lone.answer(lone.sent("Fetch")[0], fetch_answer(EPOCH, records=records, high_watermark=10))
    metrics = lone.core.metrics(lone.now_ms)
    assert (metrics.current_state, metrics.current_leader, metrics.high_watermark) == ("follower", 2, 10)
    assert metrics.election_latency_max == 11
    assert metrics.fetch_records_rate == 6 / 30


@pytest.mark.parametrize(
    ("election", "voters", "state"),
    [
        (QuorumStateData(leader_id=2, leader_epoch=EPOCH), (2, 3, 4), "observer"),
        (QuorumStateData(leader_id=2, leader_epoch=EPOCH), (1, 2, 3), "follower"),
    ],
)
def test_state_of_an_observer_is_observer(
    election: QuorumStateData, voters: tuple[int, ...], state: str
) -> None:
    lone = Lone(election, voters=voters)
    assert lone.core.metrics(lone.now_ms).current_state == state


def test_vote_appears_in_the_state_as_in_kafka() -> None:
    lone = Lone()
    lone.ask(vote(2))
    metrics = lone.core.metrics(lone.now_ms)
    assert (metrics.current_state, metrics.current_vote) == ("unattached-voted", 2)
    assert metrics.current_vote_directory_id == uuid_text(directory_id(2))
    lone.wait_for(State.PROSPECTIVE)
    assert lone.core.metrics(lone.now_ms).current_state == "prospective-voted"


def test_measured_values_are_dropped_after_two_windows() -> None:
    recent = Recent()
    recent.record(4, 1_000)
    recent.record(8, 1_000)
    assert (recent.average(1_000), recent.maximum(1_000)) == (6, 8)
    assert recent.per_second(1_000) == pytest.approx(12 / 30)
    recent.record(2, 1_000 + WINDOW_MS)
    assert (recent.average(1_000 + WINDOW_MS), recent.maximum(1_000 + WINDOW_MS)) == (14 / 3, 8)
    assert recent.maximum(1_000 + 2 * WINDOW_MS) == 2
    assert isnan(recent.maximum(1_000 + 3 * WINDOW_MS))
    assert recent.per_second(1_000 + 3 * WINDOW_MS) == 0


def test_voters_without_an_endpoint_on_the_quorums_listener_are_counted() -> None:
    lone = Lone()
    voters = [VoterNode(key_of(one), (Endpoint("OTHER", "n", 1),)) for one in (1, 2, 3)]
    lone.core._replica.history = ControlRecordHistory(VoterSet.of(*voters))
    assert lone.core.metrics(lone.now_ms).number_unknown_voter_connections == 2
    assert lone.core._replica.voter_destination(2) is None
