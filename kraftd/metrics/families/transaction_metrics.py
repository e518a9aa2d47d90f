"""Kafka's metrics of the transaction coordinator, and of partitions that ask one (KIP-890).

A process without the broker role has no samples.
"""

from __future__ import annotations

from kraftd.broker_node.node import BrokerNode
from kraftd.groups.shard import ShardStatus
from kraftd.groups.transactions.seen import oldest_open
from kraftd.groups.transactions.shard import TransactionShard
from kraftd.metrics.families.broker_metrics import of_broker
from kraftd.metrics.families.family import NS_PER_MS, Bean, Family, own
from kraftd.metrics.state.readings import Readings, broker_of

_MARKERS = Bean("kafka.coordinator.transaction", "TransactionMarkerChannelManager")
_VERIFIED = Bean("kafka.server", "AddPartitionsToTxnManager")


def transaction_shards(broker: BrokerNode) -> list[TransactionShard]:
    """The partitions of ``__transaction_state`` that the broker coordinates."""
    shards = broker.coordinators.transactions.coordinator.shards.values()
    return [one for one in shards if one.status is ShardStatus.ACTIVE]


def _oldest_ms(readings: Readings) -> float | None:
    broker = broker_of(readings)
    if broker is None:
        return None
    found = oldest_open(transaction_shards(broker), 1)
    return max(0, readings.wall_ms - found[0].start_ms) if found else 0


def _to_complete(broker: BrokerNode) -> int:
    shards = transaction_shards(broker)
    return sum(not shard.ids[id].current.partitions for shard in shards for id in shard.ending)


FAMILIES: tuple[Family, ...] = (
    _MARKERS.gauge(
        "UnknownDestinationQueueSize",
        "markers of transactions that wait for a leader of their partition",
        of_broker(lambda b: b.coordinators.transactions.without_leader()),
    ),
    _MARKERS.gauge(
        "LogAppendRetryQueueSize",
        "transactions whose markers are written, and whose last record is not",
        of_broker(_to_complete),
    ),
    _VERIFIED.histogram(
        "VerificationTimeMs",
        "how long the coordinator took to say whether partitions are in a transaction",
        of_broker(lambda b: b.verifications.times),
        NS_PER_MS,
    ),
    _VERIFIED.counter(
        "VerificationFailureRate",
        "partitions that a coordinator refused since the start",
        of_broker(lambda b: b.verifications.failures),
    ),
    own(
        "gauge",
        "transactional_ids",
        "transactional ids that this broker coordinates",
        of_broker(lambda b: sum(len(one.ids) for one in transaction_shards(b))),
    ),
    own(
        "gauge",
        "open_transactions",
        "transactions that this broker coordinates and that are not decided",
        of_broker(lambda b: sum(len(one.ongoing) for one in transaction_shards(b))),
    ),
    own(
        "gauge",
        "ending_transactions",
        "transactions that are decided, and wait for markers",
        of_broker(lambda b: sum(len(one.ending) for one in transaction_shards(b))),
    ),
    own(
        "gauge",
        "oldest_transaction_age_ms",
        "how long the oldest transaction has been open that this broker coordinates; 0 without one",
        _oldest_ms,
    ),
)
