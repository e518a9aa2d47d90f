"""The notifications of the consensus core about the outcome of a node's own requests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import structlog

from kraftd.ground.destination import Destination
from kraftd.host.checks.peer_troubles import PeerTroubles
from kraftd.messages.vote_request import VoteRequest
from kraftd.net.link import Link
from kraftd.net.outbound import Times
from kraftd.raft.effects import Send
from kraftd.raft.events import ConnectionLost, SendFailed
from kraftd.runtime.peers.sending import QuorumPeers
from kraftd.wire.error_code import ErrorCode
from testkit.memory_transport import MemoryTransport


class Wiring:
    """A loop that does nothing by itself."""

    def __init__(self) -> None:
        self.links: dict[Destination, Link] = {}

    def now_ms(self) -> int:
        return 0

    def call_soon(self, function: Callable[..., object], *arguments: Any) -> None:
        raise AssertionError("nothing is put off here")

    def call_later_ms(self, delay_ms: int, function: Callable[[], object]) -> Any:
        return None

    def open(self, address: Destination, link: Link) -> None:
        self.links[address] = link


def quorum_peers() -> tuple[QuorumPeers, Wiring, list[Any]]:
    wiring, events = Wiring(), []
    log: Any = structlog.get_logger()
    peers = QuorumPeers(1, wiring, Times(), events.append, events.append, log, PeerTroubles(1, "c"))  # type: ignore[arg-type]
    return peers, wiring, events


def test_the_core_is_notified_of_a_refused_connection_before_its_request() -> None:
    peers, wiring, events = quorum_peers()
    peers.send(Send(5, Destination(2, "127.0.0.1", 9094), VoteRequest()))
    wiring.links[Destination(2, "127.0.0.1", 9094)].not_opened("refused")
    assert events == [ConnectionLost(2), SendFailed(5, ErrorCode.BROKER_NOT_AVAILABLE)]


def test_the_end_of_a_connection_to_a_former_address_does_not_count_as_a_nodes_loss() -> None:
    peers, wiring, events = quorum_peers()
    peers.send(Send(5, Destination(2, "127.0.0.1", 9094), VoteRequest()))
    old = wiring.links[Destination(2, "127.0.0.1", 9094)]
    old.connection_made(MemoryTransport())
    peers.send(Send(6, Destination(2, "127.0.0.1", 9999), VoteRequest()))
    old.connection_lost(None)
    assert events == [SendFailed(5, ErrorCode.BROKER_NOT_AVAILABLE)]
