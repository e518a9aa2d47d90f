"""The time and the receiver of a controller's registration, and its retries (KIP-919)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kraftd.controller.decision import Refusal
from kraftd.controller_node.effects import Effect
from kraftd.controller_node.identity import Identity
from kraftd.controller_node.registration import (
    FIRST_BACKOFF_MS,
    LONGEST_BACKOFF_MS,
    UNTIL_SEEN_MS,
    ControllerAnswered,
    Registration,
    SendToController,
)
from kraftd.controller_node.twins import REMEDY
from kraftd.messages.controller_registration_response import ControllerRegistrationResponse
from kraftd.messages.register_controller_record import ControllerEndpoint, RegisterControllerRecord
from kraftd.raft.effects import Destination
from kraftd.requests.effects import LogLine
from kraftd.requests.outbox import Outbox
from kraftd.types import Endpoint
from kraftd.wire.error_code import ErrorCode
from tests.controller.cluster import Cluster

OWN_ID, LEADER_ID = 100, 7
THIS_RUN, ANOTHER = b"\1" * 16, b"\2" * 16
ENDPOINTS = (Endpoint("CONTROLLER", "host", 9093, 2), Endpoint("CLIENT", "host", 9092, 0))
LEADER = Destination(LEADER_ID, "leader", 9090)
DONE, REFUSED = ControllerRegistrationResponse(), ControllerRegistrationResponse(error_code=1)


class Desk:
    """A standby whose leader is LEADER_ID, with an image of metadata.version 30."""

    def __init__(self, metadata_version: int = 30) -> None:
        cluster = Cluster(metadata_version=metadata_version)
        self.image = cluster.image
        self.context = cluster.ctx
        self.core: Any = SimpleNamespace(
            epoch=3, leader_id=LEADER_ID, leader_endpoint=lambda listener: self.endpoints.get(listener)
        )
        self.endpoints = {"CONTROLLER": Endpoint("CONTROLLER", "leader", 9090)}
        self.standing: Any = SimpleNamespace(active=False, stopping=False)
        self.decisions: Any = SimpleNamespace(
            long=SimpleNamespace(is_under_way=False), decide_alone=self._decide
        )
        self.outbox = Outbox()
        self.written: list[Any] = []
        self.refuses = False
        identity = Identity(OWN_ID, "cluster", THIS_RUN, ENDPOINTS)
        self.registration = Registration(
            identity, self.context, self.core, self.standing, self.decisions, self.outbox
        )

    def _decide(self, decide: Any) -> None:
        if self.refuses:
            raise Refusal(ErrorCode.NOT_CONTROLLER)
        self.written += [one.message for one in decide(self.context).records]

    def know(self, incarnation: bytes, *listeners: ControllerEndpoint) -> None:
        record = RegisterControllerRecord(OWN_ID, incarnation, False, list(listeners), [])
        self.image.apply(record, self.image.offset + 1, 1)

    def attempt(self, later_ms: int = 0) -> list[Effect]:
        self.context.now_ms += later_ms
        self.registration.attempt()
        return self.outbox.take()

    def sent(self, later_ms: int = 0) -> SendToController:
        (sent,) = self.attempt(later_ms)
        assert isinstance(sent, SendToController)
        return sent

    def answer(self, request_id: int, message: Any) -> list[Effect]:
        self.registration.on_answer(ControllerAnswered(request_id, message))
        return self.outbox.take()


def test_a_standby_has_one_registration_under_way_at_a_time() -> None:
    desk = Desk()
    sent = desk.sent()
    assert sent.destination == LEADER
    request: Any = sent.message
    assert (request.controller_id, request.incarnation_id) == (OWN_ID, THIS_RUN)
    assert [(one.name, one.host, one.port, one.security_protocol) for one in request.listeners] == [
        ("CONTROLLER", "host", 9093, 2),
        ("CLIENT", "host", 9092, 0),
    ]
    levels = {one.name: (one.min_supported_version, one.max_supported_version) for one in request.features}
    assert (levels["metadata.version"], levels["kraft.version"]) == ((7, 30), (0, 1))
    assert desk.attempt(60_000) == []
    assert desk.registration.deadline_ms is None


@pytest.mark.parametrize(
    ("known", "version", "due"),
    [(None, 30, True), (ANOTHER, 30, True), (THIS_RUN, 30, False), (None, 14, False)],
)
def test_from_3_7_on_a_registration_is_due_until_the_image_has_it(
    known: bytes | None, version: int, due: bool
) -> None:
    desk = Desk(version)
    if known is not None:
        desk.know(known)
    assert desk.registration.is_due is due
    assert len(desk.attempt()) == due


def test_a_stopping_node_or_one_without_a_leader_sends_no_registration() -> None:
    for change in (
        lambda desk: setattr(desk.standing, "stopping", True),
        lambda desk: setattr(desk.core, "leader_id", None),
        lambda desk: setattr(desk.core, "leader_id", OWN_ID),  # not active yet
        lambda desk: desk.endpoints.clear(),
    ):
        desk = Desk()
        change(desk)
        assert desk.attempt() == []
        assert desk.registration.deadline_ms is None


def test_refusals_and_silence_lead_to_increasing_backoffs() -> None:
    desk = Desk()
    for failures, message in enumerate([None, REFUSED] * 8):
        sent = desk.sent()
        assert desk.answer(sent.request_id, message) == []
        wait_ms = min(FIRST_BACKOFF_MS << failures, LONGEST_BACKOFF_MS)
        assert desk.registration.deadline_ms == desk.context.now_ms + wait_ms
        assert desk.attempt(wait_ms - 1) == []
        desk.context.now_ms += 1


def test_an_accepted_registration_is_repeated_if_its_record_does_not_come() -> None:
    desk = Desk()
    assert desk.answer(desk.sent().request_id, DONE) == [
        LogLine("info", "registered", {"controller": LEADER_ID})
    ]
    assert desk.registration.deadline_ms == desk.context.now_ms + UNTIL_SEEN_MS
    assert desk.attempt(UNTIL_SEEN_MS - 1) == []
    sent = desk.sent(1)
    desk.know(THIS_RUN)
    desk.answer(sent.request_id, DONE)
    assert desk.registration.deadline_ms is None


def test_answers_of_earlier_leaders_or_to_earlier_requests_are_ignored() -> None:
    desk = Desk()
    first = desk.sent()
    desk.core.epoch += 1
    second = desk.sent()
    assert second.request_id != first.request_id
    assert desk.answer(first.request_id, DONE) == []
    assert desk.attempt() == []  # the second is under way
    desk.answer(second.request_id, None)
    assert desk.answer(second.request_id, DONE) == []  # answered already
    assert desk.registration.deadline_ms == desk.context.now_ms + FIRST_BACKOFF_MS
    desk.core.leader_id = 8
    assert desk.sent().destination == Destination(8, "leader", 9090)  # at once


def test_an_active_controller_limits_how_often_it_registers_itself() -> None:
    desk = Desk()
    desk.standing.active = True
    assert desk.attempt() == []
    (record,) = desk.written
    assert (record.controller_id, record.incarnation_id) == (OWN_ID, THIS_RUN)
    assert desk.registration.deadline_ms == desk.context.now_ms + UNTIL_SEEN_MS
    desk.attempt(UNTIL_SEEN_MS - 1)
    assert len(desk.written) == 1
    desk.attempt(1)
    assert len(desk.written) == 2
    desk.know(THIS_RUN)
    desk.attempt(UNTIL_SEEN_MS)
    assert len(desk.written) == 2 and desk.registration.deadline_ms is None


def test_a_registration_that_cannot_be_appended_is_retried_later() -> None:
    desk = Desk()
    desk.standing.active = desk.refuses = True
    desk.attempt()
    assert desk.written == [] and desk.registration.deadline_ms == desk.context.now_ms + UNTIL_SEEN_MS
    desk.refuses = False
    desk.decisions.long.is_under_way = True
    desk.attempt(UNTIL_SEEN_MS)
    assert desk.written == []  # the end of the long decision starts another attempt
    desk.decisions.long.is_under_way = False
    desk.attempt()
    assert len(desk.written) == 1


ENDPOINT = ControllerEndpoint("C", "other", 9093, 0)


def log_fields(desk: Desk) -> list[Any]:
    desk.registration.check_for_twin()
    return [one.fields for one in desk.outbox.take() if isinstance(one, LogLine)]


def test_another_run_that_replaces_the_record_is_reported_as_a_second_process() -> None:
    desk = Desk()
    desk.know(ANOTHER, ENDPOINT)
    assert log_fields(desk) == [] and desk.registration.twin() == []  # of an earlier run
    desk.know(THIS_RUN, ENDPOINT)
    assert log_fields(desk) == []
    desk.know(ANOTHER, ENDPOINT)
    (fields,) = log_fields(desk)
    assert fields["seen"] == 1 and "other:9093" in fields["its_listeners"] and "node.id" in fields["remedy"]
    assert log_fields(desk) == []
    (line,) = desk.registration.twin()
    assert line.startswith("node 100 runs more than once, here and with the listeners ")
    assert fields["its_listeners"] in line and line.endswith(fields["remedy"])
    desk.context.now_ms += 3 * UNTIL_SEEN_MS - 1
    assert desk.registration.twin() == [line]
    desk.context.now_ms += 1
    assert desk.registration.twin() == []


@pytest.mark.parametrize("case", ["active", "forgotten", "no record"])
def test_a_forgotten_or_uncommitted_record_shows_no_second_process(case: str) -> None:
    desk = Desk()
    if case != "no record":
        desk.know(THIS_RUN, ENDPOINT)
        log_fields(desk)
        desk.know(ANOTHER, *([] if case == "forgotten" else [ENDPOINT]))
    desk.standing.active = case == "active"
    assert log_fields(desk) == [] and desk.registration.twin() == []


def test_a_second_process_is_logged_once_a_minute_with_a_count() -> None:
    desk = Desk()

    def replaced(later_ms: int) -> list[Any]:
        desk.know(THIS_RUN, ENDPOINT)
        log_fields(desk)
        desk.context.now_ms += later_ms
        desk.know(ANOTHER, ENDPOINT)
        desk.registration.check_for_twin()
        return desk.outbox.take()

    (first,) = replaced(0)
    fields = {"its_listeners": "C://other:9093", "remedy": REMEDY, "seen": 1}
    assert first == LogLine("error", "another process runs under this node's id", fields)
    assert replaced(59_999) == []
    (second,) = replaced(1)
    assert second == LogLine("error", first.text, {**fields, "seen": 2})


def test_a_process_is_reported_with_all_its_listeners() -> None:
    desk = Desk()
    desk.know(THIS_RUN, ENDPOINT)
    log_fields(desk)
    desk.know(ANOTHER, ENDPOINT, ControllerEndpoint("D", "third", 9094, 0))
    (fields,) = log_fields(desk)
    assert fields["its_listeners"] == "C://other:9093, D://third:9094"
    node = "node 100 runs more than once, here and with the listeners"
    assert desk.registration.twin() == [f"{node} C://other:9093, D://third:9094; {REMEDY}"]


def test_before_any_request_no_answer_is_expected() -> None:
    desk = Desk()
    desk.core.epoch, desk.core.leader_id = -1, None  # as before the first election
    assert desk.answer(0, DONE) == []
    assert desk.registration.deadline_ms is None
    assert repr(desk.registration) == "<Registration idle, next at None ms>"


def test_each_answer_ends_the_wait_for_every_earlier_one() -> None:
    desk = Desk()
    request_ids = [desk.sent().request_id]
    for _ in range(2):
        desk.answer(request_ids[-1], None)
        request_ids.append(desk.sent(LONGEST_BACKOFF_MS).request_id)
    assert len(set(request_ids)) == len(request_ids)
    assert request_ids == sorted(request_ids)


def test_a_second_process_that_does_not_register_again_is_forgotten() -> None:
    desk = Desk()
    desk.know(THIS_RUN, ENDPOINT)
    log_fields(desk)
    desk.know(ANOTHER, ENDPOINT)
    assert len(log_fields(desk)) == 1
    desk.context.now_ms += 3 * UNTIL_SEEN_MS - 1
    log_fields(desk)  # the same record
    assert len(desk.registration.twin()) == 1
    desk.context.now_ms += 1
    assert desk.registration.twin() == []


def test_no_two_requests_share_an_id_over_answers_and_leaders() -> None:
    desk = Desk()
    request_ids = []
    for epoch in (4, 5, 6):
        desk.core.epoch = epoch
        request_ids.append(desk.sent().request_id)
        desk.answer(request_ids[-1], None)
        request_ids.append(desk.sent(LONGEST_BACKOFF_MS).request_id)
    assert len(set(request_ids)) == len(request_ids)
