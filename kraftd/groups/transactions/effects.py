"""What the broker does for the transaction coordinator, besides `kraftd.groups.effects`; and its answers."""

from __future__ import annotations

from kraftd.ground.effect import Effect
from kraftd.ground.event import Event
from kraftd.groups.events import PartitionEvent
from kraftd.groups.transactions.transaction import TopicPartition
from kraftd.wire.error_code import ErrorCode


class SendMarkers(Effect, frozen=True):
    """Have the leaders of partitions write the marker of a transaction's end.

    Answered by a MarkersAnswered of each leader. `partition` is the transactional id's in
    ``__transaction_state``, coordinator_epoch its leader epoch.
    """

    partition: int
    coordinator_epoch: int
    transactional_id: str
    producer_id: int
    producer_epoch: int
    is_commit: bool
    transaction_version: int
    partitions: tuple[TopicPartition, ...]


class MarkersAnswered(PartitionEvent, frozen=True):
    """What became of some markers of a SendMarkers. A partition that is no more has no error."""

    coordinator_epoch: int
    transactional_id: str
    producer_id: int
    producer_epoch: int
    results: dict[TopicPartition, ErrorCode]


class TakeProducerId(Effect, frozen=True):
    """Take a producer id for an operation that waits. Answered by ProducerIdTaken."""

    number: int


class ProducerIdTaken(Event, frozen=True):
    """A new producer id, or None if the controller gives none now."""

    number: int
    producer_id: int | None
