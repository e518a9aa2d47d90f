"""The leader of a partition, sent with the error that this node does not lead it (KIP-951).

As Kafka's brokers: with NOT_LEADER_OR_FOLLOWER, and in a Fetch with FENCED_LEADER_EPOCH, from Fetch v16 and
Produce v10 on; so in a ShareFetch and ShareAcknowledge. The endpoint is that of the leader's listener for
this client; there is none for a leader that the client cannot reach. Differs from Apache Kafka: other errors
of a ShareFetch or ShareAcknowledge name no leader, where Kafka leaves the fields at 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

from kraftd.answers.nodes import broker_listener, brokers, metadata_partition
from kraftd.answers.settings import ClientSettings
from kraftd.answers.view import ClusterView
from kraftd.ground.pace import ROW_US, Pace, Slices
from kraftd.messages import (
    fetch_response,
    produce_response,
    share_acknowledge_response,
    share_fetch_response,
)
from kraftd.requests.call import Call
from kraftd.types import METADATA_PARTITION, METADATA_TOPIC, Endpoint
from kraftd.wire.error_code import ErrorCode

EXAMINED_US = 3  # microseconds, for the pace: a partition
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
        self._endpoints: dict[int, Endpoint] = {}
        self._brokers: Mapping[int, tuple[Endpoint, str | None]] | None = None

    def add_to_fetch(self, response: fetch_response.FetchResponse, pace: Pace) -> Slices[None]:
        """Add the leaders of refused partitions to the answer to a Fetch, in slices. Replicas get no endpoint
        (as in Kafka) and not the leader of the metadata: a controller with a wrong port would follow it.
        """
        is_consumers = self._call.message.replica_state.replica_id < 0
        for topic in response.responses:
            for one in topic.partitions:
                if pace.spent(EXAMINED_US if one.error_code else ROW_US):
                    yield
                if one.error_code in FETCH_ERRORS:
                    name = topic.topic or self._name_of(topic.topic_id)
                    if is_consumers or name != METADATA_TOPIC:
                        self._add(one, name, one.partition_index, fetch_response)
        if is_consumers:
            self._add_endpoints(response, fetch_response)

    def add_to_produce(self, response: produce_response.ProduceResponse, pace: Pace) -> Slices[None]:
        """Add the leaders of refused partitions to the answer to a Produce, in slices."""
        if self._call.version < FIRST_PRODUCE_VERSION:
            return
        for topic in response.responses:
            if pace.spent(1):
                yield
            for one in topic.partition_responses:
                if pace.spent(EXAMINED_US):
                    yield
                if one.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
                    name = topic.name or self._name_of(topic.topic_id)
                    self._add(one, name, one.index, produce_response)
        self._add_endpoints(response, produce_response)

    def add_to_share_fetch(
        self, response: share_fetch_response.ShareFetchResponse, pace: Pace
    ) -> Slices[None]:
        """Add the leaders of refused partitions to the answer to a ShareFetch, in slices."""
        yield from self._add_by_ids(response, share_fetch_response, pace)

    def add_to_share_acknowledge(
        self, response: share_acknowledge_response.ShareAcknowledgeResponse, pace: Pace
    ) -> Slices[None]:
        """Add the leaders of refused partitions to the answer to a ShareAcknowledge, in slices."""
        yield from self._add_by_ids(response, share_acknowledge_response, pace)

    def _add_by_ids(self, response: Any, messages: ModuleType, pace: Pace) -> Slices[None]:
        for topic in response.responses:
            for one in topic.partitions:
                if pace.spent(EXAMINED_US if one.error_code else ROW_US):
                    yield
                if one.error_code in FETCH_ERRORS:
                    self._add(one, self._name_of(topic.topic_id), one.partition_index, messages)
                elif one.error_code:  # a client that believes any leader would go to broker 0
                    one.current_leader = messages.LeaderIdAndEpoch(*NO_LEADER[:2])
        self._add_endpoints(response, messages)

    def _add(self, one: Any, topic: str, index: int, messages: ModuleType) -> None:
        """Add the leader of a refused partition; `messages` is the module of its response."""
        leader_id, epoch, endpoint = self._leader(topic, index)
        one.current_leader = messages.LeaderIdAndEpoch(leader_id, epoch)
        if endpoint is not None:
            self._endpoints[leader_id] = endpoint

    def _add_endpoints(self, response: Any, messages: ModuleType) -> None:
        response.node_endpoints = [
            messages.NodeEndpoint(node_id, one.host, one.port, None)
            for node_id, one in self._endpoints.items()
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
        state = view.image.partition(view.image.topic_id(topic), index)
        if state is None:
            return NO_LEADER
        if self._brokers is None:
            self._brokers = brokers(view, broker_listener(settings, listener))
        reachable = self._brokers
        endpoint = reachable[state.leader][0] if state.leader in reachable else None
        return state.leader, state.leader_epoch, endpoint
