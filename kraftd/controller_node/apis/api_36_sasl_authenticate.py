"""SaslAuthenticate (36), v0-2: no login is under way, or may begin, on this connection.

Authorization: none. Sent by: clients that are set up for SASL. Answered at once; a login itself is answered
before any request is (requests/login.py). Errors: ILLEGAL_SASL_STATE, on PLAINTEXT and SSL listeners, and
after a login that has no end.
Differs from Apache Kafka: nowhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.messages.sasl_authenticate_response import SaslAuthenticateResponse
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.controller_node.node import Node
    from kraftd.requests.call import Call


def handle(node: Node, call: Call) -> None:
    text = "SaslAuthenticate came outside an authentication."
    node.boundary.answer(call, SaslAuthenticateResponse(ErrorCode.ILLEGAL_SASL_STATE, text))
