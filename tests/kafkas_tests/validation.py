"""Kafka's LogValidator beside kraftd's validation: one batch each, with the answer to it."""

from __future__ import annotations

from types import SimpleNamespace

from kraftd.partition.config import PRODUCERS_CODEC, PartitionConfig
from kraftd.partition.validation import ProduceRefusal, validate
from kraftd.wire.batch import read_batch
from kraftd.wire.crc32c import crc32c
from kraftd.wire.records import decode_records
from tests.kafkas_tests.agent import Columns

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
FORMAT_V2 = 2
UNBOUNDED = (1 << 31) - 1
_MAGIC_AT, _CRC_AT, _CRC_FROM, _CODEC_AT = 16, 17, 21, 22


def with_checksum(data: bytes) -> bytearray:
    """A batch whose checksum is right: Kafka's validator is not what looks at it."""
    batch = bytearray(data)
    batch[_CRC_AT:_CRC_FROM] = crc32c(batch[_CRC_FROM:]).to_bytes(4, "big")
    return batch


def validation_differs(asked: Columns, answer: Columns) -> str | None:
    """How kraftd's judgement of a batch differs from Kafka's; None if it does not."""
    name, now_ms, offset, source, target, level, compacted, magic, stamp, before, after, epoch, origin = (
        asked[:13]
    )
    data, partition = bytes.fromhex(asked[13]), SimpleNamespace(name=name)
    if data[_MAGIC_AT] < FORMAT_V2:
        found = validate(bytearray(data), PartitionConfig(), partition, int(offset), int(epoch), int(now_ms))
        is_refused = isinstance(found, ProduceRefusal) and found.error.name == "INVALID_RECORD"
        return None if is_refused else f"an old format gives {found}"
    if int(magic) < FORMAT_V2:
        return None  # no broker of Kafka 4 has such a topic
    stays = source == target
    config = PartitionConfig(
        is_compacted=compacted == "true",
        max_message_bytes=UNBOUNDED,
        segment_bytes=UNBOUNDED,
        sets_append_time=stamp == "LogAppendTime",
        timestamp_before_max_ms=int(before),
        timestamp_after_max_ms=int(after),
        compression=PRODUCERS_CODEC if stays else CODECS.index(target.lower()),
        compression_level=int(level) if level else None,
    )
    found = validate(
        with_checksum(data),
        config,
        partition,
        int(offset),
        int(epoch),
        int(now_ms),
        is_client=origin == "CLIENT",
    )
    if answer[0] == "refused":
        return _refusal_differs(found, answer)
    if isinstance(found, ProduceRefusal):
        return f"{found}"
    ours, kafkas = read_batch(found.view), read_batch(bytes(with_checksum(bytes.fromhex(answer[3]))))
    plain = {"length_bytes": 0, "crc": 0} if data[_CODEC_AT] & 7 != ours.header.attributes & 7 else {}
    if ours.header._replace(**plain) != kafkas.header._replace(**plain):
        return f"{ours.header} for {kafkas.header}"
    if decode_records(ours) != decode_records(kafkas):
        return f"{decode_records(ours)}"
    ends = (ours.header.max_timestamp_ms, ours.header.next_offset)
    return None if ends == (int(answer[1]), int(answer[2])) else f"ends {ends}"


def _refusal_differs(found: object, answer: Columns) -> str | None:
    error, message, *records = answer[1:]
    if not isinstance(found, ProduceRefusal):
        return f"taken: {found}"
    if found.error.name != error:
        return f"{found}"
    if found.message is not None and found.message != message:
        return f"{found.message}"
    ours = [f"{each.batch_index} {each.message}" for each in found.record_errors]
    return None if ours == [each for each in records if each] else f"{ours}"
