"""The broker node as its fetchers see it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from kraftd.answers.view import ClusterView
from kraftd.broker_node.fetching.fetchers import fetch_version
from kraftd.broker_node.fetching.steady_rounds import SteadyRounds
from kraftd.broker_node.lifecycle import BrokerLifecycle
from kraftd.broker_node.own_requests import OwnRequests
from kraftd.broker_node.partitions.replicas import Hosted, Replicas
from kraftd.broker_node.replication_quotas import ReplicationQuotas
from kraftd.configdef.node import NodeConfig
from kraftd.ground.effect import Effect
from kraftd.metadata.metadata_version import METADATA_VERSION, MINIMUM_VERSION
from kraftd.metadata.throttled import NONE_THROTTLED
from kraftd.requests.outbox import Outbox
from kraftd.wire.message import Message


def inter_broker_listener(static: NodeConfig) -> str:
    """The listener that brokers use among themselves."""
    name = static.value("inter.broker.listener.name") or static.value("security.inter.broker.protocol")
    return str(name).upper()


class Node(Protocol):
    """The broker node."""

    now_ms: int
    view: ClusterView
    outbox: Outbox
    lifecycle: BrokerLifecycle
    own_requests: OwnRequests
    replicas: Replicas
    replication_quotas: ReplicationQuotas

    @property
    def identity(self) -> tuple[int, int]: ...

    def follow_up(self, hosted: Hosted, effects: list[Effect]) -> None: ...

    def go_on(self, slices: Iterator[None]) -> None: ...


class NodePorts:
    """See `kraftd.broker_node.fetching.fetcher.FetcherPorts`."""

    def __init__(self, node: Node, static: NodeConfig) -> None:
        self._node = node
        self._listener = inter_broker_listener(static)
        self.follow_up, self.go_on = node.follow_up, node.go_on

    def __repr__(self) -> str:
        return f"<NodePorts of {self._node!r}, listener {self._listener}>"

    @property
    def now_ms(self) -> int:
        return self._node.now_ms

    def identity(self) -> tuple[int, int]:
        return self._node.identity

    def fetch_version(self) -> int:
        levels, _ = self._node.view.finalized_features
        return fetch_version(levels.get(METADATA_VERSION, MINIMUM_VERSION))

    def ask(
        self,
        leader_id: int,
        fetcher: int,
        message: Message,
        version: int | None,
        then: Callable[[Message | None], None],
        rounds: SteadyRounds | None = None,
    ) -> None:
        purpose = f"fetcher-{fetcher}"
        self._node.own_requests.ask_node(leader_id, self._listener, purpose, message, version, then, rounds)

    def state(self) -> tuple[int, int]:
        return self._node.view.image_end_offset, self._node.lifecycle.broker_epoch

    def may_hold_back(self) -> bool:
        return self._node.replication_quotas.follower.is_limited

    def is_plain(self, hosted: Hosted) -> bool:
        state, node_id, config = hosted.state, self._node.view.node_id, hosted.config
        return (
            node_id in state.isr
            and node_id not in state.adding_replicas
            and config is not None
            and config is self._node.replicas.configs.of(hosted.topic)
            and config.throttled_followers == NONE_THROTTLED
        )

    def is_held_back(self, hosted: Hosted) -> bool:
        return self._node.replication_quotas.follower.holds_back(hosted)

    def fetched(self, hosted: Hosted, size_bytes: int) -> None:
        node, adding = self._node, hosted.state.adding_replicas
        config = node.replicas.refresh_config(hosted)
        if size_bytes:
            if config.throttled_followers != NONE_THROTTLED:
                node.replication_quotas.follower.record(hosted, size_bytes)
            hosted.traffic.replication_bytes_in += size_bytes
            if adding and node.view.node_id in adding:
                node.replicas.traffic.reassignment_bytes_in += size_bytes

    def log(self, level: str, text: str, **fields: object) -> None:
        self._node.outbox.log(level, text, **fields)
