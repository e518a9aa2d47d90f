"""What the leader remembers of brokers' heartbeats: soft state, lost with leadership, never in a record.

Whether a broker is fenced or shutting down is the image's to say; here is when it was last heard of, how far it had
read the metadata, and the offset at which its controlled shutdown is complete.
"""

from __future__ import annotations

from msgspec import Struct

UNKNOWN_OFFSET = -1


class Heartbeat(Struct, gc=False):
    """One registration (id and broker epoch) as its heartbeats show it."""

    broker_epoch: int
    contact_ms: int
    metadata_offset: int = UNKNOWN_OFFSET  # the broker has read the metadata up to here
    shutdown_offset: int = (
        UNKNOWN_OFFSET  # all active brokers must have read this far before it may shut down
    )

    def __repr__(self) -> str:
        text = f"epoch {self.broker_epoch}, heard at {self.contact_ms} ms, read to {self.metadata_offset}"
        return f"<Heartbeat {text}{f', shut down at {self.shutdown_offset}' if self.shutdown_offset >= 0 else ''}>"


class BrokerHeartbeats:
    """Heartbeats by broker id, with their session timeout."""

    def __init__(self, session_timeout_ms: int) -> None:
        self.session_timeout_ms = session_timeout_ms
        self.brokers: dict[int, Heartbeat] = {}
