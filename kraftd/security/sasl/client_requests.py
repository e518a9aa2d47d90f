"""The requests by which a client logs in, over any transport: SaslHandshake and SaslAuthenticate."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from kraftd.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kraftd.messages.sasl_authenticate_response import SaslAuthenticateResponse
from kraftd.messages.sasl_handshake_request import SaslHandshakeRequest
from kraftd.messages.sasl_handshake_response import SaslHandshakeResponse
from kraftd.security.sasl.mechanism import ClientExchange, SaslFailed
from kraftd.wire.message import Message

HANDSHAKE_VERSION = 1
ANSWERS: dict[type[Message], type[Any]] = {
    SaslHandshakeRequest: SaslHandshakeResponse,
    SaslAuthenticateRequest: SaslAuthenticateResponse,
}

LoginRequests = Generator[Message, Any, SaslAuthenticateResponse]


def login_requests(exchange: ClientExchange) -> LoginRequests:
    """Yield each request, and get its answer; return the last answer. Raises SaslFailed."""
    offered = yield SaslHandshakeRequest(exchange.mechanism)
    if offered.error_code:
        offers = ", ".join(offered.mechanisms) or "none"
        raise SaslFailed(f"it does not take {exchange.mechanism}; it offers {offers}")
    answer = SaslAuthenticateResponse()
    token: bytes | None = exchange.first(0)
    while token is not None:
        answer = yield SaslAuthenticateRequest(token)
        if answer.error_code:
            raise SaslFailed(answer.error_message or f"error {answer.error_code}")
        token = exchange.respond(answer.auth_bytes, 0)
    return answer
