"""Records with keys and headers: written, then read as they were."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftd.wire.batch import CorruptBatch, read_batch
from kraftd.wire.keyed_records import KeyedRecord, build_keyed_batch, read_keyed_records

data = st.none() | st.binary(max_size=40)
times = st.integers(-1, 1 << 41)
keyed = st.builds(
    KeyedRecord, data, data, st.lists(st.tuples(st.text(max_size=8), data), max_size=4).map(tuple), times
)


@given(st.lists(keyed, min_size=1, max_size=20), st.integers(0, 1 << 40), st.integers(0, 1 << 41))
def test_what_is_written_is_read(records: list[KeyedRecord], base_offset: int, now_ms: int) -> None:
    batch = read_batch(build_keyed_batch(records, now_ms, base_offset=base_offset))
    found = read_keyed_records(batch)
    assert [one.offset for one in found] == list(range(base_offset, base_offset + len(records)))
    assert [(one.key, one.value, one.headers) for one in found] == [record[:3] for record in records]
    given_ms = [now_ms if one.timestamp_ms < 0 else one.timestamp_ms for one in records]
    assert [one.timestamp_ms for one in found] == given_ms
    assert batch.header.max_timestamp_ms == max(given_ms)


def test_a_batch_of_log_append_time_has_one_time() -> None:
    data = bytearray(build_keyed_batch([KeyedRecord(None, b"v", timestamp_ms=5)], 9))
    data[22] |= 0x08
    batch = read_batch(data, verify=False)
    assert read_keyed_records(batch)[0].timestamp_ms == batch.header.max_timestamp_ms


def test_headers_that_pass_the_end_of_a_record_are_refused() -> None:
    data = bytearray(build_keyed_batch([KeyedRecord(None, b"v", (("name", b"x"),))], 9))
    data[-7] = 0x7E  # the length of the header's name
    with pytest.raises(CorruptBatch):
        read_keyed_records(read_batch(data, verify=False))
