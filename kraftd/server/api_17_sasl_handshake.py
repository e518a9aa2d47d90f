"""SaslHandshake (17), v0-1: no connection of a PLAINTEXT listener authenticates.

Authorization: none. Sent by: clients that are set up for SASL. Answered at once. Errors:
ILLEGAL_SASL_STATE.
Differs from Apache Kafka: nowhere, on PLAINTEXT listeners.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.messages.sasl_handshake_response import SaslHandshakeResponse
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.server.call import Call
    from kraftd.server.node import Node


def handle(node: Node, call: Call) -> None:
    node.answer(call, SaslHandshakeResponse(ErrorCode.ILLEGAL_SASL_STATE))
