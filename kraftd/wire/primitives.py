"""Varints, tag sections and arrays of fixed-width numbers, for straight-line codecs.

Functions that read take the buffer and a position and return the value and the next position.  They
raise ``Malformed``, IndexError or ``struct.error``, which show that bytes are bad but not where: the
caller turns to ``kraftd.wire.explain`` for a ``ProtocolError``.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any

Buffer = bytes | memoryview

MAX_STRING_BYTES = 32767
# A part of at least this size is cheaper as an item of a vectored write than as a copy.
OWN_PART_BYTES = 4096
CACHED_ARRAYS = 1024
_HEADER_V0, _HEADER_V1 = Struct(">ii"), Struct(">iix")  # the size of a response and its correlation id


class Malformed(Exception):
    """Bytes that cannot be read, or a value that cannot be written; the reason is found afterwards."""


def put_uvarint(n: int) -> bytes:
    """An unsigned varint of at most five bytes."""
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


UVARINTS: list[bytes] = [put_uvarint(n) for n in range(128)]


def uvarint(buffer: Buffer, at: int) -> tuple[int, int]:
    """An unsigned varint of 32 bits; Malformed when longer than five bytes or greater."""
    value = shift = 0
    while True:
        byte = buffer[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            if value > 0xFFFFFFFF:
                raise Malformed
            return value, at
        shift += 7
        if shift > 28:
            raise Malformed


def long_string(buffer: Buffer, at: int) -> tuple[int, int]:
    """A compact length of more than one byte; Malformed when Kafka takes no string that long."""
    length, at = uvarint(buffer, at)
    if length > MAX_STRING_BYTES + 1:
        raise Malformed
    return length, at


def put_length(length: int) -> bytes:
    """A compact length of more than one byte: one more than the number of bytes or elements."""
    if length > 0x7FFFFFFF:
        raise Malformed
    return put_uvarint(length)


def put_string_length(length: int) -> bytes:
    """The same for a string, which Kafka limits in every form of its length."""
    if length > MAX_STRING_BYTES + 1:
        raise Malformed
    return put_length(length)


def unknown_tags(buffer: Buffer, at: int, size: int) -> tuple[tuple[tuple[int, bytes], ...], int]:
    """A tag section none of whose tags is in the schema, from its count on."""
    count, at = uvarint(buffer, at)
    if count * 2 > size - at:
        raise Malformed
    tags: list[tuple[int, bytes]] = []
    for _ in range(count):
        tag, at = uvarint(buffer, at)
        length, at = uvarint(buffer, at)
        if length > size - at:
            raise Malformed
        tags.append((tag, bytes(buffer[at : at + length])))
        at += length
    return in_order(tags), at


def in_order(tags: list[tuple[int, bytes]]) -> tuple[tuple[int, bytes], ...]:
    """Tags by number; Malformed for a repeated one."""
    if len(tags) > 1:
        if len({tag for tag, _ in tags}) < len(tags):
            raise Malformed
        tags.sort()
    return tuple(tags)


def put_tag(tag: int, body: bytes) -> bytes:
    """One tagged field."""
    size = len(body)
    if tag < 128 and size < 128:
        return UVARINTS[tag] + UVARINTS[size] + body
    return put_uvarint(tag) + put_uvarint(size) + body


def put_tags(
    known: list[bytes], unknown: tuple[tuple[int, bytes], ...], reserved: tuple[int, ...] = ()
) -> bytes:
    """A tag section of fields written by ``put_tag`` and of unknown ones, in order of tag.

    Malformed when an unknown tag is there twice, or is among the reserved, which are known.
    """
    if unknown:
        if any(tag in reserved for tag, _ in unknown):
            raise Malformed
        numbered = [(uvarint(field, 0)[0], field) for field in known]
        numbered += [(tag, put_tag(tag, body)) for tag, body in unknown]
        if any(not 0 <= tag < 0x7FFFFFFF for tag, _ in numbered):
            raise Malformed
        known = [field for _, field in in_order(numbered)]
    count = len(known)
    return (UVARINTS[count] if count < 128 else put_uvarint(count)) + b"".join(known)


def uuids(buffer: Buffer, at: int, count: int) -> tuple[bytes, ...]:
    """An array of uuids; the caller has checked that the bytes suffice."""
    return tuple([bytes(buffer[p : p + 16]) for p in range(at, at + 16 * count, 16)])


def put_uuids(values: tuple[bytes, ...]) -> bytes:
    """An array of uuids; Malformed when one is not of 16 bytes."""
    if any(len(value) != 16 for value in values):
        raise Malformed
    return b"".join(values)


class Arrays(dict[int, Callable[..., Any]]):
    """Count -> function that packs or unpacks that many numbers of a kind; small ones are kept."""

    def __init__(self, letter: str, method: str) -> None:
        self.letter = letter
        self.method = method

    def __missing__(self, count: int) -> Callable[..., Any]:
        function: Callable[..., Any] = getattr(Struct(f">{count}{self.letter}"), self.method)
        if count < CACHED_ARRAYS:
            self[count] = function
        return function


def framed(correlation_id: int, header_version: int, parts: list[Buffer]) -> list[Buffer]:
    """The parts of an encoded response with its size and its header before them."""
    size_bytes = sum(map(len, parts)) + 4
    if header_version:  # with an empty tag section
        head = _HEADER_V1.pack(size_bytes + 1, correlation_id)
    else:
        head = _HEADER_V0.pack(size_bytes, correlation_id)
    first = parts[0]
    if type(first) is bytes:
        parts[0] = head + first
        return parts
    return [head, *parts]
