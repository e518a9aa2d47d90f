"""DaemonConfig: every key that kraftd reads, one row a key, in the sections of docs/configuration.md.

A row makes the setting, the docs and the checks; a key needs nothing else (see the package's docstring).
Times are in milliseconds, sizes in bytes; -1 is "no limit" where Kafka says so.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import TypeVar

from kraftd.config.errors import ConfigError
from kraftd.config.listeners import (
    parse_ip_overrides,
    parse_protocol_map,
)
from kraftd.config.own_rows import OwnKeys
from kraftd.config.own_token_keys import OwnTokenKeys
from kraftd.config.rows import (
    Row,
    as_strings,
    flag,
    fraction,
    integer,
    own,
    seconds_as_ms,
    string,
    strings,
)
from kraftd.config.security import SecurityConfig
from kraftd.config.security_rows import AccessKeys, SecurityKeys
from kraftd.configdef.addresses import parse_bootstrap_server, parse_voter
from kraftd.configdef.node import NodeConfig
from kraftd.types import Endpoint

T = TypeVar("T")


def _absolute(path: str) -> str:
    """A directory as Kafka names it to clients: from the root, without slashes that mean nothing."""
    from_root = path if path.startswith("/") else f"{os.getcwd()}/{path}"
    return re.sub("/+", "/", from_root).rstrip("/") or "/"


class NodeKeys:
    """Identity of the node"""

    process_roles = strings("process.roles", "controller; broker, in any cluster; or both in one process")
    node_id = integer("node.id", "this node's id in the cluster")
    broker_id = integer("broker.id", "another name of node.id")


class ListenerKeys:
    """Listeners"""

    listener_texts = strings(
        "listeners", "the addresses to listen on, name://host:port; an empty host is every interface"
    )
    advertised_listener_texts = strings("advertised.listeners", "how others reach those listeners")
    controller_listener_names = strings(
        "controller.listener.names",
        "which listeners are the controllers'; the quorum talks through the first",
    )
    security_protocol_map = Row(
        lambda value: parse_protocol_map(str(value)),
        "listener.security.protocol.map",
        "the security protocol of each listener: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL",
    )
    inter_broker_listener_name = string(
        "inter.broker.listener.name", "which listener brokers use among themselves"
    )
    inter_broker_protocol = string(
        "security.inter.broker.protocol", "that listener's name when inter.broker.listener.name is not set"
    )
    early_start_listeners = strings(
        "early.start.listeners",
        "listeners that serve before the ACLs are known; all of them unless set",
    )


class BrokerKeys:
    """The broker"""

    rack = string("broker.rack", "where the broker stands, for the placement of replicas")
    registration_timeout_ms = integer(
        "initial.broker.registration.timeout.ms",
        "how long a broker that starts tries to register before it ends",
    )
    directory_failure_timeout_ms = integer(
        "log.dir.failure.timeout.ms",
        "how long a broker tries to report a log directory that failed before it ends",
    )
    controlled_shutdown_enable = flag(
        "controlled.shutdown.enable",
        "whether a broker that stops has the controller move its leaders away first",
    )


class ClientKeys:
    """Ordinary clients"""

    client_listener_names = strings(
        "kraftd.client.listener.names",
        "which listeners serve ordinary clients: metadata, and the metadata log as a topic "
        "([clients.md](clients.md)); none when not set",
        **own("kraftd.client.listener.names", "list", ""),
    )
    client_broker_listener_name = string(
        "kraftd.client.broker.listener.name",
        "the broker listener whose endpoints those clients get; that of the client's own "
        "listener's name when not set",
        **own("kraftd.client.broker.listener.name", "string", ""),
    )
    fetch_session_slots = integer(
        "max.incremental.fetch.session.cache.slots", "how many fetch sessions of clients are kept (KIP-227)"
    )
    fetch_max_bytes = integer("fetch.max.bytes", "the most bytes in an answer to a client's Fetch")
    described_partitions = integer(
        "max.request.partition.size.limit",
        "the most partitions in an answer to DescribeTopicPartitions (KIP-966)",
    )
    unstable_api_versions_enable = flag(
        "unstable.api.versions.enable",
        "whether those listeners serve unstable versions of APIs: in 4.3 InitProducerId v6; APIs of "
        "controller listeners have none",
    )


class QuorumKeys:
    """The quorum"""

    quorum_voters = Row(
        lambda value: {node: (host, port) for node, host, port in map(parse_voter, as_strings(value))},
        "controller.quorum.voters",
        "the voters of a static quorum, id@host:port",
    )
    quorum_bootstrap_servers = Row(
        lambda value: tuple(map(parse_bootstrap_server, as_strings(value))),
        "controller.quorum.bootstrap.servers",
        "where a dynamic quorum is found, host:port",
    )
    quorum_auto_join = flag(
        "controller.quorum.auto.join.enable", "whether a controller that is no voter joins by itself"
    )
    quorum_election_timeout_ms = integer(
        "controller.quorum.election.timeout.ms", "how long a vote may take before another round"
    )
    quorum_election_backoff_max_ms = integer(
        "controller.quorum.election.backoff.max.ms",
        "when a leader resigns, how long a voter waits at most for the successors that the leader prefers",
    )
    quorum_fetch_timeout_ms = integer(
        "controller.quorum.fetch.timeout.ms",
        "after this time without the leader, or without a majority, an election starts",
    )
    quorum_request_timeout_ms = integer(
        "controller.quorum.request.timeout.ms", "how long another controller may take to answer"
    )
    quorum_retry_backoff_ms = integer(
        "controller.quorum.retry.backoff.ms", "the pause before a failed request is sent again"
    )
    quorum_fetch_max_bytes = integer(
        "controller.quorum.fetch.max.bytes", "the most bytes that a follower requests in one Fetch"
    )
    quorum_fetch_snapshot_max_bytes = integer(
        "controller.quorum.fetch.snapshot.max.bytes", "the most bytes that it requests in one FetchSnapshot"
    )
    replica_fetch_response_max_bytes = integer(
        "replica.fetch.response.max.bytes", "the most bytes in an answer to FetchSnapshot (KIP-630)"
    )


class MetadataLogKeys:
    """The metadata log"""

    log_dirs_configured = strings(
        "log.dirs", "the data directories; the first holds the metadata log unless metadata.log.dir is set"
    )
    log_dir_configured = strings("log.dir", "the data directory, when log.dirs is not set")
    metadata_log_dir_configured = string("metadata.log.dir", "the directory of the metadata log")
    metadata_log_segment_bytes_configured = integer(
        "metadata.log.segment.bytes", "size at which a new segment is begun"
    )
    metadata_log_segment_bytes_of_tests = Row(
        lambda value: value if isinstance(value, int) else 0,
        "internal.metadata.log.segment.bytes",
        "the same without its lower limit, for tests",
    )
    metadata_log_segment_ms = integer("metadata.log.segment.ms", "age at which a new segment is begun")
    metadata_snapshot_max_new_record_bytes = integer(
        "metadata.log.max.record.bytes.between.snapshots",
        "the bytes of new records after which a snapshot is made",
    )
    metadata_snapshot_max_interval_ms = integer(
        "metadata.log.max.snapshot.interval.ms", "the time after which a snapshot is made; 0 is never"
    )
    metadata_max_retention_bytes = integer(
        "metadata.max.retention.bytes", "how many bytes of log and snapshots are kept"
    )
    metadata_max_retention_ms = integer("metadata.max.retention.ms", "how long log and snapshots are kept")
    metadata_snapshot_min_changed_ratio = fraction(
        "metadata.snapshot.min.changed_records.ratio",
        "the share of the last snapshot's records that must change before bytes cause another snapshot "
        "(KIP-630, which proposes 0.5; Kafka 4.3 has no such key, and 0 is its behaviour)",
        **own("metadata.snapshot.min.changed_records.ratio", "double", "0.0", ("range", 0, 1)),
    )
    metadata_start_offset_lag_max_ms = integer(
        "metadata.start.offset.lag.time.max.ms",
        "how long the log start waits for live replicas that have not yet fetched that far (KIP-630; "
        "Kafka 4.3 has no such key)",
        **own("metadata.start.offset.lag.time.max.ms", "long", "604800000", ("range", 0, None)),
    )
    replica_high_watermark_checkpoint_interval_ms = integer(
        "replica.high.watermark.checkpoint.interval.ms",
        "how often the high watermark is written to the disk, where it keeps committed records from being "
        "truncated",
    )
    metadata_max_idle_interval_ms = integer(
        "metadata.max.idle.interval.ms", "how often the leader writes a NoOpRecord; 0 is never"
    )
    metadata_max_batch_bytes = integer(
        "internal.metadata.max.batch.size.in.bytes", "the most bytes in one batch of records"
    )
    metadata_delete_delay_ms = integer(
        "internal.metadata.delete.delay.millis",
        "how long a snapshot that is no longer needed stays on disk after a replica has read a part of it",
    )


class TopicKeys:
    """Brokers and topics"""

    broker_session_timeout_ms = integer(
        "broker.session.timeout.ms", "the time without a heartbeat after which a broker is fenced"
    )
    broker_heartbeat_interval_ms = integer(
        "broker.heartbeat.interval.ms", "how often a broker sends a heartbeat to the active controller"
    )
    num_partitions = integer("num.partitions", "partitions of a new topic whose request names no number")
    default_replication_factor = integer(
        "default.replication.factor", "replicas of a new topic whose request names no number"
    )
    delete_topic_enable = flag("delete.topic.enable", "whether topics may be deleted")
    auto_leader_rebalance_enable = flag(
        "auto.leader.rebalance.enable", "whether leadership goes back to preferred replicas by itself"
    )
    leader_imbalance_check_interval_ms = seconds_as_ms(
        "leader.imbalance.check.interval.seconds", "how often the balance is checked"
    )
    unclean_leader_election_interval_ms = integer(
        "unclean.leader.election.interval.ms", "how often unclean elections are checked for"
    )
    remote_storage_enable = flag(
        "remote.log.storage.system.enable", "whether topics may have remote.storage.enable=true"
    )
    unstable_feature_versions_enable = flag(
        "unstable.feature.versions.enable", "whether unstable feature levels may be set"
    )


class ConnectionKeys:
    """Connections"""

    socket_request_max_bytes = integer("socket.request.max.bytes", "the largest request")
    socket_listen_backlog_size = integer(
        "socket.listen.backlog.size", "connections that may wait to be accepted"
    )
    max_connections = integer(
        "max.connections", "connections at once, also as `listener.name.<listener>.<key>` and dynamically"
    )
    max_connection_creation_rate = integer(
        "max.connection.creation.rate",
        "new connections a second, also as `listener.name.<listener>.<key>` and dynamically; more wait",
    )
    max_connections_per_ip = integer(
        "max.connections.per.ip",
        "connections at once from one address, also dynamically; "
        "of a broker with a controller in its process, either has as many",
    )
    max_connections_per_ip_overrides = Row(
        lambda value: parse_ip_overrides(str(value or "")),
        "max.connections.per.ip.overrides",
        "the same for single addresses or host names, host:number; names are looked up at the start, and "
        "dynamically only addresses count",
    )
    connections_max_idle_ms = integer(
        "connections.max.idle.ms", "the idle time after which a connection is closed; negative is never"
    )
    queued_max_requests = integer("queued.max.requests", "requests of one connection that may be in progress")
    queued_max_request_bytes = integer(
        "queued.max.request.bytes", "bytes of requests that may be held at once; -1 is kraftd's own limit"
    )


class AdminKeys:
    """Quotas and policies"""

    mutation_quota_window_ms = seconds_as_ms(
        "controller.quota.window.size.seconds", "how long one window of the controller mutation quota is"
    )
    mutation_quota_window_count = integer(
        "controller.quota.window.num", "how many windows' worth of mutations may come at once"
    )
    create_topic_policy = string(
        "create.topic.policy.class.name",
        "the policy of new topics: the name of a Python entry point in the group kraftd.policy",
    )
    alter_config_policy = string(
        "alter.config.policy.class.name",
        "the policy of changed configs: the name of a Python entry point in the group kraftd.policy",
    )


class DelegationTokenKeys:
    """Delegation tokens"""

    delegation_token_secret_key = string(
        "delegation.token.secret.key",
        "the secret for the tokens' HMACs, the same on all nodes; without it there are no tokens",
    )
    delegation_token_max_lifetime_ms = integer(
        "delegation.token.max.lifetime.ms", "how long a token may live, renewed or not"
    )
    delegation_token_expiry_time_ms = integer(
        "delegation.token.expiry.time.ms", "how long a token lives until it is renewed"
    )
    delegation_token_expiry_check_interval_ms = integer(
        "delegation.token.expiry.check.interval.ms", "how often expired tokens are removed"
    )


class DaemonConfig(
    NodeKeys,
    ListenerKeys,
    BrokerKeys,
    ClientKeys,
    AccessKeys,
    SecurityKeys,
    OwnTokenKeys,
    QuorumKeys,
    MetadataLogKeys,
    TopicKeys,
    ConnectionKeys,
    AdminKeys,
    DelegationTokenKeys,
    OwnKeys,
):
    """One daemon's configuration: its rows' settings, and values that follow from several of them.

    listeners: the endpoints to bind; host "" is every interface. advertised_listeners: the advertised
    endpoints of the controller listeners, the quorum's first. client_listeners, broker_listeners: those of
    listeners for ordinary clients, and of the broker. Their host is "" if this host's own name has to be
    found. node_config: the file's text as resource configs see it. connection_creation_rates: new connections
    a second by listener. connections_by_listener: connections at once. security: the result of all security
    keys. warnings: to be logged once at the start.
    """

    def __init__(
        self,
        settings: Mapping[str, object],
        node_config: NodeConfig,
        *,
        listeners: tuple[Endpoint, ...] = (),
        advertised_listeners: tuple[Endpoint, ...] = (),
        client_listeners: tuple[Endpoint, ...] = (),
        broker_listeners: tuple[Endpoint, ...] = (),
        warnings: tuple[str, ...] = (),
    ) -> None:
        """``settings``: the result of each row's parser, by its target."""
        self.__dict__.update(settings)
        self.node_config = node_config
        self.listeners = listeners
        self.advertised_listeners = advertised_listeners
        self.client_listeners = client_listeners
        self.broker_listeners = broker_listeners
        self.security = SecurityConfig()
        self.connection_creation_rates: Mapping[str, int] = {}
        self.connections_by_listener: Mapping[str, int] = {}
        self.warnings = warnings

    def settings(self, kind: Callable[..., T], prefix: str = "", **given: object) -> T:
        """Settings of a kind. A field that is not given is the setting of its name, with the prefix or
        without; a field without such a setting keeps its default.
        """
        for field in kind.__annotations__.keys() - given.keys():
            target = next((name for name in (prefix + field, field) if hasattr(type(self), name)), None)
            if target is not None:
                given[field] = getattr(self, target)
        return kind(**given)

    @cached_property
    def log_dirs(self) -> tuple[str, ...]:
        return tuple(map(_absolute, self.log_dirs_configured or self.log_dir_configured))

    @cached_property
    def metadata_log_dir(self) -> str:
        configured = self.metadata_log_dir_configured
        return _absolute(configured) if configured else self.log_dirs[0]

    @cached_property
    def metadata_log_segment_bytes(self) -> int:
        return self.metadata_log_segment_bytes_of_tests or self.metadata_log_segment_bytes_configured

    @property
    def quorum_endpoint(self) -> Endpoint:
        """The advertised endpoint of the quorum's listener. Raises ConfigError on a broker alone."""
        if not self.advertised_listeners:
            why = "this is for controllers; a broker alone has no listener of the quorum"
            raise ConfigError([f"process.roles={','.join(self.process_roles)}: {why}"])
        return self.advertised_listeners[0]

    @property
    def is_controller(self) -> bool:
        """Return whether the node is a controller: it may vote and decide."""
        return "controller" in self.process_roles

    @property
    def inter_broker_listener(self) -> str:
        """The listener that brokers use among themselves."""
        return (self.inter_broker_listener_name or self.inter_broker_protocol).upper()

    @property
    def listener_among_brokers(self) -> str:
        """The listener that brokers use among themselves, if clients have another one; else empty."""
        controllers = set(map(str.upper, self.controller_listener_names))
        others = {endpoint.listener for endpoint in self.listeners} - controllers
        return self.inter_broker_listener if self.inter_broker_listener in others and len(others) > 1 else ""

    @property
    def is_broker(self) -> bool:
        """Return whether the node is a broker."""
        return "broker" in self.process_roles

    @property
    def is_static_quorum(self) -> bool:
        """Return whether the voters are those of the file, not those of the log (kraft.version 0)."""
        return bool(self.quorum_voters)

    @property
    def data_dirs(self) -> tuple[str, ...]:
        """All directories that formatting prepares, sorted, each once."""
        return tuple(sorted({*self.log_dirs, self.metadata_log_dir}))

    def __repr__(self) -> str:
        names = ", ".join(map(repr, self.listeners))
        return f"<DaemonConfig of node {self.node_id} on {names}, metadata in {self.metadata_log_dir}>"


SECTIONS = DaemonConfig.__bases__


def rows_of(section: type) -> Iterator[Row[object]]:
    """The rows of one section, in their order."""
    return (row for row in vars(section).values() if isinstance(row, Row))


ROWS: dict[str, Row[object]] = {row.key: row for section in SECTIONS for row in rows_of(section)}
