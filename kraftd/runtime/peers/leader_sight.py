"""Asks the leader how the quorum looks, on behalf of a status page: only the leader knows all replicas.

The request is DescribeQuorum, over this node's own connections to controllers and with its own login.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from typing import Any

from kraftd.controller_node.node import Node
from kraftd.ground.destination import Destination
from kraftd.messages.describe_quorum_request import DescribeQuorumRequest, PartitionData, TopicData
from kraftd.messages.describe_quorum_response import DescribeQuorumResponse
from kraftd.metrics.state.sight import Sight
from kraftd.net.outbound import Failure, Outbound, Times
from kraftd.runtime.clock import Clock
from kraftd.runtime.peers.sending import SOFTWARE, LoopWiring
from kraftd.security.sasl.mechanism import ClientExchange
from kraftd.types import METADATA_PARTITION, METADATA_TOPIC
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.message import Message

WAIT_S = 1.0  # of a page for the answer; a later one is for the next page
_NAMES = {int(code): code.name for code in ErrorCode}
_REQUEST = DescribeQuorumRequest([TopicData(METADATA_TOPIC, [PartitionData(METADATA_PARTITION)])])


class LeaderSight:
    """`latest` is the newest answer, None on the leader itself and while there is none."""

    def __init__(
        self,
        node: Node,
        wiring: LoopWiring,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        login: Callable[[], ClientExchange] | None,
    ) -> None:
        self.latest: Sight | None = None
        self._node = node
        self._clock = clock
        self._loop = loop
        self._outbound = Outbound(str(node.identity.node_id), SOFTWARE, self, wiring, Times(), login)
        self._waiting: asyncio.Future[None] | None = None
        self._reason = ""

    async def ask(self) -> None:
        """Ask the leader, unless this node leads or knows none; return after WAIT_S at the latest."""
        core = self._node.core
        leader = core.leader_endpoint(self._node.identity.quorum_listener)
        if core.is_leader or core.leader_id is None or leader is None or not core.leader_answers:
            self.latest = None
            return
        if self._waiting is None:
            self._waiting = self._loop.create_future()
            address = Destination(core.leader_id, leader.host, leader.port)
            self._outbound.send(address, address, _REQUEST)
        await asyncio.wait([self._waiting], timeout=WAIT_S)

    # -- outcomes

    def answered(self, tag: Hashable, message: Message) -> None:
        assert isinstance(tag, Destination) and isinstance(message, DescribeQuorumResponse)
        partition: Any = message.topics[0].partitions[0] if message.topics else None
        error = message.error_code or (partition.error_code if partition else ErrorCode.UNKNOWN_SERVER_ERROR)
        if error:
            self._end(tag, failure=f"it refuses DescribeQuorum: {_NAMES.get(error, error)}")
            return
        lines = tuple(line for line in (message.error_message or "").splitlines() if line)
        self.latest = Sight(tag.node_id, self._clock.now_ms(), partition, lines)
        self._wake()

    def failed(self, tag: Hashable, failure: Failure) -> None:
        assert isinstance(tag, Destination)
        self._end(tag, failure=self._reason or failure.name.lower().replace("_", " "))

    def lost(self, address: Destination, reason: str) -> None:
        self._reason = reason

    def silent(self, address: Destination, reason: str) -> None:
        self._reason = reason

    def _end(self, address: Destination, failure: str) -> None:
        self.latest = Sight(address.node_id, self._clock.now_ms(), failure=failure)
        self._reason = ""
        self._wake()

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.done():
            waiting.set_result(None)

    def stop(self) -> None:
        self._outbound.close()
        self._wake()

    def __repr__(self) -> str:
        return f"<LeaderSight {self.latest!r}>"
