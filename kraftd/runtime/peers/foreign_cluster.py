"""Asks a peer that refused this node's cluster id for its own, so that the log has both.

The refusals have no field for it. The question goes over a connection of its own: a controller that answers
late must not disturb the quorum's.
"""

from __future__ import annotations

from collections.abc import Hashable

from kraftd.ground.destination import Destination
from kraftd.host.checks.peer_troubles import PeerTroubles
from kraftd.messages.describe_cluster_request import DescribeClusterRequest
from kraftd.messages.describe_cluster_response import DescribeClusterResponse
from kraftd.net.outbound import Failure, Outbound, Times
from kraftd.runtime.peers.sending import SOFTWARE, Road
from kraftd.wire.message import Message

CONTROLLERS = 2  # DescribeCluster's type of endpoint (KIP-919)


class ForeignCluster:
    """Asks each address until it has answered once; the answers go to PeerTroubles."""

    def __init__(self, node_id: int, road: Road, times: Times, troubles: PeerTroubles) -> None:
        self.outbound = Outbound(f"raft-client-{node_id}", SOFTWARE, self, road.wiring, times, road.login)
        self._call_soon = road.wiring.call_soon
        self._troubles = troubles
        self._in_flight: set[Hashable] = set()

    def ask(self, address: Destination) -> None:
        if address not in self._in_flight:
            self._in_flight.add(address)
            self.outbound.send(address, address, DescribeClusterRequest(endpoint_type=CONTROLLERS))

    def answered(self, tag: Hashable, message: Message) -> None:
        assert isinstance(tag, Destination) and isinstance(message, DescribeClusterResponse)
        if not message.error_code:
            self._troubles.is_of_cluster(f"{tag.host}:{tag.port}", message.cluster_id)
        self._ended(tag)

    def failed(self, tag: Hashable, failure: Failure) -> None:
        self._ended(tag)

    def lost(self, address: Destination, reason: str) -> None:
        """Do nothing: the next refusal asks again."""

    def silent(self, address: Destination, reason: str) -> None:
        """Do nothing: the next refusal asks again."""

    def stop(self) -> None:
        self._in_flight.clear()
        self.outbound.close()

    def _ended(self, tag: Hashable) -> None:
        self._in_flight.discard(tag)
        self._call_soon(self._close_if_idle)

    def _close_if_idle(self) -> None:
        if not self._in_flight:
            self.outbound.close()

    def __repr__(self) -> str:
        return f"<ForeignCluster: {len(self._in_flight)} asked>"
