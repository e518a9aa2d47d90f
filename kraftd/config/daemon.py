"""DaemonConfig: everything that the daemon is told, typed; Kafka's names with dots made underscores where
they fit.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from kraftd.configdef.definition import Value
from kraftd.configdef.node import NodeConfig
from kraftd.types import Endpoint


class DaemonConfig(Struct, frozen=True, kw_only=True):
    """One daemon's configuration. Times are in milliseconds, sizes in bytes; -1 is "no limit" where Kafka
    says so.

    listeners: what to bind; host "" is every interface. advertised_listeners: how the controller listeners
    are announced, the quorum's first; host "" where this host's own name has to be found. node_config: the
    file's text as resource configs see it. warnings: to be logged once at the start.
    """

    node_id: int
    listeners: tuple[Endpoint, ...]
    advertised_listeners: tuple[Endpoint, ...]
    controller_listener_names: tuple[str, ...]

    quorum_voters: dict[int, tuple[str, int]]
    quorum_bootstrap_servers: tuple[tuple[str, int], ...]
    quorum_auto_join: bool
    quorum_election_timeout_ms: int
    quorum_election_backoff_max_ms: int
    quorum_fetch_timeout_ms: int
    quorum_request_timeout_ms: int
    quorum_retry_backoff_ms: int
    quorum_append_linger_ms: int
    quorum_fetch_max_bytes: int
    quorum_fetch_snapshot_max_bytes: int

    log_dirs: tuple[str, ...]
    metadata_log_dir: str
    metadata_log_segment_bytes: int
    metadata_log_segment_ms: int
    metadata_max_retention_bytes: int
    metadata_max_retention_ms: int
    metadata_max_idle_interval_ms: int
    metadata_max_batch_bytes: int
    metadata_delete_delay_ms: int
    metadata_snapshot_max_new_record_bytes: int
    metadata_snapshot_max_interval_ms: int
    metadata_snapshot_min_changed_ratio: float
    metadata_snapshot_timeout_ms: int
    scrub_interval_ms: int

    broker_session_timeout_ms: int
    num_partitions: int
    default_replication_factor: int
    delete_topic_enable: bool
    auto_leader_rebalance_enable: bool
    leader_imbalance_check_interval_ms: int
    unclean_leader_election_interval_ms: int
    unstable_api_versions_enable: bool
    unstable_feature_versions_enable: bool

    socket_request_max_bytes: int
    socket_listen_backlog_size: int
    max_connections: int
    max_connections_per_ip: int
    max_connections_per_ip_overrides: dict[str, int]
    connections_max_idle_ms: int
    queued_max_requests: int
    queued_max_request_bytes: int

    log_format: str
    log_level: str
    metrics_listener: Endpoint | None
    shutdown_timeout_ms: int

    node_config: NodeConfig
    warnings: tuple[str, ...] = ()

    @property
    def is_static_quorum(self) -> bool:
        """Whether the voters are those of the file, not those of the log (kraft.version 0)."""
        return bool(self.quorum_voters)

    @property
    def data_dirs(self) -> tuple[str, ...]:
        """All directories that formatting prepares, sorted, each once."""
        return tuple(sorted({*self.log_dirs, self.metadata_log_dir}))

    def __repr__(self) -> str:
        names = ", ".join(map(repr, self.listeners))
        return f"<DaemonConfig of node {self.node_id} on {names}, metadata in {self.metadata_log_dir}>"


def build(
    values: Mapping[str, Value],
    own: Mapping[str, Value],
    *,
    listeners: tuple[Endpoint, ...],
    advertised_listeners: tuple[Endpoint, ...],
    voters: dict[int, tuple[str, int]],
    bootstrap_servers: tuple[tuple[str, int], ...],
    ip_overrides: dict[str, int],
    metrics_listener: Endpoint | None,
    node_config: NodeConfig,
    warnings: tuple[str, ...],
) -> DaemonConfig:
    """A DaemonConfig of parsed and checked values: ``values`` by Kafka's keys, ``own`` by kraftd's."""

    def integer(key: str) -> int:
        value = values[key]
        assert isinstance(value, int)
        return value

    def texts(key: str) -> tuple[str, ...]:
        value = values[key]
        return tuple(value) if isinstance(value, list) else ()

    def whole(key: str) -> int:
        value = own[key]
        assert isinstance(value, int)
        return value

    ratio = own["kraftd.metadata.snapshot.min.changed.records.ratio"]
    assert isinstance(ratio, float)
    log_dirs = texts("log.dirs") or texts("log.dir")
    segment_bytes = values["internal.metadata.log.segment.bytes"] or values["metadata.log.segment.bytes"]
    assert isinstance(segment_bytes, int)
    return DaemonConfig(
        node_id=integer("node.id"),
        listeners=listeners,
        advertised_listeners=advertised_listeners,
        controller_listener_names=texts("controller.listener.names"),
        quorum_voters=voters,
        quorum_bootstrap_servers=bootstrap_servers,
        quorum_auto_join=bool(values["controller.quorum.auto.join.enable"]),
        quorum_election_timeout_ms=integer("controller.quorum.election.timeout.ms"),
        quorum_election_backoff_max_ms=integer("controller.quorum.election.backoff.max.ms"),
        quorum_fetch_timeout_ms=integer("controller.quorum.fetch.timeout.ms"),
        quorum_request_timeout_ms=integer("controller.quorum.request.timeout.ms"),
        quorum_retry_backoff_ms=integer("controller.quorum.retry.backoff.ms"),
        quorum_append_linger_ms=integer("controller.quorum.append.linger.ms"),
        quorum_fetch_max_bytes=integer("controller.quorum.fetch.max.bytes"),
        quorum_fetch_snapshot_max_bytes=integer("controller.quorum.fetch.snapshot.max.bytes"),
        log_dirs=log_dirs,
        metadata_log_dir=str(values["metadata.log.dir"] or log_dirs[0]),
        metadata_log_segment_bytes=segment_bytes,
        metadata_log_segment_ms=integer("metadata.log.segment.ms"),
        metadata_max_retention_bytes=integer("metadata.max.retention.bytes"),
        metadata_max_retention_ms=integer("metadata.max.retention.ms"),
        metadata_max_idle_interval_ms=integer("metadata.max.idle.interval.ms"),
        metadata_max_batch_bytes=integer("internal.metadata.max.batch.size.in.bytes"),
        metadata_delete_delay_ms=integer("internal.metadata.delete.delay.millis"),
        metadata_snapshot_max_new_record_bytes=integer("metadata.log.max.record.bytes.between.snapshots"),
        metadata_snapshot_max_interval_ms=integer("metadata.log.max.snapshot.interval.ms"),
        metadata_snapshot_min_changed_ratio=ratio,
        metadata_snapshot_timeout_ms=whole("kraftd.metadata.snapshot.timeout.ms"),
        scrub_interval_ms=whole("kraftd.scrub.interval.ms"),
        broker_session_timeout_ms=integer("broker.session.timeout.ms"),
        num_partitions=integer("num.partitions"),
        default_replication_factor=integer("default.replication.factor"),
        delete_topic_enable=bool(values["delete.topic.enable"]),
        auto_leader_rebalance_enable=bool(values["auto.leader.rebalance.enable"]),
        leader_imbalance_check_interval_ms=integer("leader.imbalance.check.interval.seconds") * 1000,
        unclean_leader_election_interval_ms=integer("unclean.leader.election.interval.ms"),
        unstable_api_versions_enable=bool(values["unstable.api.versions.enable"]),
        unstable_feature_versions_enable=bool(values["unstable.feature.versions.enable"]),
        socket_request_max_bytes=integer("socket.request.max.bytes"),
        socket_listen_backlog_size=integer("socket.listen.backlog.size"),
        max_connections=integer("max.connections"),
        max_connections_per_ip=integer("max.connections.per.ip"),
        max_connections_per_ip_overrides=ip_overrides,
        connections_max_idle_ms=integer("connections.max.idle.ms"),
        queued_max_requests=integer("queued.max.requests"),
        queued_max_request_bytes=integer("queued.max.request.bytes"),
        log_format=str(own["kraftd.log.format"]),
        log_level=str(own["kraftd.log.level"]),
        metrics_listener=metrics_listener,
        shutdown_timeout_ms=whole("kraftd.shutdown.timeout.ms"),
        node_config=node_config,
        warnings=warnings,
    )
