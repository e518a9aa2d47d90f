"""Where a request to another node goes."""

from __future__ import annotations

from msgspec import Struct


class Destination(Struct, frozen=True, gc=False):
    """Where a request goes. A bootstrap server of unknown id has -2 or below, as in Kafka."""

    node_id: int
    host: str
    port: int

    def __repr__(self) -> str:
        return f"{self.node_id} at {self.host}:{self.port}"
