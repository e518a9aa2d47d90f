"""The text forms of a node's parts in a test, a trace and a debugger."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftd.ground.destination import Destination
from kraftd.messages.vote_request import VoteRequest
from kraftd.replica.acl_publisher import AclPublisher
from kraftd.replica.effects import SendToController
from kraftd.replica.events import CommittedRead
from kraftd.replica.load_progress import LoadProgress
from kraftd.requests.effects import Answer, AuditLine
from kraftd.requests.events import FramesReceived
from tests.controller_node.harness import Harness


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    return Harness(tmp_path).start()


def test_active_controller_shows_its_parts(harness: Harness) -> None:
    node = harness.node
    image = "<Image at 12@1: 0 brokers, 0 topics, 0 partitions, metadata.version 30>"
    long = "<LongDecisions none under way, 0 calls behind>"
    levels = node.following.finalized_features.levels
    assert {
        type(part).__name__: repr(part)
        for part in (
            node,
            node.following,
            node._next_slice,
            node._pending_events,
            node.core_answers,
            node.core_answers._ahead,
            node.core_answers._fetching,
            node.core_answers._driver,
            node.decisions,
            node.periodic,
            node.registration,
            node.leadership,
            node.identity,
            node.following.finalized_features,
            node.following.load_progress,
        )
    } == {
        "Node": f"<Node 100 <DecisionRights active in epoch 1>, <ParkedAnswers 0>, {image}>",
        "Following": "<Following <Replay at 13, complete>, 0 calls wait for metadata>",
        "NextSlice": "<NextSlice, not scheduled>",
        "PendingEvents": "<PendingEvents 0>",
        "CoreAnswers": "<CoreAnswers 0 calls wait>",
        "ReplicasAhead": "<ReplicasAhead 0>",
        "FetchingReplicas": "<FetchingReplicas of 0 ids>",
        "CoreDriver": f"<CoreDriver of {node.core!r}>",
        "Decisions": f"<Decisions <ParkedAnswers 0>, {long}>",
        "Periodic": f"<Periodic 4 tasks, next at {node.periodic.deadline_ms} ms>",
        "Registration": "<Registration idle, next at None ms>",
        "Leadership": "<Leadership, epoch none claimed, 1 leaders seen>",
        "Identity": f"<Identity 100 of {node.identity.cluster_id}, incarnation QMS7hsPRxCcQPDRMQesvHg>",
        "FinalizedFeatures": f"<FinalizedFeatures {levels}, kraft.version 1, since 11>",
        "LoadProgress": "<LoadProgress 0 records, 0 snapshots>",
    }


def test_boundary_shows_what_it_has_counted(harness: Harness) -> None:
    node = harness.node
    harness.api_versions()
    assert {
        type(part).__name__: repr(part)
        for part in (
            node.boundary,
            node.boundary.stats,
            node.boundary.refusals,
            node.boundary.authorizations,
            node.outbox,
            node.boundary.registry.routes[1],
        )
    } == {
        "Boundary": "<Boundary, <Registry of 41 APIs>, 0 failures>",
        "RequestStats": "<RequestStats of 0 APIs, 0 requests not served>",
        "RefusalLog": "<RefusalLog <Repeats of 0 peers>>",
        "AuthorizationAudit": "<AuthorizationAudit 0 denied, 0 allowed>",
        "Outbox": "<Outbox, 0 effects>",
        "Route": "<Route FETCH v4-18>",
    }


def test_parts_with_work_under_way_show_it(harness: Harness) -> None:
    harness.unfenced(1)
    node = harness.node
    harness.sync_by_itself = False
    harness.create("orders")
    harness.create("payments")
    first, second = node.decisions.parked._under_way
    assert (
        repr(node.decisions.parked) == f"<ParkedAnswers 2, offsets {first.end_offset} to {second.end_offset}>"
    )
    assert repr(first) == f"<AppendUnderWay {first.append_id} to {first.end_offset}, 1 answers>"
    assert repr(node._pending_events) == "<PendingEvents 2>"


def test_a_turn_that_is_asked_for_and_a_replay_behind_its_log_show_it(harness: Harness) -> None:
    node = harness.node
    node._next_slice.schedule()
    assert repr(node._next_slice) == "<NextSlice, scheduled>"
    node.following.replay.complete = False
    assert repr(node.following.replay) == "<Replay at 13, behind>"
    node.registration._in_flight = True
    assert repr(node.registration) == "<Registration asked, next at None ms>"
    loading = LoadProgress()
    loading.records = 5
    assert loading.snapshot_records_so_far == 5
    assert repr(loading) == "<LoadProgress 5 records, 0 snapshots>"


def test_effects_and_events_show_how_large_they_are(harness: Harness) -> None:
    assert repr(Answer(3, 7, [b"ab", b"cde"])) == "<Answer 3/7, 5 bytes>"
    assert repr(CommittedRead(40, b"12345")) == "<CommittedRead 5 bytes from 40>"
    frames = [memoryview(b"a"), memoryview(b"b")]
    effect = SendToController(5, Destination(7, "host", 9093), VoteRequest())
    assert repr(effect) == f"<SendToController 5 VoteRequest to {effect.destination}>"
    event = FramesReceived(3, 7, frames, "CONTROLLER", "127.0.0.1")
    assert repr(event) == "<FramesReceived 2 of 3 from slot 7>"
    assert (
        repr(AuditLine("topics created", 5, {"count": 1}, None)) == "<AuditLine topics created {'count': 1}>"
    )


def test_parts_without_a_harness_show_themselves() -> None:
    assert repr(AclPublisher(None)) == "<AclPublisher to None>"
