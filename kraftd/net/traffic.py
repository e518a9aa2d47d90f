"""Counts the traffic of connections to other nodes."""

from __future__ import annotations


class Traffic:
    """Counts of the traffic of a client id's connections since the start."""

    __slots__ = ("closed", "in_bytes", "opened", "out_bytes", "requests", "responses")

    def __init__(self) -> None:
        self.opened = 0
        self.closed = 0
        self.requests = 0
        self.responses = 0
        self.out_bytes = 0
        self.in_bytes = 0

    def __repr__(self) -> str:
        return f"<Traffic of {self.opened} connections, {self.requests} requests, {self.responses} responses>"
