"""Names that no topic may have."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftd.controller.topics.names import may_collide, topic_name_problem


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../x", "/etc/passwd", "a\0b", "a b", "ä", "x" * 250, "a\n", "٣", "a:b", "\ud800"],
)
def test_a_name_that_is_no_plain_file_name_is_refused_with_a_reason(name: str) -> None:
    assert topic_name_problem(name)


@pytest.mark.parametrize("name", ["a", "...", "A.b_c-9", "x" * 249, "-", "__consumer_offsets"])
def test_ascii_letters_digits_dots_dashes_and_underscores_up_to_249_make_a_name(name: str) -> None:
    assert topic_name_problem(name) is None


@given(st.text(max_size=260))
def test_no_other_text_is_a_valid_name(name: str) -> None:
    legal = bool(re.fullmatch(r"[A-Za-z0-9._\-]{1,249}", name)) and name not in (".", "..")
    assert (topic_name_problem(name) is None) == legal


def test_the_reason_quotes_a_limited_part_of_a_long_name() -> None:
    assert len(topic_name_problem("x" * 30_000) or "") < 500


def test_names_collide_when_only_dots_and_underscores_differ() -> None:
    assert may_collide("a.b") and may_collide("a_b") and not may_collide("a-b")
