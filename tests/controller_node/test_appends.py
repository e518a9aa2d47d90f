"""The appends that decisions request from the core: their sizes, epochs and refusals."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kraftd.controller_node.deciding import appending
from kraftd.controller_node.deciding.appending import Appends
from kraftd.controller_node.effects import ScheduleFlush
from kraftd.ground.effect import Effect
from kraftd.ground.refusal import Refusal
from kraftd.messages.no_op_record import NoOpRecord
from kraftd.messages.topic_record import TopicRecord
from kraftd.raft import effects as raft_effects
from kraftd.raft import events as raft_events
from kraftd.raft.replica import ConsensusBroken
from kraftd.replica.core_driver import CoreDriver
from kraftd.replica.fatal_faults import HalfChanged
from kraftd.requests.outbox import Outbox
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.record_frame import VersionedRecord, encode_records

EPOCH, LOG_END = 5, 40
RECORD = VersionedRecord(NoOpRecord(), 0)
VALUE = encode_records([RECORD])[0]


class RecordedAppends:
    """Appends in front of a core that notes events and answers each with the effects that a test sets."""

    def __init__(self) -> None:
        self.events: list[Any] = []
        self.answer: list[Any] = []
        self.fault: Exception | None = None
        self.performed: list[Any] = []
        self.parked: list[Any] = []
        self.noted: list[Any] = []
        self.applied: list[Any] = []
        driver: Any = SimpleNamespace(
            core=SimpleNamespace(log_end_offset=LOG_END, max_batch_bytes=8 << 20),
            step=self._step,
            perform=self._perform,
            deliver=lambda event: self.events.append(("told", event)),
        )
        image: Any = SimpleNamespace(
            apply_all=lambda messages, base, epoch: self.applied.append((len(messages), base, epoch))
        )
        self.decision_rights: Any = SimpleNamespace(
            active_epoch=EPOCH,
            check_may_append=lambda: None,
            not_controller=lambda: Refusal(ErrorCode.NOT_CONTROLLER, "lost"),
        )
        following: Any = SimpleNamespace(
            applied=lambda records, end: self.applied.append((len(records), end))
        )
        parked: Any = SimpleNamespace(
            expect=lambda append_id, end: self.parked.append((append_id, end)),
            extend=lambda end: self.parked.append(end),
        )
        pending_events: Any = SimpleNamespace(
            note=lambda image, end, records, call: self.noted.append((end, call))
        )
        context: Any = SimpleNamespace(image=image)
        self.outbox = Outbox()
        self.appends = Appends(
            driver, context, self.decision_rights, following, parked, pending_events, self.outbox
        )
        self.loses_leadership = False

    def _step(self, event: Any) -> list[Any]:
        self.events.append(event)
        if self.fault is not None:
            raise self.fault
        return self.answer

    def _perform(self, effects: list[Any]) -> None:
        self.performed += effects
        if self.loses_leadership:
            self.decision_rights.active_epoch = None

    def append(self, count: int, *, atomic: bool = True, call: Any = None) -> int:
        return self.appends.append([RECORD] * count, atomic, call)


def requested(append_id: int, count: int, atomic: bool = True) -> raft_events.AppendRequested:
    return raft_events.AppendRequested(append_id, [VALUE] * count, EPOCH, atomic)


def test_small_decisions_share_an_append_and_are_applied_at_once() -> None:
    harness = RecordedAppends()
    call: Any = object()
    assert harness.append(2, call=call) == LOG_END + 2
    assert harness.append(3) == harness.appends.next_offset == harness.appends.decided_end == LOG_END + 5
    assert len(harness.appends) == 5
    assert harness.events == [] and harness.outbox.take() == [ScheduleFlush()]
    assert harness.parked == [(1, LOG_END + 2), LOG_END + 5]
    assert harness.noted == [(LOG_END + 2, call), (LOG_END + 5, None)]
    first, second = [(2, LOG_END, EPOCH), (2, LOG_END + 2)], [(3, LOG_END + 2, EPOCH), (3, LOG_END + 5)]
    assert harness.applied == [*first, *second]
    harness.answer = [ScheduleFlush()]
    harness.appends.flush()
    assert harness.events == [requested(1, 5)] and harness.performed == [ScheduleFlush()]
    assert len(harness.appends) == 0
    harness.appends.flush()
    assert len(harness.events) == 1


def test_a_decision_that_gathers_no_others_is_appended_in_its_own_callback() -> None:
    harness = RecordedAppends()
    harness.append(2)
    harness.appends.append([RECORD], False, gather=False)
    assert harness.events == [requested(1, 2), requested(2, 1, atomic=False)]
    assert harness.outbox.take() == [ScheduleFlush()]  # of the first alone
    assert len(harness.appends) == 0


@pytest.mark.parametrize("atomic", [True, False])
@pytest.mark.parametrize(("records", "size_bytes"), [(2, 1_000), (100, 2 * len(VALUE))])
def test_a_large_decision_is_a_separate_append(
    monkeypatch: pytest.MonkeyPatch, records: int, size_bytes: int, atomic: bool
) -> None:
    monkeypatch.setattr(appending, "MAX_GATHERED_RECORDS", records)
    monkeypatch.setattr(appending, "MAX_BATCH_BYTES", size_bytes)
    harness = RecordedAppends()
    harness.append(2)
    assert harness.append(3, atomic=atomic) == LOG_END + 3  # this core's log does not grow
    assert harness.events == [requested(1, 2), requested(2, 3, atomic)]
    assert harness.parked == [(1, LOG_END + 2), (2, LOG_END + 3)]
    assert len(harness.appends) == 0


def test_records_that_do_not_fit_into_the_pending_batch_begin_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(appending, "MAX_BATCH_BYTES", 3 * len(VALUE))
    harness = RecordedAppends()
    for count in (2, 1, 1):
        harness.append(count)
    assert harness.events == [requested(1, 3)]
    assert harness.parked == [(1, LOG_END + 2), LOG_END + 3, (2, LOG_END + 1)]
    assert harness.outbox.take() == [ScheduleFlush(), ScheduleFlush()]


def test_a_leadership_that_ends_with_the_flush_refuses_the_decision(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(appending, "MAX_BATCH_BYTES", 2 * len(VALUE))
    harness = RecordedAppends()
    harness.append(2)
    harness.loses_leadership = True
    with pytest.raises(Refusal, match="lost"):
        harness.append(1)
    assert len(harness.appends) == 0 and len(harness.noted) == 1


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ErrorCode.NOT_CONTROLLER, ErrorCode.NOT_CONTROLLER),
        (ErrorCode.RECORD_LIST_TOO_LARGE, ErrorCode.POLICY_VIOLATION),
    ],
)
def test_a_refusal_of_the_core_refuses_the_decision(error: ErrorCode, code: ErrorCode) -> None:
    harness = RecordedAppends()
    harness.answer = [ScheduleFlush(), raft_effects.AppendRefused(1, error)]
    with pytest.raises(Refusal) as refusal:
        harness.appends.request([VALUE] * 3, EPOCH, True)
    assert refusal.value.code == code
    assert harness.parked == [] and harness.appends.decided_end == 0
    assert harness.performed == harness.answer  # the step may have done more than refuse


def test_records_that_are_applied_by_the_caller_are_only_appended() -> None:
    harness = RecordedAppends()
    harness.answer = [ScheduleFlush()]
    assert harness.appends.request([VALUE] * 3, EPOCH, False) == [ScheduleFlush()]
    assert harness.events == [requested(1, 3, False)]
    assert (harness.parked, harness.appends.decided_end) == ([(1, LOG_END + 3)], LOG_END + 3)
    assert harness.applied == [] and harness.performed == []


def test_a_fault_between_image_and_log_ends_the_node() -> None:
    harness = RecordedAppends()
    harness.append(1)
    harness.fault = ZeroDivisionError("planted")
    with pytest.raises(HalfChanged, match=r"applied and not appended: ZeroDivisionError\('planted'\)"):
        harness.appends.flush()
    harness = RecordedAppends()
    harness.appends._pending_events = None  # type: ignore[assignment]
    with pytest.raises(HalfChanged, match="appended and not applied"):
        harness.append(1)


def test_pending_records_reach_the_core_before_other_events() -> None:
    harness = RecordedAppends()
    event: Any = object()
    harness.appends.step_core(event)
    harness.append(1)
    harness.appends.step_core(event)
    assert harness.events == [("told", event), requested(1, 1), ("told", event)]


def test_a_lost_leadership_drops_pending_records() -> None:
    harness = RecordedAppends()
    harness.append(2)
    harness.appends.forget()
    assert (len(harness.appends), harness.appends.decided_end, harness.appends.next_offset) == (0, 0, LOG_END)
    assert repr(harness.appends) == "<Appends 0 records, 0 bytes gathered>"


@pytest.mark.parametrize("validate_only", [True, False])
@pytest.mark.parametrize("error", [None, ErrorCode.INVALID_UPDATE_VERSION])
def test_an_upgrade_of_kraft_version_follows_pending_records__kip853(
    validate_only: bool, error: ErrorCode | None
) -> None:
    harness = RecordedAppends()
    harness.append(2)
    harness.answer = (
        [ScheduleFlush()] if error is None else [ScheduleFlush(), raft_effects.AppendRefused(2, error)]
    )
    harness.appends._request = lambda *_, **__: []  # type: ignore[assignment,method-assign]
    assert harness.appends.upgrade_kraft_version(1, validate_only) == error
    assert harness.events == [raft_events.KRaftVersionUpgradeRequested(2, 1, EPOCH, validate_only)]
    assert harness.performed == harness.answer
    assert len(harness.appends) == 0


def test_an_upgrade_is_refused_if_the_leadership_ends_before_it() -> None:
    harness = RecordedAppends()
    harness.append(2)
    harness.loses_leadership = True
    assert harness.appends.upgrade_kraft_version(1, False) == ErrorCode.NOT_CONTROLLER
    assert harness.events == [requested(1, 2)]


def test_an_upgrade_whose_step_ends_the_leadership_is_refused__kip853() -> None:
    harness = RecordedAppends()
    harness.answer = [raft_effects.AppendAccepted(1, LOG_END, LOG_END + 1, EPOCH)]
    harness.loses_leadership = True
    assert harness.appends.upgrade_kraft_version(1, False) == ErrorCode.NOT_CONTROLLER


class Broken(Effect, frozen=True):
    """An effect that fails when it is performed."""


@pytest.mark.parametrize(
    ("error", "raised"),
    [(ZeroDivisionError("planted"), HalfChanged), (ConsensusBroken("planted"), ConsensusBroken)],
)
def test_a_fault_in_an_effect_of_the_core_ends_the_node(error: Exception, raised: type[Exception]) -> None:
    def fail(_: Any) -> None:
        raise error

    outbox = Outbox()
    stepped: list[Any] = []
    core: Any = SimpleNamespace(
        step=lambda event, now_ms: stepped.append((event, now_ms)) or [ScheduleFlush()]
    )
    context: Any = SimpleNamespace(now_ms=77)
    driver = CoreDriver(core, context, outbox)
    driver.takers[Broken] = fail
    event: Any = object()
    assert driver.step(event) == [ScheduleFlush()] and outbox.take() == []
    driver.deliver(event)
    assert outbox.take() == [ScheduleFlush()]
    assert stepped == [(event, 77)] * 2 and driver.now_ms == 77
    with pytest.raises(raised, match="planted"):
        driver.perform([ScheduleFlush(), Broken(), ScheduleFlush()])
    assert outbox.take() == [ScheduleFlush()]


def test_the_records_of_a_decision_are_measured_as_they_are_encoded(monkeypatch: pytest.MonkeyPatch) -> None:
    large = VersionedRecord(TopicRecord("a" * 200, bytes(16)), 0)
    size_bytes = len(encode_records([large])[0])
    for limit, alone in ((size_bytes, False), (size_bytes - 1, True)):
        monkeypatch.setattr(appending, "MAX_BATCH_BYTES", limit)
        harness = RecordedAppends()
        harness.appends.append([large], True)
        assert (len(harness.events) == 1) is alone
