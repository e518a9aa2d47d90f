"""Numbers and lists have the meaning that they have in Java."""

from __future__ import annotations

import math

import pytest

from kraftd.configdef.text import double_text, parse_double, parse_integer, split, utf16_length


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (0.5, "0.5"),
        (-1.25, "-1.25"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (0.00012, "1.2E-4"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (-123456789.0, "-1.23456789E8"),
        (1.5e300, "1.5E300"),
        (math.inf, "Infinity"),
        (math.nan, "NaN"),
    ],
)
def test_a_double_is_shown_as_java_shows_it(value: float, text: str) -> None:
    assert double_text(value) == text


def test_a_double_may_be_hexadecimal_and_have_a_suffix() -> None:
    assert parse_double("0x1.8p1") == 3.0
    assert parse_double(" 2.5f ") == 2.5
    for text in ("1_0", "inf", "nan", "", "0x1", "1L"):
        with pytest.raises(ValueError, match="not a number"):
            parse_double(text)


def test_an_integer_has_digits_and_a_sign_and_fits() -> None:
    assert parse_integer("+007", 32) == 7
    for text in ("", "+", "1_000", "1.0", "0x1", "2147483648"):
        with pytest.raises(ValueError, match=r"not an integer|does not fit"):
            parse_integer(text, 32)


def test_splitting_drops_empty_parts_at_the_end_only() -> None:
    assert split(",a,,b,,", ",") == ["", "a", "", "b"]
    assert split("", ",") == [""]
    assert split(",", ",") == []


def test_lengths_of_text_are_counted_as_in_java() -> None:
    assert utf16_length("a\u00e9\U0001f600") == 4
