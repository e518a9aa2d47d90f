"""SCRAM credentials of unknown users, so that a login does not reveal whether a user exists (RFC 5802).

A decoy is the same at each login and on each node of the cluster, and looks like a credential that exists.
Its keys belong to no password.
"""

from __future__ import annotations

import hmac
import string
from hashlib import shake_256

from kraftd.metadata.state import ScramState
from kraftd.security.sasl.scram_messages import ALGORITHMS, MIN_ITERATIONS

# Kafka's admin client makes salts of 130 random bits, as text in base 36.
_DIGITS = (string.digits + string.ascii_lowercase).encode()
SALT_BITS = 130


def decoy_credential(secret: bytes, mechanism: str, name: str, model: ScramState | None) -> ScramState:
    """The decoy of a user, with as many iterations as the model and a salt of its form.

    `secret` is the same on all nodes, and unknown to clients that have not logged in.
    """
    algorithm = ALGORITHMS[mechanism]

    def derived(what: str) -> bytes:
        return hmac.digest(secret, f"{what}\0{mechanism}\0{name}".encode(), algorithm)

    stored_key, server_key = derived("stored key"), derived("server key")
    return ScramState(
        _salt(derived("salt"), model),
        stored_key,
        server_key,
        MIN_ITERATIONS if model is None else model.iterations,
    )


def _salt(seed: bytes, model: ScramState | None) -> bytes:
    if model is None or all(byte in _DIGITS for byte in model.salt):
        number = int.from_bytes(seed) >> len(seed) * 8 - SALT_BITS
        digits = bytearray()
        while number:
            number, digit = divmod(number, 36)
            digits.append(_DIGITS[digit])
        return bytes(reversed(digits))
    return shake_256(seed).digest(len(model.salt))
