"""Makes a call of a frame, or reports why it is none.

A frame that is no request closes its connection, and so does one of an API or a version that does not exist:
its rows cannot be read, so an answer without them would look like success. A request for an API that only
the listener does not serve is answered UNSUPPORTED_VERSION, and the connection stays open.
"""

from __future__ import annotations

import struct
from collections.abc import Container, Mapping

from kraftd.messages.api_versions_request import ApiVersionsRequest
from kraftd.requests.call import Call
from kraftd.requests.events import FramesReceived
from kraftd.requests.refusals import refuse
from kraftd.requests.registry import Route
from kraftd.wire.api import ApiKey, RequestHeader, is_known, is_valid, request_class
from kraftd.wire.codec import decode_prefix
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.errors import ProtocolError
from kraftd.wire.frames import parse_request_header
from kraftd.wire.primitives import Buffer

_HEADER = struct.Struct(">hhih")  # key, version, correlation id, length of the client id
MAX_ELEMENTS = 2_000_000  # of a request: decoded, each takes up to 200 bytes


class NotServed(Exception):
    """The listener does not serve the request; `parts` are the answer, none if it closes the connection."""

    def __init__(self, parts: list[Buffer], reason: str = "not served") -> None:
        super().__init__(reason)
        self.parts = parts


def read_call(
    routes: Mapping[int, Route], event: FramesReceived, slot: int, frame: Buffer, max_elements: int = 0
) -> Call:
    """The call in a frame of an event, its message decoded, of an API that one of the routes serves.

    Bytes after the message are ignored here and below, as in Apache Kafka: librdkafka 2.16 leaves three in
    Metadata v13. Raises ProtocolError for a frame that is no request, NotServed for one that is answered
    unread. With `max_elements`, a message of more elements in its arrays raises ProtocolError.
    """
    try:
        key, version, correlation_id, length = _HEADER.unpack_from(frame)
        at = 10 + length if length > 0 else 10
        client_id = str(frame[10:at], "utf-8", "replace")
        route = routes.get(key)
        if route is not None and length >= -1 and route.first <= version <= route.last:
            if version >= route.flexible:
                if frame[at]:
                    _, _, _, at = parse_request_header(frame)  # tagged fields in the header: none are known
                else:
                    at += 1
            message = decode_prefix(route.request, version, frame, at, max_elements)[0]
            return Call(
                event.connection_id, slot, event.listener, event.host, key, version, correlation_id,
                client_id, message, event.principal, None, event.arrived_ns, len(frame),
            )  # fmt: skip
    except IndexError:
        pass  # the header is too short: diagnosed below
    except struct.error:
        raise ProtocolError("RequestHeader", "", 0, f"{len(frame)} bytes are no header") from None
    return _unusual(event, slot, frame)


def read_head(
    routes: Mapping[int, Route], event: FramesReceived, slot: int, frame: Buffer
) -> tuple[Call, int] | None:
    """The call in a frame without its message, and where that begins; None for what `read_call` refuses."""
    try:
        header, key, version, at = parse_request_header(frame)
    except ProtocolError:
        return None
    route = routes.get(key)
    if route is None or not route.first <= version <= route.last:
        return None
    return _undecoded(event, slot, frame, header, key, version), at


def _unusual(event: FramesReceived, slot: int, frame: Buffer) -> Call:
    """The call of an ApiVersions request in an unknown version. Raises the same as read_call for any other
    frame, since served ones take the fast path.
    """
    header, key, version, at = parse_request_header(frame)
    if not is_known(key):
        raise NotServed([], f"there is no API {key}")
    call = _undecoded(event, slot, frame, header, key, version)
    if key == ApiKey.API_VERSIONS and not is_valid(key, version):
        # The API itself answers, in version 0, which every client reads (KIP-511).
        call.message = ApiVersionsRequest()
        return call
    if not is_valid(key, version):
        raise NotServed([], f"{ApiKey(key).name} has no version {version}")
    call.message = decode_prefix(request_class(key), version, frame, at, MAX_ELEMENTS)[0]
    raise NotServed(call.frame(refuse(key, call.version, call.message, ErrorCode.UNSUPPORTED_VERSION)))


def _undecoded(
    event: FramesReceived, slot: int, frame: Buffer, header: RequestHeader, key: int, version: int
) -> Call:
    return Call(
        event.connection_id, slot, event.listener, event.host, key, version, header.correlation_id,
        header.client_id or "", None, event.principal, None, event.arrived_ns, len(frame),
    )  # fmt: skip


def read_carried(outer: Call, frame: Buffer, forwardable: Container[int]) -> Call | None:
    """The call inside an Envelope, on the Envelope's connection; the caller sets host and principal.

    None for an API that is not forwardable, whatever other faults the request has. Raises ProtocolError for
    anything but a well-formed request of a known API and version.
    """
    found = read_carried_head(outer, frame, forwardable)
    if found is None:
        return None
    call, at = found
    call.message = decode_prefix(request_class(call.key), call.version, frame, at, MAX_ELEMENTS)[0]
    return call


def read_carried_head(outer: Call, frame: Buffer, forwardable: Container[int]) -> tuple[Call, int] | None:
    """As `read_carried`, without the message, and where that begins."""
    header, key, version, at = parse_request_header(frame)
    if is_known(key) and key not in forwardable:
        return None
    if not is_valid(key, version):
        raise ProtocolError("RequestHeader", "request_api_version", 2, f"API {key} has no version {version}")
    call = Call(
        outer.connection_id,
        outer.slot,
        outer.listener,
        outer.host,
        key,
        version,
        header.correlation_id,
        header.client_id or "",
        None,
        envelope=outer,
        arrived_ns=outer.arrived_ns,
        size_bytes=len(frame),
        is_large=outer.is_large,
    )
    return call, at
