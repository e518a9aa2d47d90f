"""A transaction coordinator with a log in memory, and partitions that write its markers."""

from __future__ import annotations

from typing import Any

from kraftd.ground.effect import Effect
from kraftd.groups.records import decode_transaction_record
from kraftd.groups.transactions.config import TransactionConfig
from kraftd.groups.transactions.coordinator import TransactionCoordinator
from kraftd.groups.transactions.effects import (
    MarkersAnswered,
    ProducerIdTaken,
    SendMarkers,
    TakeProducerId,
)
from kraftd.groups.transactions.records import transaction_of
from kraftd.groups.transactions.transaction import TopicPartition, Transaction
from kraftd.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from kraftd.messages.end_txn_request import EndTxnRequest
from kraftd.messages.init_producer_id_request import InitProducerIdRequest
from kraftd.wire.error_code import ErrorCode
from tests.groups.desk import Desk

TIMEOUT_MS = 60_000
V1, V2 = 0, 2


class TransactionDesk(Desk):
    """As Desk. Markers are written at once, or fail with `marker_error`, or wait while `holds_markers`.

    Producer ids are given at once, or are `wanted` while `holds_ids`.
    """

    def __init__(self, version: int = V2, config: TransactionConfig | None = None) -> None:
        self.version = version
        self.transaction_config = config or TransactionConfig()
        self.markers: list[tuple[TopicPartition, int, int, bool]] = []  # place, producer, epoch, commit
        self.held: list[SendMarkers] = []
        self.holds_markers = False
        self.marker_error = ErrorCode.NONE
        self.holds_ids = False
        self.wanted: list[TakeProducerId] = []
        self.next_producer_id = 100
        super().__init__()

    def new_coordinator(self) -> Any:
        coordinator = TransactionCoordinator(self.transaction_config, self.topics, len)
        coordinator.partition_count = len(self.logs)
        coordinator.transaction_version = self.version
        return coordinator

    def flush(self) -> None:
        """Until nothing is left: what is committed leads to more."""
        while effects := self.coordinator.flush(self.now_ms):
            self.perform(effects)

    def perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, TakeProducerId):
                self.wanted.append(effect)
                if not self.holds_ids:
                    self.give_ids()
            elif isinstance(effect, SendMarkers):
                self.held.append(effect)
                if not self.holds_markers:
                    self.write_markers()
            else:
                super().perform([effect])

    def give_ids(self, *, are_left: bool = True) -> None:
        """The controller gives all producer ids that are wanted, or has none left."""
        wanted, self.wanted = self.wanted, []
        for effect in wanted:
            self.next_producer_id += are_left
            self.step(ProducerIdTaken(effect.number, self.next_producer_id if are_left else None))
        self.flush()

    def write_markers(self) -> None:
        """The leaders of partitions answer for all markers that were sent."""
        held, self.held = self.held, []
        for effect in held:
            whose = effect.producer_id, effect.producer_epoch
            if self.marker_error is ErrorCode.NONE:
                self.markers += [(place, *whose, effect.is_commit) for place in effect.partitions]
            results = dict.fromkeys(effect.partitions, self.marker_error)
            self.step(
                MarkersAnswered(
                    effect.partition, effect.coordinator_epoch, effect.transactional_id, *whose, results
                )
            )
        self.flush()

    def shard(self) -> Any:
        """What the coordinator has in memory."""
        return self.coordinator.shards[0]

    def ids(self) -> dict[str, Any]:
        found: dict[str, Any] = self.shard().ids
        return found

    def states(self, id: str = "id") -> list[Transaction]:
        """What the log says of an id, in order."""
        decoded = [decode_transaction_record(*what) for what, _ in self.logs[0] if not isinstance(what, bool)]
        return [
            transaction_of(one.value)  # type: ignore[arg-type]
            for one in decoded
            if one.value is not None and one.key.transactional_id == id  # type: ignore[attr-defined]
        ]

    # Producers

    def init(self, id: str = "id", expected: tuple[int, int] = (-1, -1)) -> Any:
        return self.ask(InitProducerIdRequest(id, TIMEOUT_MS, *expected), 5)

    def add(self, producer: tuple[int, int], *indexes: int, id: str = "id") -> int:
        answer = self.ask(adding(producer, *indexes, id=id), 3)
        error: int = answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
        return error

    def end(self, producer: tuple[int, int], is_commit: bool, id: str = "id", version: int = 5) -> Any:
        return self.ask(EndTxnRequest(id, *producer, is_commit), version)


def adding(producer: tuple[int, int], *indexes: int, id: str = "id") -> AddPartitionsToTxnRequest:
    """A request to add partitions to a transaction."""
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=id,
        v3_and_below_producer_id=producer[0],
        v3_and_below_producer_epoch=producer[1],
        v3_and_below_topics=[AddPartitionsToTxnTopic("orders", indexes or (0,))],
    )


def begun(desk: TransactionDesk, *indexes: int) -> tuple[int, int]:
    """A producer with a transaction."""
    first = desk.init()
    producer = first.producer_id, first.producer_epoch
    assert desk.add(producer, *indexes) == ErrorCode.NONE
    return producer
