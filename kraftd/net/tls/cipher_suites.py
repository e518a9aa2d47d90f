"""Translates Java's names of cipher suites into OpenSSL's."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kraftd.security.tls_settings import TLS_1_3

_NAME = re.compile(r"TLS_(?P<exchange>\w+)_WITH_(?P<cipher>AES_\d+|CHACHA20_POLY1305)_(?P<rest>\w+)")


def openssl_name(name: str) -> str:
    """The name of a suite of TLS 1.2 or older. Raises ValueError for one that OpenSSL has no word for."""
    match = _NAME.fullmatch(name)
    if match is None:
        raise ValueError(f"{name} is no cipher suite that kraftd can offer")
    exchange = match["exchange"].replace("_", "-")
    if match["cipher"] == "CHACHA20_POLY1305":
        return f"{exchange}-CHACHA20-POLY1305"
    cipher = match["cipher"].replace("_", "")
    rest = match["rest"].removeprefix("CBC_").replace("_", "-")
    return f"{cipher}-{rest}" if exchange == "RSA" else f"{exchange}-{cipher}-{rest}"


def split_suites(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Those of TLS 1.3, and OpenSSL's names of the others. Raises ValueError."""
    newer = [name for name in names if name in TLS_1_3]
    return newer, [openssl_name(name) for name in names if name not in TLS_1_3]
