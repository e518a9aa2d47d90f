"""The leader of a partition, sent with the error that this node does not lead it (KIP-951).

As Kafka's brokers: with NOT_LEADER_OR_FOLLOWER, and in a Fetch with FENCED_LEADER_EPOCH, from Fetch v16 and
Produce v10 on. The endpoint is that of the leader's listener for this client; there is none for a leader that
the client cannot reach.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from kraftd.client_node.nodes import broker_listener, brokers, metadata_partition
from kraftd.client_node.settings import ClientSettings
from kraftd.client_node.view import ClusterView
from kraftd.messages import fetch_response, produce_response
from kraftd.requests.call import Call
from kraftd.types import METADATA_PARTITION, METADATA_TOPIC, ZERO_UUID, Endpoint
from kraftd.wire.error_code import ErrorCode

FIRST_FETCH_VERSION = 16
FIRST_PRODUCE_VERSION = 10
FETCH_ERRORS = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
NO_LEADER = -1, -1, None


class CurrentLeaders:
    """The leaders of partitions for one client."""

    def __init__(self, view: ClusterView, settings: ClientSettings, call: Call) -> None:
        self._view = view
        self._settings = settings
        self._call = call

    def add_to_fetch(self, response: fetch_response.FetchResponse) -> None:
        """Add the leaders of refused partitions to the answer to a Fetch."""
        if self._call.version < FIRST_FETCH_VERSION:
            return
        if self._call.message.replica_state.replica_id >= 0:
            return  # a controller with a wrong port configured would follow the leader there
        refused = [
            (one, topic.topic or self._name_of(topic.topic_id), one.partition_index)
            for topic in response.responses
            for one in topic.partitions
            if one.error_code in FETCH_ERRORS
        ]
        self._add(response, refused, fetch_response)

    def add_to_produce(self, response: produce_response.ProduceResponse) -> None:
        """Add the leaders of refused partitions to the answer to a Produce."""
        if self._call.version < FIRST_PRODUCE_VERSION:
            return
        refused = [
            (one, topic.name or self._name_of(topic.topic_id), one.index)
            for topic in response.responses
            for one in topic.partition_responses
            if one.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        ]
        self._add(response, refused, produce_response)

    def _add(self, response: Any, refused: list[tuple[Any, str, int]], messages: ModuleType) -> None:
        """Add the leaders of `refused`: partitions of the response, each with its topic and its index.

        `messages` is the module of the response, which has classes of its own for leaders and endpoints.
        """
        endpoints: dict[int, Endpoint] = {}
        for one, topic, index in refused:
            leader_id, epoch, endpoint = self._leader(topic, index)
            one.current_leader = messages.LeaderIdAndEpoch(leader_id, epoch)
            if endpoint is not None:
                endpoints[leader_id] = endpoint
        response.node_endpoints = [
            messages.NodeEndpoint(node_id, one.host, one.port, None) for node_id, one in endpoints.items()
        ]

    def _name_of(self, topic_id: bytes) -> str:
        topic = self._view.image.topic(topic_id)
        return METADATA_TOPIC if topic is None else topic.name

    def _leader(self, topic: str, index: int) -> tuple[int, int, Endpoint | None]:
        """Id and epoch of the leader, and its endpoint."""
        view, settings, listener = self._view, self._settings, self._call.listener
        if topic == METADATA_TOPIC:
            if index != METADATA_PARTITION:
                return NO_LEADER
            log = metadata_partition(view, settings, listener)
            return log.leader_id, log.leader_epoch, log.replicas.get(log.leader_id)
        state = view.image.partition(view.image.topic_names().get(topic, ZERO_UUID), index)
        if state is None:
            return NO_LEADER
        reachable = brokers(view, broker_listener(settings, listener))
        endpoint = reachable[state.leader][0] if state.leader in reachable else None
        return state.leader, state.leader_epoch, endpoint
