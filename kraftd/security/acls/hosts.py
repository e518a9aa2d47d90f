"""The one text of an address by which hosts are compared: that of Java's ``InetAddress.getHostAddress``."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import AddressValueError, IPv4Address, IPv6Address

MAX_REMEMBERED = 4096


@lru_cache(MAX_REMEMBERED)
def canonical_host(text: str) -> str:
    """An IP address in Java's form; any other text, such as the wildcard, as it is.

    IPv4 and IPv4-mapped addresses become ``10.0.0.1``, IPv6 ones ``2001:db8:0:0:0:0:0:7``. A zone follows
    behind ``%``.
    """
    if ":" not in text:
        return text
    address, percent, zone = text.partition("%")
    try:
        found = IPv6Address(address)
    except AddressValueError:
        return text
    return java_text(found.packed) + percent + zone


def java_text(address: bytes) -> str:
    """The text of 4 or 16 raw bytes. Raises ValueError for any other number."""
    if len(address) == 4:
        return str(IPv4Address(address))
    found = IPv6Address(address)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return ":".join(f"{int(group, 16):x}" for group in found.exploded.split(":"))
