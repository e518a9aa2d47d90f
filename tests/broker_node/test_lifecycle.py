"""A broker's life as the active controller sees it; the controller answers anything at any time."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kraftd.broker_node.lifecycle import TRANSITIONS, Broker, BrokerLifecycle, BrokerState, Cause
from kraftd.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraftd.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from kraftd.messages.broker_registration_request import BrokerRegistrationRequest
from kraftd.messages.broker_registration_response import BrokerRegistrationResponse
from kraftd.metadata.image import Image
from kraftd.requests.outbox import Outbox
from kraftd.types import Endpoint
from kraftd.wire.codec import encode_bytes
from kraftd.wire.error_code import ErrorCode
from tests.broker_node.harness import BrokerHarness

DIRECTORY = bytes(15) + b"\x01"
BROKER = Broker(
    7,
    "cluster",
    bytes(15) + b"\x09",
    (Endpoint("PLAINTEXT", "127.0.0.1", 9092),),
    (DIRECTORY,),
    {"metadata.version": (7, 30)},
)


def life(**changes: object) -> BrokerLifecycle:
    return BrokerLifecycle(BROKER._replace(**changes), Outbox())  # type: ignore[arg-type]


def told(**fields: object) -> BrokerHeartbeatResponse:
    return BrokerHeartbeatResponse(**{"is_fenced": True, **fields})  # type: ignore[arg-type]


def running(**changes: object) -> tuple[BrokerLifecycle, int]:
    """A broker that runs, and the time."""
    one = life(**changes)
    one.start(0)
    assert isinstance(one.due_request(-1, 0), BrokerRegistrationRequest)
    one.answered(BrokerRegistrationResponse(broker_epoch=31), 0)
    one.ready(0)
    now_ms = 0
    for answer in (told(is_caught_up=True), told(is_caught_up=True, is_fenced=False)):
        due_ms = one.deadline_ms()
        assert due_ms is not None
        now_ms = due_ms
        assert one.due_request(31, now_ms) is not None
        one.answered(answer, now_ms)
    assert one.state is BrokerState.RUNNING
    return one, now_ms


def test_a_registration_has_the_fields_of_a_stock_broker() -> None:
    one = life(rack="r1", previous_epoch=12, directory_ids=(b"\x02" * 16, b"\x01" * 16, b"\x81" * 16))
    one.start(0)
    request = one.due_request(-1, 0)
    assert isinstance(request, BrokerRegistrationRequest)
    assert (request.broker_id, request.cluster_id, request.rack) == (7, "cluster", "r1")
    assert [(at.name, at.host, at.port) for at in request.listeners] == [("PLAINTEXT", "127.0.0.1", 9092)]
    assert [(at.name, at.min_supported_version) for at in request.features] == [("metadata.version", 7)]
    assert request.log_dirs == (b"\x81" * 16, b"\x01" * 16, b"\x02" * 16)  # Kafka compares signed numbers
    assert request.previous_broker_epoch == 12


def test_a_broker_wants_to_be_fenced_until_it_is_ready() -> None:
    one = life()
    one.start(0)
    one.due_request(-1, 0)
    one.answered(BrokerRegistrationResponse(broker_epoch=31), 5)
    first = one.due_request(40, 5)
    assert first == BrokerHeartbeatRequest(7, 31, 40, want_fence=True, cordoned_log_dirs=None)
    one.answered(told(is_caught_up=True), 6)
    one.ready(7)
    assert one.due_request(41, 7) == BrokerHeartbeatRequest(7, 31, 41)


def test_heartbeats_name_cordoned_directories_from_metadata_version_4_3_on__kip1066() -> None:
    """A request with them is of version 2, which Kafka 3.9 to 4.2 do not speak."""
    one, now_ms = running()
    one.directories_cordoned((DIRECTORY,), now_ms)
    for level, told_of in ((29, None), (30, (DIRECTORY,))):
        image = Image()
        image.features["metadata.version"] = level
        one.metadata_moved(image, now_ms)
        now_ms = one.deadline_ms() or 0
        request = one.due_request(41, now_ms)
        assert request == BrokerHeartbeatRequest(7, 31, 41, cordoned_log_dirs=told_of)
        assert encode_bytes(request, 1 if told_of is None else 2)
        one.answered(told(is_fenced=False), now_ms)


def test_a_broker_that_stops_before_it_is_caught_up_does_not_pass_for_one_that_is() -> None:
    one = life()
    one.start(0)
    one.stop(1)
    assert one.state is BrokerState.SHUTTING_DOWN and not one.is_caught_up
    assert running()[0].is_caught_up


def test_a_heartbeat_is_sent_every_interval_and_a_lost_one_again_ever_more_rarely() -> None:
    one, now_ms = running()
    assert one.deadline_ms() == now_ms + 2_000
    waits = []
    for _ in range(7):
        due_ms = one.deadline_ms()
        assert due_ms is not None and one.due_request(50, due_ms) is not None
        one.answered(None, due_ms)
        again_ms = one.deadline_ms()
        assert again_ms is not None
        waits.append(again_ms - due_ms)
    assert waits == [100, 200, 400, 800, 1_600, 2_000, 2_000]  # never later than a stock broker


def test_an_answer_that_keeps_a_broker_serving_changes_only_the_next_heartbeat() -> None:
    one, now_ms = running()
    assert one.next_beat_ms is None  # that answer has unfenced it
    changes = []
    for is_fenced in (False, True, False, False):
        now_ms += 2_000
        assert one.due_request(50, now_ms) is not None
        one.answered(told(is_fenced=is_fenced), now_ms)
        changes.append(one.next_beat_ms)
    assert changes == [now_ms - 4_000, None, None, now_ms + 2_000]
    one.due_request(50, now_ms + 2_000)
    one.directories_failed((DIRECTORY,), now_ms + 2_000)  # the next heartbeat follows at once
    one.answered(told(is_fenced=False), now_ms + 2_001)
    assert one.next_beat_ms == now_ms + 2_001
    assert one.due_request(50, now_ms + 2_001) is not None
    one.answered(told(error_code=ErrorCode.NOT_CONTROLLER), now_ms + 2_002)
    assert one.next_beat_ms is None


def test_the_parts_of_a_broker_are_asked_for_their_deadlines_once_a_heartbeat(tmp_path: Path) -> None:
    harness = BrokerHarness(tmp_path).run()
    asked_ms: list[int] = []
    ask, broker = harness.broker.deadlines_ms, harness.broker

    def deadlines_ms() -> list[int | None]:
        asked_ms.append(harness.clock.ms)
        return ask()

    broker.deadlines_ms = deadlines_ms  # type: ignore[method-assign]
    harness.wire.sent.clear()
    harness.pass_time(10_000)
    beats = [one for one in harness.wire.sent if isinstance(one, BrokerHeartbeatRequest)]
    assert len(beats) == 5 and len(asked_ms) <= 6, asked_ms


def test_a_controller_that_is_none_any_more_is_no_failure() -> None:
    one, now_ms = running()
    assert one.due_request(50, now_ms + 2_000) is not None
    one.answered(told(error_code=ErrorCode.NOT_CONTROLLER), now_ms + 2_001)
    assert one.deadline_ms() == now_ms + 2_051


def test_a_controlled_shutdown_ends_when_the_controller_grants_it() -> None:
    one, now_ms = running()
    one.stop(now_ms)
    asked = one.due_request(50, now_ms)
    assert isinstance(asked, BrokerHeartbeatRequest) and asked.want_shut_down
    one.answered(told(is_fenced=False), now_ms)
    assert one.deadline_ms() == now_ms + 50  # the first answer: ask again soon
    assert one.due_request(50, now_ms + 50) is not None
    one.answered(told(should_shut_down=True), now_ms + 60)
    assert one.has_ended and one.deadline_ms() is None


@pytest.mark.parametrize("cause", ["disabled", "starting", "not started"])
def test_a_broker_that_leads_nothing_or_may_not_ask_ends_at_once(cause: str) -> None:
    one = running(controlled_shutdown=False)[0] if cause == "disabled" else life()
    if cause == "starting":
        one.start(0)
    one.stop(10)
    assert one.has_ended and one.due_request(50, 10_000) is None


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (None, "the last request got no answer in time"),
        (ErrorCode.NOT_CONTROLLER, "it found no active controller"),
        (ErrorCode.DUPLICATE_BROKER_REGISTRATION, "another process with this node.id is registered"),
        (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "the last answer was CLUSTER_AUTHORIZATION_FAILED"),
    ],
)
def test_a_broker_that_cannot_register_in_time_gives_up_and_names_the_cause(
    error: ErrorCode | None, why: str
) -> None:
    one = life(registration_timeout_ms=1_000)
    one.start(0)
    now_ms = 0
    while not one.has_ended:
        due_ms = one.deadline_ms()
        assert due_ms is not None and now_ms <= due_ms <= 1_000
        now_ms = due_ms
        if one.due_request(-1, now_ms) is not None:
            one.answered(None if error is None else BrokerRegistrationResponse(error_code=error), now_ms)
    assert (now_ms, one.broker_epoch) == (1_000, -1)
    assert one.failure is not None and f"(initial.broker.registration.timeout.ms): {why}" in one.failure


def test_the_time_to_be_registered_begins_once_the_metadata_is_read() -> None:
    one = life(registration_timeout_ms=1_000)
    one.start(0)
    assert one.due_request(-1, 0) is not None
    one.postpone(0)
    one.wait_for_metadata(900)
    assert one.due_request(-1, 1_899) is not None and not one.has_ended
    one.postpone(1_899)
    assert one.due_request(-1, 1_900) is None and one.has_ended


def test_offline_directories_are_reported_at_once__kip858() -> None:
    one, now_ms = running()
    one.directories_failed((DIRECTORY,), now_ms + 1)
    request = one.due_request(50, now_ms + 1)
    assert isinstance(request, BrokerHeartbeatRequest) and request.offline_log_dirs == (DIRECTORY,)


def test_a_broker_that_cannot_report_a_lost_directory_gives_up__kip858() -> None:
    one, now_ms = running(directory_failure_timeout_ms=5_000)
    one.directories_failed((DIRECTORY,), now_ms)
    end_ms = now_ms + 5_000
    while not one.has_ended:
        due_ms = one.deadline_ms()
        assert due_ms is not None and due_ms <= end_ms
        if one.due_request(50, due_ms) is not None:
            one.answered(told(error_code=ErrorCode.STALE_BROKER_EPOCH), due_ms)
        now_ms = due_ms
    assert now_ms == end_ms
    assert one.failure is not None and "log.dir.failure.timeout.ms" in one.failure


def test_only_a_heartbeat_that_names_the_lost_directory_reports_it__kip858() -> None:
    one, now_ms = running(directory_failure_timeout_ms=5_000)
    assert one.due_request(50, now_ms + 2_000) is not None
    one.directories_failed((DIRECTORY,), now_ms + 2_000)
    one.answered(told(is_fenced=False), now_ms + 2_001)  # sent before
    assert one.due_request(50, now_ms + 2_001) is not None
    assert one.deadline_ms() == now_ms + 7_000
    one.answered(told(is_fenced=False), now_ms + 2_002)
    assert one.deadline_ms() == now_ms + 4_002
    assert one.due_request(50, now_ms + 9_000) is not None and one.failure is None


def test_a_postponed_request_is_sent_once_a_controller_is_found() -> None:
    one = life()
    one.start(0)
    assert one.due_request(-1, 0) is not None
    one.controller_found(1)
    assert one.due_request(-1, 1) is None, "one is under way"
    one.postpone(2)
    assert one.due_request(-1, 3) is None
    one.controller_found(3)
    assert isinstance(one.due_request(-1, 3), BrokerRegistrationRequest)


class Lives(RuleBasedStateMachine):
    """Any controller, any order of events."""

    def __init__(self) -> None:
        super().__init__()
        self.now_ms = 0
        self.one = life(registration_timeout_ms=5_000)
        self.sent: object = None
        self.is_ready = False
        self.states = [self.one.state]

    @rule()
    def start(self) -> None:
        self.one.start(self.now_ms)

    @rule()
    def ready(self) -> None:
        self.is_ready = True
        self.one.ready(self.now_ms)

    @rule()
    def stop(self) -> None:
        self.one.stop(self.now_ms)

    @rule(ms=st.integers(0, 6_000))
    def wait(self, ms: int) -> None:
        self.now_ms += ms

    @rule(offset=st.integers(-1, 99))
    def send(self, offset: int) -> None:
        due_ms, was = self.one.deadline_ms(), self.sent
        request = self.one.due_request(offset, self.now_ms)
        if request is None:
            return
        assert was is None, "one request is under way at a time"
        assert due_ms is not None and due_ms <= self.now_ms, "nothing is sent before its time"
        self.sent = request
        assert isinstance(request, BrokerRegistrationRequest) is (self.one.broker_epoch < 0)
        if isinstance(request, BrokerHeartbeatRequest):
            assert request.broker_epoch == self.one.broker_epoch
            assert request.current_metadata_offset == offset
            assert request.want_fence is not self.is_ready
            pending = self.one.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN
            assert request.want_shut_down is pending

    @precondition(lambda self: self.sent is not None)
    @rule(
        error=st.sampled_from(
            [None, 0, 0, 0, ErrorCode.NOT_CONTROLLER, ErrorCode.STALE_BROKER_EPOCH, 12_345]
        ),
        flags=st.tuples(st.booleans(), st.booleans(), st.booleans()),
    )
    def answer(self, error: int | None, flags: tuple[bool, bool, bool]) -> None:
        of_registration = isinstance(self.sent, BrokerRegistrationRequest)
        self.sent = None
        if error is None:
            self.one.answered(None, self.now_ms)
        elif of_registration:
            self.one.answered(BrokerRegistrationResponse(0, error, 31 if not error else -1), self.now_ms)
        else:
            self.one.answered(BrokerHeartbeatResponse(0, error, *flags), self.now_ms)

    @precondition(lambda self: self.sent is not None)
    @rule()
    def find_no_controller(self) -> None:
        self.sent = None
        self.one.postpone(self.now_ms)

    @rule()
    def find_controller(self) -> None:
        self.one.controller_found(self.now_ms)

    @invariant()
    def states_follow_the_table(self) -> None:
        state = self.one.state
        if state is not self.states[-1]:
            assert state not in self.states, "a state is never entered again"
            legal = {after for (before, _), after in TRANSITIONS.items() if before is self.states[-1]}
            assert state in legal or (self.states[-1], state) == (
                BrokerState.RUNNING,
                BrokerState.SHUTTING_DOWN,
            )
            self.states.append(state)

    @invariant()
    def it_never_falls_silent(self) -> None:
        waits = self.one.state is BrokerState.NOT_RUNNING or self.one.has_ended or self.sent is not None
        assert waits or self.one.deadline_ms() is not None


TestLives = Lives.TestCase


def test_every_cause_leaves_a_state_that_has_no_rule_for_it() -> None:
    assert {state for state, _ in TRANSITIONS} == set(BrokerState) - {BrokerState.SHUTTING_DOWN}
    for state in BrokerState:
        for cause in Cause:
            one = life()
            one.state = state
            assert one._moves(cause) is ((state, cause) in TRANSITIONS)
