"""The messages of SCRAM (RFC 5802) in Kafka's dialect, and the computations of both sides."""

from __future__ import annotations

import base64
import binascii
import re

from kraftd.security.sasl.mechanism import SCRAM_SHA_256, SCRAM_SHA_512, SaslFailed

MIN_ITERATIONS = 4096
MAX_CLIENT_ITERATIONS = 1_000_000  # more would only waste this client's time
MAX_MESSAGE_BYTES = 8192
CODES = {SCRAM_SHA_256: 1, SCRAM_SHA_512: 2}  # of the records and AlterUserScramCredentials
ALGORITHMS = {SCRAM_SHA_256: "sha256", SCRAM_SHA_512: "sha512"}
TOKEN_AUTH = "tokenauth"

SASL_NAME = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
PRINTABLE = r"[\x21-\x2b\x2d-\x7e]+"
_VALUE = r"[\x01-\x2b\x2d-\x7f]+"
_BASE64 = r"(?:[a-zA-Z0-9/+]{4})*(?:[a-zA-Z0-9/+]{3}=|[a-zA-Z0-9/+]{2}==)?"
_EXTENSIONS = rf"(?:,[A-Za-z]+={_VALUE})*"
CLIENT_FIRST = re.compile(
    rf"(?P<header>n,(?:a=(?P<authzid>{SASL_NAME}))?,)"
    rf"(?P<bare>(?:m={_VALUE},)?n=(?P<name>{SASL_NAME}),r=(?P<nonce>{PRINTABLE})(?P<more>{_EXTENSIONS}))"
)
SERVER_FIRST = re.compile(
    rf"(?:m={_VALUE},)?r=(?P<nonce>{PRINTABLE}),s=(?P<salt>{_BASE64}),i=(?P<iterations>[0-9]{{1,9}}){_EXTENSIONS}"
)
CLIENT_FINAL = re.compile(
    rf"(?P<bare>c=(?P<channel>{_BASE64}),r=(?P<nonce>{PRINTABLE}){_EXTENSIONS}),p=(?P<proof>{_BASE64})"
)
SERVER_FINAL = re.compile(rf"(?:e=(?P<error>{_VALUE})|v=(?P<signature>{_BASE64})){_EXTENSIONS}")


def sasl_name(name: str) -> str:
    """A user's name in SCRAM's encoding."""
    return name.replace("=", "=3D").replace(",", "=2C")


def user_name(name: str) -> str:
    """The user's name from SCRAM's encoding."""
    return name.replace("=2C", ",").replace("=3D", "=")


def message_text(message: bytes) -> str:
    if len(message) > MAX_MESSAGE_BYTES:
        raise SaslFailed(f"a SCRAM message of {len(message)} bytes")
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise SaslFailed("a SCRAM message that is no text") from None


def decode_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise SaslFailed("malformed base64 in a SCRAM message") from None


def xor(left: bytes, right: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(left, right, strict=True))
