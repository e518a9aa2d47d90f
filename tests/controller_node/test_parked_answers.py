"""Answers wait until the core reports their append committed or aborted."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from kraftd.controller_node.deciding.parked_answers import ParkedAnswers
from kraftd.ground.refusal import Refusal
from kraftd.raft.effects import AppendAborted, AppendCommitted
from kraftd.wire.error_code import ErrorCode


class SentAnswers:
    """Parked answers of a core whose high watermark the test sets, and the answers that were sent."""

    def __init__(self, high_watermark: int = 10) -> None:
        self.sent: list[str] = []
        self.refused: list[str] = []
        self.core: Any = SimpleNamespace(high_watermark=high_watermark)
        driver: Any = SimpleNamespace(core=self.core, takers={})
        refusal = Refusal(ErrorCode.NOT_CONTROLLER, "another")
        rights: Any = SimpleNamespace(not_controller=lambda: refusal)
        boundary: Any = SimpleNamespace(
            send=lambda call, parts: self.sent.append(call.name),
            refuse=self._refuse,
        )
        self.parked = ParkedAnswers(driver, rights, boundary)

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
    harness = SentAnswers()
    harness.answer("read", 10)
    assert harness.sent == ["read"] and not harness.parked


def test_answers_are_sent_with_their_append_in_the_order_of_decisions() -> None:
    harness = SentAnswers()
    harness.parked.expect(1, 12)
    harness.answer("a", 12)
    harness.parked.extend(14)
    harness.answer("b", 14)
    harness.parked.expect(2, 20)
    harness.answer("c", 20)
    assert len(harness.parked) == 3
    assert repr(harness.parked) == "<ParkedAnswers 3, offsets 14 to 20>"
    harness.commit(1, 14)
    assert harness.sent == ["a", "b"] and len(harness.parked) == 1
    harness.commit(2, 20)
    assert harness.sent == ["a", "b", "c"] and not harness.parked
    assert repr(harness.parked) == "<ParkedAnswers 0>"


def test_an_answer_without_records_waits_only_up_to_its_offset() -> None:
    harness = SentAnswers()
    for append_id, end_offset in ((1, 12), (2, 14), (3, 16)):
        harness.parked.expect(append_id, end_offset)
    for name, end_offset in (("last", 16), ("first", 11), ("second", 14), ("also second", 13)):
        harness.answer(name, end_offset)
    harness.commit(1, 12)
    assert harness.sent == ["first"]
    harness.commit(2, 14)
    assert harness.sent == ["first", "second", "also second"]


def test_an_append_without_answers_delays_no_answer() -> None:
    harness = SentAnswers()
    harness.parked.expect(1, 12)
    harness.parked.expect(2, 14)
    harness.answer("a", 14)
    harness.commit(2, 14)  # it confirms the first append as well
    assert harness.sent == ["a"]


def test_the_commit_of_the_cores_own_append_releases_no_answer() -> None:
    harness = SentAnswers()
    harness.parked.expect(1, 12)
    harness.answer("a", 12)
    harness.parked.expect(3, 15)
    harness.commit(1, 12)
    harness.commit(2, 13)
    harness.answer("b", 15)
    assert harness.sent == ["a"] and len(harness.parked) == 1


def test_answers_that_wait_for_an_aborted_append_become_refusals() -> None:
    harness = SentAnswers()
    harness.parked.expect(1, 12)
    harness.answer("a", 12)
    harness.parked.expect(2, 14)
    harness.answer("gathered", 14)
    harness.parked.aborted(AppendAborted(1))
    assert harness.refused == ["a"]
    harness.parked.abandon()
    assert harness.refused == ["a", "gathered"] and not harness.parked
    harness.commit(2, 14)
    assert not harness.sent


def test_an_answer_waits_for_the_first_offset_of_an_empty_log() -> None:
    harness = SentAnswers(high_watermark=0)
    harness.parked.expect(1, 1)
    harness.answer("a", 1)
    assert not harness.sent and len(harness.parked) == 1
    assert repr(harness.parked) == "<ParkedAnswers 1, offsets 1 to 1>"


def test_a_settled_append_is_answered_though_the_core_reports_it_later() -> None:
    harness = SentAnswers()
    harness.parked.expect(1, 14)
    harness.parked.committed(AppendCommitted(1, 14))
    for number, expected in ((14, ["a"]), (13, ["a", "a"])):
        harness.answer("a", number)
        assert harness.sent == expected
    harness.parked.abandon()
    harness.parked.expect(2, 14)
    harness.answer("again", 14)  # it waits again for the commit
    assert harness.sent == ["a", "a"]


def test_an_answer_waits_with_the_first_of_two_or_three_appends_that_reaches_it() -> None:
    harness = SentAnswers()
    harness.parked.expect(1, 12)
    harness.parked.expect(2, 14)
    harness.answer("first", 12)
    harness.parked.expect(3, 16)
    harness.answer("second", 14)
    assert repr(harness.parked) == "<ParkedAnswers 2, offsets 12 to 16>"
    assert [len(one.answers) for one in harness.parked._under_way] == [1, 1, 0]
