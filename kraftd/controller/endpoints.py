"""The listeners in registrations of brokers and controllers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from kraftd.ground.refusal import Refusal
from kraftd.types import Endpoint
from kraftd.wire.error_code import ErrorCode

_SECURITY_PROTOCOLS = range(4)  # PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL


class Listener(Protocol):
    name: str
    host: str
    port: int
    security_protocol: int


def checked_endpoints(listeners: Iterable[Listener]) -> list[Endpoint]:
    """One endpoint for each name; of a repeated name the last one counts.

    Raises Refusal(UNKNOWN_SERVER_ERROR), as Kafka does, for a security protocol that does not exist.
    """
    endpoints: dict[str, Endpoint] = {}
    for listener in listeners:
        if listener.security_protocol not in _SECURITY_PROTOCOLS:
            raise Refusal(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                f"Listener {listener.name}: there is no security protocol {listener.security_protocol}.",
            )
        endpoints[listener.name] = Endpoint(
            listener.name, listener.host, listener.port, listener.security_protocol
        )
    return list(endpoints.values())
