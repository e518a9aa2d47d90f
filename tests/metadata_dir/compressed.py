"""Batches compressed as Kafka's clients do it: gzip, snappy in xerial's framing, LZ4 frames, zstd."""

from __future__ import annotations

import cramjam

from kraftd.log.memory_disk import MemoryDisk
from kraftd.wire.batch import HEADER_BYTES, iter_batches
from kraftd.wire.crc32c import crc32c

CODECS = {"gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
XERIAL_HEADER = b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"
XERIAL_BLOCK_BYTES = 32 << 10


def xerial(data: bytes) -> bytes:
    """Snappy blocks of 32 KiB, each after its length."""
    framed = bytearray(XERIAL_HEADER)
    for start in range(0, len(data), XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + XERIAL_BLOCK_BYTES]))
        framed += len(block).to_bytes(4, "big") + block
    return bytes(framed)


COMPRESSORS = {
    "gzip": cramjam.gzip.compress,
    "snappy": xerial,
    "lz4": cramjam.lz4.compress,
    "zstd": cramjam.zstd.compress,
}


def with_body(batch: bytes, codec: int, body: bytes) -> bytes:
    """The batch's header with this codec and the right length and checksum, and that body after it."""
    data = bytearray(batch[:HEADER_BYTES] + body)
    data[8:12] = (len(data) - 12).to_bytes(4, "big")
    data[22] = data[22] & ~7 | codec
    data[17:21] = crc32c(bytes(data[21:])).to_bytes(4, "big")
    return bytes(data)


def compressed(batch: bytes, name: str) -> bytes:
    """The same batch with its records compressed."""
    return with_body(batch, CODECS[name], bytes(COMPRESSORS[name](batch[HEADER_BYTES:])))


def compress_file(disk: MemoryDisk, path: str, name: str) -> None:
    """Replace every batch of a log or checkpoint by a compressed one."""
    raw = disk.read_bytes(path)
    batches = b"".join(compressed(bytes(batch.view), name) for batch in iter_batches(raw))
    file = disk.open(path)
    file.truncate(0)
    file.write(0, batches)
    file.sync()
    file.close()
