"""Requests and responses as frames: a length of four bytes, a header, a message.

Arriving frames come without their length, which the connection has removed.
"""

from __future__ import annotations

from functools import lru_cache
from struct import Struct

from kraftd.wire.api import (
    FIRST_FLEXIBLE_RESPONSE,
    NO_VERSION,
    ApiKey,
    RequestHeader,
    ResponseHeader,
    request_header_version,
    response_class,
    response_header_version,
)
from kraftd.wire.codec import decode, decode_prefix, encode, encode_bytes, encode_framed
from kraftd.wire.errors import ProtocolError
from kraftd.wire.message import Message
from kraftd.wire.primitives import Buffer, framed

LENGTH = Struct(">i")
KEY_AND_VERSION = Struct(">hh")
HEAD = Struct(">ihhi")  # length, key, version, correlation id


def parse_request_header(frame: Buffer) -> tuple[RequestHeader, int, int, int]:
    """The header of a request, its API key, its API version, and where the message begins.

    Key and version may be unknown: the header is then read as far as possible, so that the caller can answer.
    A null client id counts as empty, as in Kafka. Raises ProtocolError.
    """
    if len(frame) < 4:
        raise ProtocolError("RequestHeader", "", 0, f"{len(frame)} bytes are no header")
    key, version = KEY_AND_VERSION.unpack_from(frame)
    header, end = decode_prefix(RequestHeader, request_header_version(key, version), frame)
    if header.client_id is None:
        header.client_id = ""
    return header, key, version, end


def encode_response(key: int, version: int, correlation_id: int, response: Message) -> list[Buffer]:
    """A response in an API version as parts to write, the length first; raises as ``encode`` does."""
    is_flexible = version >= FIRST_FLEXIBLE_RESPONSE.get(key, NO_VERSION)
    return encode_framed(response, version, correlation_id, is_flexible)


def framed_response(key: int, version: int, correlation_id: int, parts: list[Buffer]) -> list[Buffer]:
    """The parts of an encoded response with length and header before them."""
    return framed(correlation_id, response_header_version(key, version), parts)


def encode_request(
    key: int, version: int, correlation_id: int, client_id: str | None, request: Message
) -> list[Buffer]:
    """A request in an API version as parts to write, the length first; raises as ``encode`` does."""
    client = _client_in_header(key, version, client_id)
    parts = encode(request, version)
    size = HEAD.size - LENGTH.size + len(client) + sum(map(len, parts))
    head = HEAD.pack(size, key, version, correlation_id) + client
    if parts and type(parts[0]) is bytes:
        parts[0] = head + parts[0]
        return parts
    return [head, *parts]


@lru_cache(maxsize=1024)
def _client_in_header(key: int, version: int, client_id: str | None) -> bytes:
    """A request's header from its client id on."""
    header = RequestHeader(key, version, 0, client_id)
    return encode_bytes(header, request_header_version(key, version))[HEAD.size - LENGTH.size :]


def correlation_id(frame: Buffer) -> int:
    """The correlation id of a response; raises ProtocolError for a frame that is too short."""
    if len(frame) < 4:
        raise ProtocolError("ResponseHeader", "correlation_id", 0, f"{len(frame)} bytes are no header")
    (number,) = LENGTH.unpack_from(frame)
    return int(number)


def parse_response(key: int, version: int, frame: Buffer) -> tuple[ResponseHeader, Message]:
    """The header and the message of a response to a request of an API version.

    ApiVersions may be answered in version 0 by a side that does not know the version asked in.
    Raises ProtocolError.
    """
    header, at = decode_prefix(ResponseHeader, response_header_version(key, version), frame)
    cls = response_class(key)
    try:
        return header, decode(cls, version, frame, at)
    except ProtocolError:
        if key != ApiKey.API_VERSIONS or version == 0:
            raise
        return header, decode(cls, 0, frame, at)
