"""The identity of this node: its id, its cluster, and this run of it."""

from __future__ import annotations

from msgspec import Struct

from kraftd.types import Endpoint, uuid_text


class Identity(Struct, frozen=True, gc=False):
    """A controller: its id, its cluster, this run of it, and the endpoints that it advertises.

    broker_endpoints: of the broker in the same process, which hands requests over.
    """

    node_id: int
    cluster_id: str
    incarnation_id: bytes
    endpoints: tuple[Endpoint, ...] = ()
    quorum_listener: str = "CONTROLLER"  # the listener that controllers use among themselves
    is_controller: bool = True  # else an observer that decides nothing
    broker_endpoints: tuple[Endpoint, ...] = ()

    def security_protocol(self, listener: str) -> int:
        """The number of a listener's security protocol; 0, PLAINTEXT, for one that is not advertised."""
        known = (*self.endpoints, *self.broker_endpoints)
        found = next((endpoint for endpoint in known if endpoint.listener == listener), None)
        return 0 if found is None else found.security_protocol

    def __repr__(self) -> str:
        return f"<Identity {self.node_id} of {self.cluster_id}, incarnation {uuid_text(self.incarnation_id)}>"
