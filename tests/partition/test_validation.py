"""Each outcome of a judgement has its code and texts, with both engines."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from kraftd.partition.config import PartitionConfig
from kraftd.partition.validation import ProduceRefusal, ValidBatch, find_refusal, validate
from kraftd.wire import python_records, records
from kraftd.wire.batch import read_batch
from kraftd.wire.compression import MAX_DECOMPRESSED_BYTES, compress
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.records import decode_records
from testkit.random_batches import NOW_MS, Parts, random_parts, varint

RECORD = b"\x10\x00\x00\x00\x02k\x02v\x00"
CORRUPT, INVALID = ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD


@pytest.fixture(autouse=True, params=["c", "python"])
def engine(request: pytest.FixtureRequest) -> Iterator[None]:
    chosen: Any = python_records
    if request.param == "c":
        chosen = pytest.importorskip("kraftd.wire._records")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "ENGINE", chosen)
        yield


PLACE = SimpleNamespace(name="t-0")


def judged(data: bytes, version: int = 12, **config: Any) -> ValidBatch | ProduceRefusal:
    return validate(bytearray(data), PartitionConfig(**config), PLACE, 100, 7, NOW_MS, version=version)


def parts(**changes: Any) -> Parts:
    made = Parts([RECORD], count=1)
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def short_batch() -> bytes:
    data = bytearray(parts().encoded()[:40])
    data[8:12] = (28).to_bytes(4, "big")
    return bytes(data)


REFUSED: dict[str, tuple[bytes, ErrorCode, bool]] = {
    "nothing": (b"", INVALID, False),
    "a torn batch": (parts().encoded()[:-1], INVALID, False),
    "a length that no batch has": (parts(length_change=-60).encoded(), CORRUPT, False),
    "a magic that no batch has": (parts(magic=3).encoded(), CORRUPT, False),
    "format v1": (parts(magic=1).encoded(), INVALID, False),
    "two batches": (parts().encoded() * 2, INVALID, False),
    "a damaged second batch": (parts().encoded() + b"\xff" * 20, CORRUPT, False),
    "a base offset": (parts(base_offset=3).encoded(), INVALID, True),
    "a header that is cut": (short_batch(), CORRUPT, False),
    "a wrong checksum": (parts(crc_change=1).encoded(), CORRUPT, False),
    "an unknown codec": (parts(codec=5, body=b"x").encoded(), ErrorCode.UNKNOWN_SERVER_ERROR, True),
    "offsets that go back": (parts(last_offset_delta=-1).encoded(), INVALID, True),
    "no records": (parts(count=0, records=[], last_offset_delta=-1).encoded(), INVALID, True),
    "a count of 0": (parts(count=0).encoded(), INVALID, True),
    "a count that differs": (parts(count=2).encoded(), INVALID, True),
    "control records": (parts(attributes=32).encoded(), INVALID, True),
    "a producer without sequence": (parts(producer_id=5).encoded(), INVALID, True),
    "a record that is cut": (parts(records=[RECORD[:-1]]).encoded(), INVALID, True),
    "bytes behind the records": (parts(records=[RECORD, b"x"]).encoded(), INVALID, True),
    "a damaged stream": (parts(codec=1, body=b"x").encoded(), ErrorCode.UNKNOWN_SERVER_ERROR, True),
    "offsets of compressed records": (
        parts(codec=4, records=[b"\x10\x00\x00\x02\x02k\x02v\x00"]).encoded(),
        ErrorCode.UNKNOWN_SERVER_ERROR, True,
    ),
    "linked LZ4 blocks": (
        parts(codec=3, body=b"\x04\x22\x4d\x18\x40\x40\xc0" + bytes(4)).encoded(),
        ErrorCode.UNKNOWN_SERVER_ERROR, True,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_has_kafkas_code(name: str) -> None:
    data, error, shows_log_start = REFUSED[name]
    found = judged(data)
    assert isinstance(found, ProduceRefusal)
    assert (found.error, found.shows_log_start) == (error, shows_log_start)
    assert found.message is None and not found.record_errors
    on_any_broker = find_refusal(data, 12)
    assert (on_any_broker is not None) == (
        not shows_log_start and name not in ("a wrong checksum", "a header that is cut")
    )


def test_zstd_needs_version_7_of_produce() -> None:
    data = parts(codec=4).encoded()
    found = judged(data, version=6)
    assert isinstance(found, ProduceRefusal) and found.error is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert find_refusal(data, 6) == found and find_refusal(data, 7) is None
    assert isinstance(judged(data, version=7), ValidBatch)


def test_sizes_have_two_limits() -> None:
    data = parts().encoded()
    found = judged(data, max_message_bytes=len(data) - 1)
    assert isinstance(found, ProduceRefusal) and found.error is ErrorCode.MESSAGE_TOO_LARGE
    found = judged(data, segment_bytes=len(data) - 1)
    assert isinstance(found, ProduceRefusal) and found.error is ErrorCode.RECORD_LIST_TOO_LARGE
    assert isinstance(judged(data, max_message_bytes=len(data), segment_bytes=len(data)), ValidBatch)


def test_a_batch_that_grows_by_the_topics_codec_has_the_same_limit() -> None:
    body = Random(1).randbytes(2000)
    record = b"\x00" * 3 + b"\x01" + varint(len(body)) + body + b"\x00"
    data = parts(records=[varint(len(record)) + record]).encoded()
    assert isinstance(judged(data, max_message_bytes=len(data)), ValidBatch)
    found = judged(data, max_message_bytes=len(data), compression=1)
    assert isinstance(found, ProduceRefusal) and found.error is ErrorCode.MESSAGE_TOO_LARGE


def test_a_decompression_bomb_is_too_large() -> None:
    bomb = parts(codec=4, body=compress(4, bytes(MAX_DECOMPRESSED_BYTES + 1))).encoded()
    assert len(bomb) < 20_000
    found = judged(bomb)
    assert isinstance(found, ProduceRefusal) and found.error is ErrorCode.MESSAGE_TOO_LARGE


def test_faulty_records_are_listed_with_kafkas_texts() -> None:
    keyless = b"\x0e\x00\x00\x00\x01\x02v\x00"
    second = b"\x0e\x00\x00\x02\x01\x02v\x00"
    data = parts(records=[keyless, second], count=2, last_offset_delta=1).encoded()
    found = judged(data, is_compacted=True)
    assert isinstance(found, ProduceRefusal)
    text = "Compacted topic cannot accept message without key in topic partition t-0"
    assert found.error is INVALID and found.shows_log_start
    assert [tuple(each) for each in found.record_errors] == [(0, text), (1, text)]
    assert found.message == (
        "One or more records have been rejected due to 2 record errors in total, and only showing the first "
        f"three errors at most: [RecordError(batchIndex=0, message='{text}'), "
        f"RecordError(batchIndex=1, message='{text}')]"
    )


def test_timestamps_out_of_range_are_listed() -> None:
    data = parts(base_timestamp=NOW_MS - 11, max_timestamp=NOW_MS - 11).encoded()
    found = judged(data, timestamp_before_max_ms=10)
    assert isinstance(found, ProduceRefusal) and found.error is ErrorCode.INVALID_TIMESTAMP
    assert found.record_errors[0].message == (
        f"Timestamp {NOW_MS - 11} of message with offset 0 is out of range. The timestamp should be within "
        f"[{NOW_MS - 10}, {NOW_MS + 3_600_000}]"
    )
    assert isinstance(judged(data, timestamp_before_max_ms=11), ValidBatch)
    late = parts(base_timestamp=NOW_MS + 11, max_timestamp=NOW_MS + 11).encoded()
    assert isinstance(judged(late, timestamp_after_max_ms=10), ProduceRefusal)
    assert isinstance(judged(late, timestamp_after_max_ms=10, sets_append_time=True), ValidBatch)


def test_producers_do_not_set_the_append_time() -> None:
    found = judged(parts(attributes=8).encoded(), sets_append_time=True)
    assert isinstance(found, ProduceRefusal) and found.error is ErrorCode.INVALID_TIMESTAMP
    assert "DefaultRecord(offset=0, timestamp=" in found.record_errors[0].message
    found = judged(parts(attributes=8, codec=1).encoded(), sets_append_time=True)
    assert isinstance(found, ProduceRefusal)
    assert "PartialDefaultRecord(offset=0" in found.record_errors[0].message


@pytest.mark.parametrize("source", range(5))
@pytest.mark.parametrize("target", range(-1, 5))
def test_records_are_the_same_whatever_codec_the_topic_demands(source: int, target: int) -> None:
    random = Random(source)
    made = random_parts(random, odd_chance=0)
    made.codec = source
    found = judged(made.encoded(), compression=target, timestamp_after_max_ms=1 << 62)
    assert isinstance(found, ValidBatch)
    batch = read_batch(found.view)
    assert batch.header.attributes & 7 == (source if target < 0 else target)
    assert (batch.header.base_offset, batch.header.leader_epoch) == (100, 7)
    plain = read_batch(made.encoded())
    assert [each[1:] for each in decode_records(batch)] == [each[1:] for each in decode_records(plain)]
    assert [each.offset for each in decode_records(batch)] == list(range(100, 100 + made.count))


def test_a_batch_is_changed_in_place_where_it_is_writable() -> None:
    data = bytearray(parts().encoded())
    found = validate(data, PartitionConfig(), PLACE, 100, 7, NOW_MS)
    assert isinstance(found, ValidBatch) and found.view.obj is data
    frozen = bytes(parts().encoded())
    found = validate(frozen, PartitionConfig(), PLACE, 100, 7, NOW_MS)
    assert isinstance(found, ValidBatch) and found.view == data
    assert frozen == parts().encoded()


def test_a_batch_that_is_too_large_is_refused_without_a_copy() -> None:
    frozen = bytes(records.build_records_batch([(NOW_MS, None, bytes(4_000_000), ())]))
    small = PartitionConfig(max_message_bytes=1_000)
    tracemalloc.start()
    try:
        found = validate(frozen, small, PLACE, 100, 7, NOW_MS)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found == validate(bytearray(frozen), small, PLACE, 100, 7, NOW_MS)
    assert isinstance(found, ProduceRefusal) and found.error == ErrorCode.MESSAGE_TOO_LARGE
    assert peak_bytes < 1_000_000


def test_torn_bytes_behind_a_batch_are_left_out() -> None:
    data = parts(behind=bytes(11)).encoded()
    found = judged(data)
    assert isinstance(found, ValidBatch) and len(found.view) == len(data) - 11


def test_one_timestamp_out_of_range_names_the_whole_error() -> None:
    keyless = b"\x0e\x00\x00\x00\x01\x02v\x00"
    early = b"\x10\x00\x31\x02\x02k\x02v\x00"
    data = parts(records=[keyless, early], count=2, last_offset_delta=1).encoded()
    found = judged(data, is_compacted=True, timestamp_before_max_ms=10)
    assert isinstance(found, ProduceRefusal) and found.error is ErrorCode.INVALID_TIMESTAMP
    assert [each.batch_index for each in found.record_errors] == [0, 1]


def test_lengths_of_compressed_records_are_compared_only_if_they_are_written_again() -> None:
    data = parts(codec=1, records=[b"\x12" + RECORD[1:]]).encoded()
    assert isinstance(judged(data), ValidBatch), "as in Kafka"
    found = judged(data, compression=4)
    assert isinstance(found, ProduceRefusal) and found.error is INVALID


@pytest.mark.parametrize("changes", [{"producer_id": 5, "base_sequence": 0}, {"attributes": 16}])
def test_records_of_a_producer_without_epoch_are_not_written_again(changes: dict[str, int]) -> None:
    data = parts(**changes).encoded()
    assert isinstance(judged(data), ValidBatch)
    found = judged(data, compression=1)
    assert isinstance(found, ProduceRefusal) and found.error is ErrorCode.UNKNOWN_SERVER_ERROR
