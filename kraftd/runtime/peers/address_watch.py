"""Checks from time to time whether advertised addresses lead to their nodes: `host.address_check` on the
loop.

A node sends the request to its own address; a leader also to those of the voters that fetch. Each request
names the true leader, so that a wrong receiver learns nothing wrong.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterator
from typing import Any

from kraftd.controller_node.node import Node
from kraftd.ground.destination import Destination
from kraftd.host.checks.address_check import CORRECT, AddressCheck, Target
from kraftd.messages.begin_quorum_epoch_request import (
    BeginQuorumEpochRequest,
    LeaderEndpoint,
    PartitionData,
    TopicData,
)
from kraftd.net.outbound import Failure, Outbound, Times
from kraftd.raft.quorum.voters import listener_endpoint
from kraftd.runtime.clock import Clock
from kraftd.runtime.peers.peer_watch import POLL_MS, poll_ms, until_tick_s
from kraftd.runtime.peers.sending import SOFTWARE, LoopWiring
from kraftd.security.sasl.mechanism import ClientExchange
from kraftd.types import METADATA_PARTITION, METADATA_TOPIC, ZERO_UUID, Endpoint
from kraftd.wire.api import ApiKey
from kraftd.wire.message import Message

LIVE_MS = 3_000  # a voter that fetched within this time runs
NO_BEGIN_QUORUM_EPOCH = "a broker answers there, not a controller"


class AddressWatch:
    """Drives an AddressCheck; the connections are closed once all have answered."""

    def __init__(
        self,
        node: Node,
        wiring: LoopWiring,
        clock: Clock,
        log: Any,
        loop: asyncio.AbstractEventLoop,
        login: Callable[[], ClientExchange] | None,
    ) -> None:
        self.check = AddressCheck(node.identity.node_id)
        self._node = node
        self._clock = clock
        self._log = log
        self._loop = loop
        name = f"raft-client-{node.identity.node_id}"
        self.outbound = Outbound(name, SOFTWARE, self, wiring, Times(), login)
        self._in_flight: dict[Destination, Target] = {}
        self._reasons: dict[Destination, str] = {}
        self._timer = loop.call_later(POLL_MS / 1000, self._check_due)

    def _check_due(self) -> None:
        now_ms, core = self._clock.now_ms(), self._node.core
        period_ms = POLL_MS if self.check.has_failures else poll_ms(core)
        self._timer = self._loop.call_later(until_tick_s(now_ms, period_ms), self._check_due)
        if not self._in_flight:  # the previous ones have answered or timed out
            leader = core.leader_endpoint(self._node.identity.quorum_listener)
            knows = core.leader_id is not None and leader is not None and core.leader_answers
            for target in self.check.due(self._targets(now_ms) if knows else (), now_ms):
                assert leader is not None
                address = Destination(target.key.id, target.host, target.port)
                self._in_flight[address] = target
                self.outbound.send(address, address, self._request(target, leader))
        for report in self.check.report(now_ms):
            self._log.warning(
                "an advertised address does not lead to its node",
                of_node=report.target.key.id,
                at=report.target.at,
                why=report.text,
                remedy=CORRECT,
                seen=report.seen,
            )

    def _targets(self, now_ms: int) -> Iterator[Target]:
        core, identity = self._node.core, self._node.identity
        own = listener_endpoint(identity.endpoints, identity.quorum_listener)
        if own is not None and own.host and own.port:
            yield Target(core.key, own.host, own.port)
        for view in core.replicas(now_ms) if core.is_leader else ():
            at = listener_endpoint(core.voters.listeners(view.key.id), identity.quorum_listener)
            fetches = view.last_fetch_ms is not None and now_ms - view.last_fetch_ms < LIVE_MS
            if view.is_voter and fetches and view.key.id != identity.node_id and at is not None:
                yield Target(view.key, at.host, at.port)

    def _request(self, target: Target, leader: Endpoint) -> Message:
        core = self._node.core
        assert core.leader_id is not None
        directory = target.key.directory_id or ZERO_UUID
        partition = PartitionData(METADATA_PARTITION, directory, core.leader_id, core.epoch)
        return BeginQuorumEpochRequest(
            self._node.identity.cluster_id,
            target.key.id,
            [TopicData(METADATA_TOPIC, [partition])],
            [LeaderEndpoint(leader.listener, leader.host, leader.port)],
        )

    # -- outcomes

    def answered(self, tag: Hashable, message: Message) -> None:
        assert isinstance(tag, Destination)
        self.check.answered(self._in_flight.pop(tag), message, self._clock.now_ms())
        self._close_if_idle()

    def failed(self, tag: Hashable, failure: Failure) -> None:
        assert isinstance(tag, Destination)
        reason = self._reasons.pop(tag, "Connection refused")
        if failure is Failure.UNSUPPORTED:
            served = self.outbound.served(tag) or ()
            reason = NO_BEGIN_QUORUM_EPOCH if ApiKey.BEGIN_QUORUM_EPOCH not in served else ""
        target = self._in_flight.pop(tag)
        if reason:
            self.check.failed(target, reason, self._clock.now_ms())
        self._close_if_idle()

    def lost(self, address: Destination, reason: str) -> None:
        self._reasons[address] = reason

    def silent(self, address: Destination, reason: str) -> None:
        self._reasons[address] = reason

    def _close_if_idle(self) -> None:
        if not self._in_flight:
            self._loop.call_soon(self._close)

    def _close(self) -> None:
        if not self._in_flight:
            self._reasons.clear()
            self.outbound.close()

    def stop(self) -> None:
        self._timer.cancel()
        self.outbound.close()

    def __repr__(self) -> str:
        return f"<AddressWatch {self.check!r}, {len(self._in_flight)} in flight>"
