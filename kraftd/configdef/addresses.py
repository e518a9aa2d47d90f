"""Hosts and ports in config values, as Kafka reads them."""

from __future__ import annotations

import re

_HOST_PORT = re.compile(r"(?:[0-9a-zA-Z\-%._]*://)?\[?([0-9a-zA-Z\-%._:]*)]?:([0-9]+)")


def parse_host_port(text: str) -> tuple[str, int]:
    """The host and port of ``host:port``, ``[v6]:port`` or ``scheme://host:port``. Raises ValueError."""
    match = _HOST_PORT.fullmatch(text)
    if match is None or int(match[2]) > 65535:
        raise ValueError("must be host:port, like controller1:9093")
    return match[1], int(match[2])


def parse_voter(text: str) -> tuple[int, str, int]:
    """Id, host and port of ``id@host:port``. Raises ValueError."""
    wanted = "must be id@host:port, like 1@controller1:9093"
    node_id, at, address = text.partition("@")
    if not at or not re.fullmatch(r"[+-]?[0-9]+", node_id):
        raise ValueError(wanted)
    try:
        return int(node_id), *parse_host_port(address)
    except ValueError:
        raise ValueError(wanted) from None


def parse_bootstrap_server(text: str) -> tuple[str, int]:
    """Host and port of an entry of a list of bootstrap servers. Raises ValueError."""
    return parse_host_port(text)
