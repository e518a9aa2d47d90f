"""A node's reports of peers that fail or refuse it: lines, their rate, and which of them are fatal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kraftd.host.checks.peer_troubles import (
    ALONE_AFTER_MS,
    FATAL_AFTER_MS,
    REPEAT_MS,
    REPORT_AFTER_MS,
    PeerTroubles,
)
from kraftd.messages.fetch_response import (
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from kraftd.messages.vote_response import PartitionData as VotedPartition
from kraftd.messages.vote_response import TopicData as VotedTopic
from kraftd.messages.vote_response import VoteResponse
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode

STRANGER = VoteResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
PEERS = ("b:9093", "c:9093")  # of a quorum of three
CONTROLLER = frozenset({int(ApiKey.VOTE), int(ApiKey.FETCH)})


def alone() -> PeerTroubles:
    troubles = PeerTroubles(1, "mine")
    troubles.poll(0, leader_id=None, leader_answers=False)
    return troubles


def test_a_trouble_is_logged_soon_and_then_once_a_minute_with_a_count() -> None:
    troubles = alone()
    troubles.unreachable(2, "b:9093", "Connection refused")
    assert troubles.report(REPORT_AFTER_MS - 1) == []
    ((finding, count),) = troubles.report(REPORT_AFTER_MS)
    assert (finding.at, count) == ("b:9093", 1)
    for _ in range(5):
        troubles.unreachable(2, "b:9093", "Connection refused")
    assert troubles.report(REPORT_AFTER_MS + REPEAT_MS - 1) == []
    ((_, count),) = troubles.report(REPORT_AFTER_MS + REPEAT_MS)
    assert count == 5


def test_an_answer_has_the_time_without_a_leader() -> None:
    troubles = alone()
    troubles.unreachable(2, "b:9093", "Connection refused")
    troubles.poll(43_000, leader_id=None, leader_answers=False)
    assert troubles.answer() == ["no leader for 43 s, since it started", *troubles.lines()]
    troubles.poll(44_000, leader_id=2, leader_answers=True)
    assert troubles.answer() == []
    troubles.poll(50_000, leader_id=None, leader_answers=False)
    troubles.poll(52_500, leader_id=None, leader_answers=False)
    assert troubles.answer() == ["no leader for 2 s"]


@pytest.mark.parametrize(
    ("reason", "text", "remedy"),
    [
        ("[SSL: WRONG_VERSION_NUMBER] wrong version number", "does not speak TLS", "security protocol"),
        ("self-signed certificate", "its certificate is not accepted (self-signed", "ssl.truststore"),
        ("IP address mismatch, certificate is not valid for '::1'", "is not accepted", "its names"),
        ("[SSL: TLSV13_ALERT_CERTIFICATE_REQUIRED] required", "this node's certificate", "ssl.keystore"),
        ("login by PLAIN: invalid credentials", "cannot log in (login by PLAIN", "sasl.jaas.config"),
        ("the other side speaks TLS on a plaintext connection", "it speaks TLS", "security protocol"),
        ("it does not speak Kafka's protocol", "does not speak Kafka", "correct the address"),
        ("the other side speaks SSH on a plaintext connection", "does not speak Kafka", "the address"),
        ("the other side speaks HTTP on a plaintext connection", "an HTTP server", "correct the address"),
        ("[Errno 111] Connection refused", "nothing listens there", "start the node there"),
        ("Name or service not known", "does not resolve", "correct the name"),
        ("Temporary failure in name resolution", "does not resolve", "correct the name"),
        ("No address associated with hostname", "does not resolve", "correct the name"),
        ("no answer in time", "it does not answer in time", "hangs or is frozen"),
        ("no connection in time", "its host does not answer", "the network to it"),
        ("Connection timed out", "its host does not answer", "the network to it"),
        ("No route to host", "no route", "the network to it"),
        ("Network is unreachable", "no route", "the network to it"),
        ("Connection reset by peer", "closes the connection", "security protocol"),
        ("closed by the other side", "closes the connection", "full disk"),
        ("an unknown reason", "an unknown reason", "the network to it"),
    ],
)
def test_each_failure_between_nodes_is_named_in_the_log(reason: str, text: str, remedy: str) -> None:
    troubles = alone()
    troubles.unreachable(2, "b:9093", reason)
    (finding,) = troubles.findings()
    assert text in finding.text
    assert remedy in finding.remedy


def test_a_denied_peer_is_reported_with_the_missing_permission() -> None:
    troubles = alone()
    denied = VoteResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    troubles.answered(2, "b:9093", denied, CONTROLLER)
    assert "CLUSTER_ACTION" in troubles.lines()[0]


def test_the_next_loss_of_a_leader_is_reported_within_seconds_too() -> None:
    troubles = alone()
    troubles.unreachable(2, "b:9093", "Connection refused")
    assert troubles.report(REPORT_AFTER_MS)
    troubles.poll(3_000, leader_id=2, leader_answers=True)
    troubles.poll(4_000, leader_id=None, leader_answers=False)
    troubles.unreachable(2, "b:9093", "Connection refused")
    assert troubles.report(4_000 + REPORT_AFTER_MS - 1) == []
    assert len(troubles.report(4_000 + REPORT_AFTER_MS)) == 1


def test_no_trouble_is_reported_once_there_is_a_leader() -> None:
    troubles = alone()
    troubles.unreachable(2, "b:9093", "Connection refused")
    troubles.poll(10, leader_id=2, leader_answers=True)
    assert troubles.findings() == []
    assert troubles.report(1_000_000) == []


def test_a_peer_that_answers_well_is_forgotten() -> None:
    troubles = alone()
    troubles.unreachable(2, "b:9093", "Connection refused")
    troubles.answered(2, "b:9093", VoteResponse(), CONTROLLER)
    assert troubles.findings() == []


def test_a_voter_exits_only_if_strangers_leave_no_possible_majority() -> None:
    troubles = alone()
    troubles.answered(2, "b:9093", STRANGER, CONTROLLER)
    assert troubles.fatal(FATAL_AFTER_MS, PEERS, PEERS) is None  # the third may be of this cluster
    troubles.answered(3, "c:9093", STRANGER, CONTROLLER)
    assert troubles.fatal(FATAL_AFTER_MS - 1, PEERS, PEERS) is None
    reason = troubles.fatal(FATAL_AFTER_MS, PEERS, PEERS)
    assert reason is not None
    assert "node 2 at b:9093" in reason


def test_an_observer_exits_only_if_each_of_its_sources_is_of_another_cluster() -> None:
    troubles = alone()
    troubles.answered(-2, "b:9093", STRANGER, CONTROLLER)
    assert troubles.fatal(FATAL_AFTER_MS, None, PEERS[:1]) is not None
    assert troubles.fatal(FATAL_AFTER_MS, None, PEERS) is None  # the other has not answered yet
    troubles.unreachable(-3, "c:9093", "Connection refused")
    assert troubles.fatal(1_000_000, None, PEERS) is None  # it may come back
    assert [line.partition(": ")[0] for line in troubles.lines()] == list(PEERS)
    troubles.answered(-3, "c:9093", STRANGER, CONTROLLER)
    assert troubles.fatal(1_000_000, None, PEERS) is not None
    troubles.answered(-3, "c:9093", FetchResponse(), CONTROLLER)
    assert troubles.fatal(1_000_000, None, PEERS) is None


def test_a_voter_counts_strangers_at_the_addresses_of_voters_alone() -> None:
    troubles = alone()
    for number, at in enumerate(("old-b:9093", "old-c:9093")):
        troubles.answered(-2 - number, at, STRANGER, CONTROLLER)
    assert troubles.fatal(1_000_000, PEERS, PEERS) is None


def test_a_node_that_once_had_a_leader_never_exits_because_of_strangers() -> None:
    troubles = alone()
    troubles.poll(1, leader_id=2, leader_answers=True)
    troubles.poll(2, leader_id=None, leader_answers=False)
    troubles.answered(2, "b:9093", STRANGER, CONTROLLER)
    assert troubles.fatal(1_000_000, None, PEERS[:1]) is None
    assert [finding.at for finding in troubles.findings()] == ["b:9093"]


def test_a_broker_in_a_controllers_place_is_reported_as_such() -> None:
    troubles = alone()
    troubles.answered(-2, "b:9092", FetchResponse(), frozenset({int(ApiKey.FETCH)}))
    assert "a broker answers there" in str(troubles.findings()[0])


def naming(leader_id: int) -> FetchResponse:
    """A peer's answer that names a leader."""
    partition = PartitionData(current_leader=LeaderIdAndEpoch(leader_id, 5))
    return FetchResponse(responses=[FetchableTopicResponse(partitions=[partition])])


def of_a_vote(leader_id: int) -> VoteResponse:
    """A refused vote that names a leader."""
    return VoteResponse(topics=[VotedTopic(partitions=[VotedPartition(leader_id=leader_id)])])


@pytest.mark.parametrize("make", [naming, of_a_vote], ids=["fetch", "vote"])
def test_a_leader_that_was_this_node_before_its_volume_was_lost_is_no_twin(
    make: Callable[[int], Any],
) -> None:
    troubles, answer = alone(), make(1)
    troubles.own_addresses = frozenset({"a:9093"})
    answer.node_endpoints = [NodeEndpoint(1, "a", 9093)]
    troubles.answered(2, "b:9093", answer, CONTROLLER)
    assert troubles.fatal(FATAL_AFTER_MS, PEERS, PEERS) is None and troubles.findings() == []
    answer.node_endpoints[0].host = "z"
    troubles.answered(2, "b:9093", answer, CONTROLLER)
    assert "has the id of this node" in str(troubles.fatal(FATAL_AFTER_MS, PEERS, PEERS))


def test_a_voter_with_a_new_directory_names_the_voters_that_have_a_log() -> None:
    troubles = alone()
    troubles.first_election([2, 3])
    (line,) = troubles.lines()
    assert (
        "until controllers 2, 3 have shown" in line
        and "set kraftd.first.election.without=2,3 on each" in line
    )
    troubles.first_election([2], {3})
    (line,) = troubles.lines()
    assert "controllers 3 have a log, and this directory is new" in line and "kraftd quorum recover" in line
    troubles.first_election([])
    assert troubles.lines() == []


def test_a_voter_with_a_log_names_the_voters_that_have_lost_theirs() -> None:
    troubles = alone()
    troubles.volumes_lost({3, 2})
    (line,) = troubles.lines()
    assert "controllers 2, 3 have no log" in line and "kraftd quorum recover" in line
    troubles.volumes_lost(())
    assert troubles.lines() == []


@pytest.mark.parametrize("answer", [naming(1), of_a_vote(1)], ids=["fetch", "vote"])
def test_a_node_whose_id_already_leads_exits(answer: FetchResponse | VoteResponse) -> None:
    troubles = alone()
    troubles.answered(2, "b:9093", answer, CONTROLLER)
    assert "has the id of this node" in str(troubles.fatal(FATAL_AFTER_MS, PEERS, PEERS))


def test_a_former_leader_that_peers_still_name_is_no_duplicate() -> None:
    troubles = alone()
    troubles.answered(2, "b:9093", naming(1), CONTROLLER)  # the answer to its own vote, or its own leadership
    troubles.poll(FATAL_AFTER_MS, leader_id=1, leader_answers=False)  # frozen meanwhile, it has resigned
    troubles.answered(3, "c:9093", naming(1), CONTROLLER)
    assert troubles.fatal(FATAL_AFTER_MS, PEERS, PEERS) is None
    assert troubles.findings() == []


def test_a_peer_that_moved_to_another_cluster_counts_as_a_stranger() -> None:
    troubles = alone()
    troubles.answered(2, "b:9093", VoteResponse(), CONTROLLER)
    troubles.answered(2, "b:9093", STRANGER, CONTROLLER)
    assert "another cluster" in (troubles.fatal(FATAL_AFTER_MS, None, ["b:9093"]) or "")


def test_a_peer_of_another_cluster_is_named_with_both_ids_once_its_id_is_known() -> None:
    troubles = alone()
    assert not troubles.lacks_cluster_of("b:9093")
    troubles.answered(2, "b:9093", STRANGER, CONTROLLER)
    assert troubles.lacks_cluster_of("b:9093")
    troubles.is_of_cluster("b:9093", "theirs")
    assert not troubles.lacks_cluster_of("b:9093")
    for _ in range(2):
        assert f"it is of cluster theirs, and this node of {troubles.cluster_id}" in troubles.lines()[0]
        troubles.answered(2, "b:9093", STRANGER, CONTROLLER)
    troubles.answered(2, "b:9093", VoteResponse(), CONTROLLER)
    troubles.answered(2, "b:9093", STRANGER, CONTROLLER)
    assert troubles.lacks_cluster_of("b:9093")  # it may have moved again


def voted(code: ErrorCode, leader_id: int = -1) -> VoteResponse:
    return VoteResponse(topics=[VotedTopic("__cluster_metadata", [VotedPartition(0, code, leader_id, 3)])])


def test_a_wrong_node_at_a_voters_address_is_reported_until_the_voter_answers() -> None:
    troubles = alone()
    troubles.answered(2, "b:9093", voted(ErrorCode.INVALID_VOTER_KEY), CONTROLLER)
    troubles.answered(3, "b:9093", voted(ErrorCode.NONE), CONTROLLER)
    troubles.answered(2, "b:9093", FetchResponse(), CONTROLLER)
    (line,) = troubles.lines()
    assert line.startswith("node 2 at b:9093: another node than 2 answers there, or its directory")
    assert "correct advertised.listeners of that node" in line
    assert [count for _, count in troubles.report(REPORT_AFTER_MS)] == [1]
    assert troubles.fatal(FATAL_AFTER_MS, PEERS, PEERS) is None
    troubles.answered(2, "b:9093", voted(ErrorCode.NONE), CONTROLLER)
    assert troubles.lines() == []


def test_a_node_that_led_for_a_moment_is_no_stranger_with_its_own_id() -> None:
    for was_leader, count in ((False, 1), (True, 0)):
        troubles = alone()
        troubles.was_leader = lambda was_leader=was_leader: was_leader
        troubles.answered(2, "b:9093", voted(ErrorCode.NONE, leader_id=1), CONTROLLER)
        assert len(troubles.lines()) == count
        assert (troubles.fatal(FATAL_AFTER_MS, PEERS, PEERS) is None) is was_leader


def test_a_node_without_peers_reports_that_until_it_contacts_one() -> None:
    troubles = alone()
    troubles.poll(ALONE_AFTER_MS - 1, leader_id=None, leader_answers=False)
    assert troubles.lines() == []
    troubles.poll(ALONE_AFTER_MS, leader_id=None, leader_answers=False)
    (line,) = troubles.lines()
    assert line.startswith("controller.quorum.bootstrap.servers: it names only this node")
    assert len(troubles.report(ALONE_AFTER_MS)) == 1
    troubles.unreachable(2, "b:9093", "Connection refused")
    troubles.poll(2 * ALONE_AFTER_MS, leader_id=None, leader_answers=False)
    assert [finding.at for finding in troubles.findings()] == ["b:9093"]
