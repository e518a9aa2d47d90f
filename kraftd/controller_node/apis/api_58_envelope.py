"""Envelope (58), v0: a broker forwards a client's request with the client's principal and address (KIP-590).

Authorization: CLUSTER_ACTION for the broker, the carried API's own for the client. Sent by: brokers. Answered
when the carried request is. Errors, of the Envelope itself: PRINCIPAL_DESERIALIZATION_FAILURE,
INVALID_REQUEST (no such address, or an API that is not forwarded), UNSUPPORTED_VERSION (the carried request
cannot be read), NOT_CONTROLLER. All others are in the carried response.
Differs from Apache Kafka: nowhere.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from struct import Struct
from typing import TYPE_CHECKING

from kraftd.messages.default_principal_data import DefaultPrincipalData
from kraftd.requests.intake import read_carried, read_carried_head
from kraftd.requests.large_requests import LARGE_FRAME_BYTES
from kraftd.requests.registry import FORWARDABLE
from kraftd.requests.unread_refusals import Refused
from kraftd.requests.work_shares import Job
from kraftd.security.acls.hosts import java_text
from kraftd.security.principals import Principal
from kraftd.wire.codec import decode_prefix
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.errors import ProtocolError, UnsupportedVersionError

if TYPE_CHECKING:
    from kraftd.controller_node.node import Node
    from kraftd.requests.call import Call
    from kraftd.wire.primitives import Buffer

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
    data = envelope.request_data

    def take(job: Job | None, outcome: Call | Refused | Exception | None) -> None:
        if isinstance(outcome, ProtocolError):
            node.boundary.refuse(call, ErrorCode.UNSUPPORTED_VERSION)
        elif isinstance(outcome, Exception):
            node.boundary.guard(call, outcome)
        elif outcome is None:
            node.boundary.refuse(call, ErrorCode.INVALID_REQUEST)
        elif isinstance(outcome, Refused):
            assert job is not None
            node.boundary.serve(job, outcome)
        else:
            outcome.host, outcome.principal = host, principal
            _serve(node, job, outcome)

    read: Callable[[], Call | Refused | None] = partial(read_carried, call, data, FORWARDABLE)
    if len(data) > LARGE_FRAME_BYTES:
        head = _head(node, call, data)
        if head is not None:
            head[0].host, head[0].principal = host, principal
            read = node.boundary.unless_refused(*head, data, read)
        node.boundary.large.add(Job((principal, host), call.connection_id, len(data), read, take, held=False))
        return
    try:
        inner = read()
    except ProtocolError as error:
        take(None, error)
    else:
        take(None, inner)


def _head(node: Node, call: Call, data: Buffer) -> tuple[Call, int] | None:
    """The inner call without its message, if its API is served; None if there is something wrong with it."""
    try:
        found = read_carried_head(call, data, FORWARDABLE)
    except ProtocolError:
        return None
    return found if found is not None and found[0].key in node.boundary.registry.routes else None


def _serve(node: Node, job: Job | None, inner: Call) -> None:
    if inner.key not in node.boundary.registry.routes:
        node.boundary.refuse(inner, ErrorCode.UNSUPPORTED_VERSION)
    elif job is not None:
        node.boundary.serve(job, inner)
    else:
        node.boundary.handle(inner)


def read_principal(data: bytes | memoryview) -> Principal:
    """A principal as Kafka's default serializer writes it. Raises ProtocolError."""
    if len(data) < 2:
        raise ProtocolError("DefaultPrincipalData", "version", 0, f"{len(data)} bytes are no principal")
    (version,) = _VERSION.unpack_from(data)
    principal, _ = decode_prefix(DefaultPrincipalData, version, data, 2)
    return Principal(principal.type, principal.name, principal.token_authenticated)
