"""The data of the status page: one moment of a controller, from readings and a survey.

Times are milliseconds; ages are of the moment, so that clocks need not agree.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from kraftd.histogram import Histogram
from kraftd.metadata.state import BrokerState
from kraftd.metrics.health import health
from kraftd.metrics.readings import Readings
from kraftd.metrics.survey import Survey
from kraftd.raft.replica_views import ReplicaView
from kraftd.types import uuid_text

MAX_BROKERS = 200  # with rows; inactive ones come first
MAX_REPLICAS = 200


class ReplicaRow(Struct, frozen=True):
    id: int
    directory_id: str | None
    is_voter: bool
    is_leader: bool
    is_self: bool
    end_offset: int | None
    lag: int | None
    fetched_ms_ago: int | None
    caught_up_ms_ago: int | None


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


class Status(Struct, frozen=True):
    now_ms: int
    ready: bool
    state: str
    node_id: int
    cluster_id: str
    directory_id: str
    version: str
    role: str
    leader_id: int
    epoch: int
    high_watermark: int
    log_start_offset: int
    log_end_offset: int
    log_bytes: int
    snapshot_offset: int | None
    replicas: list[ReplicaRow]
    broker_count: int
    brokers: list[BrokerRow]
    topic_count: int
    partition_count: int
    features: dict[str, int]
    loop: Buckets
    fsync: Buckets
    connections: int
    survey: Survey | None
    events: list[dict[str, Any]]
    truncations: int
    last_truncation: dict[str, Any] | None


def status(readings: Readings, found: Survey | None) -> Status:
    """The page's data. `found` is the newest survey, None before the first."""
    node, raft, log = readings.node, readings.raft, readings.storage.log
    state_of_health = health(readings)
    image, latest = node.image, log.latest_snapshot
    return Status(
        now_ms=readings.wall_ms,
        ready=state_of_health.ready,
        state=state_of_health.state,
        node_id=node.identity.node_id,
        cluster_id=node.identity.cluster_id,
        directory_id=uuid_text(readings.storage.directory.directory_id),
        version=readings.about.get("version", ""),
        role=raft.current_state,
        leader_id=raft.current_leader,
        epoch=raft.current_epoch,
        high_watermark=raft.high_watermark,
        log_start_offset=log.log_start,
        log_end_offset=raft.log_end_offset,
        log_bytes=log.size_bytes,
        snapshot_offset=None if latest is None else latest.offset,
        replicas=_replicas(readings),
        broker_count=len(image.brokers),
        brokers=_brokers(readings, found),
        topic_count=image.topic_count,
        partition_count=image.partition_count,
        features={**node.following.finalized.levels, "kraft.version": node.core.kraft_version},
        loop=_buckets(readings.steps),
        fsync=_buckets(readings.syncs),
        connections=len(readings.connections),
        survey=found,
        events=readings.events(),
        truncations=readings.truncations[0],
        last_truncation=None if readings.last_truncation is None else dict(readings.last_truncation),
    )


def _replicas(readings: Readings) -> list[ReplicaRow]:
    views = readings.node.core.replicas(readings.now_ms)
    leader_end = next((one.end_offset for one in views if one.is_leader), None)
    return [_replica(one, leader_end, readings) for one in views[:MAX_REPLICAS]]


def _replica(view: ReplicaView, leader_end: int | None, readings: Readings) -> ReplicaRow:
    ends = view.end_offset is not None and leader_end is not None
    return ReplicaRow(
        id=view.key.id,
        directory_id=None if view.key.directory_id is None else uuid_text(view.key.directory_id),
        is_voter=view.is_voter,
        is_leader=view.is_leader,
        is_self=view.key.id == readings.node.identity.node_id,
        end_offset=view.end_offset,
        lag=max(0, (leader_end or 0) - (view.end_offset or 0)) if ends else None,
        fetched_ms_ago=_ago(readings.now_ms, view.last_fetch_ms),
        caught_up_ms_ago=_ago(readings.now_ms, view.last_caught_up_ms),
    )


def _ago(now_ms: int, then_ms: int | None) -> int | None:
    return None if then_ms is None else max(0, now_ms - then_ms)


def _brokers(readings: Readings, found: Survey | None) -> list[BrokerRow]:
    brokers = sorted(readings.node.image.brokers.values(), key=lambda one: (one.is_active, one.id))
    return [_broker(one, readings, found) for one in brokers[:MAX_BROKERS]]


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
        silent_ms=node.context.heartbeats.silent_ms(broker, readings.now_ms) if node.active else None,
        replicas=hosted.replicas if hosted is not None else None if found is None else 0,
        lagging=hosted.lagging if hosted is not None else None if found is None else 0,
        leads=hosted.leads if hosted is not None else None if found is None else 0,
    )


def _buckets(histogram: Histogram) -> Buckets:
    return Buckets([bound / 1e6 for bound in histogram.bounds], list(histogram.counts))
