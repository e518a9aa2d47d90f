"""The URLs that a login trusts: of token endpoints and key sets."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit


def is_https(url: str) -> bool:
    """Return whether a URL is reached by TLS."""
    return url.lower().startswith("https:")


def is_protected(url: str) -> bool:
    """Return whether exchanges with a URL stay private: by HTTPS, or by HTTP within this host."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        return False
    if not host or parts.username is not None:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and _is_this_host(host))


def _is_this_host(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
