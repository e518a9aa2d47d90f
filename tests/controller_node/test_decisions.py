"""Decisions that are taken at once, decisions that wait, and the commits that their answers wait for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kraftd.controller.decision import Decision
from kraftd.controller_node.deciding.decisions import Decisions
from kraftd.controller_node.deciding.long_decisions import MAX_INLINE_RECORDS
from kraftd.ground.refusal import Refusal
from kraftd.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from kraftd.messages.no_op_record import NoOpRecord
from kraftd.messages.unregister_broker_response import UnregisterBrokerResponse
from kraftd.requests.boundary import Boundary
from kraftd.requests.call import Call
from kraftd.requests.outbox import Outbox
from kraftd.requests.registry import Registry
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.record_frame import VersionedRecord

EPOCH, NEXT_OFFSET, DECIDED_END = 5, 40, 38
RECORD = VersionedRecord(NoOpRecord(), 0)
ANSWER = UnregisterBrokerResponse()


class RecordedDecisions:
    """Decisions in front of a log that notes appends; a test sets which other decisions are under way."""

    def __init__(self) -> None:
        self.appended: list[Any] = []
        self.parked: list[Any] = []
        self.put_off: list[Call] = []
        self.begun: list[Any] = []
        self.after: list[int] = []
        self.checked: list[bool] = []
        self.waits = False
        self.ends_leadership = False
        context: Any = SimpleNamespace(next_offset=0, now_ms=0)
        rights: Any = SimpleNamespace(
            active_epoch=EPOCH,
            stopping=False,
            check_may_decide=lambda on_standby: self.checked.append(on_standby),
            not_controller=lambda: Refusal(ErrorCode.NOT_CONTROLLER, "another"),
        )
        appends: Any = SimpleNamespace(next_offset=NEXT_OFFSET, decided_end=DECIDED_END, append=self._append)
        parked: Any = SimpleNamespace(answer=lambda *arguments: self.parked.append(arguments))
        long: Any = SimpleNamespace(
            busy=False,
            is_under_way=False,
            put_off=self._put_off,
            begin=lambda *arguments: self.begun.append(arguments),
        )
        self.context, self.decision_rights, self.long = context, rights, long
        self.boundary = Boundary(Registry([]), Outbox())
        self.decisions = Decisions(self.boundary, context, rights, appends, parked, long)

    def _append(
        self, records: list[Any], atomic: bool, call: Call | None = None, *, gather: bool = True
    ) -> int:
        self.appended.append((records, atomic, call))
        if self.ends_leadership:
            self.decision_rights.active_epoch = None
        return NEXT_OFFSET + len(records)

    def _put_off(self, call: Call, again: Any) -> bool:
        self.put_off.append(call)
        return self.waits

    def decide(self, made: Any, call: Call | None = None, **options: Any) -> Call:
        call = call or unregister()
        self.decisions.decide(call, lambda *_: made, **options)
        return call


def unregister() -> Call:
    return Call(1, 0, "C", "h", ApiKey.UNREGISTER_BROKER, 0, 1, "c", object())


def heartbeat() -> Call:
    return Call(1, 0, "C", "h", ApiKey.BROKER_HEARTBEAT, 1, 1, "c", object())


def framed(call: Call, answer: Any = ANSWER) -> list[Any]:
    return call.frame(answer)


def decision(count: int = 1, **fields: Any) -> Decision[Any]:
    return Decision(ANSWER, [RECORD] * count, **fields)


def test_a_decision_sees_the_image_the_request_and_its_version() -> None:
    harness = RecordedDecisions()
    call = unregister()
    calls: list[Any] = []

    def decide(*args: Any) -> Decision[Any]:
        calls.append((*args, harness.context.next_offset))
        return Decision(ANSWER)

    harness.decisions.decide(call, decide)
    assert calls == [(harness.context, call.message, 0, NEXT_OFFSET)]
    assert harness.checked == []  # an active controller may decide


@pytest.mark.parametrize("atomic", [True, False])
def test_records_are_appended_for_the_call_whose_answer_waits_for_the_last(atomic: bool) -> None:
    harness = RecordedDecisions()
    made = decision(2, atomic=atomic, after=harness.after.append)
    call = harness.decide(made)
    assert harness.appended == [(made.records, atomic, call)]
    assert harness.after == [NEXT_OFFSET + 2]
    assert harness.parked == [(call, framed(call), NEXT_OFFSET + 2)]


@pytest.mark.parametrize(("seen_offset", "waits_for"), [(None, DECIDED_END), (0, 1), (20, 21)])
def test_an_answer_without_records_waits_for_what_it_may_reflect(
    seen_offset: int | None, waits_for: int
) -> None:
    harness = RecordedDecisions()
    call = harness.decide(Decision(ANSWER, seen_offset=seen_offset, after=harness.after.append))
    assert harness.appended == [] and harness.after == [NEXT_OFFSET]
    assert harness.parked == [(call, framed(call), waits_for)]


def test_a_decision_of_several_turns_that_ends_in_the_first_is_taken_at_once() -> None:
    def deciding() -> Any:
        yield from ()
        return decision()

    harness = RecordedDecisions()
    harness.decide(deciding())
    assert len(harness.appended) == len(harness.parked) == 1 and not harness.begun


@pytest.mark.parametrize("under_way", [False, True])
def test_a_long_decision_begins_or_waits_for_the_one_under_way(under_way: bool) -> None:
    def deciding() -> Any:
        yield
        yield

    for made in (decision(MAX_INLINE_RECORDS + 1), deciding()):
        harness = RecordedDecisions()
        harness.long.is_under_way = under_way
        call = harness.decide(made, heartbeat())
        assert harness.begun == ([] if under_way else [(call, made, None)])
        assert harness.put_off == ([call] if under_way else [])
        assert not harness.appended and not harness.parked


def test_as_many_records_as_one_turn_may_apply_are_appended_at_once() -> None:
    harness = RecordedDecisions()
    harness.decide(decision(MAX_INLINE_RECORDS))
    assert len(harness.appended) == 1 and not harness.begun


def test_behind_a_long_decision_all_wait_but_heartbeats_without_records() -> None:
    harness = RecordedDecisions()
    harness.long.is_under_way = harness.waits = True
    call = harness.decide(Decision(ANSWER))
    assert harness.put_off == [call] and not harness.parked
    beat = harness.decide(Decision(BrokerHeartbeatResponse()), heartbeat())
    assert harness.put_off == [call] and len(harness.parked) == 1
    beat = harness.decide(Decision(BrokerHeartbeatResponse(), [RECORD]), heartbeat())
    assert harness.put_off == [call, beat] and not harness.appended


@pytest.mark.parametrize(("active", "stopping"), [(False, False), (True, True), (False, True)])
@pytest.mark.parametrize("on_standby", [True, False])
def test_a_node_that_may_not_decide_is_asked_first(active: bool, stopping: bool, on_standby: bool) -> None:
    harness = RecordedDecisions()
    harness.decision_rights.active_epoch, harness.decision_rights.stopping = (
        EPOCH if active else None,
        stopping,
    )
    harness.decide(Decision(ANSWER), on_standby=on_standby)
    assert harness.checked == [on_standby]
    harness.decide(Decision(ANSWER))
    assert harness.checked == [on_standby, False]


def test_an_append_that_ended_the_leadership_is_refused() -> None:
    harness = RecordedDecisions()
    harness.ends_leadership = True
    with pytest.raises(Refusal) as refusal:
        harness.decide(decision(after=harness.after.append))
    assert (refusal.value.code, refusal.value.message) == (ErrorCode.NOT_CONTROLLER, "another")
    assert not harness.after and not harness.parked


@pytest.mark.parametrize(
    ("error", "timed_out", "failures"),
    [
        (Refusal(ErrorCode.REQUEST_TIMED_OUT), 1, 0),
        (Refusal(ErrorCode.INVALID_REQUEST), 0, 0),
        (ZeroDivisionError("planted"), 0, 1),
    ],
)
def test_decisions_that_fail_or_come_too_late_are_counted(
    error: Exception, timed_out: int, failures: int
) -> None:
    def decide(*_: Any) -> Any:
        raise error

    harness = RecordedDecisions()
    assert (harness.decisions.timed_out, harness.decisions.failures) == (0, 0)
    for count in (1, 2):
        with pytest.raises(type(error)):
            harness.decisions.decide(unregister(), decide)
        assert harness.decisions.timed_out == timed_out * count
        assert harness.decisions.failures == failures * count


@pytest.mark.parametrize("code", [ErrorCode.NONE, ErrorCode.STALE_BROKER_EPOCH])
def test_errors_of_decisions_are_counted_by_api(code: ErrorCode) -> None:
    harness = RecordedDecisions()
    harness.decide(Decision(UnregisterBrokerResponse(error_code=code)))
    harness.decide(Decision(BrokerHeartbeatResponse(error_code=code)), heartbeat())
    counted = {key: one.errors for key, one in harness.boundary.stats.by_key.items() if one.errors}
    expected = {ApiKey.UNREGISTER_BROKER: {code: 1}, ApiKey.BROKER_HEARTBEAT: {code: 1}}
    assert counted == (expected if code else {})


@pytest.mark.parametrize("count", [0, 2])
def test_the_nodes_own_decision_gets_its_end_offset(count: int) -> None:
    harness = RecordedDecisions()
    made = decision(count, atomic=True, after=harness.after.append)
    offsets: list[int] = []
    assert harness.decisions.decide_alone(lambda ctx: offsets.append(ctx.next_offset) or made) is made  # type: ignore[func-returns-value]
    assert offsets == [NEXT_OFFSET]
    assert harness.after == [NEXT_OFFSET + count]
    assert harness.appended == ([(made.records, True, None)] if count else [])
    harness.decisions.decide_alone(lambda _: Decision(ANSWER))
    assert not harness.parked


def test_decisions_are_busy_while_answers_wait_or_a_long_one_is_under_way() -> None:
    harness = RecordedDecisions()
    parked: Any = []
    harness.decisions.parked = parked
    busy = []
    for harness.long.busy, waiting in ((False, []), (True, []), (False, [1])):
        parked[:] = waiting
        busy.append(harness.decisions.busy)
    assert busy == [False, True, True]


@pytest.mark.parametrize(("active", "stopping"), [(True, False), (False, False), (True, True), (False, True)])
def test_a_heartbeat_that_changes_nothing_is_answered_by_a_node_that_decides(
    active: bool, stopping: bool
) -> None:
    harness = RecordedDecisions()
    harness.decision_rights.active_epoch, harness.decision_rights.stopping = (
        EPOCH if active else None,
        stopping,
    )
    call, answer = heartbeat(), BrokerHeartbeatResponse(is_fenced=False)
    calls: list[Any] = []

    def find(*arguments: Any) -> Any:
        calls.append(arguments)
        return answer, 20

    decides = active and not stopping
    assert harness.decisions.answer_unchanged(call, find) is decides
    assert calls == ([(harness.context, call.message)] if decides else [])
    assert harness.parked == ([(call, [b"".join(call.frame(answer))], 21)] if decides else [])


def test_other_heartbeats_need_a_decision_and_faults_in_the_search_are_counted() -> None:
    def find(*_: Any) -> Any:
        raise ZeroDivisionError("planted")

    harness = RecordedDecisions()
    assert harness.decisions.answer_unchanged(heartbeat(), lambda *_: None) is False
    assert not harness.parked and harness.decisions.failures == 0
    for count in (1, 2):
        with pytest.raises(ZeroDivisionError):
            harness.decisions.answer_unchanged(heartbeat(), find)
        assert harness.decisions.failures == count


def test_equal_answers_to_heartbeats_are_encoded_once() -> None:
    harness = RecordedDecisions()
    answer = BrokerHeartbeatResponse()
    for _ in range(2):
        harness.decisions.answer_unchanged(heartbeat(), lambda *_: (answer, 20))
    assert harness.decisions._unchanged._last[1][0] is answer
