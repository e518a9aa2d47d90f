"""The .properties format: Java's own reader and the javaproperties package are the oracles."""

from __future__ import annotations

import re
from collections.abc import Iterator

import javaproperties
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from kraftd.configdef.properties import PropertiesError, parse
from tests.controller.config_oracle import ConfigOracle

FRAGMENTS = st.sampled_from(
    [
        "a",
        "key",
        "=",
        ":",
        " ",
        "\t",
        "\f",
        "\n",
        "\r",
        "\r\n",
        "\\",
        "\\\n",
        "#",
        "!",
        "\\u0041",
        "\\t",
        "\\q",
        "é",
    ]
)
FILES = st.lists(FRAGMENTS, max_size=24).map("".join)


def entries(text: str) -> dict[str, str]:
    return {key: value for key, value, _ in parse(text)}


@settings(max_examples=500, deadline=None)
@given(FILES)
@example("a\\=b=c")
@example("a\\\\=b")
@example("a \\\n  b\\\n")
@example("# comment \\\nkey=value")
def test_a_file_is_read_as_the_javaproperties_package_reads_it(text: str) -> None:
    # For Java, a line of only a backslash does not begin an entry; for the package it does.
    assume(not re.search(r"(?:^|[\r\n])[ \t\f]*\\[\r\n]", text))
    assert entries(text) == javaproperties.loads(text)


@pytest.fixture(scope="module")
def oracle() -> Iterator[ConfigOracle]:
    running = ConfigOracle()
    yield running
    running.close()


@pytest.mark.kafka
@settings(max_examples=500, deadline=None)
@given(text=FILES)
def test_a_file_is_read_as_java_reads_it(oracle: ConfigOracle, text: str) -> None:
    assume(not text.rstrip().endswith("\\"))  # Java may treat a last backslash as an empty entry
    assert entries(text) == oracle.ask("properties", text=text)["entries"]


def test_an_entry_has_the_line_on_which_it_begins() -> None:
    assert [entry.line for entry in parse("# one\n\na=1\nb=2\\\n  3\nc=4")] == [3, 4, 6]


def test_a_broken_escape_is_reported_with_its_line() -> None:
    with pytest.raises(PropertiesError, match=r"line 2: \\u must be followed by four hexadecimal digits"):
        parse("a=1\nb=\\u12")
