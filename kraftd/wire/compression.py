"""Decompression of record batches in Kafka's framings: gzip, snappy (xerial), LZ4 frames, zstd.

Controllers write uncompressed batches. A metadata log that another tool wrote may hold compressed ones, and
Apache Kafka's controllers load those. The output is bounded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# Eight times the largest batch that a controller writes.
MAX_DECOMPRESSED_BYTES = 64 << 20

CODEC_NAMES = ("none", "gzip", "snappy", "lz4", "zstd", "5", "6", "7")

_FIRST_BUFFER_BYTES = 64 << 10
_EXPECTED_RATIO = 16
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER_BYTES = 16  # the magic, a version and the oldest version that may read it


class DecompressionError(ValueError):
    """Bytes that are not the codec's, or whose output would exceed the limit."""


def decompress(codec: int, data: memoryview, limit_bytes: int = MAX_DECOMPRESSED_BYTES) -> bytes:
    """The records behind a batch's header; `codec` are the three lowest bits of its attributes.

    Raises DecompressionError, for an unknown codec too.
    """
    import cramjam  # compressed batches are rare: a start without one does not load the library

    readers: dict[int, Any] = {
        1: cramjam.gzip.decompress_into,
        3: cramjam.lz4.decompress_into,
        4: cramjam.zstd.decompress_into,
    }
    try:
        if codec == 2:
            raw = cramjam.snappy
            return _snappy(data, limit_bytes, raw.decompress_raw_len, raw.decompress_raw)
        if codec in readers:
            return _into_buffer(readers[codec], data, limit_bytes, cramjam.DecompressionError)
    except cramjam.DecompressionError as error:
        raise DecompressionError(f"not readable as {CODEC_NAMES[codec]}: {error}") from None
    raise DecompressionError(f"codec {codec} is unknown")


def _into_buffer(
    read: Callable[[memoryview, bytearray], int],
    data: memoryview,
    limit_bytes: int,
    failure: type[Exception],
) -> bytes:
    """Decompress into a buffer of a likely size, then into one of the maximum size."""
    likely_bytes = max(_FIRST_BUFFER_BYTES, _EXPECTED_RATIO * len(data))
    if likely_bytes < limit_bytes:
        buffer = bytearray(likely_bytes)
        try:
            return bytes(memoryview(buffer)[: read(data, buffer)])
        except failure:
            pass  # too small, or damaged: retry with the maximum buffer
    buffer = bytearray(limit_bytes)
    try:
        return bytes(memoryview(buffer)[: read(data, buffer)])
    except failure as error:
        raise DecompressionError(f"not readable within {limit_bytes} bytes: {error}") from None


def _snappy(
    data: memoryview,
    limit_bytes: int,
    size_of: Callable[[memoryview], int],
    decompress_raw: Callable[[memoryview], Any],
) -> bytes:
    """Blocks in xerial's framing, each behind its length; without the framing, one raw block.

    A new header in the middle begins another stream, as Kafka's reader allows.
    """
    if bytes(data[: len(_XERIAL_MAGIC)]) != _XERIAL_MAGIC:
        return _snappy_block(data, limit_bytes, size_of, decompress_raw)
    found = bytearray()
    position = 0
    while position < len(data):
        if bytes(data[position : position + len(_XERIAL_MAGIC)]) == _XERIAL_MAGIC:
            position += _XERIAL_HEADER_BYTES
            continue
        size = int.from_bytes(data[position : position + 4], "big")
        position += 4
        if not 0 < size <= len(data) - position:
            raise DecompressionError(f"a snappy block claims {size} bytes, {len(data) - position} are left")
        block = data[position : position + size]
        found += _snappy_block(block, limit_bytes - len(found), size_of, decompress_raw)
        position += size
    return bytes(found)


def _snappy_block(
    block: memoryview,
    limit_bytes: int,
    size_of: Callable[[memoryview], int],
    decompress_raw: Callable[[memoryview], Any],
) -> bytes:
    size = size_of(block)
    if size > limit_bytes:
        raise DecompressionError(f"a snappy block of {size} bytes exceeds the {limit_bytes} that are allowed")
    return bytes(decompress_raw(block))
