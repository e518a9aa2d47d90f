"""Passes writes of admin clients to the active controller, of kraftd or Apache Kafka, on any node.

This node's own controller takes the call as it is. Another gets it in an Envelope, as from a broker
(KIP-590). While there is no leader, the call waits for one, at most for the request's timeout. The answer to
a write is sent once this node's image has the write (`own_writes`).
"""

from __future__ import annotations

import ipaddress
from struct import Struct
from typing import TYPE_CHECKING

from msgspec import structs

from kraftd.answers.effects import Answered, HandToController, SendToNode
from kraftd.answers.forwarding import Progress
from kraftd.answers.own_writes import answer_once_applied
from kraftd.controller.tokens.change import USER
from kraftd.controller.tokens.refusals import owner_of, refused_token
from kraftd.ground.pace import Slices
from kraftd.messages.default_principal_data import DefaultPrincipalData
from kraftd.messages.envelope_request import EnvelopeRequest
from kraftd.messages.envelope_response import EnvelopeResponse
from kraftd.requests.call import Call
from kraftd.security.principals import ANONYMOUS
from kraftd.wire.api import ApiKey, response_header_version
from kraftd.wire.codec import encode
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.frames import encode_request, parse_response
from kraftd.wire.message import Message
from kraftd.wire.primitives import Buffer
from kraftd.wire.slices import encode_in_slices

if TYPE_CHECKING:
    from kraftd.answers.node import AnsweringNode

ENCODED_AT_ONCE_BYTES = 16_384  # a larger request is encoded in slices
PLAINTEXT, SSL = 0, 1  # as in Endpoint.security_protocol
OF_TOKENS = (
    ApiKey.CREATE_DELEGATION_TOKEN,
    ApiKey.RENEW_DELEGATION_TOKEN,
    ApiKey.EXPIRE_DELEGATION_TOKEN,
)
# Those that the mutation quota charges: their answers begin with the throttle time (KIP-599).
CHARGED = (ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.CREATE_PARTITIONS)
READS = (ApiKey.DESCRIBE_QUORUM, ApiKey.LIST_PARTITION_REASSIGNMENTS)
_SIZE = Struct(">i")
_PRINCIPAL_VERSION = bytes(2)


def handle(node: AnsweringNode, call: Call) -> Slices[None]:
    """Pass a call to the active controller: this node's, or another in an Envelope."""
    view = node.view
    denied = token_denial(node, call) if call.key in OF_TOKENS else None
    if denied is not None:
        answer = refused_token(call.key, call.version, call.message, _requester(call), denied)
        node.boundary.answer(call, answer)
        return
    envelope: EnvelopeRequest | None = None
    if call.size_bytes > ENCODED_AT_ONCE_BYTES and not view.is_active:
        envelope = yield from envelope_in_slices(call)

    def send(request_id: int) -> Progress:
        if view.is_active:
            call.settled = False  # the controller answers it, or refuses it after a fault
            call.by_broker = node.is_broker
            node.outbox.emit(HandToController(call))
            return Progress.SETTLED
        destination = view.controller_destination()
        if destination is None or view.leader_id == view.node_id:  # elected, and not active yet
            return Progress.LATER
        node.outbox.emit(SendToNode(request_id, destination, envelope or envelope_of(call)))
        return Progress.SENT

    def on_answer(answered: Answered) -> bool:
        message: EnvelopeResponse = answered.message
        if message.error_code == ErrorCode.NOT_CONTROLLER:
            return False
        if message.error_code:
            node.boundary.refuse(call, ErrorCode.UNKNOWN_SERVER_ERROR)
        else:
            parts = _framed(call, bytes(message.response_data or b""))
            if call.key in READS:
                node.boundary.send(call, parts)
            else:
                answer_once_applied(node, call, lambda: node.boundary.send(call, parts))
        return True

    node.passing_on.begin(call, node.now_ms, send, on_answer)


def _framed(call: Call, data: bytes) -> list[Buffer]:
    """The answer that another controller's Envelope carried, with what this node refused itself.

    The client is muted for as long as it is to wait (KIP-219): the controller has muted no one.
    """
    if call.key in CHARGED:
        at = 5 if response_header_version(call.key, call.version) else 4
        call.mute_ms = max(call.mute_ms, *_SIZE.unpack_from(data, at))
    if call.refused_rows or call.mute_ms:
        return call.frame(parse_response(call.key, call.version, data)[1])
    return [_SIZE.pack(len(data)) + data]


def token_denial(node: AnsweringNode, call: Call) -> ErrorCode | None:
    """Why a request for a token goes to no controller: its sender, or a renewer that is no user."""
    if not is_known_by_more_than_a_token(node, call):
        return ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    if call.key == ApiKey.CREATE_DELEGATION_TOKEN:
        requester = _requester(call)
        is_own = owner_of(call.message, requester) == requester  # of another's, the right is asked for first
        if is_own and any(renewer.principal_type != USER for renewer in call.message.renewers):
            return ErrorCode.INVALID_PRINCIPAL_TYPE
    return None


def _requester(call: Call) -> tuple[str, str]:
    return call.principal.type, call.principal.name


def is_known_by_more_than_a_token(node: AnsweringNode, call: Call) -> bool:
    """Return whether the client may ask for delegation tokens (KIP-48); a controller believes the node that
    forwards.
    """
    protocol = node.settings.endpoints[call.listener].security_protocol
    anonymous = protocol == PLAINTEXT or (protocol == SSL and call.principal == ANONYMOUS)
    return not (anonymous or call.principal.token_authenticated)


def envelope_of(call: Call) -> EnvelopeRequest:
    """The Envelope with which a broker would forward the call."""
    return envelope_with(call, call.key, call.version, call.message)


def envelope_with(call: Call, key: int, version: int, message: Message) -> EnvelopeRequest:
    """An Envelope with another request of the client that sent the call."""
    frame = b"".join(encode_request(key, version, call.correlation_id, call.client_id, message))
    return _envelope(call, frame[4:])


def envelope_in_slices(call: Call) -> Slices[EnvelopeRequest]:
    """The same for a call with very many elements, which it keeps."""
    message = structs.replace(call.message)
    for name in message.__struct_fields__:
        value = getattr(message, name)
        if type(value) is list:
            setattr(message, name, value.copy())  # to be consumed
    body = yield from encode_in_slices(message, call.version)
    empty = type(call.message)()
    frame = b"".join(encode_request(call.key, call.version, call.correlation_id, call.client_id, empty))
    header = frame[4 : len(frame) - len(b"".join(encode(empty, call.version)))]
    return _envelope(call, b"".join([header, *body]))


def _envelope(call: Call, request: bytes) -> EnvelopeRequest:
    principal = DefaultPrincipalData(
        call.principal.type, call.principal.name, call.principal.token_authenticated
    )
    return EnvelopeRequest(
        request,
        _PRINCIPAL_VERSION + b"".join(encode(principal, 0)),
        ipaddress.ip_address(call.host.partition("%")[0]).packed,
    )
