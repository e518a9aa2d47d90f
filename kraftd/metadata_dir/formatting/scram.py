"""SCRAM credentials given on the command line of format (KIP-900): `SCRAM-SHA-256=[name=…,password=…]`."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Callable

from kraftd.messages.user_scram_credential_record import UserScramCredentialRecord

MIN_ITERATIONS = 4096
MAX_ITERATIONS = 16384
# name: (number in the record, hash)
_MECHANISMS = {"SCRAM-SHA-256": (1, "sha256"), "SCRAM-SHA-512": (2, "sha512")}


def parse_scram(argument: str, new_salt: Callable[[], bytes]) -> UserScramCredentialRecord:
    """The record for one argument; new_salt makes a salt that is not given.

    Raises ValueError with what is missing, unknown or malformed.
    """
    mechanism, equals, text = argument.strip().partition("=")
    if not equals:
        raise ValueError(f"{argument!r}: MECHANISM=[name=…,password=…] is expected")
    if mechanism not in _MECHANISMS:
        raise ValueError(f"{mechanism!r} is no SCRAM mechanism; {' and '.join(_MECHANISMS)} are")
    if not (text.startswith("[") and text.endswith("]") and len(text) >= 2):
        raise ValueError(f"{argument!r}: what follows {mechanism}= is put in brackets")
    parts: dict[str, str] = {}
    for part in text[1:-1].split(","):
        name, equals, value = part.partition("=")
        if not equals:
            raise ValueError(f"{part!r} in the credential of {mechanism}: name=value is expected")
        if len(value) >= 2 and value.startswith('"') and value.endswith('"'):
            value = value[1:-1]
        parts[name] = value
    user = parts.pop("name", None)
    if user is None:
        raise ValueError(f"the credential of {mechanism} has no name")
    salt_text = parts.pop("salt", None)
    iterations = _iterations(parts.pop("iterations", str(MIN_ITERATIONS)), mechanism)
    password, salted_text = parts.pop("password", None), parts.pop("saltedpassword", None)
    if parts:
        raise ValueError(f"the credential of {mechanism} has an unknown part: {', '.join(sorted(parts))}")
    if password is None and salted_text is None:
        raise ValueError(f"the credential of {mechanism} has neither password nor saltedpassword")
    if password is None and salt_text is None:
        raise ValueError(f"the credential of {mechanism} has a saltedpassword and no salt")
    number, algorithm = _MECHANISMS[mechanism]
    salt = new_salt() if salt_text is None else _base64(salt_text, "salt")
    if password is not None:
        salted = hashlib.pbkdf2_hmac(algorithm, password.encode(), salt, iterations)
    else:
        salted = _base64(salted_text or "", "saltedpassword")
    client_key = hmac.digest(salted, b"Client Key", algorithm)
    return UserScramCredentialRecord(
        name=user,
        mechanism=number,
        salt=salt,
        stored_key=hashlib.new(algorithm, client_key).digest(),
        server_key=hmac.digest(salted, b"Server Key", algorithm),
        iterations=iterations,
    )


def _iterations(text: str, mechanism: str) -> int:
    try:
        iterations = int(text)
    except ValueError:
        raise ValueError(f"iterations={text} is no number") from None
    if not MIN_ITERATIONS <= iterations <= MAX_ITERATIONS:
        raise ValueError(
            f"iterations={text} for {mechanism}: {MIN_ITERATIONS} to {MAX_ITERATIONS} are allowed"
        )
    return iterations


def _base64(text: str, name: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ValueError(f"{name}={text} is no base64") from None
