"""Answers wait until the core reports their append committed or aborted."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from kraftd.controller.decision import Refusal
from kraftd.controller_node.parked import ParkedAnswers
from kraftd.raft.effects import AppendAborted, AppendCommitted
from kraftd.wire.error_code import ErrorCode


class Desk:
    """Parked answers of a core whose high watermark the test sets, and the answers that were sent."""

    def __init__(self, high_watermark: int = 10) -> None:
        self.sent: list[str] = []
        self.refused: list[str] = []
        self.core: Any = SimpleNamespace(high_watermark=high_watermark)
        driver: Any = SimpleNamespace(core=self.core, takers={})
        refusal = Refusal(ErrorCode.NOT_CONTROLLER, "another")
        standing: Any = SimpleNamespace(not_controller=lambda: refusal)
        boundary: Any = SimpleNamespace(
            send=lambda call, parts: self.sent.append(call.name),
            refuse=self._refuse,
        )
        self.parked = ParkedAnswers(driver, standing, boundary)

    def _refuse(self, call: Any, code: ErrorCode, message: str | None) -> None:
        assert (code, message) == (ErrorCode.NOT_CONTROLLER, "another")
        self.refused.append(call.name)

    def answer(self, name: str, end_offset: int) -> None:
        call: Any = SimpleNamespace(name=name, settled=False)
        self.parked.answer(call, [], end_offset)

    def commit(self, append_id: int, end_offset: int) -> None:
        self.core.high_watermark = end_offset
        self.parked.committed(AppendCommitted(append_id, end_offset))


def test_an_answer_that_needs_no_commit_is_sent_at_once() -> None:
    desk = Desk()
    desk.answer("read", 10)
    assert desk.sent == ["read"] and not desk.parked


def test_answers_are_sent_with_their_append_in_the_order_of_decisions() -> None:
    desk = Desk()
    desk.parked.expect(1, 12)
    desk.answer("a", 12)
    desk.parked.extend(14)
    desk.answer("b", 14)
    desk.parked.expect(2, 20)
    desk.answer("c", 20)
    assert len(desk.parked) == 3
    assert repr(desk.parked) == "<ParkedAnswers 3, offsets 14 to 20>"
    desk.commit(1, 14)
    assert desk.sent == ["a", "b"] and len(desk.parked) == 1
    desk.commit(2, 20)
    assert desk.sent == ["a", "b", "c"] and not desk.parked
    assert repr(desk.parked) == "<ParkedAnswers 0>"


def test_an_answer_without_records_waits_only_up_to_its_offset() -> None:
    desk = Desk()
    for append_id, end_offset in ((1, 12), (2, 14), (3, 16)):
        desk.parked.expect(append_id, end_offset)
    for name, end_offset in (("last", 16), ("first", 11), ("second", 14), ("also second", 13)):
        desk.answer(name, end_offset)
    desk.commit(1, 12)
    assert desk.sent == ["first"]
    desk.commit(2, 14)
    assert desk.sent == ["first", "second", "also second"]


def test_an_append_without_answers_delays_no_answer() -> None:
    desk = Desk()
    desk.parked.expect(1, 12)
    desk.parked.expect(2, 14)
    desk.answer("a", 14)
    desk.commit(2, 14)  # it confirms the first append as well
    assert desk.sent == ["a"]


def test_the_commit_of_the_cores_own_append_releases_no_answer() -> None:
    desk = Desk()
    desk.parked.expect(1, 12)
    desk.answer("a", 12)
    desk.parked.expect(3, 15)
    desk.commit(1, 12)
    desk.commit(2, 13)
    desk.answer("b", 15)
    assert desk.sent == ["a"] and len(desk.parked) == 1


def test_answers_that_wait_for_an_aborted_append_become_refusals() -> None:
    desk = Desk()
    desk.parked.expect(1, 12)
    desk.answer("a", 12)
    desk.parked.expect(2, 14)
    desk.answer("gathered", 14)
    desk.parked.aborted(AppendAborted(1))
    assert desk.refused == ["a"]
    desk.parked.abandon()
    assert desk.refused == ["a", "gathered"] and not desk.parked
    desk.commit(2, 14)
    assert not desk.sent


def test_an_answer_waits_for_the_first_offset_of_an_empty_log() -> None:
    desk = Desk(high_watermark=0)
    desk.parked.expect(1, 1)
    desk.answer("a", 1)
    assert not desk.sent and len(desk.parked) == 1
    assert repr(desk.parked) == "<ParkedAnswers 1, offsets 1 to 1>"


def test_a_settled_append_is_answered_though_the_core_reports_it_later() -> None:
    desk = Desk()
    desk.parked.expect(1, 14)
    desk.parked.committed(AppendCommitted(1, 14))
    for number, expected in ((14, ["a"]), (13, ["a", "a"])):
        desk.answer("a", number)
        assert desk.sent == expected
    desk.parked.abandon()
    desk.parked.expect(2, 14)
    desk.answer("again", 14)  # it waits again for the commit
    assert desk.sent == ["a", "a"]


def test_an_answer_waits_with_the_first_of_two_or_three_appends_that_reaches_it() -> None:
    desk = Desk()
    desk.parked.expect(1, 12)
    desk.parked.expect(2, 14)
    desk.answer("first", 12)
    desk.parked.expect(3, 16)
    desk.answer("second", 14)
    assert repr(desk.parked) == "<ParkedAnswers 2, offsets 12 to 16>"
    assert [len(one.answers) for one in desk.parked._under_way] == [1, 1, 0]
