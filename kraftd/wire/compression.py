"""Compression of record batches in Kafka's framings: gzip, snappy (xerial), LZ4 frames, zstd.

Controllers write uncompressed batches, and read compressed ones that another tool wrote. Producers compress
theirs, coordinators if the file says so, and a topic may demand another codec. The output of decompression
is bounded.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

# Eight times the largest batch that a controller writes.
MAX_DECOMPRESSED_BYTES = 64 << 20

# What Kafka's writer puts into a block of snappy.
_SNAPPY_BLOCK_BYTES = 32 << 10
_XERIAL_HEADER = b"\x82SNAPPY\x00" + (1).to_bytes(4, "big") * 2
# Independent blocks of 64 KiB, no checksums; the last byte is the descriptor's checksum.
_LZ4_HEADER = b"\x04\x22\x4d\x18\x60\x40\x82"
_LZ4_FRAME_HEADER_BYTES = 7
_LZ4_BLOCK_BYTES = 64 << 10
_LZ4_STORED = 1 << 31  # a block that is not compressed
_LZ4_CONTENT_SIZE, _LZ4_BLOCK_CHECKSUMS, _LZ4_CHECKSUM = 0x08, 0x10, 0x04
_LZ4_INDEPENDENT, _LZ4_VERSION_AND_RESERVED, _LZ4_VERSION = 0x20, 0xC3, 0x40
DEFAULT_LEVELS = {1: 6, 3: 9, 4: 3}  # of gzip, lz4 and zstd, as compression.*.level has them

CODEC_NAMES = ("none", "gzip", "snappy", "lz4", "zstd", "5", "6", "7")

_FIRST_BUFFER_BYTES = 64 << 10
_EXPECTED_RATIO = 16
_GROWTH = 4
_NO_ROOM = "failed to write whole buffer"  # cramjam's words for a full buffer
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_GZIP_FORMAT = zlib.MAX_WBITS | 16
_GZIP_MAGIC = b"\x1f\x8b\x08"  # with the only method that there is
_GZIP_LEAST_BYTES = 18  # of a stream of nothing: Java looks for another one behind more than so many
_XERIAL_HEADER_BYTES = 16  # the magic, a version and the oldest version that may read it


class DecompressionError(ValueError):
    """Bytes that are not the codec's, or whose output would exceed the limit."""


class OutputTooLarge(DecompressionError):
    """Bytes whose output exceeds the limit."""


def compress(codec: int, data: bytes, level: int | None = None) -> bytes:
    """Records as Apache Kafka's writers compress them; `level` is that of the topic's compression.*.level.

    Raises ValueError for an unknown codec.
    """
    import cramjam

    if level is None or (codec == 1 and level == -1):  # gzip's own word for its default
        level = DEFAULT_LEVELS.get(codec)
    if codec == 0:
        return data
    if codec == 1:
        return bytes(cramjam.gzip.compress(data, level=level))
    if codec == 2:
        blocks = [_XERIAL_HEADER]
        for at in range(0, len(data), _SNAPPY_BLOCK_BYTES):
            block = bytes(cramjam.snappy.compress_raw(data[at : at + _SNAPPY_BLOCK_BYTES]))
            blocks += (len(block).to_bytes(4, "big"), block)
        return b"".join(blocks)
    if codec == 3:
        return _lz4_frame(data, level)
    if codec == 4:
        return bytes(cramjam.zstd.compress(data, level=level))
    raise ValueError(f"codec {codec} is unknown")


def _lz4_frame(data: bytes, level: int | None) -> bytes:
    """A frame of independent blocks: Kafka's reader refuses others, and cramjam's writer makes others."""
    import cramjam

    mode: dict[str, Any] = {}
    if level != DEFAULT_LEVELS[3]:
        mode = {"mode": "high_compression", "compression": level}
    parts = [_LZ4_HEADER]
    for at in range(0, len(data), _LZ4_BLOCK_BYTES):
        plain = data[at : at + _LZ4_BLOCK_BYTES]
        block = bytes(cramjam.lz4.compress_block(plain, store_size=False, **mode))
        if len(block) < len(plain):
            parts += (len(block).to_bytes(4, "little"), block)
        else:
            parts += ((len(plain) | _LZ4_STORED).to_bytes(4, "little"), plain)
    parts.append(bytes(4))
    return b"".join(parts)


def is_read_by_kafka(codec: int, data: memoryview) -> bool:
    """Return whether Kafka's reader takes such a frame: of LZ4, only independent blocks without a
    dictionary."""
    if codec != 3 or len(data) < 5:
        return True
    return data[4] & _LZ4_VERSION_AND_RESERVED == _LZ4_VERSION and bool(data[4] & _LZ4_INDEPENDENT)


def decompress(codec: int, data: memoryview, limit_bytes: int = MAX_DECOMPRESSED_BYTES) -> bytes | memoryview:
    """The records behind a batch's header; `codec` are the three lowest bits of its attributes.

    As for Kafka's readers, bytes behind the end of a gzip or LZ4 stream are nothing. Raises
    DecompressionError, for an unknown codec too, and OutputTooLarge.
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
        if codec == 3:
            data = data[: _lz4_frame_bytes(data)]
        if codec in readers:
            return _into_buffer(readers[codec], data, limit_bytes, cramjam.DecompressionError)
    except OutputTooLarge:
        raise
    except DecompressionError:
        if codec != 1:
            raise
        return _gzip_streams(data, limit_bytes)
    except cramjam.DecompressionError as error:
        raise DecompressionError(f"not readable as {CODEC_NAMES[codec]}: {error}") from None
    raise DecompressionError(f"codec {codec} is unknown")


def _into_buffer(
    read: Callable[[memoryview, bytearray], int],
    data: memoryview,
    limit_bytes: int,
    failure: type[Exception],
) -> memoryview:
    """Decompress into a buffer of a likely size, then into larger ones, up to the limit: a large one costs
    as much as the work.
    """
    room_bytes = min(max(_FIRST_BUFFER_BYTES, _EXPECTED_RATIO * len(data)), limit_bytes)
    while True:
        buffer = bytearray(room_bytes)
        try:
            return memoryview(buffer)[: read(data, buffer)]
        except failure as error:
            reason = str(error)
        if _NO_ROOM not in reason or room_bytes == limit_bytes:
            break
        room_bytes = min(room_bytes * _GROWTH, limit_bytes)
    kind = OutputTooLarge if _NO_ROOM in reason else DecompressionError
    raise kind(f"not readable within {limit_bytes} bytes: {reason}") from None


def _gzip_streams(data: memoryview, limit_bytes: int) -> bytes:
    """The same without what is behind the streams, as Java's reader finds their end."""
    found = bytearray()
    rest: bytes | memoryview = data
    while True:
        stream = zlib.decompressobj(_GZIP_FORMAT)
        try:
            found += stream.decompress(rest, limit_bytes - len(found) + 1)
        except zlib.error as error:
            raise DecompressionError(f"not readable as gzip: {error}") from None
        if len(found) > limit_bytes:
            raise OutputTooLarge(f"a gzip stream exceeds the {limit_bytes} bytes that are allowed")
        if not stream.eof:
            raise DecompressionError(f"not readable as gzip: it ends after {len(found)} uncompressed bytes")
        rest = stream.unused_data
        if len(rest) <= _GZIP_LEAST_BYTES or rest[: len(_GZIP_MAGIC)] != _GZIP_MAGIC:
            return bytes(found)


def _lz4_frame_bytes(data: memoryview) -> int:
    """The size of the frame at the beginning of the data, or of the data if that has no whole one."""
    flags = data[4] if len(data) > 4 else 0
    position = _LZ4_FRAME_HEADER_BYTES + (8 if flags & _LZ4_CONTENT_SIZE else 0)
    while position + 4 <= len(data):
        size = int.from_bytes(data[position : position + 4], "little") & ~_LZ4_STORED
        position += 4
        if not size:
            return position + (4 if flags & _LZ4_CHECKSUM else 0)
        position += size + (4 if flags & _LZ4_BLOCK_CHECKSUMS else 0)
    return len(data)


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
        raise OutputTooLarge(f"a snappy block of {size} bytes exceeds the {limit_bytes} that are allowed")
    return bytes(decompress_raw(block))
