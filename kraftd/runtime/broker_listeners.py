"""A daemon's broker role: a broker node beside the replica of the metadata log, on the same loop.

Loaded only if `process.roles` names it.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from kraftd.answers.settings import ClientSettings
from kraftd.broker_node.effects import LoadCoordinators
from kraftd.broker_node.events import CoordinatorsLoaded
from kraftd.broker_node.fetching.ports import inter_broker_listener
from kraftd.broker_node.lifecycle import Broker
from kraftd.broker_node.node import BrokerNode
from kraftd.broker_node.own_requests import HEARTBEATS
from kraftd.broker_node.partitions.topic_configs import TopicConfigs
from kraftd.broker_node.routes import broker_registry
from kraftd.configdef.node import NodeConfig
from kraftd.fetch.session_cache import CacheLimits
from kraftd.host.broker_logs.broker_logs import Schedules
from kraftd.host.broker_logs.replayed_producers import ReplayedProducers
from kraftd.host.cluster_view import NodeView
from kraftd.host.executors.broker_executor import BrokerExecutor
from kraftd.log.data.open_files import OpenFiles
from kraftd.log.data.resources import LogResources
from kraftd.log.disk import RealDisk
from kraftd.log_dirs.cleaner import CleanerSettings
from kraftd.log_dirs.directories import LogDirectories, LogDirectory
from kraftd.log_dirs.log_loader import LogLoader
from kraftd.metadata.features import supported_features
from kraftd.metadata.replica_changes import ReplicaChanges
from kraftd.net.outbound import Times
from kraftd.runtime.assembly import log_files_limit
from kraftd.runtime.assignors import load_assignors
from kraftd.runtime.late_code import LateCode, has_coordinators_logs, load_coordinators
from kraftd.runtime.served_node import ServedNode

if TYPE_CHECKING:
    from kraftd.config import DaemonConfig
    from kraftd.host.storage import Storage
    from kraftd.runtime.randomness import SystemRandomness
    from kraftd.runtime.runner import Runner
    from kraftd.types import Endpoint, Uuid

REQUEST_TIMEOUT_MS = 10_000  # until a request to a controller fails


def cleaner_settings(static: NodeConfig, secret: bytes) -> CleanerSettings:
    """How compacted logs are cleaned; secret is for the hashes of keys."""
    settings = static.settings(CleanerSettings)

    def limit(size_bytes: int, bytes_per_s: float) -> None:
        # Even a wait of no time lets the event loop's thread run.
        time.sleep(size_bytes / bytes_per_s)

    return settings._replace(secret=secret, limit=limit)


class LogsAtStart:
    """The log directories of a broker, and what loads their logs."""

    def __init__(
        self,
        config: DaemonConfig,
        storage: Storage,
        static: NodeConfig,
        view: NodeView,
        rng: SystemRandomness,
    ) -> None:
        self.disk = RealDisk()
        self._configs = TopicConfigs(static, config.node_id, view.context)
        self._now_ms = view.context.wall_ms
        self.directories = LogDirectories(
            LogResources(self.disk, OpenFiles(self.disk, log_files_limit()), draw=rng.below),
            [LogDirectory(one, storage.directory.directory_ids.get(one)) for one in config.log_dirs],
            lambda topic: self._configs.of(topic).log,
            storage.directory.unreadable,
        )
        self.loader = LogLoader(self.directories, self._now_ms, self._producers_of)

    def _producers_of(self, topic: str, partition: int) -> ReplayedProducers:
        return ReplayedProducers(self._configs.of(topic).partition, self._now_ms)

    def __repr__(self) -> str:
        return f"<LogsAtStart {self.directories!r}>"


def _broker_of(
    config: DaemonConfig,
    storage: Storage,
    endpoints: tuple[Endpoint, ...],
    incarnation_id: Uuid,
    previous_epoch: int | None,
) -> Broker:
    """What the broker of this process tells the controllers of itself."""
    ids = [storage.directory.directory_ids.get(one) for one in config.log_dirs]
    return Broker(
        config.node_id,
        storage.directory.cluster_id,
        incarnation_id,
        endpoints,
        tuple(id for id in ids if id is not None),
        supported_features(unstable=config.unstable_feature_versions_enable),
        config.rack or None,
        -1 if previous_epoch is None else previous_epoch,
        heartbeat_interval_ms=config.broker_heartbeat_interval_ms,
        registration_timeout_ms=config.registration_timeout_ms,
        directory_failure_timeout_ms=config.directory_failure_timeout_ms,
        controlled_shutdown=config.controlled_shutdown_enable,
    )


def serve_broker(
    runner: Runner, config: DaemonConfig, rng: SystemRandomness, endpoints: tuple[Endpoint, ...]
) -> None:
    """Make the runner a broker, too, which is reached at these endpoints. Raises EntryPointError."""
    storage, security = runner.storage, runner.security
    view = NodeView(runner.node, storage)
    settings = ClientSettings(
        {one.listener: one for one in endpoints},
        None,
        CacheLimits(slots=config.fetch_session_slots),
        config.fetch_max_bytes,
        config.unstable_api_versions_enable,
        stands_in_for_brokers=False,
        described_partitions=config.described_partitions,
    )
    static = NodeConfig.of(config.node_config)
    logs = LogsAtStart(config, storage, static, view, rng)
    node = BrokerNode(
        view,
        settings,
        broker_registry,
        _broker_of(config, storage, endpoints, rng.uuid(), logs.loader.broker_epoch),
        static,
        rng.session_id,
        lambda: str(UUID(bytes=rng.uuid())),
        security.authorizer,
    )
    if has_coordinators_logs(config.log_dirs):
        load_coordinators()
    else:
        node.coordinators.are_loaded = False
    node.coordinators.use_assignors(load_assignors(static, config.node_config, runner.log))
    among_brokers = inter_broker_listener(static)
    node.fault_of_stores = partial(security.fault_of_stores, config.node_config, among_brokers)
    node.boundary.authorizations.allowances = config.audit_allowances
    runner.node.image.replica_changes = ReplicaChanges(config.node_id)

    def executor(wire: ServedNode) -> BrokerExecutor:
        made = BrokerExecutor(
            node,
            view,
            storage.log,
            logs.directories,
            logs.loader,
            static.settings(Schedules),
            logs.disk,
            runner.ports,
            wire,
            lambda: rng.uuid().hex(),
            wire.around,
            cleaner_settings(static, rng.uuid()),
        )
        runner.log_cleaner = made.cleaning.cleaner
        runner.full_directories = made.logs.full_directories
        if not node.coordinators.are_loaded:
            late = LateCode(runner.loop, lambda: made.step(CoordinatorsLoaded()))
            made.performers[LoadCoordinators] = lambda _: late.load()
            runner.late_code = late
        return made

    every = runner.roads()
    roads = {"": runner.road_to_controllers}
    if among_brokers in every:
        roads[among_brokers] = every[among_brokers]
    # As Kafka's: a session outlives a controller that does not answer, so another can get the next heartbeat.
    longest_ms = config.broker_session_timeout_ms
    times = {HEARTBEATS: Times(config.broker_heartbeat_interval_ms, longest_timeout_ms=longest_ms)}
    own_id = str(view.node_id)
    runner.serve(ServedNode(runner, settings.endpoints, roads, REQUEST_TIMEOUT_MS, executor, own_id, times))
