"""Lines of records: what `consume --json` prints, `produce --json` reads."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftd.cli.brokers.records_as_text import BadLine, from_json, from_line, header_of, text_of, to_json
from kraftd.wire.keyed_records import KeyedRecord, StoredRecord

data = st.none() | st.binary(max_size=20)
headers = st.lists(st.tuples(st.text(max_size=5), data), max_size=3).map(tuple)


@given(data, data, headers, st.integers(0, 1 << 41))
def test_a_printed_record_is_read_again(
    key: bytes | None, value: bytes | None, named: tuple[tuple[str, bytes | None], ...], time_ms: int
) -> None:
    line = to_json("t", 3, StoredRecord(17, time_ms, key, value, named))
    assert "\n" not in line
    assert from_json(line) == (KeyedRecord(key, value, named, time_ms), 3)


def test_values_that_are_no_text_are_written_as_json() -> None:
    assert from_json('{"value": {"a": [1, null]}}')[0].value == b'{"a": [1, null]}'
    assert from_json('{"value": 5, "headers": {"h": "x"}}')[0] == KeyedRecord(None, b"5", (("h", b"x"),))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "no JSON"),
        ("[1]", "no JSON object"),
        ('{"vlaue": "x"}', "vlaue: unknown; a record has key, value"),
        ('{"partition": -1}', "partition: -1 is no number"),
        ('{"timestamp_ms": true}', "timestamp_ms: True is no number"),
        ('{"headers": 3}', "headers: an object, or pairs"),
        ('{"key": {"base64": "***"}}', "key: no base64"),
    ],
)
def test_a_line_that_is_no_record_is_refused_with_the_reason(line: str, reason: str) -> None:
    with pytest.raises(BadLine, match=reason.replace("***", ".*")):
        from_json(line)


def test_a_line_of_text_may_have_a_key() -> None:
    assert from_line("a:b:c", ":", None) == KeyedRecord(b"a", b"b:c")
    assert from_line("a:b", None, "k") == KeyedRecord(b"k", b"a:b")
    assert from_line("", None, None) == KeyedRecord(None, b"")
    with pytest.raises(BadLine, match="key-separator expects"):
        from_line("abc", ":", None)
    assert header_of("a=b=c") == ("a", b"b=c")
    with pytest.raises(BadLine):
        header_of("=x")
    assert (text_of(None), text_of(b"\xffx")) == ("null", "\\xffx")
