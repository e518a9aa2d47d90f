"""A frame becomes a call, or the reason why it cannot.

A frame that is not a request at all costs its sender the connection; a request for an API or a version
that is not served is answered UNSUPPORTED_VERSION and the connection goes on.
"""

from __future__ import annotations

import struct
from collections.abc import Container

from kraftd.messages.api_versions_request import ApiVersionsRequest
from kraftd.server.call import Call
from kraftd.server.refusal_answers import refuse
from kraftd.server.routing import SERVED
from kraftd.wire.api import ApiKey, is_known, is_valid, request_class, valid_versions
from kraftd.wire.codec import decode
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.errors import ProtocolError
from kraftd.wire.frames import parse_request_header
from kraftd.wire.primitives import Buffer

_HEADER = struct.Struct(">hhih")  # key, version, correlation id, length of the client id
_UNKNOWN = struct.Struct(">iih")  # size, correlation id, error code


class NotServed(Exception):
    """The request cannot be served, and these bytes say so."""

    def __init__(self, parts: list[Buffer]) -> None:
        super().__init__("not served")
        self.parts = parts


def read_call(connection_id: int, slot: int, listener: str, host: str, frame: bytes) -> Call:
    """The call in a frame, its message decoded.

    Raises ProtocolError for what is no request, NotServed for one that is answered without being looked at.
    """
    try:
        key, version, correlation_id, length = _HEADER.unpack_from(frame)
        at = 10 + length if length > 0 else 10
        client_id = frame[10:at].decode() if length > 0 else ""
        route = SERVED.get(key)
        if route is not None and length >= -1 and route.first <= version <= route.last:
            if version >= route.flexible:
                if frame[at]:
                    _, _, _, at = parse_request_header(frame)  # tagged fields in the header: none are known
                else:
                    at += 1
            message = decode(route.request, version, frame, at)
            return Call(connection_id, slot, listener, host, key, version, correlation_id, client_id, message)
    except (IndexError, UnicodeDecodeError):
        pass  # the header ends too early, or is no text: told precisely below
    except struct.error:
        raise ProtocolError("RequestHeader", "", 0, f"{len(frame)} bytes are no header") from None
    return _unusual(connection_id, slot, listener, host, frame)


def _unusual(connection_id: int, slot: int, listener: str, host: str, frame: bytes) -> Call:
    """What is not a well-formed request of a served API and version."""
    header, key, version, at = parse_request_header(frame)
    correlation_id = header.correlation_id
    client_id = header.client_id or ""
    if not is_known(key):
        # No response of it is known: the correlation id and the error are all that can be said.
        raise NotServed([_UNKNOWN.pack(6, correlation_id, ErrorCode.UNSUPPORTED_VERSION)])
    call = Call(connection_id, slot, listener, host, key, version, correlation_id, client_id, None)
    if key == ApiKey.API_VERSIONS and not is_valid(key, version):
        # Answered in version 0, which everyone reads, by the API itself (KIP-511).
        call.message = ApiVersionsRequest()
        return call
    if is_valid(key, version):
        call.message = decode(request_class(key), version, frame, at)
        if key in SERVED:
            return call
    else:
        first, last = valid_versions(key)
        call.version = min(max(version, first), last)
    raise NotServed(call.frame(refuse(key, call.version, call.message, ErrorCode.UNSUPPORTED_VERSION)))


def read_carried(outer: Call, frame: bytes, forwardable: Container[int]) -> Call | None:
    """The call that an Envelope carries, with the Envelope's connection; host and principal are the caller's
    to set. None for an API that is not forwardable, whatever else is wrong with the request.

    Raises ProtocolError for whatever is not a well-formed request of a known API and version.
    """
    header, key, version, at = parse_request_header(frame)
    if is_known(key) and key not in forwardable:
        return None
    if not is_valid(key, version):
        raise ProtocolError("RequestHeader", "request_api_version", 2, f"API {key} has no version {version}")
    message = decode(request_class(key), version, frame, at)
    return Call(
        outer.connection_id,
        outer.slot,
        outer.listener,
        outer.host,
        key,
        version,
        header.correlation_id,
        header.client_id or "",
        message,
        envelope=outer,
        arrived_ns=outer.arrived_ns,
        size_bytes=len(frame),
    )
