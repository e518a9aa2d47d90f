"""Kafka's metrics of a controller, `kafka.controller`, with those that KIP-630 names."""

from __future__ import annotations

from kraftd.metadata.state import BrokerState
from kraftd.metrics.families.family import Bean, Family, Samples
from kraftd.metrics.state.readings import Readings

# KIP-1131: the numbers of a broker's states.
FENCED, IN_CONTROLLED_SHUTDOWN, ACTIVE = 10, 20, 30

_CONTROLLER = Bean("kafka.controller", "KafkaController")
_STATS = Bean("kafka.controller", "ControllerStats")
_EVENTS = Bean("kafka.controller", "ControllerEventManager")


def registration_state(broker: BrokerState) -> int:
    if broker.fenced:
        return FENCED
    return IN_CONTROLLED_SHUTDOWN if broker.in_controlled_shutdown else ACTIVE


def _states(readings: Readings) -> Samples:
    brokers = readings.node.image.brokers
    return [((str(broker.id),), registration_state(broker)) for broker in brokers.values()]


def _silent_ms(readings: Readings) -> Samples:
    node = readings.node
    if not node.active:
        return []
    heartbeats = node.context.heartbeats
    return [
        ((str(broker.id),), heartbeats.silent_ms(broker.id, readings.now_ms))
        for broker in node.image.brokers.values()
    ]


def _fenced(readings: Readings) -> int:
    return sum(broker.fenced for broker in readings.node.image.brokers.values())


def _shutting_down(readings: Readings) -> int:
    return sum(broker.in_controlled_shutdown for broker in readings.node.image.brokers.values())


def last_committed_offset(readings: Readings) -> int:
    node = readings.node
    return min(node.image.offset, node.core.high_watermark - 1)


def ignored_static_voters(readings: Readings) -> int:
    node = readings.node
    return int(bool(node.context.settings.static_voter_ids) and node.core.kraft_version > 0)


FAMILIES: tuple[Family, ...] = (
    _CONTROLLER.gauge("ActiveControllerCount", "1 on the active controller, else 0", lambda r: r.node.active),
    _CONTROLLER.gauge("FencedBrokerCount", "registered brokers that are fenced", _fenced),
    _CONTROLLER.gauge(
        "ActiveBrokerCount",
        "registered brokers that are not fenced",
        lambda r: len(r.node.image.brokers) - _fenced(r),
    ),
    _CONTROLLER.gauge(
        "ControlledShutdownBrokerCount", "registered brokers in a controlled shutdown", _shutting_down
    ),
    _CONTROLLER.family(
        "gauge",
        "BrokerRegistrationState",
        "10 fenced, 20 in controlled shutdown, 30 active",
        _states,
        ("broker",),
    ),
    _CONTROLLER.family(
        "gauge",
        "TimeSinceLastHeartbeatReceivedMs",
        "milliseconds since a broker's last heartbeat, at most broker.session.timeout.ms; "
        "on the active controller only",
        _silent_ms,
        ("broker",),
    ),
    _CONTROLLER.gauge("GlobalTopicCount", "topics", lambda r: r.node.image.topic_count),
    _CONTROLLER.gauge("GlobalPartitionCount", "partitions", lambda r: r.node.image.partition_count),
    _CONTROLLER.gauge(
        "OfflinePartitionsCount", "partitions without a leader", lambda r: r.node.image.leaderless_count
    ),
    _CONTROLLER.gauge(
        "PreferredReplicaImbalanceCount",
        "partitions that their preferred (first) replica does not lead",
        lambda r: r.node.image.not_preferred_count,
    ),
    _CONTROLLER.gauge(
        "MetadataErrorCount",
        "decisions and periodic tasks that failed unexpectedly; each has a line in the log",
        lambda r: r.node.metadata_errors,
    ),
    _CONTROLLER.gauge(
        "LastAppliedRecordOffset",
        "offset of the last record in the image; on the active controller it may not be committed yet",
        lambda r: r.node.image.offset,
    ),
    _CONTROLLER.gauge(
        "LastCommittedRecordOffset", "offset of the last committed record", last_committed_offset
    ),
    _CONTROLLER.gauge(
        "LastAppliedRecordTimestamp",
        "when the last applied record was appended, milliseconds since 1970; -1 before the first",
        lambda r: r.node.following.load_progress.timestamp_ms,
    ),
    _CONTROLLER.gauge(
        "LastAppliedRecordLagMs",
        "milliseconds since the last applied record was appended; in a healthy quorum rarely above "
        "metadata.max.idle.interval.ms",
        lambda r: r.wall_ms - r.node.following.load_progress.timestamp_ms,
    ),
    _CONTROLLER.gauge(
        "TimedOutBrokerHeartbeatCount",
        "always 0, because a heartbeat waits in no queue",
        lambda r: 0,
    ),
    _CONTROLLER.gauge("EventQueueOperationsStartedCount", "steps of the event loop", lambda r: r.steps.count),
    _CONTROLLER.gauge(
        "EventQueueOperationsTimedOutCount",
        "requests that were not decided because their timeout had passed",
        lambda r: r.node.decisions.timed_out,
    ),
    _CONTROLLER.gauge(
        "NewActiveControllersCount",
        "leaders of the quorum that this node has learned of since its start",
        lambda r: r.node.leadership.leaders_seen,
    ),
    _CONTROLLER.gauge(
        "IgnoredStaticVoters",
        "1 if controller.quorum.voters is set, but the log overrides it; else 0",
        ignored_static_voters,
    ),
    _CONTROLLER.histogram(
        "GenSnapshotLatencyMs",
        "how long each snapshot of this node took to make (KIP-630)",
        lambda r: r.snapshots.made,
    ),
    _CONTROLLER.histogram(
        "LoadSnapshotLatencyMs",
        "how long each snapshot took to load into the image (KIP-630)",
        lambda r: r.node.following.load_progress.snapshot_times,
    ),
    _CONTROLLER.gauge(
        "SnapshotSizeBytes",
        "size of the newest snapshot on disk, 0 without one (KIP-630)",
        lambda r: _newest(r)[1],
    ),
    _CONTROLLER.gauge(
        "SnapshotLag",
        "offsets between the end of the newest snapshot and the high watermark (KIP-630)",
        lambda r: max(0, r.node.core.high_watermark - _newest(r)[0]),
    ),
    _STATS.counter(
        "UncleanLeaderElectionsPerSec",
        "partition leaders elected from outside the ISR since the start",
        lambda r: r.node.image.unclean_elections,
    ),
    _STATS.counter(
        "ElectionFromEligibleLeaderReplicasPerSec",
        "partition leaders elected from the eligible leader replicas (KIP-966) since the start",
        lambda r: r.node.image.elections_from_elr,
    ),
    _EVENTS.histogram(
        "EventQueueTimeMs",
        "how late timers of the event loop ran; other work waits as long",
        lambda r: r.delays,
    ),
    _EVENTS.histogram(
        "EventQueueProcessingTimeMs", "how long single steps held the event loop", lambda r: r.steps
    ),
    _EVENTS.gauge(
        "AvgIdleRatio",
        "share of the last minute in which the event loop was idle, 0 to 1",
        lambda r: r.idle_ratio,
    ),
)


def _newest(readings: Readings) -> tuple[int, int]:
    """End offset and size of the newest snapshot."""
    sizes = readings.node.core.log.snapshots
    newest = readings.storage.log.latest_snapshot
    return (0, 0) if newest is None else (newest.offset, sizes.get(newest, 0))
