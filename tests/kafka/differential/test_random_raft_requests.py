"""Random requests between controllers, to three of Kafka's and three of kraftd: the same answers to all.

Both play the same scenario on copies of the same directories; Kafka's answers are recorded on a tape, and
kraftd's are compared with it. Each election and each change comes from a request, none from a timeout.
KRAFTD_DIFFERENTIAL_SEED and KRAFTD_DIFFERENTIAL_STEPS choose other requests, and more of them.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from kraftd.messages import (
    add_raft_voter_request,
    fetch_request,
    update_features_request,
    update_raft_voter_request,
)
from kraftd.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kraftd.raft.quorum.voters import Listeners
from kraftd.types import METADATA_TOPIC_ID, Endpoint
from kraftd.wire.message import Message
from testkit.node import Kind
from testkit.process import HOST, wait_until
from tests.kafka.differential.comparison import cannot_be_compared
from tests.kafka.differential.difference import difference
from tests.kafka.differential.pair import CLUSTER_ID
from tests.kafka.differential.quorum import VOTERS, History, StandIn, TimelessQuorum, View, answer_view
from tests.kafka.differential.raft_requests import STRANGE_ID, UNKNOWN_ID, RaftRequests

pytestmark = pytest.mark.kafka
SEED = int(os.environ.get("KRAFTD_DIFFERENTIAL_SEED", "1"))
STEPS = int(os.environ.get("KRAFTD_DIFFERENTIAL_STEPS", "400"))
JOINER = 4


class Tape:
    """Requests and answers: recorded first, then compared."""

    def __init__(self) -> None:
        self.recorded: list[tuple[str, Any]] = []
        self.at: int | None = None  # None while it records
        self.differences: list[str] = []

    def __repr__(self) -> str:
        return f"<Tape of {len(self.recorded)}, at {self.at}, {len(self.differences)} differences>"

    def note(self, request: str, view: Any, *, comparable: bool = True) -> None:
        """Record the answer or compare it: the request must be the same, another answer is a difference."""
        if self.at is None:
            self.recorded.append((request, view))
            return
        before, expected = self.recorded[self.at]
        self.at += 1
        assert request == before, f"step {self.at} asks {request}; Kafka was asked {before}" + self.report()
        if expected != view and comparable:
            self.differences.append(f"step {self.at}: {request}\n" + difference(expected, view))

    def report(self) -> str:
        return "".join(f"\n\n{one}" for one in self.differences)


class Scenario:
    """Everything that one quorum is asked, in order."""

    def __init__(self, quorum: TimelessQuorum, tape: Tape, stand_in: StandIn, seed: int) -> None:
        self.quorum, self.tape, self.stand_in = quorum, tape, stand_in
        history = quorum.history
        self.requests = RaftRequests(seed, history.directory_ids, history.ports)
        self.requests.static = history.static
        self.view: View | None = None
        self.claimed_known: dict[
            tuple[int, int], bool
        ] = {}  # epoch, leader -> whether the leader is at the voters' address for it

    def __repr__(self) -> str:
        return f"<Scenario of {self.quorum!r}>"

    def ask(self, node_id: int, request: Message, version: int) -> Any:
        answer = self.quorum.ask(node_id, request, version)
        view = answer_view(request, version, answer)
        comparable = self.tape.at is None or not cannot_be_compared(
            request, self.tape.recorded[self.tape.at][1], view
        )
        self.tape.note(f"{node_id} v{version} {request!r}", view, comparable=comparable)
        return answer

    def settle(self, leader_id: int, *voters: int) -> None:
        """Wait until another record is committed, and every voter has all records."""
        past = self.view.log.end_offset if self.view is not None else 0
        self.view = self.quorum.settled(leader_id, voters or VOTERS, past=past)
        self.tape.note(
            "the log", [self.view.epoch, self.view.epochs, self.view.batch_starts, self.view.log.end_offset]
        )

    def listeners(self, node_id: int) -> Listeners:
        return (Endpoint("CONTROLLER", HOST, self.quorum.history.ports[node_id]),)

    def elect(self, node_id: int, epoch: int) -> None:
        """Make the node lead the epoch after this one: it learns of another leader of this one, and resigns.

        Then the other voters are notified: the new leader would repeat a failed attempt only after half an
        hour.
        """
        requests, at = self.requests, (self.stand_in.endpoint,)
        requests.node_id = node_id
        requests.no_mistakes()
        self.ask(node_id, requests.begin_quorum_epoch(epoch, UNKNOWN_ID, at), 1)
        self.ask(node_id, requests.end_quorum_epoch(epoch, UNKNOWN_ID, at, [node_id]), 1)
        wait_until(lambda: self.quorum.led_by(node_id) == epoch + 1, f"{node_id} leads epoch {epoch + 1}")
        for requests.node_id in VOTERS:
            if requests.node_id != node_id:
                begin = requests.begin_quorum_epoch(epoch + 1, node_id, self.listeners(node_id))
                self.ask(requests.node_id, begin, 1)

    def harmless(self, count: int, *nodes: int) -> None:
        """Send requests that change nothing, to these nodes alternately."""
        assert self.view is not None
        for step in range(count):
            self.requests.prepare_for(self.view, nodes[step % len(nodes)])
            self.ask(nodes[step % len(nodes)], *self.requests.next())

    def catch_up_as(self, replica_id: int, directory_id: bytes) -> None:
        """Send a fetch of a replica that has all records."""
        assert self.view is not None
        log = self.view.log
        m = fetch_request
        partition = m.FetchPartition(
            0, self.view.epoch, log.end_offset, log.last_epoch, replica_directory_id=directory_id
        )
        topic = m.FetchTopic("", METADATA_TOPIC_ID, [partition])
        request = m.FetchRequest(CLUSTER_ID, max_bytes=1 << 20, topics=[topic], max_wait_ms=0)
        request.replica_state = m.ReplicaState(replica_id)
        self.ask(self.view.leader_id, request, 17)

    def add(
        self,
        voter_id: int,
        directory_id: bytes,
        listeners: Listeners,
        *,
        version: int = 1,
        early: bool = False,
    ) -> None:
        assert self.view is not None
        m = add_raft_voter_request
        shown = [m.Listener(one.listener, one.host, one.port) for one in listeners]
        request = m.AddRaftVoterRequest(CLUSTER_ID, 10_000, voter_id, directory_id, shown, not early)
        self.ask(self.view.leader_id, request, version)

    def remove(self, voter_id: int, directory_id: bytes) -> None:
        assert self.view is not None
        self.ask(self.view.leader_id, RemoveRaftVoterRequest(CLUSTER_ID, voter_id, directory_id), 0)

    def update(
        self, voter_id: int, directory_id: bytes, listeners: Listeners, versions: tuple[int, int] = (0, 1)
    ) -> None:
        assert self.view is not None
        m = update_raft_voter_request
        shown = [m.Listener(one.listener, one.host, one.port) for one in listeners]
        feature = m.KRaftVersionFeature(*versions)
        request = m.UpdateRaftVoterRequest(
            CLUSTER_ID, self.view.epoch, voter_id, directory_id, shown, feature
        )
        self.ask(self.view.leader_id, request, 0)

    # --- acts

    def history_of_epochs(self) -> None:
        """Change leaders, so that the log has several epochs."""
        self.elect(1, 5)
        self.settle(1)
        for leader_id, skipped in ((2, 0), (1, 3), (2, 1), (1, 0)):
            assert self.view is not None
            self.elect(leader_id, self.view.epoch + 1 + skipped)
            self.settle(leader_id)

    def upgrade(self) -> None:
        """Upgrade kraft.version from 0 to 1: this succeeds only after all voters have reported support."""
        self._update_kraft_version()
        for voter_id in (2, 3):
            directory_id = self.quorum.history.directory_ids[voter_id]
            self.update(voter_id, directory_id, self.listeners(voter_id), (0, 0))
            self._update_kraft_version()
            self.update(voter_id, directory_id, self.listeners(voter_id))
        self._update_kraft_version(validate_only=True)
        self._update_kraft_version()
        self._update_kraft_version()
        self.requests.static = False
        self.settle(1)

    def _update_kraft_version(self, *, validate_only: bool = False) -> None:
        m = update_features_request
        self.ask(
            1, m.UpdateFeaturesRequest(30000, [m.FeatureUpdateKey("kraft.version", 1)], validate_only), 1
        )

    def changes_of_voters(self) -> None:
        """Add, update and remove a new voter; remove one of the three and add it again."""
        directory_ids = self.quorum.history.directory_ids
        at = (self.stand_in.endpoint,)
        self.stand_in.kraft_versions = 0, 1
        self.add(JOINER, STRANGE_ID, at)  # it has not fetched yet
        self.catch_up_as(JOINER, STRANGE_ID)
        self.stand_in.kraft_versions = 0, 0
        self.add(JOINER, STRANGE_ID, at)  # it does not support kraft.version 1
        self.stand_in.kraft_versions = 0, 1
        self.add(JOINER, STRANGE_ID, at, early=True)
        self.settle(1, *VOTERS, JOINER)
        self.harmless(10, 1, 2)
        self.add(JOINER, STRANGE_ID, at)
        self.add(JOINER, bytes(15) + b"\1", at)
        self.update(JOINER, bytes(15) + b"\1", at)
        self.update(JOINER, STRANGE_ID, (Endpoint("CONTROLLER", HOST, 7),))
        self.settle(1, *VOTERS, JOINER)
        self.update(JOINER, STRANGE_ID, at, (2, 3))
        self.remove(JOINER, bytes(15) + b"\1")
        self.remove(JOINER, STRANGE_ID)
        self.settle(1)
        self.remove(3, directory_ids[3])
        self.settle(1, 1, 2)
        self.harmless(5, 3)
        self.add(3, directory_ids[3], self.listeners(3), version=0)
        self.settle(1)

    def without_a_leader(self, count: int) -> None:
        """Show a node a higher epoch than the others know, then send it claims of every kind."""
        assert self.view is not None
        node_id, requests = 3, self.requests
        requests.prepare_for(self.view, node_id)
        requests.no_mistakes()
        self.ask(node_id, requests.vote(self.view.epoch + 2, UNKNOWN_ID, stale=True), 2)
        requests.epoch, requests.leader_id = self.view.epoch + 2, -1
        for _ in range(count):
            self.ask(node_id, *requests.next())
        for _ in range(count):
            request, version = self._claim()
            self._learn(self.ask(node_id, request, version))
            if requests.odds(0.3):
                self._learn(self.ask(node_id, *requests.next()))

    def _claim(self) -> tuple[Message, int]:
        """A claim for the node's epoch or a higher one; never for two leaders of one epoch."""
        requests, kind = self.requests, self.requests.one(("vote", "begin", "end"))
        requests.some_mistakes()
        epoch = requests.epoch + requests.one((0, 0, 1, 3))
        if kind == "vote":
            request = requests.vote(epoch, requests.one((UNKNOWN_ID, 1, 2)))
        else:
            leader_id = requests.one((1, 2, UNKNOWN_ID))
            if epoch == requests.epoch and requests.leader_id >= 0:
                leader_id = requests.leader_id
            known = self.claimed_known.setdefault(
                (epoch, leader_id), leader_id != UNKNOWN_ID and requests.odds(0.3)
            )
            listeners: Listeners = () if known else (self.stand_in.endpoint,)
            if kind == "begin":
                request = requests.begin_quorum_epoch(epoch, leader_id, listeners)
            else:
                successors = requests.one(((1, 2), (1, 3), (2, 1, 3), (UNKNOWN_ID,)))
                request = requests.end_quorum_epoch(epoch, leader_id, listeners, successors)
            if not known:
                return request, 1  # the first version with the leader's endpoints
        return request, requests.version_for(request)

    def _learn(self, answer: Any) -> None:
        """Keep the epoch and the leader in the node's answer."""
        topics = getattr(answer, "topics", ())
        partition = topics[0].partitions[0] if topics and topics[0].partitions else None
        epoch = getattr(partition, "leader_epoch", -1)
        if epoch >= self.requests.epoch:
            self.requests.epoch, self.requests.leader_id = epoch, getattr(partition, "leader_id", -1)

    def play(self, steps: int) -> None:
        self.history_of_epochs()
        self.harmless(steps, 1, 1, 2)
        if self.quorum.history.static:
            self.upgrade()
            self.harmless(steps // 4, 1, 2)
        self.changes_of_voters()
        self.harmless(steps // 4, 1, 2)
        self.without_a_leader(steps // 4)
        self.elect(3, self.requests.epoch + 1)
        self.settle(3)
        self.harmless(steps // 4, 3, 1)


@pytest.mark.parametrize(
    "static",
    [pytest.param(False, id="dynamic"), pytest.param(True, marks=pytest.mark.thorough, id="static")],
)
def test_controllers_of_a_quorum_answer_each_other_as_in_kafka(tmp_path: Path, static: bool) -> None:
    history = History(tmp_path, static=static)
    tape = Tape()
    kinds: tuple[Kind, Kind] = ("apache", "kraftd")
    with StandIn() as stand_in:
        for kind in kinds:
            tape.at = None if kind == "apache" else 0
            with TimelessQuorum(history, kind) as quorum:
                Scenario(quorum, tape, stand_in, SEED + 20 + static).play(STEPS)
    assert not tape.differences, f"seed {SEED}, {len(tape.differences)} differences:" + tape.report()
    codes = {code for _, view in tape.recorded for code in _codes(view)}
    assert len(codes) >= 12, f"too few kinds of error: {sorted(codes)}"


def _codes(view: Any) -> set[int]:
    if isinstance(view, dict):
        own = {view["errorCode"]} if "errorCode" in view else set()
        return own.union(*map(_codes, view.values()))
    return set().union(*map(_codes, view)) if isinstance(view, list) else set()
