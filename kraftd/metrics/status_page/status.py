"""The data of the status page: one moment of a controller, from readings and a survey.

Times are milliseconds; ages are of the moment, so that clocks need not agree.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from kraftd.groups.transactions.seen import Open, oldest_open
from kraftd.histogram import Histogram
from kraftd.metadata.metadata_version import METADATA_VERSION, version_name
from kraftd.metadata.state import BrokerState
from kraftd.metrics.families.cleaner_metrics import cleaner_of
from kraftd.metrics.families.transaction_metrics import transaction_shards
from kraftd.metrics.state.health import BrokerHealth, health
from kraftd.metrics.state.hosted_survey import HostedSurvey
from kraftd.metrics.state.readings import Readings, broker_of
from kraftd.metrics.state.survey import Survey
from kraftd.metrics.status_page.causes import Cause, causes
from kraftd.metrics.status_page.replica_rows import ReplicaRow, known_by, replica_rows
from kraftd.types import uuid_text

MAX_BROKERS = 200  # with rows; inactive ones come first
MAX_TRANSACTIONS = 20  # with rows; the oldest ones


class BrokerRow(Struct, frozen=True):
    id: int
    epoch: int
    state: str
    rack: str | None
    listeners: list[str]
    silent_ms: int | None
    replicas: int | None
    lagging: int | None
    leads: int | None


class Buckets(Struct, frozen=True):
    """A histogram: counts up to each bound in ms, the last one above all."""

    bounds_ms: list[float]
    counts: list[int]


class TransactionRow(Struct, frozen=True):
    """An open transaction that this broker coordinates. partitions: in how many its marker is missing."""

    id: str
    state: str
    producer_id: int
    partitions: int
    age_ms: int
    is_late: bool


class Transactions(Struct, frozen=True):
    """How many this broker coordinates that are open, and the oldest ones."""

    count: int
    oldest: list[TransactionRow]


class CleanerRow(Struct, frozen=True):
    """The log cleaner: the log that it cleans, and when it last looked for one. dirty_percent: of the log
    with the largest dirty part then; overdue_ms: how long one has waited beyond `max.compaction.lag.ms`. The
    bytes and the time are those of the last cleaning.
    """

    cleans: str | None
    looked_ms_ago: int
    dirty_percent: int
    overdue_ms: int
    read_bytes: int
    written_bytes: int
    took_ms: int
    uncleanable: int


class Status(Struct, frozen=True):
    now_ms: int
    ready: bool
    state: str
    causes: list[Cause]
    node_id: int
    cluster_id: str
    directory_id: str
    version: str
    role: str
    leader_id: int
    leader_answers: bool
    epoch: int
    high_watermark: int
    log_start_offset: int
    log_end_offset: int
    log_bytes: int
    snapshot_offset: int | None
    replicas: list[ReplicaRow]
    replicas_known_by: int | None
    broker: BrokerHealth | None
    hosted: HostedSurvey | None
    broker_count: int
    brokers: list[BrokerRow]
    transactions: Transactions | None
    cleaner: CleanerRow | None
    topic_count: int
    partition_count: int
    features: dict[str, int]
    releases: dict[str, str]
    loop: Buckets
    fsync: Buckets
    connections: int
    survey: Survey | None
    events: list[dict[str, Any]]
    truncations: int
    last_truncation: dict[str, Any] | None


def status(readings: Readings, found: Survey | None, hosted: HostedSurvey | None = None) -> Status:
    """The page's data. `found` and `hosted` are the newest surveys, None before the first."""
    node, raft, log = readings.node, readings.raft, readings.storage.log
    state_of_health = health(readings)
    replicas = replica_rows(readings)
    image, latest = node.image, log.latest_snapshot
    return Status(
        now_ms=readings.wall_ms,
        ready=state_of_health.ready,
        state=state_of_health.state,
        causes=causes(readings, state_of_health, found, replicas),
        node_id=node.identity.node_id,
        cluster_id=node.identity.cluster_id,
        directory_id=uuid_text(readings.storage.directory.directory_id),
        version=readings.about.get("version", ""),
        role=raft.current_state,
        leader_id=raft.current_leader,
        leader_answers=node.core.leader_answers,
        epoch=raft.current_epoch,
        high_watermark=raft.high_watermark,
        log_start_offset=log.log_start,
        log_end_offset=raft.log_end_offset,
        log_bytes=log.size_bytes,
        snapshot_offset=None if latest is None else latest.offset,
        replicas=replicas,
        replicas_known_by=known_by(readings),
        broker=state_of_health.broker,
        hosted=hosted,
        broker_count=len(image.brokers),
        brokers=_brokers(readings, found),
        transactions=_transactions(readings),
        cleaner=_cleaner(readings),
        topic_count=image.topic_count,
        partition_count=image.partition_count,
        features={**node.following.finalized_features.levels, "kraft.version": node.core.kraft_version},
        releases=_releases(readings),
        loop=_buckets(readings.steps),
        fsync=_buckets(readings.syncs),
        connections=len(readings.connections),
        survey=found,
        events=readings.events(),
        truncations=readings.truncations[0],
        last_truncation=None if readings.last_truncation is None else dict(readings.last_truncation),
    )


def _releases(readings: Readings) -> dict[str, str]:
    """Kafka's name of a feature's level, such as "4.3-IV0", where it has one."""
    level = readings.node.following.finalized_features.metadata_version
    return {METADATA_VERSION: version_name(level)} if level > 0 else {}


def _brokers(readings: Readings, found: Survey | None) -> list[BrokerRow]:
    brokers = sorted(readings.node.image.brokers.values(), key=lambda one: (one.is_active, one.id))
    return [_broker(one, readings, found) for one in brokers[:MAX_BROKERS]]


def _transactions(readings: Readings) -> Transactions | None:
    broker = broker_of(readings)
    if broker is None:
        return None
    shards = transaction_shards(broker)
    count = sum(len(one.ongoing) + len(one.ending) for one in shards)
    oldest = oldest_open(shards, MAX_TRANSACTIONS)
    return Transactions(count, [_transaction(one, readings.wall_ms) for one in oldest])


def _transaction(one: Open, wall_ms: int) -> TransactionRow:
    age_ms = max(0, wall_ms - one.start_ms)
    id, state, producer_id, _, timeout_ms, partitions = one
    return TransactionRow(id, state, producer_id, partitions, age_ms, age_ms > timeout_ms)


def _cleaner(readings: Readings) -> CleanerRow | None:
    cleaner = cleaner_of(readings)
    if cleaner is None or cleaner.looked_at_ms is None:
        return None
    stats = cleaner.stats
    return CleanerRow(
        cleans=None if cleaner.cleans is None else "{}-{}".format(*cleaner.cleans),
        looked_ms_ago=max(0, readings.wall_ms - cleaner.looked_at_ms),
        dirty_percent=int(100 * stats.dirtiest_ratio),
        overdue_ms=stats.overdue_ms,
        read_bytes=stats.copied_bytes,
        written_bytes=stats.written_bytes,
        took_ms=stats.elapsed_ms,
        uncleanable=len(cleaner.uncleanable),
    )


def _broker(broker: BrokerState, readings: Readings, found: Survey | None) -> BrokerRow:
    node = readings.node
    hosted = None if found is None else found.brokers.get(broker.id)
    state = "fenced" if broker.fenced else "shutting down" if broker.in_controlled_shutdown else "active"
    return BrokerRow(
        id=broker.id,
        epoch=broker.epoch,
        state=state,
        rack=broker.rack,
        listeners=[f"{one.listener}://{one.host}:{one.port}" for one in broker.listeners],
        silent_ms=node.context.heartbeats.silent_ms(broker.id, readings.now_ms) if node.active else None,
        replicas=hosted.replicas if hosted is not None else None if found is None else 0,
        lagging=hosted.lagging if hosted is not None else None if found is None else 0,
        leads=hosted.leads if hosted is not None else None if found is None else 0,
    )


def _buckets(histogram: Histogram) -> Buckets:
    return Buckets([bound / 1e6 for bound in histogram.bounds], list(histogram.counts))
