"""Kafka's metrics of a broker: its topics' traffic, partitions, logs, groups, and requests that wait.

A process without the broker role has no samples.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from kraftd.broker_node.fetching.fetchers import ReplicaFetchers
from kraftd.broker_node.node import BrokerNode
from kraftd.broker_node.partitions.replicas import Hosted
from kraftd.broker_node.partitions.traffic import TopicTraffic
from kraftd.groups.classic.group import ClassicGroup
from kraftd.groups.classic.states import ClassicState
from kraftd.groups.consumer.group import ASSIGNING, EMPTY, RECONCILING, STABLE
from kraftd.groups.group import Group, GroupType
from kraftd.groups.group_shard import GroupShard
from kraftd.groups.shard import ShardStatus
from kraftd.groups.shards import Shards
from kraftd.metrics.families.family import Bean, Family, Labels, ReadOne, Samples, Value, own
from kraftd.metrics.state.readings import Readings, broker_of
from kraftd.partition.partition import Partition

_TOPICS = Bean("kafka.server", "BrokerTopicMetrics")
_REPLICAS = Bean("kafka.server", "ReplicaManager")
_FETCHERS = Bean("kafka.server", "ReplicaFetcherManager")
_DIRECTORIES = Bean("kafka.log", "LogManager")
_GROUPS = Bean("kafka.coordinator.group", "GroupMetadataManager")
# Kafka has a gauge of the last state too; a group in it is gone at once.
CONSUMER_STATES = (EMPTY, ASSIGNING, RECONCILING, STABLE, "Dead")
SHARE_STATES = (EMPTY, STABLE, "Dead")
_COORDINATOR = Bean("kafka.server", "group-coordinator-metrics", named=False)
_PURGATORY = Bean("kafka.server", "DelayedOperationPurgatory")
_SESSIONS = Bean("kafka.server", "FetchSessionCache")
_BROKER = Bean("kafka.server", "KafkaServer")
_ASSIGNMENTS = Bean("kafka.server", "AssignmentsManager")
_OLD_ASSIGNMENTS = Bean("org.apache.kafka.server", "AssignmentsManager")
_OPERATION: Labels = ("delayedOperation",)


def of_broker(read: Callable[[BrokerNode], Value | None]) -> ReadOne:
    """A reading of the broker of the process; None if it is none."""

    def read_one(readings: Readings) -> Value | None:
        broker = broker_of(readings)
        return None if broker is None else read(broker)

    return read_one


def hosted_of(readings: Readings) -> list[Hosted]:
    """The partitions that the broker of the process hosts."""
    broker = broker_of(readings)
    return [] if broker is None else list(broker.replicas)


# -- traffic


def _traffic(name: str, meaning: str, of: str) -> Family:
    def samples(readings: Readings) -> Samples:
        broker = broker_of(readings)
        if broker is None:
            return
        traffic = broker.replicas.traffic
        yield ("",), traffic.total(of)
        topics: list[tuple[str, TopicTraffic]] = list(traffic.by_topic.items())
        for topic, found in topics:
            yield (topic,), getattr(found, of)

    return _TOPICS.family("counter", name, meaning, samples, ("topic",))


# -- partitions


def _partitions(broker: BrokerNode) -> Iterator[Partition]:
    return (one.partition for one in list(broker.replicas) if one.partition is not None)


def _count(name: str, meaning: str, counts: Callable[[Partition], bool]) -> Family:
    return _REPLICAS.gauge(name, meaning, of_broker(lambda b: sum(map(counts, _partitions(b)))))


def _is_reassigning(hosted: Hosted) -> bool:
    state, partition = hosted.state, hosted.partition
    is_led = partition is not None and partition.is_leader
    return is_led and bool(state.adding_replicas or state.removing_replicas)


def _of_fetchers(read: Callable[[ReplicaFetchers], float]) -> Callable[[Readings], Samples]:
    def samples(readings: Readings) -> Samples:
        broker = broker_of(readings)
        return [] if broker is None else [(("Replica",), read(broker.fetchers))]

    return samples


def _failed(readings: Readings) -> Samples:
    broker = broker_of(readings)
    if broker is None:
        return []
    return [((path,), int(path in broker.directory_errors)) for path in broker.cordoning.ids]


def _cordoned(readings: Readings) -> Samples:
    broker = broker_of(readings)
    if broker is None:
        return []
    return [((path,), int(path in broker.cordoning.paths)) for path in broker.cordoning.ids]


def _full(readings: Readings) -> Samples:
    broker = broker_of(readings)
    if broker is None:
        return []
    return [((path,), int(path in readings.full_directories)) for path in broker.cordoning.ids]


# -- groups


def _shards(broker: BrokerNode) -> list[GroupShard]:
    return [one for one in broker.groups.coordinator.shards.values() if one.status is ShardStatus.ACTIVE]


def _groups(broker: BrokerNode) -> Iterator[Group]:
    return (group for shard in _shards(broker) for group in shard.state.groups.values())


def _classic_group_count(broker: BrokerNode) -> int:
    return sum(1 for one in _groups(broker) if one.type is GroupType.CLASSIC)


def _by_protocol(readings: Readings) -> Samples:
    broker = broker_of(readings)
    if broker is None:
        return []
    counts = Counter(one.type for one in _groups(broker))
    return [((kind.value,), counts[kind]) for kind in GroupType]


def _by_state(kind: GroupType, states: tuple[str, ...]) -> Callable[[Readings], Samples]:
    """The groups of one protocol, by their states."""

    def count(readings: Readings) -> Samples:
        broker = broker_of(readings)
        if broker is None:
            return []
        counts = Counter(one.state_name() for one in _groups(broker) if one.type is kind)
        return [((state,), counts[state]) for state in states]

    return count


def _offset_count(broker: BrokerNode) -> int:
    return sum(len(group) for shard in _shards(broker) for group in shard.state.offsets.by_group.values())


def _in_state(state: ClassicState) -> ReadOne:
    def count(broker: BrokerNode) -> int:
        return sum(1 for one in _groups(broker) if isinstance(one, ClassicGroup) and one.state is state)

    return of_broker(count)


def shards_by_status(coordinator: Shards[Any]) -> Samples:
    """How many partitions of its topic a coordinator has in each state."""
    shards = Counter(one.status for one in coordinator.shards.values())
    return [((status.name.lower(),), shards[status]) for status in ShardStatus]


def _by_status(readings: Readings) -> Samples:
    broker = broker_of(readings)
    return [] if broker is None else shards_by_status(broker.groups.coordinator)


# -- requests that wait


def _waiting(readings: Readings) -> Samples:
    broker = broker_of(readings)
    if broker is None:
        return []
    waiting = {
        "DeleteRecords": broker.deletions.waiting_count,
        "Fetch": len(broker.client_fetches.parked),
        "Produce": broker.produces.waiting_count,
        "ShareFetch": len(broker.coordinators.shares.fetches),
    }
    return [((operation,), count) for operation, count in waiting.items()]


FAMILIES: tuple[Family, ...] = (
    _BROKER.gauge(
        "BrokerState",
        "the state of the broker: 1 starting, 2 recovery, 3 running, 6 leaving, 7 shutting down",
        of_broker(lambda b: b.lifecycle.state.value),
    ),
    _ASSIGNMENTS.gauge(
        "QueuedReplicaToDirAssignments",
        "partitions whose log directory the controller has not accepted yet",
        of_broker(lambda b: b.directory_assignments.queued_count),
    ),
    _OLD_ASSIGNMENTS.gauge(
        "QueuedReplicaToDirAssignments",
        "partitions whose log directory the controller has not accepted yet, by the name before Kafka 4.2",
        of_broker(lambda b: b.directory_assignments.queued_count),
    ),
    _traffic("BytesInPerSec", "bytes of records that were appended for producers", "bytes_in"),
    _traffic("BytesOutPerSec", "bytes of records that were sent to consumers", "bytes_out"),
    _traffic("BytesRejectedPerSec", "bytes of batches above max.message.bytes", "bytes_rejected"),
    _traffic(
        "FailedFetchRequestsPerSec", "partitions of fetches whose records are damaged", "failed_fetches"
    ),
    _traffic(
        "FailedProduceRequestsPerSec",
        "partitions of produces with an error that brokers do not expect",
        "failed_produces",
    ),
    _traffic(
        "FailedShareAcknowledgementRequestsPerSec",
        "requests of share groups of which an acknowledgement got an error, each counted once for each topic",
        "failed_share_acknowledgements",
    ),
    _traffic(
        "FailedShareFetchRequestsPerSec",
        "fetches of share groups of which a partition got an error, each counted once for each topic",
        "failed_share_fetches",
    ),
    _traffic("MessagesInPerSec", "records that were appended for producers", "messages_in"),
    _traffic(
        "ReplicationBytesInPerSec", "bytes of records that were fetched from leaders", "replication_bytes_in"
    ),
    _traffic(
        "ReplicationBytesOutPerSec", "bytes of records that were sent to followers", "replication_bytes_out"
    ),
    _TOPICS.counter(
        "ReassignmentBytesInPerSec",
        "bytes of records that were fetched for replicas that are being added",
        of_broker(lambda b: b.replicas.traffic.reassignment_bytes_in),
    ),
    _TOPICS.counter(
        "ReassignmentBytesOutPerSec",
        "bytes of records that were sent to replicas that are being added",
        of_broker(lambda b: b.replicas.traffic.reassignment_bytes_out),
    ),
    _traffic("TotalFetchRequestsPerSec", "partitions of fetches", "fetches"),
    _traffic("TotalProduceRequestsPerSec", "partitions of produces", "produces"),
    _traffic(
        "TotalShareAcknowledgementRequestsPerSec",
        "requests with acknowledgements of share groups, each counted once for each topic",
        "share_acknowledgements",
    ),
    _traffic(
        "TotalShareFetchRequestsPerSec",
        "fetches of share groups, each counted once for each topic",
        "share_fetches",
    ),
    _REPLICAS.gauge(
        "PartitionCount",
        "partitions that the broker hosts",
        of_broker(lambda b: len(b.replicas)),
    ),
    _count("LeaderCount", "partitions that the broker leads", lambda p: p.is_leader),
    _REPLICAS.gauge(
        "UnderReplicatedPartitions",
        "led partitions with fewer members of their ISR than replicas, without those that are being added",
        of_broker(lambda b: sum(one.is_under_replicated for one in list(b.replicas))),
    ),
    _count(
        "UnderMinIsrPartitionCount",
        "led partitions with an ISR below min.insync.replicas",
        lambda p: p.is_leader and p.is_under_min_isr,
    ),
    _count(
        "AtMinIsrPartitionCount",
        "led partitions with an ISR of exactly min.insync.replicas",
        lambda p: p.is_leader and p.is_at_min_isr,
    ),
    _REPLICAS.gauge(
        "ProducerIdCount",
        "producers that the partitions remember, each counted in every partition",
        of_broker(lambda b: sum(p.producer_count for p in _partitions(b))),
    ),
    _REPLICAS.gauge(
        "PartitionsWithLateTransactionsCount",
        "led partitions with a transaction that outlasts transaction.max.timeout.ms",
        of_broker(lambda b: sum(p.is_leader and p.has_late_transaction(b.wall_ms) for p in _partitions(b))),
    ),
    _REPLICAS.gauge(
        "ReassigningPartitions",
        "led partitions whose replicas are being changed",
        of_broker(lambda b: sum(map(_is_reassigning, list(b.replicas)))),
    ),
    _REPLICAS.counter(
        "IsrShrinksPerSec",
        "changes by which a follower left an ISR, since the start",
        of_broker(lambda b: b.isr_changes.shrinks),
    ),
    _REPLICAS.counter(
        "IsrExpandsPerSec",
        "changes by which a follower joined an ISR, since the start",
        of_broker(lambda b: b.isr_changes.expansions),
    ),
    _REPLICAS.counter(
        "FailedIsrUpdatesPerSec",
        "changes of ISRs that the controller refused, since the start",
        of_broker(lambda b: b.isr_changes.failures),
    ),
    _FETCHERS.family(
        "gauge",
        "MaxLag",
        "records that the followed partition that lags most is behind its leader",
        _of_fetchers(lambda fetchers: fetchers.max_lag()),
        ("clientId",),
    ),
    _FETCHERS.family(
        "gauge",
        "FailedPartitionsCount",
        "followed partitions that wait for another leader epoch, or for long, because of an error",
        _of_fetchers(lambda fetchers: fetchers.failed_count()),
        ("clientId",),
    ),
    _REPLICAS.gauge(
        "OfflineReplicaCount",
        "hosted partitions whose log cannot be used",
        of_broker(lambda b: len(b.replicas.offline)),
    ),
    _DIRECTORIES.gauge(
        "OfflineLogDirectoryCount",
        "log directories that failed",
        of_broker(lambda b: len(b.directory_errors)),
    ),
    _DIRECTORIES.family(
        "gauge",
        "LogDirectoryOffline",
        "1 for a log directory that failed, else 0",
        _failed,
        ("logDirectory",),
    ),
    _DIRECTORIES.gauge(
        "CordonedLogDirectoryCount",
        "log directories that take no new replicas",
        of_broker(lambda b: len(b.cordoning.paths)),
    ),
    _DIRECTORIES.family(
        "gauge",
        "LogDirectoryCordoned",
        "1 for a log directory that takes no new replicas, else 0",
        _cordoned,
        ("logDirectory",),
    ),
    Family(
        "kraftd_log_directory_full",
        "gauge",
        "",
        "1 while a log directory refuses records for want of room on its disk, else 0",
        _full,
        ("logDirectory",),
    ),
    _GROUPS.gauge(
        "NumGroups", "classic groups that this broker coordinates", of_broker(_classic_group_count)
    ),
    _GROUPS.gauge(
        "NumGroupsPreparingRebalance",
        "classic groups whose members join",
        _in_state(ClassicState.PREPARING_REBALANCE),
    ),
    _GROUPS.gauge(
        "NumGroupsCompletingRebalance",
        "classic groups that wait for their leader's assignment",
        _in_state(ClassicState.COMPLETING_REBALANCE),
    ),
    _GROUPS.gauge(
        "NumGroupsStable", "classic groups whose members are assigned", _in_state(ClassicState.STABLE)
    ),
    _GROUPS.gauge("NumGroupsEmpty", "classic groups without members", _in_state(ClassicState.EMPTY)),
    _GROUPS.gauge("NumGroupsDead", "classic groups that are gone", _in_state(ClassicState.DEAD)),
    _GROUPS.gauge("NumOffsets", "offsets that groups have committed here", of_broker(_offset_count)),
    _COORDINATOR.family(
        "gauge", "group-count", "groups that this broker coordinates", _by_protocol, ("protocol",)
    ),
    _COORDINATOR.family(
        "gauge",
        "consumer-group-count",
        "consumer groups by state (KIP-848)",
        _by_state(GroupType.CONSUMER, CONSUMER_STATES),
        ("state",),
    ),
    _COORDINATOR.family(
        "gauge",
        "share-group-count",
        "share groups by state (KIP-932)",
        _by_state(GroupType.SHARE, SHARE_STATES),
        ("state",),
    ),
    _COORDINATOR.family(
        "gauge", "num-partitions", "partitions of __consumer_offsets by state", _by_status, ("state",)
    ),
    _COORDINATOR.counter(
        "offset-commit-count",
        "offsets that were committed since the start",
        of_broker(lambda b: b.groups.coordinator.counts.offset_commits),
    ),
    _COORDINATOR.counter(
        "offset-expiration-count",
        "offsets that expired since the start",
        of_broker(lambda b: b.groups.coordinator.counts.offset_expirations),
    ),
    _COORDINATOR.counter(
        "offset-deletion-count",
        "offsets that were deleted by request since the start",
        of_broker(lambda b: b.groups.coordinator.counts.offset_deletions),
    ),
    _COORDINATOR.counter(
        "group-completed-rebalance-count",
        "rebalances of classic groups that ended since the start",
        of_broker(lambda b: b.groups.coordinator.counts.completed_rebalances),
    ),
    _COORDINATOR.counter(
        "consumer-group-rebalance-count",
        "rebalances of consumer groups that began since the start",
        of_broker(lambda b: b.groups.coordinator.counts.consumer_rebalances),
    ),
    _COORDINATOR.counter(
        "share-group-rebalance-count",
        "rebalances of share groups that began since the start",
        of_broker(lambda b: b.groups.coordinator.counts.share_rebalances),
    ),
    own(
        "counter",
        "refused_group_members",
        "joins refused because the members of groups would take too much memory",
        of_broker(lambda b: b.groups.coordinator.counts.refused_members),
    ),
    _PURGATORY.family("gauge", "PurgatorySize", "requests that wait, by kind", _waiting, _OPERATION),
    _PURGATORY.family(
        "gauge",
        "NumDelayedOperations",
        "requests that wait, by kind, each counted once",
        _waiting,
        _OPERATION,
    ),
    _SESSIONS.gauge(
        "NumIncrementalFetchSessions",
        "fetch sessions in the cache",
        of_broker(lambda b: len(b.session_cache)),
    ),
    _SESSIONS.gauge(
        "NumIncrementalFetchPartitionsCached",
        "partitions of the fetch sessions in the cache",
        of_broker(lambda b: b.session_cache.partitions),
    ),
    _SESSIONS.counter(
        "IncrementalFetchSessionEvictionsPerSec",
        "fetch sessions evicted since the start",
        of_broker(lambda b: b.session_cache.evictions),
    ),
)
