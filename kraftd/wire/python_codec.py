"""The functions of ``kraftd.wire.codec`` on the engine in pure Python."""

from __future__ import annotations

import struct
from typing import TypeVar

from kraftd.wire.errors import ProtocolError
from kraftd.wire.explain import explain_decode, explain_encode, refuse_elements
from kraftd.wire.message import Message
from kraftd.wire.primitives import OWN_PART_BYTES, Buffer, Malformed, framed
from kraftd.wire.python_engine import DECODERS, ENCODERS
from kraftd.wire.table import table_of

M = TypeVar("M", bound=Message)

BAD_BYTES = (struct.error, IndexError, Malformed)
BAD_VALUE = (struct.error, AttributeError, TypeError, ValueError, OverflowError, Malformed)


def encode(message: Message, version: int, /) -> list[Buffer]:
    """The bytes of a message as parts to write one after the other.

    Large ``records`` are parts of their own and not copied.  Raises UnsupportedVersionError,
    UnsupportedFieldError (a value that the version cannot carry and may not drop), or EncodeError
    (a value that is not of its field's type).
    """
    parts = encode_parts(message, version)
    if not ENCODERS[type(message)].has_records:
        return [b"".join(parts)]
    out: list[Buffer] = []
    first = 0
    for number, part in enumerate(parts):
        if len(part) >= OWN_PART_BYTES and type(part) is not bytes:
            if first < number:
                out.append(b"".join(parts[first:number]))
            out.append(part)
            first = number + 1
    if first < len(parts):
        out.append(b"".join(parts[first:]))
    return out


def encode_framed(
    message: Message, version: int, correlation_id: int, header_version: int, /
) -> list[Buffer]:
    """A response as parts, its size and its header before it; raises as ``encode`` does."""
    return framed(correlation_id, header_version, encode(message, version))


def encode_bytes(message: Message, version: int, /) -> bytes:
    """The bytes of a message; raises as ``encode`` does."""
    return b"".join(encode_parts(message, version))


def encode_parts(message: Message, version: int) -> list[Buffer]:
    """The bytes of a message in many small parts."""
    encoder = ENCODERS[type(message)][version]
    parts: list[Buffer] = []
    try:
        encoder(message, parts.append)
    except BAD_VALUE as error:
        raise explain_encode(table_of(type(message)), message, version, error) from None
    return parts


def decode(cls: type[M], version: int, view: Buffer, offset: int = 0, max_elements: int = 0, /) -> M:
    """The message that fills a buffer from an offset to its end.

    ``records`` are views of the buffer, all else is a copy.  Raises ProtocolError for bytes that are
    not such a message, UnsupportedVersionError for a version that it does not have.

    With `max_elements`, a message with more elements of arrays and tagged fields in all is a ProtocolError,
    raised before they take memory. The engine in C lets other threads run while it reads a long message.
    """
    message, end = decode_prefix(cls, version, view, offset, max_elements)
    if end != len(view):
        left = len(view) - end
        raise ProtocolError(f"{cls.__name__} v{version}", "", end, f"{left} bytes are left after the message")
    return message


def decode_prefix(
    cls: type[M], version: int, view: Buffer, offset: int = 0, max_elements: int = 0, /
) -> tuple[M, int]:
    """The message that begins at an offset, and the offset after it; raises as ``decode`` does."""
    versions = DECODERS[cls]
    decoder = versions[version]
    if 0 < max_elements < len(view) - offset:  # each takes a byte or more
        refuse_elements(table_of(cls), version, view, offset, max_elements)
    if type(view) is not bytes and not versions.has_records:
        view = bytes(view)
    size = len(view)
    try:
        message, end = decoder(view, offset, size)
    except BAD_BYTES:
        end = size + 1
    if end > size:
        raise explain_decode(table_of(cls), version, view, offset)
    return message, end
