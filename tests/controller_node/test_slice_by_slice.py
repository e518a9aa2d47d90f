"""A long decision, callback by callback: its appends, its changes of the image, and the calls behind it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kraftd.controller.decision import Decision, Refusal
from kraftd.controller_node import long_decisions
from kraftd.controller_node.effects import ScheduleSlice
from kraftd.controller_node.long_decisions import WAITING_CALLS_PER_CALLBACK, LongDecisions
from kraftd.controller_node.next_slice import NextSlice
from kraftd.messages.create_topics_request import CreateTopicsRequest
from kraftd.messages.no_op_record import NoOpRecord
from kraftd.messages.unregister_broker_response import UnregisterBrokerResponse
from kraftd.requests.boundary import Boundary
from kraftd.requests.call import Call
from kraftd.requests.outbox import Outbox
from kraftd.requests.registry import ListenerKind, Registry
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.record_frame import VersionedRecord, encode_records

EPOCH, NEXT_OFFSET, DECIDED_END, COMMITTED = 5, 40, 38, 30
RECORD = VersionedRecord(NoOpRecord(), 0)
COST = 4  # of such a record
VALUE = encode_records([RECORD])[0]
ANSWER = UnregisterBrokerResponse()


class Desk:
    """A long decision whose neighbours note each call, in order."""

    def __init__(self) -> None:
        self.done: list[Any] = []
        self.next_offset = NEXT_OFFSET
        self.fault: Exception | None = None
        context: Any = SimpleNamespace(now_ms=1_000, image=self)
        standing: Any = SimpleNamespace(
            active_epoch=EPOCH, not_controller=lambda: Refusal(ErrorCode.NOT_CONTROLLER, "another")
        )
        following: Any = SimpleNamespace(
            applied=lambda some, end: self.done.append(("applied", len(some), end))
        )
        desk = self

        class Appends:
            decided_end = DECIDED_END

            @property
            def next_offset(self) -> int:
                return desk.next_offset

            def flush(self) -> None:
                desk.done.append("flush")

            def request(self, values: Any, epoch: int, atomic: bool) -> Any:
                if desk.fault is not None:
                    raise desk.fault
                assert set(values) == {VALUE}
                desk.done.append(("append", len(values), epoch, atomic))
                desk.next_offset += len(values)
                return ["effect"]

        appends: Any = Appends()
        parked: Any = SimpleNamespace(answer=lambda *arguments: self.done.append(("answer", *arguments)))
        core: Any = SimpleNamespace(high_watermark=COMMITTED)
        driver: Any = SimpleNamespace(core=core, perform=lambda effects: self.done.append(list(effects)))
        pending_events: Any = SimpleNamespace(
            note=lambda image, end, records, call: self.done.append(("note", image, end, len(records), call))
        )
        self.context, self.standing, self.core, self.pending_events = context, standing, core, pending_events
        self.outbox = Outbox()
        self.boundary: Any = Boundary(Registry(ListenerKind.CONTROLLER, []), self.outbox)
        self.boundary.refuse = lambda *arguments: self.done.append(("refuse", *arguments))
        self.boundary.handle = lambda call: self.done.append(("handle", call))
        self.long = LongDecisions(
            self.boundary,
            context,
            standing,
            following,
            appends,
            parked,
            driver,
            pending_events,
            NextSlice(self.outbox),
        )

    def apply_all(self, messages: Any, base_offset: int, epoch: int) -> None:
        self.done.append(("apply", len(messages), base_offset, epoch))

    def begin(self, made: Any, call: Call | None = None) -> Call:
        call = call or unregister()
        self.long.begin(call, made)
        return call

    def run_callback(self) -> list[Any]:
        self.done.clear()
        self.long.go_on()
        return list(self.done)

    def run_all_callbacks(self) -> list[Any]:
        """The calls of all callbacks, without flushes and empty lists of effects."""
        found: list[Any] = []
        while self.long.is_under_way:
            found += [one for one in self.run_callback() if one != "flush" and one != []]
        return found


def unregister(slot: int = 0) -> Call:
    return Call(1, slot, "C", "h", ApiKey.UNREGISTER_BROKER, 0, 9, "c", CreateTopicsRequest(timeout_ms=500))


def decision(count: int, **fields: Any) -> Decision[Any]:
    return Decision(ANSWER, [RECORD] * count, **fields)


def test_it_begins_in_the_next_turn_and_is_the_only_one() -> None:
    desk = Desk()
    assert not desk.long.busy and not desk.long.is_under_way
    assert repr(desk.long) == "<LongDecisions none under way, 0 calls behind>"
    call = desk.begin(decision(0))
    assert desk.outbox.take() == [ScheduleSlice()] and not desk.done
    assert desk.long.busy and desk.long.is_under_way
    assert repr(desk.long) == f"<LongDecisions {call!r} under way, 0 calls behind>"
    desk.run_all_callbacks()
    assert not desk.long.busy and not desk.long.is_under_way
    assert repr(desk.long) == "<LongDecisions none under way, 0 calls behind>"


@pytest.mark.parametrize("in_slices", [False, True])
@pytest.mark.parametrize("atomic", [True, False])
def test_its_records_are_appended_at_once_noted_and_applied_in_slices(
    monkeypatch: pytest.MonkeyPatch, in_slices: bool, atomic: bool
) -> None:
    monkeypatch.setattr(long_decisions, "APPLY_BUDGET_US", 2 * COST)
    after: list[int] = []
    made = decision(5, atomic=atomic, after=after.append)

    def deciding() -> Any:
        yield
        yield
        return made

    desk = Desk()
    call = desk.begin(deciding() if in_slices else made)
    end = NEXT_OFFSET + 5
    assert desk.run_all_callbacks() == [
        ("append", 5, EPOCH, atomic),
        ("note", desk, end, 5, call),
        ["effect"],
        ("apply", 2, NEXT_OFFSET, EPOCH),
        ("applied", 2, NEXT_OFFSET + 2),
        ("apply", 2, NEXT_OFFSET + 2, EPOCH),
        ("applied", 2, NEXT_OFFSET + 4),
        ("apply", 1, NEXT_OFFSET + 4, EPOCH),
        ("applied", 1, end),
        ("answer", call, call.frame(ANSWER), end),
    ]
    assert after == [end]
    assert not made.records  # freed on the way


def test_records_that_are_not_atomic_are_appended_in_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_decisions, "MAX_RUN_RECORDS", 2)
    desk = Desk()
    call = desk.begin(decision(5, atomic=False))
    done = desk.run_all_callbacks()
    assert [one[1] for one in done if one[0] == "append"] == [2, 2, 1]
    assert [one[2] for one in done if one[0] == "note"] == [NEXT_OFFSET + 2, NEXT_OFFSET + 4, NEXT_OFFSET + 5]
    assert done[-1] == ("answer", call, call.frame(ANSWER), NEXT_OFFSET + 5)


def test_without_records_its_answer_waits_for_all_that_is_decided() -> None:
    after: list[int] = []
    desk = Desk()
    call = desk.begin(decision(0, after=after.append))
    assert desk.run_all_callbacks() == [("answer", call, call.frame(ANSWER), DECIDED_END)]
    assert after == [NEXT_OFFSET]


def test_gathered_records_of_others_come_first_in_every_turn() -> None:
    desk = Desk()
    desk.begin(decision(1))
    while desk.long.is_under_way:
        assert desk.run_callback()[0] == "flush"


def test_the_errors_of_its_answer_are_counted() -> None:
    desk = Desk()
    desk.begin(Decision(UnregisterBrokerResponse(error_code=ErrorCode.BROKER_ID_NOT_REGISTERED)))
    desk.run_all_callbacks()
    errors = desk.boundary.stats.by_key[ApiKey.UNREGISTER_BROKER].errors
    assert errors == {ErrorCode.BROKER_ID_NOT_REGISTERED: 1}


@pytest.mark.parametrize(
    ("error", "failures"),
    [(Refusal(ErrorCode.POLICY_VIOLATION, "too much"), 0), (ZeroDivisionError("planted"), 1)],
)
def test_a_fault_before_the_append_is_answered_and_ends_it(error: Exception, failures: int) -> None:
    guarded: list[Any] = []
    desk = Desk()
    desk.boundary.guard = lambda *arguments: guarded.append(arguments)
    for count in (1, 2):
        desk.fault = error
        call = desk.begin(decision(1))
        assert desk.run_all_callbacks() == []
        assert guarded[-1] == (call, error) and len(guarded) == count
        assert desk.long.failures == failures * count
        assert repr(desk.long) == "<LongDecisions none under way, 0 calls behind>"


@pytest.mark.parametrize("error", [Refusal(ErrorCode.NOT_CONTROLLER), ZeroDivisionError("planted")])
def test_behind_an_append_only_a_refusal_is_answered(error: Exception) -> None:
    """Another error ends the process, because the records that are in the log already stay there."""

    def note(*_: Any) -> None:
        raise error

    guarded: list[Any] = []
    desk = Desk()
    desk.boundary.guard = lambda *arguments: guarded.append(arguments)
    call = desk.begin(decision(1))
    desk.pending_events.note = note
    if isinstance(error, Refusal):
        desk.run_all_callbacks()
        assert guarded == [(call, error)]
    else:
        with pytest.raises(ZeroDivisionError):
            desk.run_all_callbacks()
        assert not guarded
    assert desk.long.failures == 0
    desk.long.abandon()
    desk.pending_events.note = lambda *_: None
    desk.fault = ZeroDivisionError("before the append of the next one")
    desk.begin(decision(1))
    desk.run_all_callbacks()
    assert desk.long.failures == 1


def test_a_decision_that_its_own_flush_has_ended_does_nothing_more() -> None:
    desk = Desk()
    desk.begin(decision(1))
    long: Any = desk.long
    long._appends = SimpleNamespace(flush=lambda: desk.long.abandon())
    desk.run_callback()
    assert not desk.long.is_under_way
    assert [one[0] for one in desk.done] == ["refuse"]


@pytest.mark.parametrize(("committed", "answered"), [(NEXT_OFFSET, False), (NEXT_OFFSET + 4, True)])
@pytest.mark.parametrize("applied", [0, 2])
def test_with_the_leadership_it_ends_answered_only_if_all_is_committed(
    monkeypatch: pytest.MonkeyPatch, committed: int, answered: bool, applied: int
) -> None:
    monkeypatch.setattr(long_decisions, "APPLY_BUDGET_US", 2 * COST)
    desk = Desk()
    call = desk.begin(decision(4))
    while not any(one[:1] == ("append",) for one in desk.run_callback()):
        pass
    if applied:
        assert ("apply", 2, NEXT_OFFSET, EPOCH) in desk.run_callback()
    desk.core.high_watermark = committed
    desk.done.clear()
    assert desk.long.abandon() == NEXT_OFFSET + applied
    assert desk.done == [
        ("answer", call, call.frame(ANSWER), NEXT_OFFSET + 4)
        if answered
        else ("refuse", call, ErrorCode.NOT_CONTROLLER, "another")
    ]
    assert desk.long.abandon() is None
    assert len(desk.done) == 1


def test_a_lost_leadership_refuses_a_decision_that_is_not_appended_and_all_behind_it() -> None:
    desk = Desk()
    desk.core.high_watermark = None
    call = desk.begin(decision(4))
    behind = [unregister(1), unregister(2)]
    assert all(desk.long.put_off(one) for one in behind)
    assert repr(desk.long).endswith("under way, 2 calls behind>")
    assert desk.long.abandon() is None
    assert desk.done == [("refuse", one, ErrorCode.NOT_CONTROLLER, "another") for one in (call, *behind)]
    assert not desk.long.busy


def test_the_offset_of_what_is_not_applied_is_forgotten_once_all_is() -> None:
    desk = Desk()
    desk.begin(decision(1))
    while not any(one[:1] == ("applied",) for one in desk.run_callback()):
        pass
    desk.run_callback()
    assert not desk.long.is_under_way
    assert desk.long.abandon() is None


def test_calls_wait_behind_it_and_behind_those_that_wait_already() -> None:
    desk = Desk()
    for _ in range(2):
        assert desk.long.put_off(unregister()) is False
        desk.begin(decision(0))
        first, second = unregister(1), unregister(2)
        assert desk.long.put_off(first) is True
        desk.run_all_callbacks()
        assert desk.long.busy and not desk.long.is_under_way
        assert desk.long.put_off(second) is True
        assert desk.run_callback() == [("handle", first), ("handle", second)]
        assert not desk.long.busy
    assert desk.long.put_off(unregister()) is False


def test_waiting_calls_are_handled_a_few_a_turn_with_less_time_left() -> None:
    desk = Desk()
    desk.begin(decision(0))
    calls = [unregister(slot) for slot in range(WAITING_CALLS_PER_CALLBACK + 1)]
    for call in calls:
        desk.long.put_off(call)
    desk.run_all_callbacks()
    desk.context.now_ms += 30
    assert desk.run_callback() == [("handle", call) for call in calls[:-1]]
    assert [call.message.timeout_ms for call in calls] == [470] * WAITING_CALLS_PER_CALLBACK + [500]
    late = unregister(99)
    assert desk.long.put_off(late) is True
    assert desk.run_callback() == [("handle", calls[-1]), ("handle", late)]


def test_a_waiting_call_that_needs_many_turns_stops_those_behind_it() -> None:
    desk = Desk()
    desk.begin(decision(0))
    calls = [unregister(1), unregister(2)]
    for call in calls:
        desk.long.put_off(call)
    desk.run_all_callbacks()

    def handle(call: Call) -> None:
        assert desk.long.put_off(call) is False  # the call may be decided now
        desk.begin(decision(0), call)

    desk.boundary.handle = handle
    desk.run_callback()
    assert desk.long.is_under_way
    assert repr(desk.long) == f"<LongDecisions {calls[0]!r} under way, 1 calls behind>"
    assert desk.long.put_off(unregister(3)) is True
