"""Assembles the parts of a daemon from its configuration and the state on disk."""

from __future__ import annotations

import resource
import socket
from collections.abc import Iterable, Mapping

from kraftd.config import DaemonConfig
from kraftd.controller.brokers.heartbeats import BrokerHeartbeats
from kraftd.controller.context import Context, ControllerSettings, TokenSettings
from kraftd.controller.policies import NO_POLICIES, Policies
from kraftd.controller_node.node import Node
from kraftd.controller_node.routes import controller_registry
from kraftd.fetch.purgatory import Purgatory
from kraftd.host.storage import Storage
from kraftd.host.upkeep.retention import RetentionRules
from kraftd.host.upkeep.snapshot_keeper import KeeperSettings, SnapshotKeeper
from kraftd.metadata.features import default_bootstrap_records
from kraftd.metadata.image import Image
from kraftd.net.limits import Limits
from kraftd.raft.config import RaftConfig
from kraftd.raft.core import RaftCore
from kraftd.raft.quorum.voters import NO_VOTERS, VoterSet
from kraftd.replica.identity import Identity
from kraftd.runtime.children.processes import ChildProcesses
from kraftd.runtime.clock import Clock
from kraftd.runtime.randomness import SystemRandomness
from kraftd.runtime.runner import Runner
from kraftd.runtime.security.assembly import Security, SecurityProblem
from kraftd.security.authorizer import Authorizer
from kraftd.types import Endpoint

FILES_KEPT = 128  # for the metadata log, snapshots and peers, but at most half of the limit
MAX_LOG_FILES = 8_192  # of a broker's partitions, but at most a quarter of the limit
RESERVED_SHARE = 10  # one in so many connections is for nodes of the quorum alone


class StartupError(Exception):
    """The daemon cannot start; the text says why and what to do."""


def build_node(
    config: DaemonConfig,
    storage: Storage,
    rng: SystemRandomness,
    clock: Clock,
    bound: list[Endpoint],
    policies: Policies = NO_POLICIES,
    authorizer: Authorizer | None = None,
    *,
    rejoins: bool = False,
) -> Node:
    """Connect the pure packages, by the configuration and the state on disk. Raises StartupError."""
    ports = {endpoint.listener: endpoint.port for endpoint in bound}
    advertised = announced(config.advertised_listeners, ports)
    for_clients = announced(config.client_listeners, ports)
    listener_name = config.controller_listener_names[0]
    static = VoterSet.from_static(listener_name, config.quorum_voters) if config.quorum_voters else NO_VOTERS
    durable = storage.durable_state(static)
    check_voters(config)
    settings = raft_config(config, storage, advertised, rejoins=rejoins)
    core = RaftCore(settings, durable, rng, fetches=Purgatory(), appends=Purgatory())
    context = Context(
        Image(),
        clock.now_ms(),
        controller_settings(config, storage),
        BrokerHeartbeats(config.broker_session_timeout_ms),
        rng,
        policies=policies,
    )
    identity = Identity(
        config.node_id,
        storage.directory.cluster_id,
        rng.uuid(),
        (*advertised, *for_clients),
        listener_name,
        config.is_controller,
        announced(config.broker_listeners, ports),
    )
    bootstrap = storage.bootstrap if storage.bootstrap is not None else default_bootstrap_records()
    return Node(identity, core, context, controller_registry, bootstrap, storage.snapshot(), authorizer)


def announced(endpoints: Iterable[Endpoint], ports: Mapping[str, int]) -> tuple[Endpoint, ...]:
    """Endpoints for other nodes, with this host's name and the bound ports where none is configured."""
    return tuple(
        endpoint._replace(
            host=endpoint.host or socket.getfqdn(), port=endpoint.port or ports.get(endpoint.listener, 0)
        )
        for endpoint in endpoints
    )


def raft_config(
    config: DaemonConfig, storage: Storage, advertised: tuple[Endpoint, ...], *, rejoins: bool = False
) -> RaftConfig:
    """The settings of the consensus core."""
    return config.settings(
        RaftConfig,
        "quorum_",
        directory_id=storage.directory.directory_id,
        cluster_id=storage.directory.cluster_id,
        listeners=advertised,
        listener_name=config.controller_listener_names[0],
        fetch_response_max_bytes=config.replica_fetch_response_max_bytes,
        auto_join=config.quorum_auto_join and config.is_controller,
        rejoins=rejoins,
        max_batch_bytes=config.metadata_max_batch_bytes,
    )


def controller_settings(config: DaemonConfig, storage: Storage) -> ControllerSettings:
    """The settings of the decisions."""
    return config.settings(
        ControllerSettings,
        cluster_id=storage.directory.cluster_id,
        tokens=config.settings(TokenSettings, "delegation_token_"),
        static_config=config.node_config,
        static_voter_ids=tuple(config.quorum_voters),
    )


def make_security(config: DaemonConfig, clock: Clock | None = None) -> Security:
    """TLS, logins and the authorizer of a configuration. Raises StartupError."""
    try:
        return Security(config.security, config.node_config, clock)
    except SecurityProblem as problem:
        raise StartupError(str(problem)) from None


def build_keeper(runner: Runner, config: DaemonConfig) -> SnapshotKeeper:
    """The configured snapshot keeper."""
    settings = config.settings(
        KeeperSettings,
        "metadata_snapshot_",
        rules=RetentionRules(
            config.metadata_max_retention_bytes,
            config.metadata_max_retention_ms,
            config.metadata_delete_delay_ms,
            config.metadata_start_offset_lag_max_ms,
        ),
    )
    node = runner.node
    return SnapshotKeeper(
        runner,
        node.core,
        lambda: node.following.replay.next_offset,
        ChildProcesses(runner.loop.call_soon_threadsafe),
        settings,
        runner.step,
    )


def check_voters(config: DaemonConfig) -> None:
    """Check that a controller of a static quorum is one of its voters, as in Kafka. Raises StartupError."""
    if config.is_controller and config.quorum_voters and config.node_id not in config.quorum_voters:
        voters = ", ".join(map(str, sorted(config.quorum_voters)))
        raise StartupError(
            f"controller.quorum.voters names {voters}, and not this node, {config.node_id}: "
            "put it there, in the files of all controllers, or correct node.id"
        )


def open_files_limit() -> int:
    """How many files the process may open, once the soft limit is as high as the hard one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        soft = min(hard, 65_536) if hard != resource.RLIM_INFINITY else 65_536
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return soft


def log_files_limit() -> int:
    """How many files of a broker's logs are open at once."""
    return min(MAX_LOG_FILES, open_files_limit() // 4)


def limits(config: DaemonConfig) -> Limits:
    """The limits of a configuration; the files that the process may open also limit connections."""
    defaults = Limits()
    most = open_files_limit()
    kept = min(FILES_KEPT, most // 2) + (log_files_limit() if config.is_broker else 0)
    buffered = config.queued_max_request_bytes
    openable = most - kept
    max_connections = min(config.max_connections, openable)
    return Limits(
        max_frame_bytes=config.socket_request_max_bytes,
        max_connections=max_connections,
        openable_connections=openable,
        reserved_connections=max_connections // RESERVED_SHARE,
        max_connections_per_ip=config.max_connections_per_ip,
        max_connections_per_ip_overrides=overrides_by_address(config),
        max_connections_by_listener=config.connections_by_listener,
        controller_listeners=frozenset(map(str.upper, config.controller_listener_names)),
        listener_among_brokers=config.listener_among_brokers,
        max_in_flight=config.queued_max_requests,
        max_buffered_bytes=buffered if buffered > 0 else defaults.max_buffered_bytes,
        idle_ms=config.connections_max_idle_ms,
    )


def overrides_by_address(config: DaemonConfig) -> dict[str, int]:
    """``max.connections.per.ip.overrides`` by address, host names looked up. Raises StartupError."""
    by_address = {}
    for host, count in config.max_connections_per_ip_overrides.items():
        try:
            found = socket.getaddrinfo(host.strip("[]"), None, type=socket.SOCK_STREAM)
        except OSError as error:
            raise StartupError(
                f"max.connections.per.ip.overrides={host}:{count}: {host} cannot be looked up: "
                f"{error.strerror}. Give an address, or a name that this host knows"
            ) from error
        by_address.update({str(address[4][0]): count for address in found})
    return by_address
