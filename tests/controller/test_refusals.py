"""The text of a refusal and its bounded length."""

from __future__ import annotations

import pytest

from kraftd.controller.record_limit import check_record_count
from kraftd.ground.refusal import Refusal, cut
from kraftd.wire.error_code import ErrorCode


def test_a_refusal_shows_its_code_and_text() -> None:
    assert str(Refusal(ErrorCode.INVALID_REQUEST, "no name")) == "INVALID_REQUEST: no name"
    assert str(Refusal(ErrorCode.INVALID_REQUEST)) == "INVALID_REQUEST"
    assert Refusal(ErrorCode.INVALID_REQUEST, "no name").args == (ErrorCode.INVALID_REQUEST, "no name")


@pytest.mark.parametrize(
    ("length", "shown"), [(1_999, "x" * 1_999), (2_000, "x" * 2_000), (2_001, "x" * 1_999 + "…")]
)
def test_a_long_text_is_cut_to_two_thousand_characters(length: int, shown: str) -> None:
    assert cut("x" * length) == shown
    assert Refusal(ErrorCode.INVALID_REQUEST, "x" * length).message == shown


def test_a_request_writes_at_most_ten_thousand_records() -> None:
    check_record_count(10_000)
    with pytest.raises(Refusal) as refused:
        check_record_count(10_001)
    assert str(refused.value) == (
        "POLICY_VIOLATION: The request would change too much at once: more than 10000 records."
    )
