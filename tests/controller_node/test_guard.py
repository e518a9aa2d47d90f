"""A fault in any kind of handler fails only its call, which is answered; the traceback is logged.

A fault that leaves the node half changed ends the process.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from kraftd.controller.quotas.mutation import Charge
from kraftd.controller_node import registration
from kraftd.controller_node.apis import api_18_api_versions, api_63_broker_heartbeat
from kraftd.controller_node.deciding.appending import Appends
from kraftd.controller_node.registration import UNTIL_SEEN_MS
from kraftd.controller_node.routes import ROWS, Row
from kraftd.controller_node.watching import pending_events
from kraftd.controller_node.watching.duplicate_ids import FetchingReplicas
from kraftd.ground.pace import at_once
from kraftd.messages.api_versions_request import ApiVersionsRequest
from kraftd.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraftd.messages.describe_quorum_request import DescribeQuorumRequest, PartitionData, TopicData
from kraftd.metadata.image import Image
from kraftd.raft import core as raft_core
from kraftd.raft.effects import PersistElection
from kraftd.raft.replica import ConsensusBroken
from kraftd.replica.fatal_faults import HalfChanged
from kraftd.requests.call import Call
from kraftd.requests.effects import Answer, LogLine
from kraftd.requests.events import SliceDue
from kraftd.requests.refusals import refuse
from kraftd.requests.stats import error_codes
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode
from tests.controller_node.harness import Harness

UNKNOWN = ErrorCode.UNKNOWN_SERVER_ERROR
QUORUM = DescribeQuorumRequest([TopicData("__cluster_metadata", [PartitionData(0)])])


class WatchedHarness(Harness):
    """A controller that keeps the exceptions of its log lines."""

    def __init__(self, tmp_path: Path) -> None:
        self.logged: list[BaseException] = []
        super().__init__(tmp_path)
        self.may_fail = True

    def _perform(self, made: list[Any]) -> None:
        self.logged += [
            effect.fields["exc_info"]
            for effect in made
            if isinstance(effect, LogLine) and "exc_info" in effect.fields
        ]
        super()._perform(made)


@pytest.fixture
def harness(tmp_path: Path) -> WatchedHarness:
    harness = WatchedHarness(tmp_path)
    harness.start()
    harness.epoch = harness.unfenced()  # type: ignore[attr-defined]
    return harness


def planted(*_: Any, **__: Any) -> Any:
    raise ZeroDivisionError("planted")


def check_logged(harness: WatchedHarness) -> None:
    (error,) = harness.logged
    assert isinstance(error, ZeroDivisionError) and error.__traceback__ is not None


def check_alive(harness: WatchedHarness) -> None:
    """Check that other requests are still served."""
    assert not harness.closed
    answer = harness.answer(harness.create("afterwards", connection_id=50))
    assert answer.topics[0].error_code == ErrorCode.NONE


def test_a_fault_in_a_handler_that_answers_at_once_is_answered(
    harness: WatchedHarness, monkeypatch: Any
) -> None:
    monkeypatch.setattr(api_18_api_versions, "describe", planted)
    answer = harness.ask(ApiKey.API_VERSIONS, 4, ApiVersionsRequest("test", "1"))
    assert answer.error_code == UNKNOWN
    check_logged(harness)
    check_alive(harness)


@pytest.mark.parametrize("carried", [False, True])
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0].name)
def test_a_fault_in_every_handler_is_answered(harness: WatchedHarness, row: Row, carried: bool) -> None:
    route = harness.node.boundary.registry.routes[row[0]]
    route.handle = planted
    message = route.request()
    outer = Call(1, 0, "CONTROLLER", "127.0.0.1", ApiKey.ENVELOPE, 0, 1, "broker", None)
    call = Call(1, 0, "CONTROLLER", "127.0.0.1", row[0], route.last, 77, "test", message)
    call.envelope = outer if carried else None
    harness.node.boundary.handle(call)
    line, *_, answer = harness.node.outbox.take()
    assert isinstance(line.fields["exc_info"], ZeroDivisionError)
    assert isinstance(answer, Answer) and answer.call is call and call.settled
    if not error_free(message, row[0], route.last):
        assert harness.node.boundary.stats.by_key[row[0]].errors[UNKNOWN] >= 1


def error_free(message: Any, key: ApiKey, version: int) -> bool:
    """Return whether the refusal has no place for an error: in some APIs, if the request names no topic."""
    return not error_codes(refuse(key, version, message, UNKNOWN))


def test_a_fault_of_the_core_before_any_change_is_answered(harness: WatchedHarness, monkeypatch: Any) -> None:
    monkeypatch.setitem(raft_core._ON_REQUEST, type(QUORUM), planted)
    assert harness.ask(ApiKey.DESCRIBE_QUORUM, 2, QUORUM).error_code == UNKNOWN
    check_logged(harness)
    monkeypatch.undo()
    assert harness.ask(ApiKey.DESCRIBE_QUORUM, 2, QUORUM).error_code == ErrorCode.NONE
    check_alive(harness)


def test_a_fault_of_the_core_half_way_through_a_request_ends_the_process(
    harness: WatchedHarness, monkeypatch: Any
) -> None:
    def half(replica: Any, *_: Any) -> None:
        replica.emit(PersistElection)
        planted()

    monkeypatch.setitem(raft_core._ON_REQUEST, type(QUORUM), half)
    with pytest.raises(ConsensusBroken, match="half way"):
        harness.send(ApiKey.DESCRIBE_QUORUM, 2, QUORUM)


def test_a_fault_in_a_decision_is_answered(harness: WatchedHarness, monkeypatch: Any) -> None:
    end_offset = harness.storage.log.log_end
    monkeypatch.setattr(api_63_broker_heartbeat, "begin_heartbeat", planted)
    request = BrokerHeartbeatRequest(1, harness.epoch, want_fence=True)  # type: ignore[attr-defined]
    assert harness.ask(ApiKey.BROKER_HEARTBEAT, 1, request).error_code == UNKNOWN
    assert harness.storage.log.log_end == end_offset
    assert harness.node.metadata_errors == 1
    check_logged(harness)
    monkeypatch.undo()
    check_alive(harness)


def test_a_fault_in_a_heartbeat_that_changes_nothing_is_answered(
    harness: WatchedHarness, monkeypatch: Any
) -> None:
    monkeypatch.setattr(api_63_broker_heartbeat, "unchanged", planted)
    request = BrokerHeartbeatRequest(1, harness.epoch)  # type: ignore[attr-defined]
    assert harness.ask(ApiKey.BROKER_HEARTBEAT, 1, request).error_code == UNKNOWN
    assert harness.node.metadata_errors == 1
    check_logged(harness)
    monkeypatch.undo()
    check_alive(harness)


def test_a_fault_after_a_decision_is_logged_and_not_answered_again(
    harness: WatchedHarness,
) -> None:
    route = harness.node.boundary.registry.routes[ApiKey.CREATE_TOPICS]
    handle = route.handle
    route.handle = lambda call: (at_once(handle(call)), planted())  # type: ignore[assignment,misc,return-value]
    harness.sync_by_itself = False
    place = harness.create("a")
    check_logged(harness)
    assert harness.answer(place) is None
    harness.sync()
    assert harness.answer(place).topics[0].error_code == ErrorCode.NONE


def test_a_fault_in_a_later_part_of_a_long_decision_is_answered(
    harness: WatchedHarness, monkeypatch: Any
) -> None:
    def slow(*_: Any) -> Generator[None, None, None]:
        yield
        yield
        planted()

    harness.runs_slices_by_itself = False
    monkeypatch.setattr(api_63_broker_heartbeat, "begin_heartbeat", slow)
    request = BrokerHeartbeatRequest(1, harness.epoch, want_fence=True)  # type: ignore[attr-defined]
    place = harness.send(ApiKey.BROKER_HEARTBEAT, 1, request)
    behind = harness.create("behind", connection_id=2)
    assert harness.answer(place) is None and harness.answer(behind) is None
    harness.runs_slices_by_itself = True
    harness.step(SliceDue())
    assert harness.answer(place).error_code == UNKNOWN
    assert harness.answer(behind).topics[0].error_code == ErrorCode.NONE
    check_logged(harness)
    check_alive(harness)


def test_a_fault_in_this_nodes_own_registration_is_logged_and_repeated(
    harness: WatchedHarness, monkeypatch: Any
) -> None:
    with monkeypatch.context() as fault:
        fault.setattr(registration, "register_controller", planted)
        harness.intrude(5)
        check_logged(harness)
        check_alive(harness)
    assert harness.node.metadata_errors == 1 and harness.node.registration.is_due
    harness.advance(UNTIL_SEEN_MS)
    assert not harness.node.registration.is_due


def test_a_fault_in_the_registration_does_not_keep_a_leader_from_deciding(
    tmp_path: Path, monkeypatch: Any
) -> None:
    harness = WatchedHarness(tmp_path)
    with monkeypatch.context() as fault:
        fault.setattr(registration, "register_controller", planted)
        harness.start()
        assert harness.node.active and harness.logged
    harness.unfenced()
    check_alive(harness)


@pytest.mark.parametrize("partitions", [1, 1_000])  # decided at once, and in several callbacks
def test_a_fault_behind_the_append_of_a_decision_is_answered(
    harness: WatchedHarness, monkeypatch: Any, partitions: int
) -> None:
    with monkeypatch.context() as fault:
        fault.setattr(Charge, "commit", planted)
        place = harness.create("charged", partitions=partitions)
    assert harness.answer(place).topics[0].error_code == UNKNOWN
    assert harness.node.image.topic_named("charged") is not None
    check_logged(harness)
    check_alive(harness)


@pytest.mark.parametrize("broken", ["audit", "log"])
def test_a_fault_in_logging_a_change_costs_neither_the_change_nor_its_answer(
    harness: WatchedHarness, monkeypatch: Any, broken: str
) -> None:
    with monkeypatch.context() as fault:
        if broken == "audit":
            fault.setattr(pending_events, "audit", planted)
        else:
            fault.setattr(pending_events.PendingEvents, "_log_created", planted)
        assert harness.answer(harness.create("told")).topics[0].error_code == ErrorCode.NONE
    check_logged(harness)
    assert "told" in harness.node.image.topic_names()
    check_alive(harness)


def test_records_that_are_appended_and_cannot_be_applied_end_the_process(
    harness: WatchedHarness, monkeypatch: Any
) -> None:
    monkeypatch.setattr(Image, "apply_all", planted)
    with pytest.raises(HalfChanged, match="appended and not applied"):
        harness.create("lost")


def test_a_periodic_tasks_records_that_cannot_be_applied_end_the_process(
    harness: WatchedHarness, monkeypatch: Any
) -> None:
    monkeypatch.setattr(Image, "apply_all", planted)
    with pytest.raises(HalfChanged, match="appended and not applied"):
        harness.advance(60_000)


def test_records_that_are_applied_and_cannot_be_appended_end_the_process(
    harness: WatchedHarness, monkeypatch: Any
) -> None:
    harness.flushes_by_itself = False
    harness.create("gathered")
    monkeypatch.setattr(Appends, "_request", planted)
    with pytest.raises(HalfChanged, match="applied and not appended"):
        harness.fetch(0)  # pending records are appended first


def test_a_fault_in_notes_of_a_fetch_costs_that_fetch_alone(
    harness: WatchedHarness, monkeypatch: Any
) -> None:
    end_offset = harness.storage.log.log_end
    waiting = harness.fetch(end_offset, high_watermark=end_offset)
    with monkeypatch.context() as fault:
        fault.setattr(FetchingReplicas, "note", planted)
        harness.create("news", connection_id=3)
        assert harness.answer(waiting).error_code == UNKNOWN
        check_logged(harness)
        harness.logged.clear()
        assert harness.answer(harness.fetch(0)).error_code == UNKNOWN
        check_logged(harness)
    check_alive(harness)
