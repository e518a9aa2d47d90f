"""Compressed batches: records are read in all of Kafka's framings; damage and bombs give clear errors."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftd.host.snapshots.checkpointing import MADE, make_checkpoint
from kraftd.messages.leader_change_message import LeaderChangeMessage
from kraftd.messages.no_op_record import NoOpRecord
from kraftd.messages.topic_record import TopicRecord
from kraftd.metadata_dir.files.checkpoint import checkpoint_path, verify_checkpoint
from kraftd.metadata_dir.showing.dump import dump, verify
from kraftd.wire import compression
from kraftd.wire.batch import (
    ControlRecordType,
    CorruptBatch,
    build_batch,
    build_control_batch,
    control_records,
    decompressed,
    read_batch,
    records,
    values,
)
from kraftd.wire.compression import DecompressionError, decompress
from kraftd.wire.record_frame import VersionedRecord, decode_batch, encode_record
from testkit.java import QUICK_START, classpath, compile_java, find_java, find_javac
from tests.controller_node.harness import Harness
from tests.controller_node.test_checkpointing import NOW_MS, content_of, image_of, order, restarted
from tests.metadata_dir.compressed import (
    CODECS,
    COMPRESSORS,
    XERIAL_HEADER,
    compress_file,
    compressed,
    with_body,
    xerial,
)

codecs = pytest.mark.parametrize("codec", CODECS)


def topic(number: int) -> bytes:
    return encode_record(VersionedRecord(TopicRecord(f"topic-{number}", number.to_bytes(16, "big")), 0))


@codecs
@given(st.lists(st.binary(min_size=1, max_size=300), min_size=1, max_size=100))
def test_a_compressed_batch_returns_its_values_and_records(codec: str, given_values: list[bytes]) -> None:
    plain = read_batch(build_batch(given_values, 7, 3, 1000))
    batch = read_batch(compressed(bytes(plain.view), codec))
    assert batch.header.compression == codec
    assert [bytes(value) for value in values(batch)] == given_values
    assert records(batch) == records(plain)


@codecs
def test_metadata_and_control_records_are_decoded_from_a_compressed_batch(codec: str) -> None:
    plain = build_batch([topic(number) for number in range(3000)], 0, 1, 1000)
    batch = read_batch(compressed(plain, codec))
    assert [message.name for message in decode_batch(batch)] == [f"topic-{n}" for n in range(3000)]
    change = LeaderChangeMessage(leader_id=3)
    control = build_control_batch([(ControlRecordType.LEADER_CHANGE, change, 0)], 5, 1, 1000)
    (found,) = control_records(read_batch(compressed(control, codec)))
    assert (found.offset, found.message) == (5, change)


@codecs
def test_a_batch_may_hold_more_records_than_it_has_compressed_bytes(codec: str) -> None:
    value = encode_record(VersionedRecord(NoOpRecord(), 0))
    data = compressed(build_batch([value] * 200_000, 0, 1, 1000), codec)
    assert len(values(read_batch(data))) == 200_000


def test_an_uncompressed_batch_is_returned_unchanged() -> None:
    batch = read_batch(build_batch([b"abc"], 5, 2, 1000))
    assert decompressed(batch) is batch


@codecs
def test_damage_in_compressed_records_is_reported_with_codec_and_offset(codec: str) -> None:
    for body in (b"", b"\xff" * 40, bytes(COMPRESSORS[codec](b"abc"))[:-1]):
        batch = read_batch(with_body(build_batch([b"abc"], 5, 2, 1000), CODECS[codec], body))
        for read in (records, values):
            with pytest.raises(CorruptBatch, match=rf"compressed with {codec} \(offset 5\)|record"):
                read(batch)


@codecs
def test_records_that_grow_beyond_the_limit_are_refused(codec: str) -> None:
    bomb = memoryview(bytes(COMPRESSORS[codec](bytes(300_000))))
    assert len(decompress(CODECS[codec], bomb, 300_000)) == 300_000
    with pytest.raises(DecompressionError, match="bytes"):
        decompress(CODECS[codec], bomb, 299_999)


def test_a_decompression_bomb_is_a_corrupt_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    data = compressed(build_batch([bytes(60_000)] * 20, 0, 1, 1000), "zstd")
    assert len(data) < 10_000
    small = compression.decompress
    monkeypatch.setattr("kraftd.wire.batch.decompress", lambda codec, body: small(codec, body, 1 << 20))
    with pytest.raises(CorruptBatch, match=r"zstd \(offset 0\): not readable within 1048576 bytes"):
        values(read_batch(data))


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_an_unknown_codec_is_refused_by_its_number(codec: int) -> None:
    batch = read_batch(with_body(build_batch([b"abc"], 5, 2, 1000), codec, b"abc"))
    with pytest.raises(CorruptBatch, match=f"codec {codec} is unknown"):
        values(batch)


def test_a_record_count_beyond_the_decompressed_bytes_is_refused() -> None:
    data = bytearray(build_batch([b"abc"], 5, 2, 1000))
    data[23:27] = data[57:61] = b"\x7f\xff\xff\xff"
    data[26] = 0xFE
    batch = read_batch(compressed(bytes(data), "gzip"))
    with pytest.raises(CorruptBatch, match="2147483647 records cannot be in"):
        values(batch)


def test_snappy_without_framing_and_concatenated_streams_are_read() -> None:
    plain = bytes(range(256)) * 500
    one_block = xerial(b"abcabc")[len(XERIAL_HEADER) + 4 :]
    assert decompress(2, memoryview(one_block)) == b"abcabc"
    assert decompress(2, memoryview(xerial(b"abc") + xerial(plain))) == b"abc" + plain


def test_a_snappy_block_that_claims_more_than_is_left_is_refused() -> None:
    for length in (0, 100, 2**31):
        framed = XERIAL_HEADER + length.to_bytes(4, "big") + b"abc"
        with pytest.raises(DecompressionError, match=f"claims {length} bytes, 3 are left"):
            decompress(2, memoryview(framed))


@codecs
def test_a_directory_of_compressed_batches_is_loaded_dumped_and_served(codec: str, tmp_path: Path) -> None:
    """Recovery, replay, checkpoints and `kraftd dump` read them; Fetch returns the raw bytes."""
    harness = Harness(tmp_path).start()
    harness.unfenced(1)
    harness.create(*(f"topic-{at}" for at in range(20)), partitions=3)
    before = content_of(harness.node.image)
    disk, directory = harness.disk, harness.storage.log.directory
    harness.storage.close()
    compress_file(disk, f"{directory}/{0:020d}.log", codec)
    again = restarted(tmp_path, disk)
    assert content_of(again.node.image) == before
    first = order(again)
    assert make_checkpoint(disk, first, NOW_MS).outcome == MADE
    path = checkpoint_path(directory, first.snapshot_id)
    compress_file(disk, path, codec)
    assert verify_checkpoint(disk, path) == disk.open(path).size_bytes()
    assert content_of(image_of(disk, directory, first.snapshot_id)) == before
    rows = list(dump(disk, path))
    assert {row["compression"] for row in rows if row["kind"] == "batch"} == {codec}
    assert sum(row.get("type") == "TopicRecord" for row in rows) == 20
    assert not [row for row in verify(disk, path) if row["kind"] == "damage"]
    answer = again.answer(again.fetch(offset=1))
    served = read_batch(answer.responses[0].partitions[0].records)
    assert served.header.compression == codec


@pytest.mark.kafka
def test_batches_that_kafkas_own_classes_compress_are_read(tmp_path: Path) -> None:
    javac = find_javac()
    if javac is None:
        pytest.skip("no javac beside the java in use")
    classes = compile_java(javac, Path(__file__).with_name("java") / "CompressedBatches.java")
    path = os.pathsep.join([str(classes), classpath()])
    given_values = [topic(number) for number in range(2000)]
    lines = ",".join(value.hex() for value in given_values)
    command = [str(find_java()), *QUICK_START, "-cp", path, "CompressedBatches"]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    found = [bytes.fromhex(line) for line in done.stdout.split()]
    assert [read_batch(data).header.compression for data in found] == list(CODECS)
    for data in found:
        assert [bytes(value) for value in values(read_batch(data))] == given_values
