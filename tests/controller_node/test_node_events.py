"""Events that a node forwards to the boundary, to its log and to the parts that wait for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kraftd.controller_node.events import DiskFilled, DiskHasRoom
from kraftd.controller_node.node import Node
from kraftd.controller_node.routes import controller_registry
from kraftd.messages.unregister_broker_request import UnregisterBrokerRequest
from kraftd.raft import events as raft_events
from kraftd.replica.identity import Identity
from kraftd.requests.call import Call
from kraftd.requests.effects import Answer, LogLine
from kraftd.requests.events import AnswerNotWritten, CallHandedOver
from kraftd.security.authorizer import AuthorizerSettings, StandardAuthorizer
from kraftd.types import Endpoint
from kraftd.wire.api import ApiKey, response_version
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.frames import parse_response
from tests.controller_node.harness import Harness


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    return Harness(tmp_path).start()


def unregister() -> Call:
    message = UnregisterBrokerRequest(77)
    return Call(5, 6, "CLIENTS", "10.0.0.1", ApiKey.UNREGISTER_BROKER, 0, 9, "c", message)


def answered(effects: list[Any]) -> list[tuple[int, int, int]]:
    """The connection, slot and error of each answer."""
    return [
        (
            one.connection_id,
            one.slot,
            parse_response(
                ApiKey.UNREGISTER_BROKER,
                response_version(ApiKey.UNREGISTER_BROKER, 0),
                b"".join(one.parts)[4:],
            )[1].error_code,  # type: ignore[attr-defined]
        )
        for one in effects
        if isinstance(one, Answer)
    ]


def test_a_call_that_another_listener_hands_over_is_handled(harness: Harness) -> None:
    effects = harness.node.step(CallHandedOver(unregister()), harness.clock.ms)
    assert answered(effects) == [(5, 6, ErrorCode.BROKER_ID_NOT_REGISTERED)]


def test_an_answer_that_could_not_be_written_is_a_fault_of_its_call(harness: Harness) -> None:
    call, error = unregister(), ZeroDivisionError("planted")
    line, *rest = harness.node.step(AnswerNotWritten(call, error), harness.clock.ms)
    assert line == LogLine(
        "error", "a request failed", {"call": repr(call), "error": repr(error), "exc_info": error}
    )
    assert answered(rest) == [(5, 6, ErrorCode.UNKNOWN_SERVER_ERROR)]


def test_a_full_disk_is_logged_with_its_error_and_so_is_its_end(harness: Harness) -> None:
    full = harness.node.step(DiskFilled("no space left"), harness.clock.ms)
    text = "the disk is full: no writes until there is room"
    assert full == [LogLine("error", text, {"error": "no space left"})]  # a single voter does not resign
    assert harness.node.decision_rights.disk_full and harness.node.core.is_leader
    assert harness.node.step(DiskHasRoom(), harness.clock.ms) == [
        LogLine("info", "the disk has room again: writes go on", {})
    ]
    assert harness.node.decision_rights.disk_full is False


def test_a_node_that_stops_has_no_task_due_and_decides_nothing_of_its_own(harness: Harness) -> None:
    assert harness.node.periodic.deadline_ms is not None
    harness.node.stop()
    assert harness.node.periodic.deadline_ms is None and harness.node.decision_rights.stopping is True


def test_the_core_is_notified_of_a_shutdown_before_appends_stop(harness: Harness) -> None:
    assert not harness.node.decision_rights.ending
    harness.step(raft_events.ShutdownRequested(0))
    assert harness.node.decision_rights.ending is True


def test_the_log_of_refusals_knows_this_node_and_whether_it_leads(harness: Harness) -> None:
    refusals, core = harness.node.boundary.refusals, harness.node.core
    assert (refusals.own_id, refusals.own_directory) == (100, core.key.directory_id)
    assert refusals.leads() is True
    harness.one_step(raft_events.ResignRequested(core.epoch))
    assert refusals.leads() is False


def test_faults_of_decisions_long_ones_and_tasks_are_counted_together(harness: Harness) -> None:
    node = harness.node
    assert node.metadata_errors == 0
    node.decisions.failures, node.decisions.long.failures, node.periodic.failures = 1, 20, 300
    assert node.metadata_errors == 321


def test_the_deadline_is_the_earliest_of_the_cores_the_tasks_and_the_registrations(harness: Harness) -> None:
    node = harness.node
    core_ms = node.core.deadline_ms()
    assert core_ms is None or isinstance(core_ms, int)
    later = 1 << 60
    for periodic_ms, registration_ms in ((5, None), (None, 5), (5, later), (later, 5), (5, 6), (6, 5)):
        node.periodic.deadline_ms, node.registration.deadline_ms = periodic_ms, registration_ms
        assert node.deadline_ms() == 5
    node.periodic.deadline_ms = node.registration.deadline_ms = None
    assert node.deadline_ms() == core_ms


@pytest.mark.parametrize("authorizer", [None, StandardAuthorizer(AuthorizerSettings())])
def test_the_authorizer_of_a_node_is_asked_at_its_boundary(
    harness: Harness, authorizer: StandardAuthorizer | None
) -> None:
    node = Node(
        harness.node.identity,
        harness.node.core,
        harness.node.context,
        controller_registry,
        authorizer=authorizer,
    )
    assert node.boundary.has_authorizer is (authorizer is not None)
    assert repr(node.following._acls) == f"<AclPublisher to {authorizer!r}>"


def test_a_listener_that_is_not_advertised_counts_as_plaintext() -> None:
    endpoints = (Endpoint("CONTROLLER", "h", 9093, 3), Endpoint("CLIENT", "h", 9092, 2))
    identity = Identity(1, "cluster", bytes(16), endpoints)
    assert [identity.security_protocol(name) for name in ("CONTROLLER", "CLIENT", "X")] == [3, 2, 0]
