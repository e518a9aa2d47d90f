"""The health of a controller: whether it serves, and the progress of its start, for /readyz."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from kraftd.broker_node.lifecycle import BrokerState
from kraftd.metrics.state.readings import Readings, broker_of
from kraftd.metrics.state.slow_fetches import SlowFetches, slow_fetches

SERVING = "serving"
LOADING = "loading"
NO_LEADER = "no leader"
DISK_FULL = "disk full"
STOPPING = "stopping"
BROKER_STARTING = "broker starting"
BROKER_FENCED = "broker fenced"
MAX_NAMED = 20


class Progress(Struct, frozen=True):
    """The progress of loading. `total` is None while unknown: a snapshot does not state its number of
    records beforehand.
    """

    loaded: int
    total: int | None

    def __repr__(self) -> str:
        return f"<Progress {self.loaded} of {'?' if self.total is None else self.total}>"


class BrokerHealth(Struct, frozen=True):
    """The broker of the process. `state` is Kafka's name of it; `logs_to_open` are those of partitions that
    are hosted. `offline_directories` has the reason for each path that failed; `full_directories` how many
    seconds ago each path without room has refused a write, `full_rooms` its bytes that are free and needed.
    `unusable` has the reason for the first ones of all `offline_partitions`. `uncleanable` has that for the
    first ones of all `uncleanable_logs`, which the log cleaner has set aside. `slow_fetches`: what it follows
    and lacks records of. `uncreated`: why internal topics cannot be made.
    """

    state: str
    fenced: bool
    partitions: int
    led_partitions: int
    logs_to_open: int
    offline_partitions: int
    offline_directories: dict[str, str]
    full_directories: dict[str, float]
    full_rooms: dict[str, dict[str, Any]]
    unusable: dict[str, str]
    uncleanable_logs: int
    uncleanable: dict[str, str]
    slow_fetches: list[SlowFetches]
    uncreated: dict[str, str]


class Health(Struct, frozen=True):
    """`ready` is for load balancers and rolling restarts: loaded, with a leader, space on the disk, and not
    stopping.

    `records` and `bytes` are those of the newest snapshot and of the log behind it. `troubles` say why no
    leader is found, one line per peer. `refused` names the nodes refused within the last minute, `twins` the
    ids under which several nodes run. `ahead` names the replicas that have applied metadata which this quorum
    has lost, `went_back` voters that hold less than they had shown this leader. `addresses` names the
    advertised addresses that do not lead to their nodes. A process with the broker role is ready once its
    broker serves clients, too.
    """

    ready: bool
    state: str
    node_id: int
    role: str
    leader: int
    epoch: int
    high_watermark: int
    records: Progress
    bytes: Progress
    troubles: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    ahead: tuple[str, ...] = ()
    went_back: tuple[str, ...] = ()
    twins: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    broker: BrokerHealth | None = None

    def __repr__(self) -> str:
        return f"<Health {self.state}, {self.bytes!r} bytes>"


def health(readings: Readings) -> Health:
    node, raft = readings.node, readings.raft
    state = _state(readings)
    return Health(
        ready=state == SERVING,
        state=state,
        node_id=node.identity.node_id,
        role=raft.current_state,
        leader=raft.current_leader,
        epoch=raft.current_epoch,
        high_watermark=raft.high_watermark,
        records=_records(readings),
        bytes=_bytes(readings),
        troubles=tuple(readings.troubles),
        refused=tuple(readings.refused),
        ahead=tuple(readings.ahead),
        went_back=tuple(readings.went_back),
        twins=tuple(readings.duplicate_ids),
        addresses=tuple(readings.addresses),
        broker=_broker(readings),
    )


def _broker(readings: Readings) -> BrokerHealth | None:
    broker = broker_of(readings)
    if broker is None:
        return None
    image = broker.view.image
    uncleanable = readings.log_cleaner.uncleanable if readings.log_cleaner is not None else {}
    return BrokerHealth(
        state=broker.lifecycle.state.name,
        fenced=broker.lifecycle.is_fenced,
        partitions=len(broker.replicas),
        led_partitions=broker.replicas.led_count(),
        logs_to_open=broker.replicas.opening_count,
        offline_partitions=len(broker.replicas.offline),
        unusable={
            f"{topic}-{partition}": reason
            for (topic, partition), reason in sorted(broker.replicas.offline.items())[:MAX_NAMED]
        },
        offline_directories=dict(broker.directory_errors),
        full_directories={path: age_ms / 1000 for path, age_ms in readings.full_directories.items()},
        full_rooms={path: room._asdict() for path, room in readings.full_rooms.items()},
        uncleanable_logs=len(uncleanable),
        uncleanable={
            f"{topic}-{partition}": one.reason
            for (topic, partition), one in sorted(uncleanable.items())[:MAX_NAMED]
        },
        slow_fetches=slow_fetches(broker.fetchers, readings.now_ms),
        uncreated={
            name: reason
            for name, reason in sorted(broker.topic_creation.failures.items())
            if image.topic(image.topic_id(name)) is None
        },
    )


def _state(readings: Readings) -> str:
    node = readings.node
    if readings.stopping:
        return STOPPING
    if readings.disk_full:
        return DISK_FULL
    has_leader = readings.raft.current_leader >= 0 and node.core.leader_answers
    if node.following.finalized_features.epoch >= 0 and not node.following.replay.loads_snapshot:
        return _of_broker(readings) if has_leader else NO_LEADER
    # Only records known to be committed are loaded, and only a leader knows which are.
    waits = node.following.replay.next_offset >= max(
        node.core.high_watermark, node.following.replay.snapshot_end
    )
    return NO_LEADER if waits and not has_leader else LOADING


def _of_broker(readings: Readings) -> str:
    """SERVING, unless the broker of the process does not."""
    broker = broker_of(readings)
    if broker is None:
        return SERVING
    if broker.lifecycle.state in (BrokerState.NOT_RUNNING, BrokerState.STARTING, BrokerState.RECOVERY):
        return BROKER_STARTING
    return BROKER_FENCED if broker.lifecycle.is_fenced else SERVING


def _records(readings: Readings) -> Progress:
    node = readings.node
    if node.following.replay.loads_snapshot:
        return Progress(node.following.load_progress.snapshot_records_so_far, None)
    before = node.following.load_progress.snapshot_records - node.following.replay.snapshot_end
    next_offset = node.following.replay.next_offset
    # The active controller's latest decisions are in its image before they are in the log.
    return Progress(before + next_offset, before + max(next_offset, readings.storage.log.log_end))


def _bytes(readings: Readings) -> Progress:
    replay, log = readings.node.following.replay, readings.storage.log
    position, size_bytes = readings.snapshot_read
    if not replay.loads_snapshot:
        position = size_bytes
    behind = log.bytes_from(max(replay.snapshot_end, log.log_start))
    left = log.bytes_from(max(replay.next_offset, replay.snapshot_end, log.log_start))
    return Progress(position + behind - left, size_bytes + behind)
