"""Quota entities: their types, their keys, and the valid values."""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Mapping
from typing import Final

from kraftd.ground.refusal import Refusal
from kraftd.metadata.state import QuotaEntity
from kraftd.wire.error_code import ErrorCode

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"
MUTATION_RATE: Final = "controller_mutation_rate"
PRODUCER_RATE: Final = "producer_byte_rate"
CONSUMER_RATE: Final = "consumer_byte_rate"
REQUEST_PERCENTAGE: Final = "request_percentage"

# Key -> the largest value of its type; None for a double. Users and clients; addresses.
_LONG, _INT = 2**63 - 1, 2**31 - 1
_CLIENT_KEYS: Final[Mapping[str, int | None]] = {
    PRODUCER_RATE: _LONG,
    CONSUMER_RATE: _LONG,
    REQUEST_PERCENTAGE: None,
    MUTATION_RATE: None,
}
_IP_KEYS: Final[Mapping[str, int | None]] = {"connection_creation_rate": _INT}
_TYPE_WORDS = {_LONG: "a LONG", _INT: "an INT"}


def keys_of(entity: QuotaEntity) -> Mapping[str, int | None]:
    """The keys that an entity may have. Raises Refusal(INVALID_REQUEST) for an invalid entity."""
    if not entity:
        raise _invalid("Invalid empty client quota entity")
    for kind, name in entity:
        if kind not in (USER, CLIENT_ID, IP):
            raise _invalid(f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise _invalid(f"Empty {kind} not supported")
    names = dict(entity)
    if IP not in names:
        return _CLIENT_KEYS
    if len(names) > 1:
        raise _invalid("Invalid quota entity combination, an ip goes with no user or client-id")
    address = names[IP]
    if address is not None and not _is_address(address):
        raise _invalid(f"{address} is not a valid IP; kraftd looks up no host names, give its address")
    return _IP_KEYS


def check_value(keys: Mapping[str, int | None], key: str, value: float) -> None:
    """Raises Refusal(INVALID_REQUEST) for a key that is invalid for the entity, or a value invalid for the
    key.
    """
    if key not in keys:
        raise _invalid(f"Invalid configuration key {key}")
    if not value > 0.0:  # a NaN is refused, too
        raise _invalid(f"Quota {key} must be greater than 0")
    most = keys[key]
    if most is not None:
        if value > float(most):
            raise _invalid(f"Proposed value for {key} is too large for {_TYPE_WORDS[most]}.")
        if math.fmod(value, 1.0) > 1e-6:
            raise _invalid(f"{key} cannot be a fractional value.")


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return text == "localhost"
    return True


def _invalid(text: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, text)
