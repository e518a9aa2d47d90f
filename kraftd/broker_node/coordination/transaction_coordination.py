"""The transaction coordinator beside this broker's partitions of ``__transaction_state``: the markers that it
has to send, the producer ids that it takes, and the partitions of this broker that ask it (KIP-890).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from kraftd.broker_node.coordination.coordination import NO_LEADER, Coordination, leader_of
from kraftd.broker_node.coordination.known_topics import KnownTopics
from kraftd.broker_node.coordination.markers import MarkingNode, write_marker
from kraftd.ground.pace import Pace, Slices
from kraftd.groups.effects import RespondInSlices
from kraftd.groups.transactions.config import TransactionConfig
from kraftd.groups.transactions.coordinator import TransactionCoordinator
from kraftd.groups.transactions.effects import (
    MarkersAnswered,
    ProducerIdTaken,
    SendMarkers,
    TakeProducerId,
)
from kraftd.groups.transactions.partitions import Added, Results
from kraftd.groups.transactions.transaction import TopicPartition
from kraftd.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kraftd.messages.add_partitions_to_txn_response import AddPartitionsToTxnResponse
from kraftd.messages.write_txn_markers_request import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from kraftd.messages.write_txn_markers_response import WriteTxnMarkersResponse
from kraftd.types import TRANSACTIONS_TOPIC
from kraftd.wire.error_code import ErrorCode, error_of
from kraftd.wire.message import Message
from kraftd.wire.records import NO_SEQUENCE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kraftd.metadata.image import Image
    from kraftd.requests.call import Call
    from kraftd.requests.holds import Work

TRANSACTION_VERSION = "transaction.version"
LEADER_US = 3  # of work: the leader of a partition is found
MARKING_US = 300  # of the markers of a usual transaction


class TransactionCoordination(Coordination):
    """Drives the transaction coordinator. `listener` is the one among brokers."""

    topic = TRANSACTIONS_TOPIC
    content = "transactional ids"
    base_sequence = NO_SEQUENCE

    def __init__(
        self,
        node: MarkingNode,
        config: TransactionConfig,
        group_partition_for: Callable[[str], int],
        listener: str,
    ) -> None:
        self.coordinator = TransactionCoordinator(
            config, KnownTopics(node.view, node.go_on), group_partition_for
        )
        super().__init__(node, self.coordinator)
        self._broker = node
        self._listener = listener
        self._to_mark: deque[SendMarkers] = deque()
        self._performers |= {
            SendMarkers: self._mark_later,
            TakeProducerId: self._take_id,
            RespondInSlices: self._respond_in_slices,
        }

    def handle(self, call: Call) -> None:
        """Take a request of a producer, or of an operator."""
        coordinator_call = self.new_call(call)
        try:
            effects = self.coordinator.handle(coordinator_call, call.message, self._node.wall_ms)
        except Exception:
            call.settled = False  # nothing else answers it
            raise
        self.perform(effects)

    def handle_in_slices(self, call: Call) -> Work:
        """Take a large request, or one whose answer lists all; its connection's next request waits."""
        coordinator_call = self.new_call(call)
        coordinator_call.in_slices = call.is_large
        work = self.coordinator.handle_in_slices(coordinator_call, call.message, lambda: self._node.wall_ms)
        for _ in work:
            self.perform(self.coordinator.take_effects())
            yield
        self.perform(self.coordinator.take_effects())

    def answer(self, call: Call, response: Any) -> None:
        if call.is_large:
            call.settled = False
        self._node.boundary.answer_paced(call, response)

    def _respond_in_slices(self, effect: RespondInSlices) -> None:
        call: Call = effect.token
        call.settled = False
        self._node.boundary.large.begin(call, self._answer_in_slices(call, effect.response))

    def _answer_in_slices(self, call: Call, response: Slices[Message]) -> Work:
        yield from self._node.boundary.answer_in_slices(call, (yield from response))

    def image_changed(self, image: Image, levels: Mapping[str, int]) -> None:
        super().image_changed(image, levels)
        self.coordinator.transaction_version = levels.get(TRANSACTION_VERSION, 0)

    def _take_id(self, effect: TakeProducerId) -> None:
        self._broker.producer_ids.take(lambda id: self.step(ProducerIdTaken(effect.number, id)))

    # -- markers

    def _mark_later(self, effect: SendMarkers) -> None:
        """Have markers written once the answer to EndTxn has left."""
        if not self._to_mark:
            self._node.go_on_later(self._mark())
        self._to_mark.append(effect)

    def _mark(self) -> Slices[None]:
        pace = Pace()
        while self._to_mark:
            self._node.go_on(self._send_markers(self._to_mark.popleft()))
            if pace.spent(MARKING_US):
                yield

    def _send_markers(self, effect: SendMarkers) -> Slices[None]:
        """Have each leader write the markers of its partitions; some partitions in each slice.

        What one leader answers counts at once: the others may take long, or be gone.
        """
        results: Results = {}
        by_leader: dict[int, dict[str, list[int]]] = {}
        pace = Pace()
        for place in effect.partitions:
            if pace.spent(LEADER_US):
                yield
            leader = leader_of(self._node.view, *place)
            if leader is None:
                results[place] = ErrorCode.NONE  # the topic was deleted: it has no more to decide
            elif leader == NO_LEADER:
                results[place] = ErrorCode.NOT_LEADER_OR_FOLLOWER
            else:
                by_leader.setdefault(leader, {}).setdefault(place[0], []).append(place[1])
        answered = partial(self._markers_answered, effect)
        if results:
            answered(results)
        for leader, topics in by_leader.items():
            marker = WritableTxnMarker(
                effect.producer_id,
                effect.producer_epoch,
                effect.is_commit,
                [WritableTxnMarkerTopic(name, tuple(indexes)) for name, indexes in topics.items()],
                effect.coordinator_epoch,
                effect.transaction_version,
            )
            if leader == self._node.view.node_id:
                write_marker(self._broker, marker, answered)
            else:
                self._ask_to_write(leader, marker, answered)

    def _markers_answered(self, effect: SendMarkers, results: Results) -> None:
        whose = effect.transactional_id, effect.producer_id, effect.producer_epoch
        self.step(MarkersAnswered(effect.partition, effect.coordinator_epoch, *whose, results))

    def _ask_to_write(
        self,
        leader: int,
        marker: WritableTxnMarker,
        answered: Callable[[Results], None],
    ) -> None:
        def then(response: Message | None) -> None:
            places = [(topic.name, index) for topic in marker.topics for index in topic.partition_indexes]
            found: Results = dict.fromkeys(places, ErrorCode.NOT_LEADER_OR_FOLLOWER)  # to be tried again
            if isinstance(response, WriteTxnMarkersResponse):
                for row in response.markers:
                    for topic in row.topics:
                        for one in topic.partitions:
                            found[topic.name, one.partition_index] = error_of(one.error_code)
            answered(found)

        self._ask(leader, "transaction-markers", WriteTxnMarkersRequest([marker]), then)

    def without_leader(self) -> int:
        """How many markers wait for a leader of their partition."""
        return sum(
            leader_of(self._node.view, *place) == NO_LEADER
            for shard in self.coordinator.shards.values()
            for id in shard.ending
            for place in shard.ids[id].current.partitions
        )

    # -- verification

    def ask_coordinator(self, added: Added, is_verify_only: bool, then: Callable[[Results], None]) -> None:
        """Ask the coordinator of a transaction whether partitions are in it, or to add them."""
        self.follow_image()
        coordinator = self.coordinator
        partition = coordinator.partition_for(added.transactional_id)
        leader = leader_of(self._node.view, TRANSACTIONS_TOPIC, partition)
        if leader in (None, NO_LEADER):
            then(dict.fromkeys(added.partitions, ErrorCode.COORDINATOR_NOT_AVAILABLE))
        elif leader != self._node.view.node_id:
            assert leader is not None
            self._ask_to_add(leader, added, is_verify_only, then)
        elif is_verify_only:
            then(coordinator.verify(added, self._node.wall_ms))
        else:
            coordinator.add(
                added,
                lambda error: then(dict.fromkeys(added.partitions, error)),
                self._node.wall_ms,
            )
            self.perform(coordinator.take_effects())

    def _ask_to_add(
        self, leader: int, added: Added, is_verify_only: bool, then: Callable[[Results], None]
    ) -> None:
        topics = by_topic(sorted(added.partitions))
        one = AddPartitionsToTxnTransaction(
            added.transactional_id,
            added.producer_id,
            added.producer_epoch,
            is_verify_only,
            [AddPartitionsToTxnTopic(name, indexes) for name, indexes in topics.items()],
        )

        def answered(response: Message | None) -> None:
            error = ErrorCode.NETWORK_EXCEPTION
            found: Results = {}
            if isinstance(response, AddPartitionsToTxnResponse):
                error = error_of(response.error_code)
                for row in response.results_by_transaction:
                    for topic in row.topic_results:
                        for each in topic.results_by_partition:
                            found[topic.name, each.partition_index] = error_of(each.partition_error_code)
            if error is ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
                error = ErrorCode.INVALID_TXN_STATE
            then({place: found.get(place, error) for place in added.partitions})

        self._ask(leader, "add-partitions-to-txn", AddPartitionsToTxnRequest([one]), answered)

    # -- other brokers

    def _ask(
        self, broker_id: int, purpose: str, message: Message, then: Callable[[Message | None], None]
    ) -> None:
        self._broker.own_requests.ask_node(broker_id, self._listener, purpose, message, None, then)


def by_topic(places: list[TopicPartition]) -> dict[str, tuple[int, ...]]:
    """Partitions by their topics."""
    found: dict[str, list[int]] = {}
    for topic, index in places:
        found.setdefault(topic, []).append(index)
    return {topic: tuple(indexes) for topic, indexes in found.items()}
