"""A fault in any kind of handler fails only its call, which is answered; the traceback is logged.

A fault that leaves the node half changed ends the process.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from kraftd.controller_node import (
    api_18_api_versions,
    api_63_broker_heartbeat,
    effects,
    events,
    pending_events,
)
from kraftd.controller_node.appending import Appends
from kraftd.controller_node.faults import HalfChanged
from kraftd.controller_node.routes import ROWS, Row
from kraftd.controller_node.twins import FetchingReplicas
from kraftd.messages.api_versions_request import ApiVersionsRequest
from kraftd.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraftd.messages.describe_quorum_request import DescribeQuorumRequest, PartitionData, TopicData
from kraftd.metadata.image import Image
from kraftd.raft import core as raft_core
from kraftd.raft.effects import PersistElection
from kraftd.raft.replica import ConsensusBroken
from kraftd.requests.call import Call
from kraftd.requests.refusals import refuse
from kraftd.requests.stats import error_codes
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode
from tests.controller_node.house import House

UNKNOWN = ErrorCode.UNKNOWN_SERVER_ERROR
QUORUM = DescribeQuorumRequest([TopicData("__cluster_metadata", [PartitionData(0)])])


class WatchedHouse(House):
    """A controller that keeps the exceptions of its log lines."""

    def __init__(self, tmp_path: Path) -> None:
        self.logged: list[BaseException] = []
        super().__init__(tmp_path)
        self.may_fail = True

    def _perform(self, made: list[Any]) -> None:
        self.logged += [
            effect.fields["exc_info"]
            for effect in made
            if isinstance(effect, effects.LogLine) and "exc_info" in effect.fields
        ]
        super()._perform(made)


@pytest.fixture
def house(tmp_path: Path) -> WatchedHouse:
    house = WatchedHouse(tmp_path)
    house.start()
    house.epoch = house.unfenced()  # type: ignore[attr-defined]
    return house


def planted(*_: Any, **__: Any) -> Any:
    raise ZeroDivisionError("planted")


def check_logged(house: WatchedHouse) -> None:
    (error,) = house.logged
    assert isinstance(error, ZeroDivisionError) and error.__traceback__ is not None


def check_alive(house: WatchedHouse) -> None:
    """Check that other requests are still served."""
    assert not house.closed
    answer = house.answer(house.create("afterwards", connection_id=50))
    assert answer.topics[0].error_code == ErrorCode.NONE


def test_a_fault_in_a_handler_that_answers_at_once_is_answered(house: WatchedHouse, monkeypatch: Any) -> None:
    monkeypatch.setattr(api_18_api_versions, "describe", planted)
    answer = house.ask(ApiKey.API_VERSIONS, 4, ApiVersionsRequest("test", "1"))
    assert answer.error_code == UNKNOWN
    check_logged(house)
    check_alive(house)


@pytest.mark.parametrize("carried", [False, True])
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0].name)
def test_a_fault_in_every_handler_is_answered(house: WatchedHouse, row: Row, carried: bool) -> None:
    route = house.node.boundary.registry.routes[row[0]]
    route.handle = planted
    message = route.request()
    outer = Call(1, 0, "CONTROLLER", "127.0.0.1", ApiKey.ENVELOPE, 0, 1, "broker", None)
    call = Call(1, 0, "CONTROLLER", "127.0.0.1", row[0], route.last, 77, "test", message)
    call.envelope = outer if carried else None
    house.node.boundary.handle(call)
    line, *_, answer = house.node.outbox.take()
    assert isinstance(line.fields["exc_info"], ZeroDivisionError)
    assert isinstance(answer, effects.Answer) and answer.call is call and call.settled
    if not error_free(message, row[0], route.last):
        assert house.node.boundary.stats.by_key[row[0]].errors[UNKNOWN] >= 1


def error_free(message: Any, key: ApiKey, version: int) -> bool:
    """Return whether the refusal has no place for an error: in some APIs, if the request names no topic."""
    return not error_codes(refuse(key, version, message, UNKNOWN))


def test_a_fault_of_the_core_before_any_change_is_answered(house: WatchedHouse, monkeypatch: Any) -> None:
    monkeypatch.setitem(raft_core._ON_REQUEST, type(QUORUM), planted)
    assert house.ask(ApiKey.DESCRIBE_QUORUM, 2, QUORUM).error_code == UNKNOWN
    check_logged(house)
    monkeypatch.undo()
    assert house.ask(ApiKey.DESCRIBE_QUORUM, 2, QUORUM).error_code == ErrorCode.NONE
    check_alive(house)


def test_a_fault_of_the_core_half_way_through_a_request_ends_the_process(
    house: WatchedHouse, monkeypatch: Any
) -> None:
    def half(replica: Any, *_: Any) -> None:
        replica.emit(PersistElection)
        planted()

    monkeypatch.setitem(raft_core._ON_REQUEST, type(QUORUM), half)
    with pytest.raises(ConsensusBroken, match="half way"):
        house.send(ApiKey.DESCRIBE_QUORUM, 2, QUORUM)


def test_a_fault_in_a_decision_is_answered(house: WatchedHouse, monkeypatch: Any) -> None:
    end_offset = house.storage.log.log_end
    monkeypatch.setattr(api_63_broker_heartbeat, "begin_heartbeat", planted)
    request = BrokerHeartbeatRequest(1, house.epoch, want_fence=True)  # type: ignore[attr-defined]
    assert house.ask(ApiKey.BROKER_HEARTBEAT, 1, request).error_code == UNKNOWN
    assert house.storage.log.log_end == end_offset
    assert house.node.metadata_errors == 1
    check_logged(house)
    monkeypatch.undo()
    check_alive(house)


def test_a_fault_in_a_heartbeat_that_changes_nothing_is_answered(
    house: WatchedHouse, monkeypatch: Any
) -> None:
    monkeypatch.setattr(api_63_broker_heartbeat, "unchanged", planted)
    request = BrokerHeartbeatRequest(1, house.epoch)  # type: ignore[attr-defined]
    assert house.ask(ApiKey.BROKER_HEARTBEAT, 1, request).error_code == UNKNOWN
    assert house.node.metadata_errors == 1
    check_logged(house)
    monkeypatch.undo()
    check_alive(house)


def test_a_fault_after_a_decision_is_logged_and_not_answered_again(
    house: WatchedHouse,
) -> None:
    route = house.node.boundary.registry.routes[ApiKey.CREATE_TOPICS]
    handle = route.handle
    route.handle = lambda call: (handle(call), planted())  # type: ignore[assignment,misc,return-value]
    house.sync_by_itself = False
    place = house.create("a")
    check_logged(house)
    assert house.answer(place) is None
    house.sync()
    assert house.answer(place).topics[0].error_code == ErrorCode.NONE


def test_a_fault_in_a_later_part_of_a_long_decision_is_answered(
    house: WatchedHouse, monkeypatch: Any
) -> None:
    def slow(*_: Any) -> Generator[None, None, None]:
        yield
        yield
        planted()

    house.runs_slices_by_itself = False
    monkeypatch.setattr(api_63_broker_heartbeat, "begin_heartbeat", slow)
    request = BrokerHeartbeatRequest(1, house.epoch, want_fence=True)  # type: ignore[attr-defined]
    place = house.send(ApiKey.BROKER_HEARTBEAT, 1, request)
    behind = house.create("behind", connection_id=2)
    assert house.answer(place) is None and house.answer(behind) is None
    house.runs_slices_by_itself = True
    house.step(events.SliceDue())
    assert house.answer(place).error_code == UNKNOWN
    assert house.answer(behind).topics[0].error_code == ErrorCode.NONE
    check_logged(house)
    check_alive(house)


@pytest.mark.parametrize("broken", ["audit", "log"])
def test_a_fault_in_logging_a_change_costs_neither_the_change_nor_its_answer(
    house: WatchedHouse, monkeypatch: Any, broken: str
) -> None:
    with monkeypatch.context() as fault:
        if broken == "audit":
            fault.setattr(pending_events, "audit", planted)
        else:
            fault.setattr(pending_events.PendingEvents, "_log_created", planted)
        assert house.answer(house.create("told")).topics[0].error_code == ErrorCode.NONE
    check_logged(house)
    assert "told" in house.node.image.topic_names()
    check_alive(house)


def test_records_that_are_appended_and_cannot_be_applied_end_the_process(
    house: WatchedHouse, monkeypatch: Any
) -> None:
    monkeypatch.setattr(Image, "apply_all", planted)
    with pytest.raises(HalfChanged, match="appended and not applied"):
        house.create("lost")


def test_records_that_are_applied_and_cannot_be_appended_end_the_process(
    house: WatchedHouse, monkeypatch: Any
) -> None:
    house.turns_end_by_themselves = False
    house.create("gathered")
    monkeypatch.setattr(Appends, "_request", planted)
    with pytest.raises(HalfChanged, match="applied and not appended"):
        house.fetch(0)  # pending records are appended first


def test_a_fault_in_notes_of_a_fetch_costs_that_fetch_alone(house: WatchedHouse, monkeypatch: Any) -> None:
    end_offset = house.storage.log.log_end
    waiting = house.fetch(end_offset, high_watermark=end_offset)
    with monkeypatch.context() as fault:
        fault.setattr(FetchingReplicas, "note", planted)
        house.create("news", connection_id=3)
        assert house.answer(waiting).error_code == UNKNOWN
        check_logged(house)
        house.logged.clear()
        assert house.answer(house.fetch(0)).error_code == UNKNOWN
        check_logged(house)
    check_alive(house)
