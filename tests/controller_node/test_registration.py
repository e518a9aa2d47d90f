"""The time and the receiver of a controller's registration, and its retries (KIP-919)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kraftd.controller_node.registration import (
    FIRST_BACKOFF_MS,
    LONGEST_BACKOFF_MS,
    UNTIL_SEEN_MS,
    Registration,
)
from kraftd.controller_node.watching.duplicate_ids import REMEDY
from kraftd.ground.destination import Destination
from kraftd.ground.effect import Effect
from kraftd.ground.refusal import Refusal
from kraftd.messages.controller_registration_response import ControllerRegistrationResponse
from kraftd.messages.register_controller_record import ControllerEndpoint, RegisterControllerRecord
from kraftd.replica.effects import SendToController
from kraftd.replica.events import ControllerAnswered
from kraftd.replica.identity import Identity
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


class Standby:
    """A standby whose leader is LEADER_ID, with an image of metadata.version 30."""

    def __init__(self, metadata_version: int = 30) -> None:
        cluster = Cluster(metadata_version=metadata_version)
        self.image = cluster.image
        self.context = cluster.ctx
        self.core: Any = SimpleNamespace(
            epoch=3, leader_id=LEADER_ID, leader_endpoint=lambda listener: self.endpoints.get(listener)
        )
        self.endpoints = {"CONTROLLER": Endpoint("CONTROLLER", "leader", 9090)}
        self.decision_rights: Any = SimpleNamespace(active=False, stopping=False)
        self.decisions: Any = SimpleNamespace(
            long=SimpleNamespace(is_under_way=False), decide_alone=self._decide
        )
        self.outbox = Outbox()
        self.written: list[Any] = []
        self.refuses = False
        identity = Identity(OWN_ID, "cluster", THIS_RUN, ENDPOINTS)
        self.registration = Registration(
            identity, self.context, self.core, self.decision_rights, self.decisions, self.outbox
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
    harness = Standby()
    sent = harness.sent()
    assert sent.destination == LEADER
    request: Any = sent.message
    assert (request.controller_id, request.incarnation_id) == (OWN_ID, THIS_RUN)
    assert [(one.name, one.host, one.port, one.security_protocol) for one in request.listeners] == [
        ("CONTROLLER", "host", 9093, 2),
        ("CLIENT", "host", 9092, 0),
    ]
    levels = {one.name: (one.min_supported_version, one.max_supported_version) for one in request.features}
    assert (levels["metadata.version"], levels["kraft.version"]) == ((7, 30), (0, 1))
    assert harness.attempt(60_000) == []
    assert harness.registration.deadline_ms is None


@pytest.mark.parametrize(
    ("known", "version", "due"),
    [(None, 30, True), (ANOTHER, 30, True), (THIS_RUN, 30, False), (None, 14, False)],
)
def test_from_3_7_on_a_registration_is_due_until_the_image_has_it(
    known: bytes | None, version: int, due: bool
) -> None:
    harness = Standby(version)
    if known is not None:
        harness.know(known)
    assert harness.registration.is_due is due
    assert len(harness.attempt()) == due


def test_a_stopping_node_or_one_without_a_leader_sends_no_registration() -> None:
    for change in (
        lambda harness: setattr(harness.decision_rights, "stopping", True),
        lambda harness: setattr(harness.core, "leader_id", None),
        lambda harness: setattr(harness.core, "leader_id", OWN_ID),  # not active yet
        lambda harness: harness.endpoints.clear(),
    ):
        harness = Standby()
        change(harness)
        assert harness.attempt() == []
        assert harness.registration.deadline_ms is None


def test_refusals_and_silence_lead_to_increasing_backoffs() -> None:
    harness = Standby()
    for failures, message in enumerate([None, REFUSED] * 8):
        sent = harness.sent()
        assert harness.answer(sent.request_id, message) == []
        wait_ms = min(FIRST_BACKOFF_MS << failures, LONGEST_BACKOFF_MS)
        assert harness.registration.deadline_ms == harness.context.now_ms + wait_ms
        assert harness.attempt(wait_ms - 1) == []
        harness.context.now_ms += 1


def test_an_accepted_registration_is_repeated_if_its_record_does_not_come() -> None:
    harness = Standby()
    assert harness.answer(harness.sent().request_id, DONE) == [
        LogLine("info", "registered", {"controller": LEADER_ID})
    ]
    assert harness.registration.deadline_ms == harness.context.now_ms + UNTIL_SEEN_MS
    assert harness.attempt(UNTIL_SEEN_MS - 1) == []
    sent = harness.sent(1)
    harness.know(THIS_RUN)
    harness.answer(sent.request_id, DONE)
    assert harness.registration.deadline_ms is None


def test_a_node_whose_log_stands_still_registers_ever_more_rarely() -> None:
    """Each registration is a record of the whole quorum."""
    harness = Standby()
    waits_ms = []
    for _ in range(6):
        harness.answer(harness.sent().request_id, DONE)
        waits_ms.append((harness.registration.deadline_ms or 0) - harness.context.now_ms)
        harness.context.now_ms += waits_ms[-1]
    assert waits_ms == [5_000, 10_000, 20_000, 40_000, LONGEST_BACKOFF_MS, LONGEST_BACKOFF_MS]
    harness.know(THIS_RUN)
    assert harness.attempt() == []
    harness.know(ANOTHER)
    harness.answer(harness.sent().request_id, DONE)
    assert harness.registration.deadline_ms == harness.context.now_ms + UNTIL_SEEN_MS


def test_answers_of_earlier_leaders_or_to_earlier_requests_are_ignored() -> None:
    harness = Standby()
    first = harness.sent()
    harness.core.epoch += 1
    second = harness.sent()
    assert second.request_id != first.request_id
    assert harness.answer(first.request_id, DONE) == []
    assert harness.attempt() == []  # the second is under way
    harness.answer(second.request_id, None)
    assert harness.answer(second.request_id, DONE) == []  # answered already
    assert harness.registration.deadline_ms == harness.context.now_ms + FIRST_BACKOFF_MS
    harness.core.leader_id = 8
    assert harness.sent().destination == Destination(8, "leader", 9090)  # at once


def test_an_active_controller_limits_how_often_it_registers_itself() -> None:
    harness = Standby()
    harness.decision_rights.active = True
    assert harness.attempt() == []
    (record,) = harness.written
    assert (record.controller_id, record.incarnation_id) == (OWN_ID, THIS_RUN)
    assert harness.registration.deadline_ms == harness.context.now_ms + UNTIL_SEEN_MS
    harness.attempt(UNTIL_SEEN_MS - 1)
    assert len(harness.written) == 1
    harness.attempt(1)
    assert len(harness.written) == 2
    harness.know(THIS_RUN)
    harness.attempt(UNTIL_SEEN_MS)
    assert len(harness.written) == 2 and harness.registration.deadline_ms is None


def test_a_registration_that_cannot_be_appended_is_retried_later() -> None:
    harness = Standby()
    harness.decision_rights.active = harness.refuses = True
    harness.attempt()
    assert (
        harness.written == [] and harness.registration.deadline_ms == harness.context.now_ms + UNTIL_SEEN_MS
    )
    harness.refuses = False
    harness.decisions.long.is_under_way = True
    harness.attempt(UNTIL_SEEN_MS)
    assert harness.written == []  # the end of the long decision starts another attempt
    harness.decisions.long.is_under_way = False
    harness.attempt()
    assert len(harness.written) == 1


ENDPOINT = ControllerEndpoint("C", "other", 9093, 0)


def log_fields(harness: Standby) -> list[Any]:
    harness.registration.check_for_duplicate()
    return [one.fields for one in harness.outbox.take() if isinstance(one, LogLine)]


def test_another_run_that_replaces_the_record_is_reported_as_a_second_process() -> None:
    harness = Standby()
    harness.know(ANOTHER, ENDPOINT)
    assert log_fields(harness) == [] and harness.registration.duplicate() == []  # of an earlier run
    harness.know(THIS_RUN, ENDPOINT)
    assert log_fields(harness) == []
    harness.know(ANOTHER, ENDPOINT)
    (fields,) = log_fields(harness)
    assert fields["seen"] == 1 and "other:9093" in fields["its_listeners"] and "node.id" in fields["remedy"]
    assert log_fields(harness) == []
    (line,) = harness.registration.duplicate()
    assert line.startswith("node 100 runs more than once, here and with the listeners ")
    assert fields["its_listeners"] in line and line.endswith(fields["remedy"])
    harness.context.now_ms += 3 * UNTIL_SEEN_MS - 1
    assert harness.registration.duplicate() == [line]
    harness.context.now_ms += 1
    assert harness.registration.duplicate() == []


@pytest.mark.parametrize("case", ["active", "forgotten", "no record"])
def test_a_forgotten_or_uncommitted_record_shows_no_second_process(case: str) -> None:
    harness = Standby()
    if case != "no record":
        harness.know(THIS_RUN, ENDPOINT)
        log_fields(harness)
        harness.know(ANOTHER, *([] if case == "forgotten" else [ENDPOINT]))
    harness.decision_rights.active = case == "active"
    assert log_fields(harness) == [] and harness.registration.duplicate() == []


def test_a_second_process_is_logged_once_a_minute_with_a_count() -> None:
    harness = Standby()

    def replaced(later_ms: int) -> list[Any]:
        harness.know(THIS_RUN, ENDPOINT)
        log_fields(harness)
        harness.context.now_ms += later_ms
        harness.know(ANOTHER, ENDPOINT)
        harness.registration.check_for_duplicate()
        return harness.outbox.take()

    (first,) = replaced(0)
    fields = {"its_listeners": "C://other:9093", "remedy": REMEDY, "seen": 1}
    assert first == LogLine("error", "another process runs under this node's id", fields)
    assert replaced(59_999) == []
    (second,) = replaced(1)
    assert second == LogLine("error", first.text, {**fields, "seen": 2})


def test_a_process_is_reported_with_all_its_listeners() -> None:
    harness = Standby()
    harness.know(THIS_RUN, ENDPOINT)
    log_fields(harness)
    harness.know(ANOTHER, ENDPOINT, ControllerEndpoint("D", "third", 9094, 0))
    (fields,) = log_fields(harness)
    assert fields["its_listeners"] == "C://other:9093, D://third:9094"
    node = "node 100 runs more than once, here and with the listeners"
    assert harness.registration.duplicate() == [f"{node} C://other:9093, D://third:9094; {REMEDY}"]


def test_before_any_request_no_answer_is_expected() -> None:
    harness = Standby()
    harness.core.epoch, harness.core.leader_id = -1, None  # as before the first election
    assert harness.answer(0, DONE) == []
    assert harness.registration.deadline_ms is None
    assert repr(harness.registration) == "<Registration idle, next at None ms>"


def test_each_answer_ends_the_wait_for_every_earlier_one() -> None:
    harness = Standby()
    request_ids = [harness.sent().request_id]
    for _ in range(2):
        harness.answer(request_ids[-1], None)
        request_ids.append(harness.sent(LONGEST_BACKOFF_MS).request_id)
    assert len(set(request_ids)) == len(request_ids)
    assert request_ids == sorted(request_ids)


def test_a_second_process_that_does_not_register_again_is_forgotten() -> None:
    harness = Standby()
    harness.know(THIS_RUN, ENDPOINT)
    log_fields(harness)
    harness.know(ANOTHER, ENDPOINT)
    assert len(log_fields(harness)) == 1
    harness.context.now_ms += 3 * UNTIL_SEEN_MS - 1
    log_fields(harness)  # the same record
    assert len(harness.registration.duplicate()) == 1
    harness.context.now_ms += 1
    assert harness.registration.duplicate() == []


def test_no_two_requests_share_an_id_over_answers_and_leaders() -> None:
    harness = Standby()
    request_ids = []
    for epoch in (4, 5, 6):
        harness.core.epoch = epoch
        request_ids.append(harness.sent().request_id)
        harness.answer(request_ids[-1], None)
        request_ids.append(harness.sent(LONGEST_BACKOFF_MS).request_id)
    assert len(set(request_ids)) == len(request_ids)
