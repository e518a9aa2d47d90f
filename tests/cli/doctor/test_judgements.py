"""The findings that `kraftd doctor` derives from its observations."""

from __future__ import annotations

import pytest

from kraftd.cli.doctor.findings import Finding, Level
from kraftd.cli.doctor.judge_disk import DiskState, judge_disk
from kraftd.cli.doctor.judge_peers import Answer, judge_peer, judge_port, judge_versions
from kraftd.cli.doctor.judge_quorum import (
    Member,
    judge_brokers,
    judge_clock,
    judge_cluster_id,
    judge_duplicate_ids,
    judge_lag,
    judge_membership,
    judge_refused,
    judge_voters,
)
from kraftd.messages.api_versions_response import (
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from kraftd.messages.describe_quorum_response import PartitionData, ReplicaState
from kraftd.wire.api import ApiKey

NOW_MS = 1_700_000_000_000
GIB = 1 << 30
OLD, NEW = b"o" * 16, b"n" * 16
CONTROLLER = frozenset({int(ApiKey.VOTE), int(ApiKey.API_VERSIONS)})


def levels(found: list[Finding]) -> list[Level]:
    return [one.level for one in found]


def test_space_on_a_small_disk_can_be_low_in_bytes_though_not_in_percent() -> None:
    for free_bytes, level in ((GIB // 2, Level.WARNING), (GIB, Level.OK)):
        assert levels(list(judge_disk("/data", DiskState(free_bytes, 4 * GIB, []), 2000))) == [level]


@pytest.mark.parametrize(
    ("free_bytes", "sync_ms", "expected"),
    [
        (50 * GIB, [1.0, 2.0], [Level.OK, Level.OK]),
        (4 * GIB, [1.0], [Level.WARNING, Level.OK]),  # below 5 % of the disk
        (GIB // 2, [1.0], [Level.WARNING, Level.OK]),
        (32 << 20, [1.0], [Level.PROBLEM, Level.OK]),
        (50 * GIB, [25.0, 30.0], [Level.OK, Level.WARNING]),
        (50 * GIB, [1.0, 1.0, 300.0], [Level.OK, Level.WARNING]),
        (50 * GIB, [1.0, 1.0, 1200.0], [Level.OK, Level.PROBLEM]),  # half of the fetch timeout
        (50 * GIB, [], [Level.OK]),
    ],
)
def test_free_space_and_sync_times_decide_the_level_of_a_disk(
    free_bytes: int, sync_ms: list[float], expected: list[Level]
) -> None:
    found = list(judge_disk("/data", DiskState(free_bytes, 100 * GIB, sync_ms), 2000))
    assert levels(found) == expected
    assert all(one.remedy for one in found if one.is_wrong)


def replica(node_id: int, end: int = 100, silent_ms: int = 0, behind_ms: int = 0) -> ReplicaState:
    fetched_ms = -1 if silent_ms < 0 else NOW_MS - silent_ms
    return ReplicaState(node_id, OLD, end, fetched_ms, NOW_MS - behind_ms)


def quorum(*voters: ReplicaState, observers: tuple[ReplicaState, ...] = ()) -> PartitionData:
    return PartitionData(
        leader_id=1, high_watermark=100, current_voters=[replica(1), *voters], observers=list(observers)
    )


def test_a_silent_voter_and_a_majority_without_a_spare_are_problems() -> None:
    assert levels(list(judge_voters(quorum(replica(2), replica(3))))) == [Level.OK]
    node, majority = judge_voters(quorum(replica(2), replica(3, silent_ms=60_000)))
    assert (node.subject, node.level, "60 s" in node.text) == ("node 3", Level.PROBLEM, True)
    assert majority.text == "2 of 3 voters fetch: one more loss stops the quorum"
    five = list(judge_voters(quorum(replica(2), replica(3), replica(4), replica(5, silent_ms=-1))))
    assert [(one.subject, one.text) for one in five] == [
        ("node 5", "a voter, has not fetched from this leader since it leads")
    ]


def test_a_silent_voter_that_runs_is_not_to_be_started() -> None:
    gone, held_up, _ = judge_voters(quorum(replica(2, silent_ms=-1), replica(3, silent_ms=60_000)), {3})
    assert gone.remedy.startswith("start it")
    assert (held_up.text, "its disk may be full" in held_up.remedy) == (
        "a voter that runs, silent for 60 s",
        True,
    )


def test_an_even_number_of_voters_and_a_single_voter_are_reported() -> None:
    assert levels(list(judge_voters(quorum(replica(2))))) == [Level.WARNING]
    assert levels(list(judge_voters(quorum()))) == [Level.NOTE]


def test_a_static_quorum_gets_remedies_that_work_in_static_quorums() -> None:
    """A static quorum refuses to add or remove voters, so no remedy names remove-controller."""
    lost = quorum(replica(2, silent_ms=60_000))
    assert any("remove-controller" in one.remedy for one in judge_voters(lost))
    for one in lost.current_voters:
        one.replica_directory_id = bytes(16)
    found = list(judge_voters(lost))
    assert not any("remove-controller" in one.remedy for one in found)
    assert "format a new one for this id" in found[0].remedy
    (even,) = judge_voters(PartitionData(leader_id=1, current_voters=lost.current_voters[:1] * 2))
    assert "make-dynamic" in even.remedy


def test_static_voters_in_the_file_of_a_dynamic_quorum_are_reported() -> None:
    (finding,) = judge_membership(quorum(replica(2)), Member(2, OLD, True), {1: ("a", 1), 2: ("b", 1)})
    assert (finding.level, "bootstrap.servers" in finding.remedy) == (Level.NOTE, True)


def test_nodes_that_the_leader_refuses_are_reported_with_remedies() -> None:
    (found,) = judge_refused(["node 7 at ::1 is refused: X: the cluster id; format it, or correct"], "node 1")
    assert (found.text, found.remedy) == (
        "node 7 at ::1 is refused: X: the cluster id",
        "format it, or correct",
    )


def test_a_fetching_replica_that_stays_behind_is_reported_as_lagging() -> None:
    slow = replica(3, end=40, behind_ms=8_000)
    (found,) = judge_lag(quorum(replica(2, end=99), slow))
    assert (found.subject, found.text) == ("node 3", "this voter is 60 records behind, for 8 s")
    assert levels(list(judge_lag(quorum(replica(2), observers=(replica(9),))))) == [Level.OK]
    assert levels(list(judge_lag(quorum(observers=(replica(9, 1, behind_ms=9_000),))))) == [Level.WARNING]


def test_a_broker_silent_for_half_a_session_is_reported() -> None:
    observers = (replica(7, silent_ms=4_000), replica(8, silent_ms=5_000), replica(4, silent_ms=60_000))
    found = list(judge_brokers(quorum(observers=observers), [4], 9_000))
    assert [one.subject for one in found] == ["node 8", "node 4"]
    assert found[0].text == "this broker did not fetch for 5.0 s; a session lasts 9 s"
    assert found[1].text == "this controller did not fetch for 60.0 s"


@pytest.mark.parametrize(
    ("difference_ms", "expected"),
    [(0, "agrees"), (900, "agrees"), (-900, "agrees"), (5_000, "ahead of"), (-5_000, "behind")],
)
def test_the_leaders_clock_is_compared_with_the_local_clock(difference_ms: int, expected: str) -> None:
    local_ms = NOW_MS - difference_ms
    found = judge_clock(quorum(), local_ms - 5, local_ms + 5)
    assert expected in found.text
    assert found.is_wrong is (expected != "agrees")


def test_a_member_with_another_directory_id_or_other_voters_is_reported() -> None:
    partition = quorum(replica(2), replica(3))
    assert list(judge_membership(partition, Member(2, OLD, True), {})) == []
    (anew,) = judge_membership(partition, Member(2, NEW, True), {})
    assert (anew.level, "formatted anew" in anew.text) == (Level.PROBLEM, True)
    (observer,) = judge_membership(partition, Member(4, NEW, True), {})
    assert observer.level is Level.NOTE
    (static,) = judge_membership(partition, Member(2, None, True), {1: ("a", 1), 2: ("b", 1)})
    assert static.text == "controller.quorum.voters names [1, 2], the quorum has [1, 2, 3]"


def test_a_directory_of_another_cluster_is_a_problem() -> None:
    assert judge_cluster_id("/data", "A", "A").level is Level.OK
    assert judge_cluster_id("/data", "A", "B").level is Level.PROBLEM


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (Answer("h:1", "Connection refused"), "the connection is refused: nothing listens there"),
        (Answer("h:1", "no answer in time"), "it accepts connections and answers nothing"),
        (Answer("h:1", "no connection in time", listens=False), "its host does not answer in time"),
        (Answer("h:1", "no answer in time", listens=False), "it does not answer in time"),
        (Answer("h:1", "it closed the connection", "TLS"), "it speaks TLS, and this node PLAINTEXT"),
        (Answer("h:1", "it closed the connection", "HTTP"), "an HTTP server answers there, no controller"),
        (Answer("h:1", "TLS: WRONG_VERSION_NUMBER", "PLAINTEXT"), "it speaks PLAINTEXT, and TLS was tried"),
        (Answer("h:1", served=frozenset({0, 18})), "a broker answers there, not a controller"),
        (Answer("h:1", served=CONTROLLER, cluster_id="B"), "it is of cluster B, not of A"),
    ],
)
def test_a_wrong_server_at_an_address_is_reported_with_a_remedy(answer: Answer, text: str) -> None:
    found = judge_peer(answer, "A", expects_tls=False)
    assert (found.level, found.text) == (Level.PROBLEM, text)
    assert found.remedy


def test_a_tls_peer_of_a_tls_node_is_no_problem() -> None:
    found = judge_peer(Answer("h:1", "it closed the connection", "TLS"), "A", expects_tls=True)
    assert found.level is Level.NOTE
    assert judge_peer(Answer("h:1", served=CONTROLLER), "A", expects_tls=True).level is Level.OK


def test_the_nodes_port_is_found_free_or_used_by_itself_or_by_another() -> None:
    assert judge_port("h:1", None, None, "A").level is Level.NOTE
    assert judge_port("h:1", "Permission denied", None, "A").level is Level.PROBLEM
    assert (
        judge_port("h:1", "in use", Answer("h:1", served=CONTROLLER, cluster_id="A"), "A").level is Level.OK
    )
    clients = Answer("h:1", served=frozenset({0}))
    assert judge_port("h:1", "in use", clients, "A", for_clients=True).level is Level.OK
    secured = Answer("h:1", "login: it does not take PLAIN", "TLS")
    assert "over TLS" in judge_port("h:1", "in use", secured, "A").text
    for other in (
        Answer("h:1", "it closed the connection", "HTTP"),
        Answer("h:1", served=frozenset({0})),
        Answer("h:1", served=CONTROLLER, cluster_id="B"),
    ):
        assert judge_port("h:1", "in use", other, "A").level is Level.PROBLEM
    closed = Answer("h:1", "it closed the connection at the first request")
    assert "another process" in judge_port("h:1", "in use", closed, "A").text
    held_up = judge_port("h:1", "in use", closed, "A", held_up="make room")
    assert (held_up.level, held_up.remedy) == (Level.PROBLEM, "make room")
    assert held_up.text.startswith("this node runs and does not serve")
    frozen = judge_port("h:1", "in use", Answer("h:1", "no answer in time"), "A", held_up="make room")
    assert "frozen" in frozen.remedy
    assert "full disk" in judge_peer(closed, None, expects_tls=False).remedy


def test_a_finalized_level_that_a_node_does_not_support_is_a_problem() -> None:
    versions = ApiVersionsResponse(
        supported_features=[SupportedFeatureKey("metadata.version", 7, 20)],
        finalized_features=[FinalizedFeatureKey("metadata.version", 21, 21)],
    )
    (found,) = judge_versions(Answer("h:1", versions=versions), {"metadata.version": (7, 30)})
    assert found.text == "metadata.version is finalized at 21, and it supports 7 to 20"
    both = judge_versions(Answer("h:1", versions=versions), {"metadata.version": (7, 19)})
    assert [(one.subject, one.level) for one in both] == [
        ("h:1", Level.PROBLEM),
        ("this kraftd", Level.PROBLEM),
    ]
    versions.finalized_features[0].max_version_level = 19
    (behind,) = judge_versions(Answer("h:1", versions=versions), None)
    assert (behind.level, "metadata.version 19 of 20" in behind.text) == (Level.NOTE, True)


def test_two_nodes_fetching_under_one_id_are_a_problem_a_replaced_disk_is_none() -> None:
    leads = ReplicaState(1, OLD, last_fetch_timestamp=NOW_MS)
    for old_fetch_ms, count in ((NOW_MS - 700, 1), (NOW_MS - 20_000, 0)):
        partition = PartitionData(
            leader_id=1,
            current_voters=[leads, ReplicaState(2, OLD, last_fetch_timestamp=old_fetch_ms)],
            observers=[ReplicaState(2, NEW, last_fetch_timestamp=NOW_MS - 100)],
        )
        found = list(judge_duplicate_ids(partition, ()))
        assert [(one.subject, one.level) for one in found] == [("node 2", Level.PROBLEM)] * count
        assert not list(judge_duplicate_ids(partition, ["node 2 runs more than once: ..."]))
