"""Metrics that Kafka lacks: the event loop, syncs, loading, snapshots, a full disk."""

from __future__ import annotations

from collections.abc import Callable

from kraftd.metrics.families.family import NS_PER_SECOND, Family, Read, Samples, own
from kraftd.metrics.state.health import health
from kraftd.metrics.state.readings import Readings
from kraftd.raft.replica_views import ReplicaView


def _about(readings: Readings) -> list[tuple[tuple[str, ...], float]]:
    return [(tuple(readings.about[label] for label in ABOUT), 1)]


def _logins(readings: Readings) -> list[tuple[tuple[str, ...], float]]:
    results = ("succeeded", "failed", "expired")
    return [
        ((listener, result), count)
        for listener, counts in sorted(readings.logins.items())
        for result, count in zip(results, counts, strict=True)
    ]


def _certificates(readings: Readings) -> list[tuple[tuple[str, ...], float]]:
    return [((listener,), expires_s) for listener, expires_s in sorted(readings.certificates.items())]


def _voters(read: Callable[[ReplicaView, Readings], float | None]) -> Read:
    """A number of each voter, on the leader alone."""

    def samples(readings: Readings) -> Samples:
        core = readings.node.core
        views = core.replicas(readings.now_ms) if core.is_leader else []
        numbers = [(str(one.key.id), read(one, readings)) for one in views if one.is_voter]
        return [((voter,), number) for voter, number in numbers if number is not None]

    return samples


def _lag(view: ReplicaView, readings: Readings) -> float | None:
    return None if view.end_offset is None else max(0, readings.raft.log_end_offset - view.end_offset)


def _behind_s(view: ReplicaView, readings: Readings) -> float | None:
    since_ms = view.behind_since_ms
    return None if since_ms is None else max(0, readings.now_ms - since_ms) / MS_PER_SECOND


def _troubled(readings: Readings) -> Samples:
    found = {
        "refused": readings.refused,
        "ahead": readings.ahead,
        "went_back": readings.went_back,
        "twin": readings.duplicate_ids,
        "address": readings.addresses,
    }
    return [((trouble,), len(lines)) for trouble, lines in found.items()]


ABOUT = ("version", "codec", "kafka")
MS_PER_SECOND = 1_000

FAMILIES: tuple[Family, ...] = (
    Family(
        "kraftd_info",
        "gauge",
        "",
        "1; the labels are the versions and the codec engine (c or python)",
        _about,
        ABOUT,
    ),
    own("gauge", "ready", "1 while /readyz answers 200, else 0", lambda r: health(r).ready),
    own(
        "gauge",
        "disk_full",
        "1 while the disk is full and nothing is decided or written, else 0",
        lambda r: r.disk_full,
    ),
    own(
        "gauge",
        "log_directory_free_bytes",
        "bytes that are free for this process on the disk of the metadata log",
        lambda r: None if r.disk_room is None else r.disk_room[0],
    ),
    own(
        "gauge",
        "log_directory_size_bytes",
        "size of the disk of the metadata log",
        lambda r: None if r.disk_room is None else r.disk_room[1],
    ),
    Family(
        "kraftd_voter_lag",
        "gauge",
        "",
        "records of the leader that a voter has not fetched yet; on the leader only",
        _voters(_lag),
        ("voter",),
    ),
    Family(
        "kraftd_voter_behind_seconds",
        "gauge",
        "",
        "seconds since a voter was last caught up, at most since the election; on the leader only",
        _voters(_behind_s),
        ("voter",),
    ),
    Family(
        "kraftd_troubled_nodes",
        "gauge",
        "",
        "nodes that /readyz names: refused within a minute, ahead of the log, went_back, twin, address",
        _troubled,
        ("trouble",),
    ),
    own(
        "gauge",
        "under_min_isr_partitions",
        "partitions with fewer in-sync replicas than min.insync.replicas; on the active controller only",
        lambda r: None if r.survey is None else r.survey.under_min_isr.count,
    ),
    own(
        "gauge",
        "under_replicated_partitions",
        "partitions with a replica outside of the ISR; on the active controller only",
        lambda r: None if r.survey is None else r.survey.under_replicated.count,
    ),
    own(
        "histogram",
        "loop_step_seconds",
        "how long single steps held the event loop",
        lambda r: r.steps,
        NS_PER_SECOND,
    ),
    own(
        "gauge",
        "loop_step_longest_seconds",
        "the longest step since the start",
        lambda r: r.longest_step_ns / NS_PER_SECOND,
    ),
    own(
        "histogram",
        "loop_delay_seconds",
        "how late timers of the event loop ran",
        lambda r: r.delays,
        NS_PER_SECOND,
    ),
    own("histogram", "fsync_seconds", "how long each sync of the log took", lambda r: r.syncs, NS_PER_SECOND),
    own(
        "counter",
        "requests_not_served",
        "requests for APIs or versions that are not served",
        lambda r: r.node.boundary.stats.not_served,
    ),
    own(
        "gauge",
        "parked_answers",
        "answers that wait for the commit of the records that they report",
        lambda r: len(r.node.decisions.parked),
    ),
    own("gauge", "connections", "open connections on all listeners", lambda r: len(r.connections)),
    own(
        "counter",
        "connections_refused",
        "connections refused because of a limit",
        lambda r: r.connections.refused,
    ),
    Family(
        "kraftd_logins",
        "counter",
        "",
        "logins by TLS certificate and SASL; expired means that the client did not log in again in time",
        _logins,
        ("listener", "result"),
    ),
    Family(
        "kraftd_certificate_expiry_timestamp_seconds",
        "gauge",
        "",
        "when the first certificate of the chain in use expires, in seconds since 1970",
        _certificates,
        ("listener",),
    ),
    own(
        "counter",
        "wall_clock_steps",
        "steps of the wall clock by a second or more, forward or backward, since the start",
        lambda r: r.node.wall_clock.steps,
    ),
    own(
        "counter",
        "authorizations_denied",
        "requests, or resources of requests, that the authorizer denied",
        lambda r: r.authorizations[0],
    ),
    own(
        "counter",
        "load_records",
        "records read into the image since the start",
        lambda r: r.node.following.load_progress.records,
    ),
    own(
        "gauge",
        "uncommitted_changes",
        "changes of the image that are not yet committed and may be undone",
        lambda r: r.node.image.uncommitted_change_count,
    ),
    own("gauge", "snapshots", "snapshots on disk", lambda r: len(r.storage.log.snapshots)),
    own(
        "gauge",
        "snapshot_making",
        "1 while a snapshot is being made, else 0",
        lambda r: r.snapshots.is_making,
    ),
    own(
        "counter",
        "snapshots_failed",
        "snapshots that this node failed to make",
        lambda r: r.snapshots.failures,
    ),
    own(
        "counter",
        "snapshot_downloads",
        "snapshots fetched from leaders, complete and undamaged",
        lambda r: r.snapshots.downloads,
    ),
    own(
        "counter",
        "snapshot_downloads_refused",
        "snapshots fetched from leaders that were damaged",
        lambda r: r.snapshots.downloads_refused,
    ),
    own(
        "counter",
        "snapshot_download_bytes",
        "bytes of snapshots fetched from leaders",
        lambda r: r.snapshots.download_bytes,
    ),
    own(
        "counter",
        "damaged_files",
        "files that a scrub found damaged (kraftd.scrub.interval.ms)",
        lambda r: r.snapshots.damaged_files,
    ),
    own(
        "counter",
        "raft_truncations",
        "times that this node truncated its log, because the leader's log lacks the records",
        lambda r: r.truncations[0],
    ),
    own(
        "counter",
        "raft_truncated_records",
        "records that this node truncated; copies of the last ones are kept aside",
        lambda r: r.truncations[1],
    ),
)
