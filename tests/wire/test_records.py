"""The record engines: equal outcomes, and what each function does with a batch of a known form."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from random import Random
from typing import Any

import pytest

from kraftd.wire import python_records, records
from kraftd.wire.batch import BatchHeader, CorruptBatch, read_batch
from kraftd.wire.compression import (
    DecompressionError,
    OutputTooLarge,
    compress,
    decompress,
    is_read_by_kafka,
)
from kraftd.wire.crc32c import crc32c
from kraftd.wire.records import (
    LOG_APPEND_TIME,
    MAX_SEQUENCE,
    Options,
    Outcome,
    Record,
    build_records_batch,
    decode_records,
    decrement_sequence,
    finish_batch,
    first_of_timestamp,
    increment_sequence,
    last_sequence,
    scan_batches,
)
from testkit.random_batches import NOW_MS
from tests.fuzzing.records import TARGETS

LONGEST = (1 << 63) - 1
ROUNDS = 150


def c_records() -> Any:
    try:
        return import_module("kraftd.wire._records")
    except ImportError:
        return None


@pytest.fixture(params=["c", "python"])
def engine(request: pytest.FixtureRequest) -> Iterator[Any]:
    chosen = c_records() if request.param == "c" else python_records
    if chosen is None:
        pytest.skip("the C engine is not built")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "ENGINE", chosen)
        yield chosen


def batch_of(*timestamps: int, **header: int) -> bytearray:
    return build_records_batch([(each, b"key", b"value", [(b"h", None)]) for each in timestamps], **header)


def judge(
    engine: Any, data: bytearray, *, options: int = Options.CLIENT, target: int = -1, **numbers: int
) -> Any:
    now_ms, before_ms, after_ms = (
        numbers.get(name, default)
        for name, default in (("now_ms", NOW_MS), ("before_ms", LONGEST), ("after_ms", 3_600_000))
    )
    return engine.judge(data, None, now_ms, 100, 7, 1 << 20, before_ms, after_ms, target, options)


@pytest.mark.parametrize("target", TARGETS)
def test_both_engines_have_the_same_outcome(target: Callable[[Random, Any], None]) -> None:
    c = c_records()
    if c is None:
        pytest.skip("the C engine is not built")
    for seed in range(ROUNDS):
        target(Random(seed), c)


def test_a_sound_batch_gets_offsets_and_leader_epoch_in_place(engine: Any) -> None:
    data = batch_of(NOW_MS, NOW_MS + 5, NOW_MS + 1)
    before = bytes(data)
    outcome, fields = judge(engine, data)
    header = BatchHeader(*fields)
    assert (outcome, header.base_offset, header.last_offset, header.leader_epoch) == (
        Outcome.VALID,
        100,
        102,
        7,
    )
    assert data[16:] == before[16:]  # the checksum covers nothing that changed
    assert [(one.offset, one.timestamp_ms) for one in decode_records(read_batch(data))] == [
        (100, NOW_MS), (101, NOW_MS + 5), (102, NOW_MS + 1)
    ]  # fmt: skip


def test_a_wrong_maximum_timestamp_is_corrected_with_its_checksum(engine: Any) -> None:
    data = batch_of(NOW_MS, NOW_MS + 5)
    data[35:43] = (1).to_bytes(8, "big")
    data[17:21] = crc32c(data[21:]).to_bytes(4, "big")
    assert judge(engine, data)[0] == Outcome.VALID
    assert read_batch(data).header.max_timestamp_ms == NOW_MS + 5


def test_log_append_time_is_set_with_its_checksum(engine: Any) -> None:
    data = batch_of(5, 6)
    judge(engine, data, options=Options.CLIENT | Options.SET_APPEND_TIME)
    batch = read_batch(data)
    assert batch.header.attributes >> 3 & 1 == LOG_APPEND_TIME
    assert [one.timestamp_ms for one in decode_records(batch)] == [NOW_MS, NOW_MS]


def test_every_faulty_record_is_listed(engine: Any) -> None:
    rows = [(NOW_MS, None, b"", []), (1, b"k", None, []), (NOW_MS, b"k", b"v", []), (1, None, b"v", [])]
    data = build_records_batch(rows)
    outcome, faults, count = judge(engine, data, options=Options.CLIENT | Options.COMPACTED, before_ms=1000)
    assert (outcome, count) == (Outcome.RECORDS, 3)
    assert faults == [(0, 1, 0, NOW_MS, -1, 0), (1, 2, 1, 1, 1, -1), (3, 1, 3, 1, -1, 1)]


def test_a_batch_without_write_access_cannot_be_patched() -> None:
    c = c_records()
    if c is None:
        pytest.skip("the C engine is not built")
    data = bytes(batch_of(NOW_MS))
    with pytest.raises(BufferError):
        judge(c, data)
    assert judge(c, data, options=Options.CLIENT | Options.KEEP)[0] == Outcome.VALID


def test_arguments_out_of_range_are_refused() -> None:
    c = c_records()
    if c is None:
        pytest.skip("the C engine is not built")
    data = batch_of(NOW_MS)
    for place, value in ((3, -1), (4, 1 << 31), (5, -1), (8, 5), (9, 64), (2, 1 << 63)):
        arguments: list[Any] = [data, None, NOW_MS, 0, 0, 1 << 20, 0, 0, -1, 1]
        arguments[place] = value
        with pytest.raises(OverflowError):
            c.judge(*arguments)
    with pytest.raises(TypeError):
        c.judge(data)


def test_new_records_are_written_alike_and_read_back(engine: Any) -> None:
    random = Random(5)

    def some() -> bytes | None:
        return random.choice((None, b"", random.randbytes(random.randrange(300))))

    for count in (0, 1, 2, 3, 300):
        rows = [
            (random.choice((-1, 0, NOW_MS, NOW_MS + count, (1 << 63) - 1)), some(), some(), headers)
            for headers in (
                tuple((b"h%d" % number, some()) for number in range(random.randrange(3)))
                for _ in range(count)
            )
        ]
        written, first, most = engine.write_records(rows)
        assert (written, first, most) == python_records.write_records(rows)
        if count:
            data = finish_batch(written, count, 0, -1, 0, first, most, -1, -1, -1)
            assert [row[2:] for row in engine.decode_records(data)] == [row[1:] for row in rows]
            assert most == max(row[0] for row in rows) and first == rows[0][0]


def test_new_records_of_another_form_are_refused() -> None:
    c = c_records()
    if c is None:
        pytest.skip("the C engine is not built")
    for row in (
        (1, b"k", b"v"),
        [1, b"k", b"v", ()],
        (1, "k", b"v", ()),
        (1, b"k", 5, ()),
        (1 << 63, b"k", b"v", ()),
    ):
        with pytest.raises((TypeError, OverflowError)):
            c.write_records([row])
    for headers in (5, [b"name"], [(b"name",)], [(b"name", "text")]):
        with pytest.raises(TypeError):
            c.write_records([(1, b"k", b"v", headers)])
    with pytest.raises(TypeError):
        c.write_records(7)


def test_room_has_its_size(engine: Any) -> None:
    for size in (0, 1, 5_000_000):
        room = engine.room(size)
        room[:] = bytes(size)
        assert type(room) is bytearray and room == bytes(size)
    with pytest.raises(ValueError, match="negative"):
        engine.room(-1)


def test_headers_of_batches_end_where_a_batch_is_cut_or_damaged(engine: Any) -> None:
    first, second = batch_of(1, 2), batch_of(3, base_offset=2)
    whole = bytes(first + second)
    batches, end, reason = scan_batches(whole)
    assert [each.header.last_offset for each in batches] == [1, 2] and (end, reason) == (len(whole), None)
    assert scan_batches(whole, most=1)[1:] == (len(first), None)
    assert scan_batches(whole, len(first))[0][0].position == len(first)
    for data, expected in (
        (whole[:-1], "truncated"),
        (whole[: len(first)] + b"\0" * 17, "format"),
        (whole[: len(first) + 8] + bytes(4) + whole[len(first) + 12 :], "length"),
        (whole[:-1] + b"\2", "checksum"),
    ):
        batches, end, reason = scan_batches(data)
        assert (len(batches), end, reason) == (1, len(first), expected)
    assert len(scan_batches(whole[:-1] + b"\2", verify=False)[0]) == 2


@pytest.mark.parametrize("codec", range(5))
def test_records_are_found_by_timestamp_and_decoded_in_compressed_batches(engine: Any, codec: int) -> None:
    plain = batch_of(10, 30, 20, 30, base_offset=50)
    header = read_batch(plain).header
    body = compress(codec, bytes(plain[61:]))
    data = records.finish_batch(body, 4, 50, 0, codec, 10, 30, -1, -1, -1)
    batch = read_batch(data)
    assert header.record_count == batch.header.record_count
    assert first_of_timestamp(batch, 11) == (51, 30)
    assert first_of_timestamp(batch, 11, 52) == (52, 20)
    assert first_of_timestamp(batch, 30, exact=True) == (51, 30)
    assert first_of_timestamp(batch, 31) is None
    assert decode_records(batch)[2] == Record(52, 20, b"key", b"value", ((b"h", None),))


def test_damaged_records_are_named(engine: Any) -> None:
    data = batch_of(1, 2)
    data[60] = 1  # one record, with another one behind it
    for read in (decode_records, lambda batch: first_of_timestamp(batch, 3, exact=True)):
        data[61:62] = b"\xff"
        with pytest.raises(CorruptBatch, match="record 0 is damaged"):
            read(read_batch(data, verify=False))


def test_rewritten_records_begin_at_offset_0_with_the_first_timestamp_as_base(engine: Any) -> None:
    data = batch_of(10, 5, 20, base_offset=9)
    body, base, most = engine.rewrite(data)
    assert (base, most) == (10, 20)
    assert body == data[61:]
    assert engine.rewrite(batch_of(-2)) is None
    appended = bytearray(data)
    appended[22] |= 8
    body, base, most = engine.rewrite(appended)
    assert (base, most) == (20, 20)


def test_sequences_wrap() -> None:
    assert increment_sequence(MAX_SEQUENCE, 1) == 0
    assert increment_sequence(MAX_SEQUENCE - 1, 3) == 1
    assert decrement_sequence(1, 3) == MAX_SEQUENCE - 1
    assert (
        last_sequence(
            read_batch(batch_of(1, 2, producer_id=1, producer_epoch=0, base_sequence=MAX_SEQUENCE)).header
        )
        == 0
    )
    assert last_sequence(read_batch(batch_of(1, 2)).header) == -1


@pytest.mark.parametrize("codec", range(5))
@pytest.mark.parametrize("size", [0, 3, 32 << 10, 200_000])
def test_what_is_compressed_is_read_again_within_a_limit(codec: int, size: int) -> None:
    random = Random(size)
    data = bytes(random.choices(b"abcdef", k=size))
    packed = compress(codec, data)
    if not codec:
        return
    assert decompress(codec, memoryview(packed)) == data
    assert is_read_by_kafka(codec, memoryview(packed))
    if size > 1000:
        with pytest.raises(OutputTooLarge):
            decompress(codec, memoryview(packed), size - 1)
        with pytest.raises(DecompressionError) as damage:
            decompress(codec, memoryview(packed)[: len(packed) // 2])
        assert damage.type is DecompressionError


def test_unknown_codecs_are_refused() -> None:
    with pytest.raises(ValueError, match="codec 5 is unknown"):
        compress(5, b"")


def test_linked_blocks_are_none_of_kafkas() -> None:
    import cramjam

    linked = bytes(cramjam.lz4.compress(b"abc" * 1000))
    assert not is_read_by_kafka(3, memoryview(linked))
