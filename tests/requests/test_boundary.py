"""The boundary authorizes, guards and counts every call, in any handler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kraftd.acl import CLUSTER_NAME, AclOperation, AclResourceType
from kraftd.ground.pace import at_once
from kraftd.ground.refusal import Refusal
from kraftd.messages.broker_registration_request import BrokerRegistrationRequest
from kraftd.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraftd.messages.metadata_request import MetadataRequest
from kraftd.messages.produce_request import ProduceRequest
from kraftd.messages.unregister_broker_request import UnregisterBrokerRequest
from kraftd.messages.unregister_broker_response import UnregisterBrokerResponse
from kraftd.messages.vote_request import VoteRequest
from kraftd.requests import boundary as boundary_module
from kraftd.requests.answer_memo import AnswerMemo
from kraftd.requests.boundary import Boundary
from kraftd.requests.call import Call
from kraftd.requests.effects import Answer, AuditLine, CloseConnection, LogLine
from kraftd.requests.events import FramesReceived
from kraftd.requests.outbox import Outbox
from kraftd.requests.registry import Registry, Route
from kraftd.security.authorizer import AuthorizerNotReady
from kraftd.security.principals import ANONYMOUS, Principal
from kraftd.wire.api import ApiKey, response_version
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.frames import encode_request, parse_response

ALICE = Principal("User", "alice")


class Broken(Exception):
    """Ends the process."""


class Only:
    """Allows one principal; keeps every question."""

    def __init__(self, allowed: Principal | None) -> None:
        self.allowed = allowed
        self.questions: list[tuple[str, str, int, int, str]] = []

    def allows(self, principal: Principal, host: str, operation: int, resource_type: int, name: str) -> bool:
        if self.allowed is None:
            raise AuthorizerNotReady
        self.questions.append((str(principal), host, operation, resource_type, name))
        return principal == self.allowed

    def allows_on_any(self, principal: Principal, host: str, operation: int, resource_type: int) -> bool:
        return self.allows(principal, host, operation, resource_type, "any")

    def reason(self, *_: object) -> str:
        return "only one principal may"


class Door:
    """A boundary with three APIs, and its effects."""

    def __init__(self, handle: Callable[[Door, Call], Any], authorizer: Any = None) -> None:
        self.outbox = Outbox()
        self.calls: list[Call] = []

        def handler(call: Call) -> Any:
            self.calls.append(call)
            return handle(self, call)

        routes = [
            Route(
                ApiKey.UNREGISTER_BROKER,
                AclOperation.ALTER,
                AclResourceType.CLUSTER,
                lambda: handler,
                [(AclOperation.READ, AclResourceType.GROUP)],
            ),
            Route(ApiKey.CREATE_TOPICS, AclOperation.CREATE, AclResourceType.TOPIC, lambda: handler),
            Route(ApiKey.VOTE, AclOperation.CLUSTER_ACTION, AclResourceType.CLUSTER, lambda: handler),
        ]
        registry = Registry(routes)
        self.boundary = Boundary(registry, self.outbox, authorizer=authorizer, fatal=(Broken,))

    def send(self, key: ApiKey, version: int, *requests: Any, principal: Principal = ANONYMOUS) -> list[Any]:
        frames = [
            memoryview(b"".join(encode_request(key, version, 7, "test", request)))[4:] for request in requests
        ]
        self.boundary.take_in(FramesReceived(1, 0, frames, "CONTROLLER", "10.0.0.1", 5, principal))
        return self.outbox.take()

    def unregister(self, principal: Principal = ANONYMOUS) -> list[Any]:
        return self.send(ApiKey.UNREGISTER_BROKER, 0, UnregisterBrokerRequest(1), principal=principal)


def code_of(effect: Answer, key: ApiKey = ApiKey.UNREGISTER_BROKER, version: int = 0) -> int:
    _, message = parse_response(key, response_version(key, version), memoryview(b"".join(effect.parts))[4:])
    return int(message.error_code)  # type: ignore[attr-defined]


def text_of(effect: Answer, key: ApiKey = ApiKey.UNREGISTER_BROKER) -> str | None:
    _, message = parse_response(key, response_version(key, 0), memoryview(b"".join(effect.parts))[4:])
    return message.error_message  # type: ignore[attr-defined, no-any-return]


def well(door: Door, call: Call) -> None:
    door.boundary.answer(call, UnregisterBrokerResponse())


def fault(door: Door, call: Call) -> None:
    raise ZeroDivisionError("planted")


def test_a_call_acts_for_the_principal_of_its_connection() -> None:
    door = Door(well)
    door.unregister(ALICE)
    door.unregister()
    assert [call.principal for call in door.calls] == [ALICE, ANONYMOUS]
    assert door.calls[0].host == "10.0.0.1" and door.calls[0].arrived_ns == 5


def test_without_an_authorizer_everything_is_allowed() -> None:
    door = Door(well)
    (answer,) = door.unregister()
    assert code_of(answer) == ErrorCode.NONE
    assert answer.call is door.calls[0] and answer.call.settled


def test_an_operation_on_the_cluster_is_authorized_before_its_handler_runs() -> None:
    authorizer = Only(ALICE)
    door = Door(well, authorizer)
    *audited, refused = door.unregister()
    (allowed,) = door.unregister(ALICE)
    assert isinstance(audited[0], AuditLine)
    assert code_of(refused) == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert text_of(refused) == "Not authorized for the cluster."
    assert code_of(allowed) == ErrorCode.NONE
    assert len(door.calls) == 1
    questions = (AclOperation.ALTER, AclResourceType.CLUSTER, CLUSTER_NAME)
    assert authorizer.questions == [
        ("User:ANONYMOUS", "10.0.0.1", *questions),
        ("User:alice", "10.0.0.1", *questions),
    ]


def test_a_handler_authorizes_the_resources_that_its_request_names() -> None:
    authorizer = Only(ALICE)
    seen: list[bool] = []

    def handle(door: Door, call: Call) -> None:
        (topic,) = call.message.topics
        allows = door.boundary.allows
        seen.append(allows(call, AclOperation.CREATE, AclResourceType.TOPIC, topic.name))
        raise Refusal(ErrorCode.TOPIC_AUTHORIZATION_FAILED)

    request = CreateTopicsRequest([CreatableTopic("orders", 1, 1)], 1_000)
    Door(handle, authorizer).send(ApiKey.CREATE_TOPICS, 7, request)
    assert seen == [False]
    topic = (AclResourceType.TOPIC, "orders")
    assert authorizer.questions == [("User:ANONYMOUS", "10.0.0.1", AclOperation.CREATE, *topic)]


def test_before_acls_are_loaded_calls_are_refused_and_not_logged() -> None:
    (answer,) = Door(well, Only(None)).unregister()
    assert code_of(answer) == ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_fault_in_a_handler_fails_only_its_call_and_is_logged() -> None:
    door = Door(fault)
    line, answer = door.unregister()
    assert code_of(answer) == ErrorCode.UNKNOWN_SERVER_ERROR
    assert isinstance(line, LogLine) and line.level == "error" and line.text == "a request failed"
    error = line.fields["exc_info"]
    assert isinstance(error, ZeroDivisionError) and error.__traceback__ is not None
    assert "UNREGISTER_BROKER" in line.fields["call"]
    assert line.fields["error"] == "ZeroDivisionError('planted')"
    assert door.boundary.failures == 1
    _, again = door.unregister()
    assert code_of(again) == ErrorCode.UNKNOWN_SERVER_ERROR
    assert door.boundary.failures == 2


def test_requests_behind_one_that_failed_are_handled() -> None:
    def handle(door: Door, call: Call) -> None:
        (fault if call.slot == 0 else well)(door, call)

    requests = [UnregisterBrokerRequest(1)] * 2
    effects = Door(handle).send(ApiKey.UNREGISTER_BROKER, 0, *requests)
    answers = [(one.slot, code_of(one)) for one in effects if isinstance(one, Answer)]
    assert answers == [(0, ErrorCode.UNKNOWN_SERVER_ERROR), (1, ErrorCode.NONE)]


def test_an_answer_that_cannot_be_encoded_is_a_fault_of_its_handler() -> None:
    def handle(door: Door, call: Call) -> None:
        door.boundary.answer(call, UnregisterBrokerResponse(error_message="x" * 40_000))

    answer = Door(handle).unregister()[-1]
    assert code_of(answer) == ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_fault_after_the_answer_is_logged_and_not_answered_again() -> None:
    def handle(door: Door, call: Call) -> None:
        well(door, call)
        fault(door, call)

    effects = Door(handle).unregister()
    assert [type(one) for one in effects] == [Answer, LogLine]
    assert code_of(effects[0]) == ErrorCode.NONE


def test_a_fault_that_leaves_the_node_half_changed_ends_the_process() -> None:
    def handle(door: Door, call: Call) -> None:
        raise Broken

    with pytest.raises(Broken):
        Door(handle).unregister()


def test_a_frame_that_is_no_request_closes_its_connection_before_later_frames() -> None:
    door = Door(well)
    good = memoryview(
        b"".join(encode_request(ApiKey.UNREGISTER_BROKER, 0, 7, "c", UnregisterBrokerRequest(1)))
    )[4:]
    door.boundary.take_in(FramesReceived(3, 5, [good, memoryview(b"?"), good], "CONTROLLER", "h"))
    answer, closed = door.outbox.take()
    assert (answer.connection_id, answer.slot) == (3, 5)
    assert closed == CloseConnection(3, "RequestHeader at byte 0: 1 bytes are no header")
    assert door.boundary.failures == 0


def test_each_call_has_its_slot_its_size_and_no_place_where_no_answers_are_kept() -> None:
    door = Door(well)
    door.send(ApiKey.UNREGISTER_BROKER, 0, *[UnregisterBrokerRequest(1)] * 3)
    assert [(call.slot, call.size_bytes, call.place) for call in door.calls] == [
        (slot, 20, None) for slot in range(3)
    ]


def test_a_refused_node_is_named_with_the_text_of_its_refusal() -> None:
    door = Door(well)
    request = BrokerRegistrationRequest(7, listeners=[])
    call = Call(1, 0, "C", "h", ApiKey.BROKER_REGISTRATION, 4, 1, "c", request)
    door.boundary.refuse(call, ErrorCode.INVALID_REGISTRATION, "no listeners")
    lines = [one.fields["why"] for one in door.outbox.take() if isinstance(one, LogLine)]
    assert lines == ["no listeners"]


def test_continuations_of_a_handler_are_guarded_too() -> None:
    door = Door(lambda door, call: None)
    door.unregister()
    door.boundary.guard(door.calls[0], ZeroDivisionError("planted"))
    assert code_of(door.outbox.take()[-1]) == ErrorCode.UNKNOWN_SERVER_ERROR
    with pytest.raises(Broken):
        door.boundary.guard(door.calls[0], Broken())


def test_a_fault_in_reading_a_request_closes_its_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("planted")

    door = Door(well)
    monkeypatch.setattr(boundary_module, "read_call", read)
    line, closed = door.unregister()
    error = line.fields["exc_info"]
    assert isinstance(error, ZeroDivisionError)
    fields = {"call": "20 bytes", "error": repr(error), "exc_info": error}
    assert line == LogLine("error", "a request could not be read", fields)
    assert closed == CloseConnection(1, "a request could not be read")
    assert door.boundary.failures == 1


def test_a_fault_in_refusing_closes_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boundary_module, "refuse", lambda *_: 1 // 0)
    first, second, closed = Door(fault).unregister()
    assert closed == CloseConnection(1, "a request failed")
    assert (first.text, second.text) == ("a request failed", "a refusal could not be written")
    assert first.fields["call"] == second.fields["call"] and "UNREGISTER_BROKER" in second.fields["call"]
    error = second.fields["exc_info"]
    assert isinstance(error, ZeroDivisionError) and error is not first.fields["exc_info"]
    assert second.fields["error"] == repr(error)
    assert first.level == second.level == "error"


@pytest.mark.parametrize("parked", [False, True])
def test_a_refusal_that_cannot_be_written_is_a_fault_of_that_call(
    monkeypatch: pytest.MonkeyPatch, parked: bool
) -> None:
    def refuse(key: int, version: int, request: Any, code: ErrorCode, text: str | None = None) -> Any:
        return UnregisterBrokerResponse(error_code=code, error_message=text and "x" * 40_000)

    def handle(door: Door, call: Call) -> None:
        if not parked:
            raise Refusal(ErrorCode.NOT_CONTROLLER, "another leads")

    monkeypatch.setattr(boundary_module, "refuse", refuse)
    door = Door(handle)
    effects = door.unregister()
    if parked:  # refused later, for example when the leadership is lost
        door.boundary.refuse(door.calls[0], ErrorCode.NOT_CONTROLLER, "another leads")
        effects = door.outbox.take()
    line, answer = effects
    assert (line.level, line.text) == ("error", "a refusal could not be written")
    assert code_of(answer) == ErrorCode.UNKNOWN_SERVER_ERROR
    assert door.boundary.failures == 1


def test_a_refusal_that_can_never_be_written_closes_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    def handle(door: Door, call: Call) -> None:
        raise Refusal(ErrorCode.NOT_CONTROLLER)

    monkeypatch.setattr(boundary_module, "refuse", lambda *_: 1 // 0)
    first, second, closed = Door(handle).unregister()
    assert first.text == second.text == "a refusal could not be written"
    assert closed == CloseConnection(1, "a request failed")


def test_refusals_and_faults_are_counted_by_api_and_error() -> None:
    door = Door(fault, Only(ALICE))
    door.unregister()
    door.unregister(ALICE)
    assert door.boundary.stats.by_key[ApiKey.UNREGISTER_BROKER].errors == {
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED: 1,
        ErrorCode.UNKNOWN_SERVER_ERROR: 1,
    }


def test_raft_requests_are_refused_in_their_own_response() -> None:
    answer = Door(fault).send(ApiKey.VOTE, 1, VoteRequest())[-1]
    assert code_of(answer, ApiKey.VOTE, 1) == ErrorCode.UNKNOWN_SERVER_ERROR


def test_errors_that_a_handler_answers_are_counted_by_api() -> None:
    def handle(door: Door, call: Call) -> None:
        door.boundary.answer(call, UnregisterBrokerResponse(error_code=ErrorCode.BROKER_ID_NOT_REGISTERED))

    door = Door(handle)
    (answer,) = door.unregister()
    assert code_of(answer) == ErrorCode.BROKER_ID_NOT_REGISTERED
    errors = door.boundary.stats.by_key[ApiKey.UNREGISTER_BROKER].errors
    assert errors == {ErrorCode.BROKER_ID_NOT_REGISTERED: 1}


@pytest.mark.parametrize("ask", ["allows", "allows_quietly", "allows_on_any"])
@pytest.mark.parametrize("allowances", [False, True])
def test_a_permission_is_checked_for_the_calls_principal_and_address(ask: str, allowances: bool) -> None:
    authorizer = Only(ALICE)
    door = Door(lambda door, call: None, authorizer)
    door.unregister(ALICE)
    call = door.calls[0]
    door.boundary.authorizations.allowances = allowances
    named = () if ask == "allows_on_any" else ("any",)
    allowed = getattr(door.boundary, ask)(call, AclOperation.READ, AclResourceType.GROUP, *named)
    assert at_once(allowed) if ask == "allows_on_any" else allowed
    questions = (AclOperation.READ, AclResourceType.GROUP, "any")
    assert authorizer.questions[-1] == ("User:alice", "10.0.0.1", *questions)
    lines = [one.event for one in door.outbox.take() if isinstance(one, AuditLine)]
    assert lines == (["authorization allowed"] if allowances and ask == "allows" else [])


@pytest.mark.parametrize("ask", ["allows", "allows_quietly", "allows_on_any", "allows_by_name"])
@pytest.mark.parametrize(
    "needed", [(AclOperation.READ, AclResourceType.TOPIC), (AclOperation.WRITE, AclResourceType.GROUP)]
)
def test_a_handler_may_ask_only_what_its_row_names(
    ask: str, needed: tuple[AclOperation, AclResourceType]
) -> None:
    named = () if ask == "allows_on_any" else ("any",)
    quietly = {"quietly": True} if ask == "allows_by_name" else {}
    door = Door(lambda door, call: getattr(door.boundary, ask)(call, *needed, *named, **quietly), Only(ALICE))
    (line, answer) = door.unregister(ALICE)
    assert code_of(answer) == ErrorCode.UNKNOWN_SERVER_ERROR
    what = f"{needed[0].name} on {needed[1].name}"
    assert f"the row of UNREGISTER_BROKER does not name {what}" in line.fields["error"]


@pytest.mark.parametrize(("code", "outer"), [(ErrorCode.NOT_CONTROLLER, True), (ErrorCode.NONE, False)])
def test_an_envelope_at_a_standby_is_refused_with_not_controller__kip590(
    code: ErrorCode, outer: bool
) -> None:
    door = Door(lambda door, call: None)
    envelope = Call(1, 0, "C", "h", ApiKey.ENVELOPE, 0, 1, "c", None)
    call = Call(1, 0, "C", "h", ApiKey.UNREGISTER_BROKER, 0, 1, "c", None, envelope=envelope)
    door.boundary.answer(call, UnregisterBrokerResponse(error_code=code))
    (answer,) = door.outbox.take()
    assert isinstance(answer, Answer)
    assert code_of(answer, ApiKey.ENVELOPE) == (code if outer else ErrorCode.NONE)


def test_requests_of_versions_that_are_not_served_are_counted() -> None:
    door = Door(well)
    door.unregister()
    assert door.boundary.stats.not_served == 0
    for count in (1, 2):
        door.send(ApiKey.METADATA, 12, MetadataRequest([]))
        assert door.boundary.stats.not_served == count


@pytest.mark.parametrize(
    ("text", "reason"), [("no", "no"), (None, "a request without an answer was refused: ")]
)
def test_a_refused_one_way_request_is_counted_and_closes_its_connection(
    text: str | None, reason: str
) -> None:
    door = Door(well)
    code = ErrorCode.INCONSISTENT_CLUSTER_ID
    call = Call(3, 0, "C", "h", ApiKey.PRODUCE, 9, 1, "c", ProduceRequest(acks=0))
    door.boundary.refuse(call, code, text)
    *lines, closed = door.outbox.take()
    assert closed == CloseConnection(3, reason + ("" if text else code.name))
    assert [one.fields["why"] for one in lines if isinstance(one, LogLine)] == [text or code.message]
    assert door.boundary.stats.by_key[ApiKey.PRODUCE].errors == {code: 1}
    assert call.settled is True


def test_an_answer_that_cannot_be_encoded_is_logged_as_that() -> None:
    def handle(door: Door, call: Call) -> None:
        door.boundary.answer(call, UnregisterBrokerResponse(error_message="x" * 40_000))

    line, _ = Door(handle).unregister()
    assert (line.level, line.text) == ("error", "an answer could not be written")


def test_answers_are_kept_only_where_everything_is_allowed() -> None:
    registry, memo = Registry([]), AnswerMemo([])
    allowing: Any = Only(ALICE)
    assert Boundary(registry, Outbox(), memo=memo).memo is memo
    assert Boundary(registry, Outbox(), authorizer=allowing, memo=memo).memo is None
    assert Boundary(registry, Outbox()).memo is None


def test_a_call_has_the_listener_and_the_address_of_its_connection() -> None:
    door = Door(well)
    door.unregister()
    (call,) = door.calls
    assert (call.connection_id, call.listener, call.host) == (1, "CONTROLLER", "10.0.0.1")
