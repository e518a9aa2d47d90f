"""Record batches and record frames: round trips; bad bytes raise only CorruptBatch or ProtocolError."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftd.messages.feature_level_record import FeatureLevelRecord
from kraftd.messages.kraft_version_record import KRaftVersionRecord
from kraftd.messages.leader_change_message import LeaderChangeMessage
from kraftd.messages.no_op_record import NoOpRecord
from kraftd.messages.snapshot_header_record import SnapshotHeaderRecord
from kraftd.wire.batch import (
    HEADER_BYTES,
    ControlRecordType,
    CorruptBatch,
    batch_size_bytes,
    build_batch,
    build_control_batch,
    control_records,
    iter_batches,
    parse_header,
    read_batch,
    records,
    values,
)
from kraftd.wire.crc32c import crc32c
from kraftd.wire.errors import ProtocolError
from kraftd.wire.record_frame import VersionedRecord, decode_record, encode_record

record_values = st.lists(st.binary(min_size=1, max_size=300), min_size=1, max_size=150)


def test_the_checksum_is_castagnolis() -> None:
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(memoryview(b"0123456789")[1:]) == 0xE3069283


@given(record_values, st.integers(0, 2**62), st.integers(0, 2**31 - 1), st.integers(0, 2**50))
def test_a_batch_returns_its_values_offsets_and_time(
    given_values: list[bytes], base_offset: int, epoch: int, timestamp_ms: int
) -> None:
    data = build_batch(given_values, base_offset, epoch, timestamp_ms)
    assert len(data) == batch_size_bytes(given_values)
    batch = read_batch(data)
    header = batch.header
    assert (header.base_offset, header.leader_epoch, header.record_count) == (
        base_offset,
        epoch,
        len(given_values),
    )
    assert header.next_offset == base_offset + len(given_values)
    assert [bytes(value) for value in values(batch)] == given_values
    assert [(each.offset, each.timestamp_ms, each.key, each.value) for each in records(batch)] == [
        (base_offset + at, timestamp_ms, None, value) for at, value in enumerate(given_values)
    ]


def test_an_empty_batch_cannot_be_built() -> None:
    with pytest.raises(ValueError, match="at least one record"):
        build_batch([], 0, 0, 0)


def test_control_records_carry_their_type_in_the_key() -> None:
    messages = [
        (ControlRecordType.SNAPSHOT_HEADER, SnapshotHeaderRecord(last_contained_log_timestamp=7), 0),
        (ControlRecordType.KRAFT_VERSION, KRaftVersionRecord(kraft_version=1), 0),
        (ControlRecordType.LEADER_CHANGE, LeaderChangeMessage(version=1, leader_id=3), 1),
    ]
    batch = read_batch(build_control_batch(messages, 10, 1, 5))
    assert batch.header.is_control
    assert [(each.type, each.message, each.version) for each in control_records(batch)] == messages
    assert bytes(records(batch)[2].key or b"") == b"\0\0\0\2"
    assert repr(batch).startswith("<control batch 10..12 epoch 1, 3 records")


def test_a_control_record_of_an_unknown_type_is_skipped() -> None:
    batch = read_batch(build_batch([b"\0\0x"], 4, 1, 5, control_keys=[b"\0\0\0\x63"]))
    assert control_records(batch) == [(4, 99, None, None)]


def test_several_batches_are_separated_and_a_torn_one_is_reported() -> None:
    one, two = build_batch([b"a"], 0, 1, 5), build_batch([b"b", b"c"], 1, 1, 5)
    assert [batch.position for batch in iter_batches(one + two)] == [0, len(one)]
    with pytest.raises(CorruptBatch, match=f"batch at byte {len(one)}") as caught:
        list(iter_batches(one + two[:-1]))
    assert caught.value.truncated
    assert caught.value.position == len(one)


@pytest.mark.parametrize(
    ("position", "change", "reason"),
    [
        (16, b"\x01", "format 1, not 2"),
        (8, b"\0\0\0\1", "shorter than the header"),
        (8, b"\xff\xff\xff\xff", "shorter than the header"),
        (8, b"\x7f\xff\xff\xff", "are left"),
        (57, b"\xff\xff\xff\xff", "-1 records cannot be"),
        (57, b"\x7f\xff\xff\xff", "2147483647 records cannot be"),
        (0, b"\xff", "is negative"),
        (40, b"\xff", "checksum"),
    ],
)
def test_an_invalid_header_is_refused_with_the_reason(position: int, change: bytes, reason: str) -> None:
    data = bytearray(build_batch([b"abc"], 5, 2, 1000))
    data[position : position + len(change)] = change
    with pytest.raises(CorruptBatch, match=reason):
        read_batch(bytes(data))


@given(st.binary(max_size=400))
def test_no_bytes_raise_anything_but_corrupt_batch(data: bytes) -> None:
    for attempt in (parse_header, lambda view: list(iter_batches(view))):
        try:
            attempt(memoryview(data))
        except CorruptBatch:
            pass


@given(record_values, st.data())
def test_a_damaged_batch_is_detected_and_read_within_bounds(
    given_values: list[bytes], data: st.DataObject
) -> None:
    good = build_batch(given_values, 7, 2, 1000)
    damaged = bytearray(good)
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(HEADER_BYTES, len(good) - 1))] = data.draw(st.integers(0, 255))
    if bytes(damaged) != good:
        with pytest.raises(CorruptBatch, match="checksum"):
            read_batch(bytes(damaged))
    batch = read_batch(bytes(damaged), verify=False)
    for read in (records, values, control_records):
        try:
            read(batch)
        except (CorruptBatch, ProtocolError):
            pass


def test_a_record_that_kafkas_metadata_reader_refuses_is_refused() -> None:
    with pytest.raises(CorruptBatch, match="offset 3 is not one of a metadata log"):
        values(read_batch(build_batch([b"x"], 3, 0, 0, control_keys=[b"k"])))
    with pytest.raises(CorruptBatch, match="not one of a metadata log"):
        values(read_batch(build_batch([b""], 3, 0, 0)))


def test_a_metadata_record_is_framed_with_its_key_and_version() -> None:
    record = VersionedRecord(FeatureLevelRecord("metadata.version", 30), 0)
    framed = encode_record(record)
    assert framed[:3] == b"\x01\x0c\x00"
    assert decode_record(framed) == record
    assert encode_record(VersionedRecord(NoOpRecord(), 0)) == b"\x01\x14\x00\x00"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"", "0 bytes are no frame"),
        (b"\x00\x14\x00\x00", "frame version 0"),
        (b"\x01\x7f\x00\x00", "no record has key 127"),
        (b"\x01\x14\x05\x00", "version 5, only 0 to 0"),
        (b"\x01\x14\x00\x00\x00", "NoOpRecord"),
        (b"\x01\x0c\x00\x40", "FeatureLevelRecord"),
    ],
)
def test_an_invalid_frame_is_refused_with_the_reason(value: bytes, reason: str) -> None:
    with pytest.raises(ProtocolError, match=reason):
        decode_record(value)


def test_only_metadata_records_can_be_framed() -> None:
    with pytest.raises(TypeError, match="is not a metadata record"):
        encode_record(VersionedRecord(KRaftVersionRecord(), 0))
