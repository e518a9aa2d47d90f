"""Batches to columns: the builder in C gives the same columns as the codec, record by record."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kraftd.messages.no_op_record import NoOpRecord
from kraftd.messages.partition_change_record import PartitionChangeRecord
from kraftd.messages.partition_record import PartitionRecord
from kraftd.messages.topic_record import TopicRecord
from kraftd.messages.user_scram_credential_record import UserScramCredentialRecord
from kraftd.spark.decoding.decode import BUILDER, Decoder
from kraftd.spark.decoding.fields import (
    MAX_TIMESTAMP_MS,
    SECRET,
    metadata_types,
    record_schema,
    source_schema,
)
from kraftd.types import uuid_text
from kraftd.wire.batch import HEADER_BYTES, Batch, CorruptBatch, build_batch, read_batch
from kraftd.wire.record_frame import VersionedRecord, encode_record
from tests.metadata.histories import history
from tests.metadata_dir.compressed import CODECS, compressed
from tests.spark.logs import framed
from tests.wire.strategies import messages, versions

SCHEMA = record_schema()


def batch_of(values: list[bytes], base_offset: int = 100) -> Batch:
    return read_batch(build_batch(values, base_offset, 7, 1_700_000_000_000))


def decoded(batch: Batch, *, columns: bool, schema: pa.Schema = SCHEMA, **wanted: object) -> pa.Table:
    decoder = Decoder(schema, columns=columns, **wanted)  # type: ignore[arg-type]
    decoder.add(batch)
    found = decoder.take()
    for each in found:
        each.validate(full=True)
    return pa.Table.from_batches(found, schema=schema)


def assert_alike(batch: Batch, **wanted: object) -> pa.Table:
    by_columns, by_records = (decoded(batch, columns=columns, **wanted) for columns in (True, False))
    assert by_columns.to_pylist() == by_records.to_pylist()
    return by_columns


def test_the_builder_in_c_is_installed() -> None:
    assert BUILDER is not None


@pytest.mark.parametrize("seed", range(20))
def test_columns_of_random_histories_equal_their_records(seed: int) -> None:
    rows = assert_alike(batch_of([framed(message) for message in history(seed, 300)]))
    assert rows["offset"].to_pylist() == list(range(100, 100 + len(rows)))
    assert set(rows["epoch"].to_pylist()) == {7}


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_columns_of_any_record_of_any_version_equal_the_record(data: st.DataObject) -> None:
    values = []
    for _ in range(3):
        name = data.draw(st.sampled_from(sorted(metadata_types())))
        version = data.draw(st.sampled_from(versions(name)))
        values.append(encode_record(VersionedRecord(data.draw(messages(name, version)), version)))
    assert_alike(batch_of(values))


def test_unknown_tagged_fields_are_kept() -> None:
    record = TopicRecord(name="a", topic_id=b"t" * 16, unknown_tags=((77, b"later"), (90, b"")))
    rows = assert_alike(batch_of([framed(record)])).to_pylist()
    assert rows[0]["unknown_tagged_fields"] == [{"tag": 77, "data": b"later"}, {"tag": 90, "data": b""}]


def test_secrets_of_scram_credentials_have_no_column() -> None:
    record = UserScramCredentialRecord("u", 1, b"salty", b"stored-secret", b"server-secret", 4096)
    text = str(assert_alike(batch_of([framed(record)])).to_pylist())
    assert not {name for _, name in SECRET} & set(SCHEMA.names)
    assert "salty" not in text and "secret" not in text and "4096" in text


@pytest.mark.parametrize("codec", CODECS)
def test_batches_of_every_compression_are_read(codec: str) -> None:
    plain = build_batch([framed(message) for message in history(3, 200)], 100, 7, 1_700_000_000_000)
    assert_alike(read_batch(compressed(plain, codec)))
    packed = decoded(read_batch(compressed(plain, codec)), columns=True)
    assert packed.equals(decoded(read_batch(plain), columns=True))


def test_only_wanted_columns_types_and_topics_are_decoded() -> None:
    ids = [bytes([number]) * 16 for number in range(4)]
    values = [framed(TopicRecord(name=f"t{at}", topic_id=each)) for at, each in enumerate(ids)]
    values += [framed(PartitionRecord(partition_id=0, topic_id=each, replicas=(1, 2))) for each in ids]
    narrow = pa.schema([SCHEMA.field(name) for name in ("offset", "topic_id", "replicas")])
    rows = assert_alike(
        batch_of(values), schema=narrow, types=["PartitionRecord"], topic_ids=[uuid_text(ids[2])]
    ).to_pylist()
    assert rows == [{"offset": 106, "topic_id": uuid_text(ids[2]), "replicas": [1, 2]}]


def test_an_undecodable_record_drops_its_whole_batch() -> None:
    good = framed(PartitionChangeRecord(partition_id=1, topic_id=b"t" * 16, isr=(1, 2)))
    decoder = Decoder(SCHEMA)
    decoder.add(batch_of([good]))
    for bad in (good[:-1], good + b"x", b"\x01\x7f\x00", bytes((1, 5, 99)) + good[3:], b"\x02" + good[1:]):
        with pytest.raises(CorruptBatch, match="record of offset 202"):
            decoder.add(batch_of([good, good, bad], 200))
    decoder.add(batch_of([good], 300))
    assert pa.Table.from_batches(decoder.take())["offset"].to_pylist() == [100, 300]


@pytest.mark.parametrize("columns", [True, False])
@pytest.mark.parametrize(
    ("bad", "message"),
    [(b"\x01\x63\x00whatever", "99"), (b"\x01\x02\x63whatever", "(version 99.*|TopicRecord.*version 99)")],
)
def test_a_record_of_a_future_type_or_version_is_reported_with_its_number(
    columns: bool, bad: bytes, message: str
) -> None:
    decoder = Decoder(SCHEMA, columns=columns)
    with pytest.raises(CorruptBatch, match=f"record of offset 200: .*{message}"):
        decoder.add(batch_of([bad], 200))


@pytest.mark.parametrize("columns", [True, False])
def test_offsets_beyond_64_bits_are_damage(columns: bool) -> None:
    batch = batch_of([framed(TopicRecord(name="a", topic_id=b"t" * 16))] * 2)
    batch = batch._replace(header=batch.header._replace(base_offset=(1 << 63) - 1))
    decoder = Decoder(source_schema(), columns=columns)
    with pytest.raises(CorruptBatch, match="offset"):
        decoder.add(batch, -(1 << 63))
    decoder.add_what_can_be(batch, "/log", "why")
    assert [row["offset"] for row in pa.Table.from_batches(decoder.take()).to_pylist()] == [None]


def test_timestamps_beyond_64_bits_wrap_around_as_in_java() -> None:
    data = bytearray(build_batch([framed(TopicRecord(name="a", topic_id=b"t" * 16))], 100, 7, 5))
    data[HEADER_BYTES + 2] = 2  # the timestamp is that of the batch and 1 ms
    batch = read_batch(bytes(data), verify=False)
    batch = batch._replace(header=batch.header._replace(base_timestamp_ms=(1 << 63) - 1))
    assert assert_alike(batch)["timestamp_ms"].to_pylist() == [-(1 << 63)]


@pytest.mark.parametrize(
    ("ms", "at"),
    [
        (0, datetime(1970, 1, 1, tzinfo=UTC)),
        (1_700_000_000_123, datetime(2023, 11, 14, 22, 13, 20, 123_000, UTC)),
        (MAX_TIMESTAMP_MS, datetime(9999, 12, 31, 23, 59, 59, 999_000, UTC)),
        (MAX_TIMESTAMP_MS + 1, None),
        (-1, None),
    ],
)
def test_a_record_has_its_time_also_as_timestamp_within_years_1970_to_9999(ms: int, at: datetime) -> None:
    rows = assert_alike(read_batch(build_batch([framed(NoOpRecord())], 100, 7, ms)))
    assert rows.select(["timestamp_ms", "timestamp"]).to_pylist() == [{"timestamp_ms": ms, "timestamp": at}]


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_flipped_bytes_are_refused_by_both_decoders_or_read_alike(data: st.DataObject) -> None:
    values = [bytearray(framed(message)) for message in history(5, 12)]
    value = data.draw(st.sampled_from(values))
    value[data.draw(st.integers(0, len(value) - 1))] = data.draw(st.integers(0, 255))
    batch = batch_of([bytes(each) for each in values])
    outcomes = []
    for columns in (True, False):
        try:
            outcomes.append(decoded(batch, columns=columns).to_pylist())
        except CorruptBatch:
            outcomes.append(None)
    if None not in outcomes:
        assert str(outcomes[0]) == str(outcomes[1])
    else:
        assert outcomes == [None, None]


def test_text_that_is_no_utf8_is_replaced_in_both() -> None:
    value = framed(TopicRecord(name="a?\u00e4\u20acb", topic_id=b"t" * 16))
    for wrong in (b"\xff", b"\xc3", b"\xed", b"\xf0"):
        batch = batch_of([value.replace(b"?", wrong)])
        rows = [decoded(batch, columns=columns).to_pylist() for columns in (True, False)]
        assert str(rows[0]) == str(rows[1]) and "a\ufffd\u00e4\u20acb" in str(rows[0])


def test_undecodable_batches_are_kept_apart_and_the_rest_is_read() -> None:
    good = framed(TopicRecord(name="a", topic_id=b"t" * 16))
    unknown = b"\x01\x63\x00whatever"
    decoder = Decoder(source_schema())
    decoder.add_what_can_be(batch_of([good, unknown, good]), "/log", "why")
    rows = pa.Table.from_batches(decoder.take()).to_pylist()
    assert [row["offset"] for row in rows] == [100, None, 102]
    assert rows[1]["damage"]["data"] == unknown and "99" in rows[1]["damage"]["reason"]


def test_the_builder_does_not_leak_memory(tmp_path: Path) -> None:
    decoder = Decoder(SCHEMA)
    batch = batch_of([framed(message) for message in history(1, 100)])
    for _ in range(50):
        decoder.add(batch)
        assert sum(each.num_rows for each in decoder.take()) == batch.header.record_count
        assert decoder.rows == 0
