"""Envelope (58), v0: a broker forwards a client's request with the client's principal and address (KIP-590).

Authorization: CLUSTER_ACTION for the broker, the carried API's own for the client. Sent by: brokers. Answered
when the carried request is. Errors, of the Envelope itself: PRINCIPAL_DESERIALIZATION_FAILURE,
INVALID_REQUEST (no such address, or an API that is not forwarded), UNSUPPORTED_VERSION (the carried request
cannot be read), NOT_CONTROLLER. All others are in the carried response.
Differs from Apache Kafka: nowhere.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING

from kraftd.messages.default_principal_data import DefaultPrincipalData
from kraftd.requests.call import Call
from kraftd.requests.intake import read_carried
from kraftd.requests.registry import FORWARDABLE
from kraftd.security.hosts import java_text
from kraftd.security.principals import Principal
from kraftd.wire.codec import decode_prefix
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.errors import ProtocolError, UnsupportedVersionError

if TYPE_CHECKING:
    from kraftd.controller_node.node import Node

_VERSION = Struct(">h")


def handle(node: Node, call: Call) -> None:
    envelope = call.message
    try:
        principal = read_principal(envelope.request_principal or b"")
    except (ProtocolError, UnsupportedVersionError):
        node.boundary.refuse(call, ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE)
        return
    try:
        host = java_text(bytes(envelope.client_host_address))
    except ValueError:
        node.boundary.refuse(call, ErrorCode.INVALID_REQUEST)
        return
    try:
        inner = read_carried(call, bytes(envelope.request_data), FORWARDABLE)
    except ProtocolError:
        node.boundary.refuse(call, ErrorCode.UNSUPPORTED_VERSION)
        return
    if inner is None:
        node.boundary.refuse(call, ErrorCode.INVALID_REQUEST)
        return
    inner.host = host
    inner.principal = principal
    if inner.key in node.boundary.registry.routes:
        node.boundary.handle(inner)
    else:
        node.boundary.refuse(inner, ErrorCode.UNSUPPORTED_VERSION)


def read_principal(data: bytes | memoryview) -> Principal:
    """A principal as Kafka's default serializer writes it. Raises ProtocolError."""
    if len(data) < 2:
        raise ProtocolError("DefaultPrincipalData", "version", 0, f"{len(data)} bytes are no principal")
    (version,) = _VERSION.unpack_from(data)
    principal, _ = decode_prefix(DefaultPrincipalData, version, data, 2)
    return Principal(principal.type, principal.name, principal.token_authenticated)
