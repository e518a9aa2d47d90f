"""Detection of several processes under one id, from the leader's fetches and its view of the quorum."""

from __future__ import annotations

from typing import Any

import pytest

from kraftd.controller_node.watching import duplicate_ids as duplicate_ids_module
from kraftd.controller_node.watching.duplicate_ids import (
    LIVE_MS,
    MAX_SEEN,
    MIN_RETURNS,
    MIN_RETURNS_MS,
    REMEDY,
    FetchingReplicas,
    duplicate_ids,
)
from kraftd.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from kraftd.raft.replica_views import ReplicaView
from kraftd.requests.call import Call
from kraftd.requests.effects import LogLine
from kraftd.requests.outbox import Outbox
from kraftd.types import ZERO_UUID, ReplicaKey, uuid_text
from kraftd.wire.api import ApiKey

A, B, C = (letter * 16 for letter in (b"a", b"b", b"c"))
NOW_MS = 100_000


def view(
    node_id: int, directory: bytes | None, fetched_ms: int | None, *, voter: bool = False
) -> ReplicaView:
    return ReplicaView(ReplicaKey(node_id, directory), voter, False, 5, fetched_ms, None)


def line(node_id: int, text: str) -> dict[int, str]:
    return {node_id: f"node {node_id} runs more than once, from the directories {text}; {REMEDY}"}


@pytest.mark.parametrize(
    ("views", "expected"),
    [
        (
            [view(0, A, NOW_MS, voter=True), view(0, B, NOW_MS - LIVE_MS + 1)],
            line(0, f"{uuid_text(A)} (the voter), {uuid_text(B)} (an observer)"),
        ),
        ([view(7, A, NOW_MS, voter=True), view(7, B, NOW_MS - LIVE_MS)], {}),
        ([view(7, A, NOW_MS), view(7, B, None)], {}),
        ([view(7, A, NOW_MS), view(8, B, NOW_MS)], {}),
        ([view(-1, A, NOW_MS), view(-1, B, NOW_MS)], {}),  # tools
        ([view(7, A, NOW_MS), view(7, None, NOW_MS)], {}),  # a static voter, whose directory is unknown
    ],
)
def test_an_id_whose_two_directories_both_fetch_is_reported(
    views: list[ReplicaView], expected: dict[int, str]
) -> None:
    assert duplicate_ids(views, NOW_MS) == expected


class Leader:
    """A leader that notes fetches; only the test moves its time."""

    def __init__(self) -> None:
        self.outbox = Outbox()
        self.fetching = FetchingReplicas(self.outbox)
        self.now_ms = NOW_MS

    def fetch(self, connection_id: int, directory: bytes, node_id: int = 7, later_ms: int = 0) -> None:
        self.now_ms += later_ms
        topics = [FetchTopic(partitions=[FetchPartition(replica_directory_id=directory)])]
        request = FetchRequest(replica_state=ReplicaState(node_id), topics=topics)
        host = f"host{connection_id}"
        call = Call(connection_id, 0, "C", host, ApiKey.FETCH, 17, 1, "c", request)
        call.arrived_ns = self.now_ms * 1_000_000
        self.fetching.note(call, self.now_ms)

    @property
    def lines(self) -> dict[int, str]:
        return self.fetching.lines(self.now_ms)

    def logged(self) -> list[dict[str, Any]]:
        made = [one for one in self.outbox.take() if isinstance(one, LogLine)]
        assert all((one.level, one.text) == ("warning", "a node runs more than once") for one in made)
        return [one.fields for one in made]


@pytest.mark.parametrize("node_id", [0, 7])
def test_directories_whose_fetches_alternate_are_two_processes(node_id: int) -> None:
    leader = Leader()
    leader.fetch(1, A, node_id)
    leader.fetch(2, B, node_id)
    assert leader.lines == {} and leader.logged() == []
    leader.fetch(1, A, node_id, LIVE_MS - 1)
    both = [f"{uuid_text(B)} (at host2)", f"{uuid_text(A)} (at host1)"]
    assert leader.lines == line(node_id, ", ".join(both))
    assert leader.logged() == [{"from_node": node_id, "directories": both, "remedy": REMEDY, "seen": 1}]
    leader.now_ms += 1
    assert leader.lines == {}  # the other no longer fetches


@pytest.mark.parametrize(
    "fetches",
    [
        [(1, A, 0), (1, A, 0), (1, A, 0)],
        [(1, A, 0), (2, B, 0), (2, B, 0)],  # a replaced disk
        [(1, A, 0), (2, B, 0), (1, A, LIVE_MS)],  # the old disk, put back
        [(1, A, 0), (2, ZERO_UUID, 0), (1, A, 0)],  # an upgrade from before v17
        [(1, A, 0), (2, A, 0), (1, A, 0), (2, A, 0), (1, A, 0)],  # for less than a second
        [(1, A, 300), (1, ZERO_UUID, 300)] * 5,  # two versions of Fetch by one connection
        [(1, A, 0), *[(2 + at, A, 400) for at in range(9)]],  # another connection each time
    ],
)
def test_a_new_disk_or_connection_is_no_second_process(fetches: list[tuple[int, bytes, int]]) -> None:
    leader = Leader()
    for connection_id, directory, later_ms in fetches:
        leader.fetch(connection_id, directory, later_ms=later_ms)
    assert leader.lines == {} and leader.logged() == []


@pytest.mark.parametrize(("directory", "name"), [(A, uuid_text(A)), (ZERO_UUID, "unknown")])
def test_connections_that_alternate_for_a_second_are_two_processes(directory: bytes, name: str) -> None:
    leader = Leader()
    for _ in range(3):
        leader.fetch(1, directory)
        leader.fetch(2, directory)
    assert leader.lines == {}  # four returns at once
    leader.fetch(1, directory, later_ms=MIN_RETURNS_MS - 1)
    assert leader.lines == {}
    leader.fetch(2, directory, later_ms=1)
    assert leader.lines == line(7, f"{name} (at host1), {name} (at host2), copies of one")
    assert len(leader.logged()) == 1


@pytest.mark.parametrize(("pause_ms", "found"), [(LIVE_MS - 1, True), (LIVE_MS, False)])
def test_the_count_of_returns_starts_anew_after_a_pause(pause_ms: int, found: bool) -> None:
    leader = Leader()
    for _ in range(3):
        leader.fetch(1, A)
        leader.fetch(2, A)
    leader.fetch(2, A, later_ms=pause_ms - 500)  # continues to fetch by the same connection
    leader.fetch(1, A, later_ms=500)
    assert bool(leader.lines) is found


def test_rare_returns_of_a_connection_are_no_second_process() -> None:
    """For example, a node sends a fetch to a bootstrap server each time it searches for the leader."""
    leader = Leader()
    for _ in range(3 * MIN_RETURNS):
        for connection_id in (1, 2, 1):
            leader.fetch(connection_id, A)
        for _ in range(LIVE_MS // 500):
            leader.fetch(1, A, later_ms=500)
    assert leader.lines == {} and leader.logged() == []


def test_a_reconnect_does_not_revive_a_past_report_of_two_processes() -> None:
    leader = Leader()
    for connection_id, directory in ((1, A), (2, B), (1, A)):
        leader.fetch(connection_id, directory)
    assert leader.lines
    leader.fetch(1, A, later_ms=LIVE_MS)
    leader.fetch(3, A, later_ms=500)
    assert leader.lines == {}


def test_a_reported_id_is_logged_once_a_minute_with_a_count() -> None:
    leader = Leader()
    for at in range(8):
        leader.fetch(1 + at % 2, (A, B)[at % 2], later_ms=10)
    assert [one["seen"] for one in leader.logged()] == [1]
    leader.fetch(1, A, later_ms=60_000)
    leader.fetch(2, B)
    leader.fetch(1, A)
    assert [one["seen"] for one in leader.logged()] == [6]


def test_the_number_of_remembered_ids_and_connections_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    leader = Leader()
    for at in range(MAX_SEEN + 1):
        leader.fetch(at, A)
    leader.fetch(MAX_SEEN + 1, B)
    leader.fetch(1, A)  # forgotten, like the first one
    assert leader.fetching._fetchers[7].seen.keys() >= {(1, A), (MAX_SEEN + 1, B)}
    assert len(leader.fetching._fetchers[7].seen) == MAX_SEEN
    monkeypatch.setattr(duplicate_ids_module, "MAX_PEERS", 2)
    for node_id in (8, 9, 8):
        leader.fetch(1, A, node_id)
    assert leader.fetching._fetchers.keys() == {8, 9}


def test_fetches_of_tools_and_of_replicas_before_v15_are_distinguished() -> None:
    leader = Leader()
    topics = [FetchTopic(partitions=[FetchPartition()])]
    for replica_id in (-1, 0, 5):
        request = FetchRequest(replica_id=replica_id, topics=topics)
        leader.fetching.note(Call(1, 0, "C", "h", ApiKey.FETCH, 12, 1, "c", request), NOW_MS)
    assert leader.fetching._fetchers.keys() == {0, 5}


@pytest.mark.parametrize(("pause_ms", "found"), [(LIVE_MS - 1, True), (LIVE_MS, False)])
def test_a_connection_returns_only_if_it_fetched_just_before(pause_ms: int, found: bool) -> None:
    leader = Leader()
    for _ in range(MIN_RETURNS):
        leader.fetch(1, A)
        leader.fetch(2, A)
    one = leader.fetching._fetchers[7]
    before = one.returns
    one.seen[1, A] = (NOW_MS - pause_ms, "host1")
    leader.fetch(1, A)
    assert (one.returns > before) is found


def test_two_processes_are_reported_for_as_long_as_they_alternated_just_before() -> None:
    leader = Leader()
    for connection_id, directory in ((1, A), (2, B), (1, A)):
        leader.fetch(connection_id, directory)
    leader.fetch(1, A, later_ms=LIVE_MS - 2)
    leader.fetch(3, b"c" * 16, later_ms=1)  # a third connection, which has not alternated
    assert leader.lines
    leader.now_ms += 1
    assert leader.lines == {}


def test_each_id_that_runs_more_than_once_has_its_own_line() -> None:
    leader = Leader()
    for node_id in (7, 8):
        for connection_id, directory in ((1, A), (2, B), (1, A)):
            leader.fetch(connection_id, directory, node_id)
    assert [(one["from_node"], one["seen"]) for one in leader.logged()] == [(7, 1), (8, 1)]
