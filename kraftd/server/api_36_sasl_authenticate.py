"""SaslAuthenticate (36), v0-2: no connection of a PLAINTEXT listener authenticates.

Authorization: none. Sent by: clients that are set up for SASL. Answered at once. Errors:
ILLEGAL_SASL_STATE.
Differs from Apache Kafka: nowhere, on PLAINTEXT listeners.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.messages.sasl_authenticate_response import SaslAuthenticateResponse
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.server.call import Call
    from kraftd.server.node import Node


def handle(node: Node, call: Call) -> None:
    text = "SaslAuthenticate came outside of an authentication."
    node.answer(call, SaslAuthenticateResponse(ErrorCode.ILLEGAL_SASL_STATE, text))
