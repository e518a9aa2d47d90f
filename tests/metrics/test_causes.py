"""What the status page says is wrong, whose knowledge it is, and where the other pages are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from kraftd.config.listeners import parse_metrics_nodes
from kraftd.messages.describe_quorum_response import PartitionData, ReplicaState
from kraftd.metrics.state.sight import Sight
from kraftd.metrics.state.survey import Example, Group, Survey
from kraftd.metrics.status_page.causes import CRITICAL, WARNING
from kraftd.metrics.status_page.links import status_urls
from kraftd.metrics.status_page.status import status
from kraftd.raft.effects import LeadershipChanged
from kraftd.types import Endpoint
from tests.controller_node.harness import Harness
from tests.metrics.watched import readings

REFUSED = "node 7 at 10.0.0.7 is refused: INCONSISTENT_CLUSTER_ID; format it"


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    return Harness(tmp_path).start()


def shown(harness: Harness, survey: Survey | None = None, **fields: Any) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(
        msgspec.json.encode(status(readings(harness, **fields), survey))
    )
    return found


def found(harness: Harness, survey: Survey | None = None, **fields: Any) -> list[tuple[str, str, list[str]]]:
    causes = shown(harness, survey, **fields)["causes"]
    return [(one["severity"], one["what"], one["details"]) for one in causes]


def test_a_healthy_node_shows_no_cause(harness: Harness) -> None:
    harness.unfenced(1)
    assert found(harness, Survey(0)) == []


def test_nodes_with_trouble_are_named_the_worst_first(harness: Harness) -> None:
    causes = found(
        harness,
        refused=[REFUSED],
        duplicate_ids=["node 3 runs more than once"],
        ahead=["broker 4"],
        went_back=["node 2 at n2 went back: find out why"],
    )
    assert [(severity, details) for severity, _, details in causes] == [
        (CRITICAL, ["node 3 runs more than once"]),
        (CRITICAL, ["broker 4"]),
        (CRITICAL, ["node 2 at n2 went back: find out why"]),
        (WARNING, [REFUSED]),
    ]


def test_a_full_disk_and_a_stop_are_causes(harness: Harness) -> None:
    ((severity, what, _),) = found(harness, disk_full=True)
    assert severity == CRITICAL and what.startswith("The disk of node 100 is full")
    ((severity, what, _),) = found(harness, stopping=True)
    assert (severity, what) == (WARNING, "Node 100 is stopping.")


def test_a_truncation_is_a_cause_for_an_hour(harness: Harness) -> None:
    last: dict[str, Any] = {
        "at_ms": harness.clock.ms,
        "records": 161,
        "from_offset": 40,
        "to_offset": 201,
        "leader": 2,
    }
    last["kept_in"] = "/data/truncated/1"
    ((severity, what, details),) = found(harness, last_truncation=last)
    assert severity == WARNING and what.startswith("Node 100 dropped 161 records")
    assert "offsets 40 to 200" in details[0] and "/data/truncated/1" in details[0]
    assert found(harness, last_truncation={**last, "at_ms": harness.clock.ms - 3_600_000}) == []


def test_partitions_and_brokers_with_a_fault_are_causes(harness: Harness) -> None:
    harness.register(3)
    offline = Group(12, [Example("orders", at, -1, (), (3,)) for at in range(12)])
    survey = Survey(0, offline=offline, under_min_isr=Group(1, [Example("t", 0, 1, (1,), (1, 2))]))
    (first, second, third) = found(harness, survey)
    assert first[:2] == (CRITICAL, "12 partitions have no leader.")
    assert first[2][0].startswith("orders-0, orders-1, ") and first[2][0].endswith(", …")
    assert second == (CRITICAL, "1 partition has fewer in-sync replicas than min.insync.replicas.", ["t-0"])
    assert third == (WARNING, "1 broker is fenced: it sends no heartbeats.", ["broker 3"])


class Follower:
    """Readings of a node that does not lead, with what its leader, node 2, told it."""

    def __init__(self, harness: Harness, **fields: Any) -> None:
        now_ms = harness.clock.ms
        at = now_ms + 3_600_000  # the leader's clock is an hour ahead
        quorum = PartitionData(
            leader_id=2,
            current_voters=[
                ReplicaState(2, bytes(16), 50, at, at),
                ReplicaState(100, bytes(15) + b"\1", 50, at - 200, at - 200),
                ReplicaState(3, bytes(15) + b"\2", 20, at - 42_000, at - 42_000),
            ],
            observers=[ReplicaState(9, bytes(15) + b"\3", 50, at - 100, at - 90_000)],
        )
        self.sight = Sight(2, now_ms - 1_000, quorum, (REFUSED,))
        self.fields = fields


def test_a_follower_shows_the_quorum_as_its_leader_sees_it(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(harness.node.core), "is_leader", property(lambda _: False))
    view = shown(harness, sight=Follower(harness).sight, status_urls={2: "http://c2:9404/"})
    assert view["replicas_known_by"] == 2
    rows = {one["id"]: one for one in view["replicas"]}
    assert (rows[2]["is_leader"], rows[2]["url"], rows[100]["is_self"]) == (True, "http://c2:9404/", True)
    assert (rows[3]["lag"], rows[3]["caught_up_ms_ago"], rows[3]["is_behind"]) == (30, 43_000, True)
    assert (rows[100]["is_behind"], rows[9]["is_voter"]) == (False, False)
    whats = [(one["what"], one["details"]) for one in view["causes"]]
    assert whats == [
        ("Node 2, the leader, names nodes with trouble.", [REFUSED]),
        (
            "1 voter is down or behind: the loss of one more stops the quorum.",
            ["voter 3 has not been caught up for 43 s, and lacks 30 records"],
        ),
    ]


def test_a_leader_that_does_not_describe_the_quorum_is_named(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(harness.node.core), "is_leader", property(lambda _: False))
    sight = Sight(2, harness.clock.ms, failure="it refuses DescribeQuorum: CLUSTER_AUTHORIZATION_FAILED")
    view = shown(harness, sight=sight)
    assert view["replicas_known_by"] is None
    (cause,) = view["causes"]
    assert "it refuses DescribeQuorum" in cause["what"]


def test_without_a_leader_each_peer_that_does_not_help_is_named(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness.node.leadership.changed(LeadershipChanged(9, None))
    monkeypatch.setattr(type(harness.node.core), "leader_answers", property(lambda _: False))
    trouble = "node 2 at c2:9093: the connection is refused: nothing listens there; start the node there"
    ((severity, what, details),) = found(harness, troubles=[trouble])
    assert (severity, details) == (CRITICAL, [trouble])
    assert what.startswith("No controller leads: nothing can be created")
    ((_, _, details),) = found(harness)
    assert details == ["an election is under way"]


def test_the_level_of_metadata_version_has_kafkas_name(harness: Harness) -> None:
    view = shown(harness)
    assert view["releases"] == {"metadata.version": "4.3-IV0"}


def test_links_lead_to_named_pages_or_to_the_same_port_of_other_hosts(harness: Harness) -> None:
    own = Endpoint("METRICS", "", 9404, 1)
    assert status_urls(harness.node, own, {}) == {}  # this node itself
    assert status_urls(harness.node, own, {2: "http://c2:9405/"}) == {2: "http://c2:9405/"}
    node: Any = harness.node
    registered = {5: Controller(5, "c5"), 6: Controller(6, "127.0.0.1"), 7: Controller(7, "::1")}
    node = Node(harness, registered)
    assert status_urls(node, own, {7: "http://x/"}) == {5: "https://c5:9404/", 7: "http://x/"}


class Controller:
    """A registered controller at a host."""

    def __init__(self, node_id: int, host: str) -> None:
        self.id, self._host = node_id, host

    def listener(self, name: str) -> Endpoint:
        return Endpoint(name, self._host, 9093)


class Node:
    """A node with other registered controllers."""

    def __init__(self, harness: Harness, controllers: dict[int, Controller]) -> None:
        self.identity, self.core = harness.node.identity, harness.node.core
        self.image: Any = type("Image", (), {"controllers": controllers})


def test_pages_are_named_by_id_and_address() -> None:
    texts = ["2@c2:9404", "3@https://[::1]:9405"]
    assert parse_metrics_nodes(texts) == {2: "http://c2:9404/", 3: "https://[::1]:9405/"}
    for text in ("c2:9404", "x@c2:9404", "2@c2"):
        with pytest.raises(ValueError, match="must be ID@host:port"):
            parse_metrics_nodes([text])
