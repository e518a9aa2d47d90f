"""A long decision, callback by callback: its appends, its changes of the image, and the calls behind it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kraftd.controller.decision import Decision
from kraftd.controller_node.deciding import long_decisions
from kraftd.controller_node.deciding.long_decisions import WAITING_CALLS_PER_CALLBACK, LongDecisions
from kraftd.ground.refusal import Refusal
from kraftd.messages.create_topics_request import CreateTopicsRequest
from kraftd.messages.no_op_record import NoOpRecord
from kraftd.messages.unregister_broker_response import UnregisterBrokerResponse
from kraftd.replica.next_slice import NextSlice
from kraftd.requests.boundary import Boundary
from kraftd.requests.call import Call
from kraftd.requests.effects import ScheduleSlice
from kraftd.requests.outbox import Outbox
from kraftd.requests.registry import Registry
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.record_frame import VersionedRecord, encode_records

EPOCH, NEXT_OFFSET, DECIDED_END, COMMITTED = 5, 40, 38, 30
RECORD = VersionedRecord(NoOpRecord(), 0)
COST = 4  # of such a record
VALUE = encode_records([RECORD])[0]
ANSWER = UnregisterBrokerResponse()


class RecordedSlices:
    """A long decision whose neighbours note each call, in order."""

    def __init__(self) -> None:
        self.done: list[Any] = []
        self.next_offset = NEXT_OFFSET
        self.fault: Exception | None = None
        context: Any = SimpleNamespace(now_ms=1_000, image=self)
        rights: Any = SimpleNamespace(
            active_epoch=EPOCH, not_controller=lambda: Refusal(ErrorCode.NOT_CONTROLLER, "another")
        )
        following: Any = SimpleNamespace(
            applied=lambda some, end: self.done.append(("applied", len(some), end))
        )
        harness = self

        class Appends:
            decided_end = DECIDED_END

            @property
            def next_offset(self) -> int:
                return harness.next_offset

            def flush(self) -> None:
                harness.done.append("flush")

            def request(self, values: Any, epoch: int, atomic: bool) -> Any:
                if harness.fault is not None:
                    raise harness.fault
                assert set(values) == {VALUE}
                harness.done.append(("append", len(values), epoch, atomic))
                harness.next_offset += len(values)
                return ["effect"]

        appends: Any = Appends()
        parked: Any = SimpleNamespace(answer=lambda *arguments: self.done.append(("answer", *arguments)))
        core: Any = SimpleNamespace(high_watermark=COMMITTED)
        driver: Any = SimpleNamespace(core=core, perform=lambda effects: self.done.append(list(effects)))
        pending_events: Any = SimpleNamespace(
            note=lambda image, end, records, call: self.done.append(("note", image, end, len(records), call))
        )
        self.context, self.decision_rights, self.core, self.pending_events = (
            context,
            rights,
            core,
            pending_events,
        )
        self.outbox = Outbox()
        self.boundary: Any = Boundary(Registry([]), self.outbox)
        self.boundary.refuse = lambda *arguments: self.done.append(("refuse", *arguments))
        self.long = LongDecisions(
            self.boundary,
            context,
            rights,
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

    def put_off(self, call: Call) -> bool:
        return self.long.put_off(call, lambda: self.again(call))

    def again(self, call: Call) -> None:
        self.done.append(("handle", call))

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
    harness = RecordedSlices()
    assert not harness.long.busy and not harness.long.is_under_way
    assert repr(harness.long) == "<LongDecisions none under way, 0 calls behind>"
    call = harness.begin(decision(0))
    assert harness.outbox.take() == [ScheduleSlice()] and not harness.done
    assert harness.long.busy and harness.long.is_under_way
    assert repr(harness.long) == f"<LongDecisions {call!r} under way, 0 calls behind>"
    harness.run_all_callbacks()
    assert not harness.long.busy and not harness.long.is_under_way
    assert repr(harness.long) == "<LongDecisions none under way, 0 calls behind>"


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

    harness = RecordedSlices()
    call = harness.begin(deciding() if in_slices else made)
    end = NEXT_OFFSET + 5
    assert harness.run_all_callbacks() == [
        ("append", 5, EPOCH, atomic),
        ("note", harness, end, 5, call),
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


def test_records_of_one_batch_are_encoded_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[int] = []

    def encode(records: Any) -> list[bytes]:
        encoded.append(len(records))
        return encode_records(records)

    monkeypatch.setattr(long_decisions, "encode_records", encode)
    monkeypatch.setattr(long_decisions, "MAX_RUN_RECORDS", 2)
    harness = RecordedSlices()
    harness.begin(decision(5))
    done = []
    while harness.long.is_under_way:
        before = len(encoded)
        done += harness.run_callback()
        assert len(encoded) <= before + 1
    assert encoded == [2, 2, 1]
    assert [one[1] for one in done if one[:1] == ("append",)] == [5]


def test_a_leadership_lost_while_records_are_encoded_refuses_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_decisions, "MAX_RUN_RECORDS", 2)
    harness = RecordedSlices()
    call = harness.begin(decision(5))
    for _ in range(2):
        assert not [one for one in harness.run_callback() if one[:1] == ("append",)]
    harness.done.clear()
    assert harness.long.abandon() is None
    assert [one[:2] for one in harness.done] == [("refuse", call)]
    assert not harness.long.busy


def test_records_that_are_not_atomic_are_appended_in_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_decisions, "MAX_RUN_RECORDS", 2)
    harness = RecordedSlices()
    call = harness.begin(decision(5, atomic=False))
    done = harness.run_all_callbacks()
    assert [one[1] for one in done if one[0] == "append"] == [2, 2, 1]
    assert [one[2] for one in done if one[0] == "note"] == [NEXT_OFFSET + 2, NEXT_OFFSET + 4, NEXT_OFFSET + 5]
    assert done[-1] == ("answer", call, call.frame(ANSWER), NEXT_OFFSET + 5)


def test_without_records_its_answer_waits_for_all_that_is_decided() -> None:
    after: list[int] = []
    harness = RecordedSlices()
    call = harness.begin(decision(0, after=after.append))
    assert harness.run_all_callbacks() == [("answer", call, call.frame(ANSWER), DECIDED_END)]
    assert after == [NEXT_OFFSET]


def test_gathered_records_of_others_come_first_in_every_turn() -> None:
    harness = RecordedSlices()
    harness.begin(decision(1))
    while harness.long.is_under_way:
        assert harness.run_callback()[0] == "flush"


def test_the_errors_of_its_answer_are_counted() -> None:
    harness = RecordedSlices()
    harness.begin(Decision(UnregisterBrokerResponse(error_code=ErrorCode.BROKER_ID_NOT_REGISTERED)))
    harness.run_all_callbacks()
    errors = harness.boundary.stats.by_key[ApiKey.UNREGISTER_BROKER].errors
    assert errors == {ErrorCode.BROKER_ID_NOT_REGISTERED: 1}


@pytest.mark.parametrize(
    ("error", "failures"),
    [(Refusal(ErrorCode.POLICY_VIOLATION, "too much"), 0), (ZeroDivisionError("planted"), 1)],
)
def test_a_fault_before_the_append_is_answered_and_ends_it(error: Exception, failures: int) -> None:
    guarded: list[Any] = []
    harness = RecordedSlices()
    harness.boundary.guard = lambda *arguments: guarded.append(arguments)
    for count in (1, 2):
        harness.fault = error
        call = harness.begin(decision(1))
        assert harness.run_all_callbacks() == []
        assert guarded[-1] == (call, error) and len(guarded) == count
        assert harness.long.failures == failures * count
        assert repr(harness.long) == "<LongDecisions none under way, 0 calls behind>"


@pytest.mark.parametrize("error", [Refusal(ErrorCode.NOT_CONTROLLER), ZeroDivisionError("planted")])
def test_behind_an_append_only_a_refusal_is_answered(error: Exception) -> None:
    """Another error ends the process, because the records that are in the log already stay there."""

    def note(*_: Any) -> None:
        raise error

    guarded: list[Any] = []
    harness = RecordedSlices()
    harness.boundary.guard = lambda *arguments: guarded.append(arguments)
    call = harness.begin(decision(1))
    harness.pending_events.note = note
    if isinstance(error, Refusal):
        harness.run_all_callbacks()
        assert guarded == [(call, error)]
    else:
        with pytest.raises(ZeroDivisionError):
            harness.run_all_callbacks()
        assert not guarded
    assert harness.long.failures == 0
    harness.long.abandon()
    harness.pending_events.note = lambda *_: None
    harness.fault = ZeroDivisionError("before the append of the next one")
    harness.begin(decision(1))
    harness.run_all_callbacks()
    assert harness.long.failures == 1


@pytest.mark.parametrize("count", [0, 3])
def test_a_fault_behind_the_last_applied_record_is_answered(
    monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    monkeypatch.setattr(long_decisions, "MAX_RUN_RECORDS", 2)
    error = ZeroDivisionError("planted")

    def after(_end_offset: int) -> None:
        raise error

    guarded: list[Any] = []
    harness = RecordedSlices()
    harness.boundary.guard = lambda *arguments: guarded.append(arguments)
    call = harness.begin(decision(count, atomic=False, after=after))
    harness.run_all_callbacks()
    assert guarded == [(call, error)] and harness.long.failures == 1
    assert not harness.long.busy


def test_a_decision_that_its_own_flush_has_ended_does_nothing_more() -> None:
    harness = RecordedSlices()
    harness.begin(decision(1))
    long: Any = harness.long
    long._appends = SimpleNamespace(flush=lambda: harness.long.abandon())
    harness.run_callback()
    assert not harness.long.is_under_way
    assert [one[0] for one in harness.done] == ["refuse"]


def test_an_append_that_is_refused_with_the_end_of_the_leadership_is_refused_once() -> None:
    def request(*_: Any) -> None:
        harness.long.abandon()
        raise Refusal(ErrorCode.NOT_CONTROLLER)

    harness = RecordedSlices()
    call = harness.begin(decision(1))
    long: Any = harness.long
    long._appends = SimpleNamespace(flush=lambda: None, request=request, next_offset=NEXT_OFFSET)
    assert harness.run_all_callbacks() == [("refuse", call, ErrorCode.NOT_CONTROLLER, "another")]


@pytest.mark.parametrize(("committed", "answered"), [(NEXT_OFFSET, False), (NEXT_OFFSET + 4, True)])
@pytest.mark.parametrize("applied", [0, 2])
def test_with_the_leadership_it_ends_answered_only_if_all_is_committed(
    monkeypatch: pytest.MonkeyPatch, committed: int, answered: bool, applied: int
) -> None:
    monkeypatch.setattr(long_decisions, "APPLY_BUDGET_US", 2 * COST)
    harness = RecordedSlices()
    call = harness.begin(decision(4))
    while not any(one[:1] == ("append",) for one in harness.run_callback()):
        pass
    if applied:
        assert ("apply", 2, NEXT_OFFSET, EPOCH) in harness.run_callback()
    harness.core.high_watermark = committed
    harness.done.clear()
    assert harness.long.abandon() == NEXT_OFFSET + applied
    assert harness.done == [
        ("answer", call, call.frame(ANSWER), NEXT_OFFSET + 4)
        if answered
        else ("refuse", call, ErrorCode.NOT_CONTROLLER, "another")
    ]
    assert harness.long.abandon() is None
    assert len(harness.done) == 1


def test_a_lost_leadership_refuses_a_decision_that_is_not_appended_and_all_behind_it() -> None:
    harness = RecordedSlices()
    harness.core.high_watermark = None
    call = harness.begin(decision(4))
    behind = [unregister(1), unregister(2)]
    assert all(harness.put_off(one) for one in behind)
    assert repr(harness.long).endswith("under way, 2 calls behind>")
    assert harness.long.abandon() is None
    assert harness.done == [("refuse", one, ErrorCode.NOT_CONTROLLER, "another") for one in (call, *behind)]
    assert not harness.long.busy


def test_the_offset_of_what_is_not_applied_is_forgotten_once_all_is() -> None:
    harness = RecordedSlices()
    harness.begin(decision(1))
    while not any(one[:1] == ("applied",) for one in harness.run_callback()):
        pass
    harness.run_callback()
    assert not harness.long.is_under_way
    assert harness.long.abandon() is None


def test_calls_wait_behind_it_and_behind_those_that_wait_already() -> None:
    harness = RecordedSlices()
    for _ in range(2):
        assert harness.put_off(unregister()) is False
        harness.begin(decision(0))
        first, second = unregister(1), unregister(2)
        assert harness.put_off(first) is True
        harness.run_all_callbacks()
        assert harness.long.busy and not harness.long.is_under_way
        assert harness.put_off(second) is True
        assert harness.run_callback() == [("handle", first), ("handle", second)]
        assert not harness.long.busy
    assert harness.put_off(unregister()) is False


def test_waiting_calls_are_handled_a_few_a_turn_with_less_time_left() -> None:
    harness = RecordedSlices()
    harness.begin(decision(0))
    calls = [unregister(slot) for slot in range(WAITING_CALLS_PER_CALLBACK + 1)]
    for call in calls:
        harness.put_off(call)
    harness.run_all_callbacks()
    harness.context.now_ms += 30
    assert harness.run_callback() == [("handle", call) for call in calls[:-1]]
    assert [call.message.timeout_ms for call in calls] == [470] * WAITING_CALLS_PER_CALLBACK + [500]
    late = unregister(99)
    assert harness.put_off(late) is True
    assert harness.run_callback() == [("handle", calls[-1]), ("handle", late)]


def test_a_waiting_call_that_needs_many_turns_stops_those_behind_it() -> None:
    harness = RecordedSlices()
    harness.begin(decision(0))
    calls = [unregister(1), unregister(2)]
    for call in calls:
        harness.put_off(call)
    harness.run_all_callbacks()

    def handle(call: Call) -> None:
        assert harness.put_off(call) is False  # the call may be decided now
        harness.begin(decision(0), call)

    harness.again = handle  # type: ignore[method-assign]
    harness.run_callback()
    assert harness.long.is_under_way
    assert repr(harness.long) == f"<LongDecisions {calls[0]!r} under way, 1 calls behind>"
    assert harness.put_off(unregister(3)) is True
