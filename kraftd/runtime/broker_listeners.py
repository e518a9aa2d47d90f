"""A daemon's broker role: a broker node beside the replica of the metadata log, on the same loop.

Loaded only if `process.roles` names it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.answers.settings import ClientSettings
from kraftd.broker_node.lifecycle import Broker
from kraftd.broker_node.node import BrokerNode
from kraftd.broker_node.routes import broker_registry
from kraftd.fetch.session_cache import CacheLimits
from kraftd.host.broker_executor import BrokerExecutor
from kraftd.host.cluster_view import NodeView
from kraftd.metadata.features import supported_features
from kraftd.runtime.served_node import ServedNode

if TYPE_CHECKING:
    from kraftd.config import DaemonConfig
    from kraftd.runtime.dice import SystemDice
    from kraftd.runtime.runner import Runner
    from kraftd.types import Endpoint

REQUEST_TIMEOUT_MS = 10_000  # until a request to a controller fails


def serve_broker(
    runner: Runner, config: DaemonConfig, dice: SystemDice, endpoints: tuple[Endpoint, ...]
) -> None:
    """Make the runner a broker, too, which is reached at these endpoints."""
    storage, security = runner.storage, runner.security
    view = NodeView(runner.node, storage)
    settings = ClientSettings(
        {one.listener: one for one in endpoints},
        None,
        CacheLimits(slots=config.fetch_session_slots),
        config.fetch_max_bytes,
        config.unstable_api_versions_enable,
        serves_metadata_topic=False,
    )
    broker = Broker(
        config.node_id,
        storage.directory.cluster_id,
        dice.uuid(),
        endpoints,
        tuple(storage.directory.directory_ids[one] for one in config.log_dirs),
        supported_features(unstable=config.unstable_feature_versions_enable),
        config.rack or None,
        heartbeat_interval_ms=config.broker_heartbeat_interval_ms,
        session_timeout_ms=config.broker_session_timeout_ms,
        registration_timeout_ms=config.registration_timeout_ms,
        controlled_shutdown=config.controlled_shutdown_enable,
    )
    node = BrokerNode(view, settings, broker_registry, broker, security.authorizer)
    node.boundary.authorizations.allowances = config.audit_allowances

    def executor(wire: ServedNode) -> BrokerExecutor:
        return BrokerExecutor(node, view, runner.ports, wire, wire.around)

    roads = {"": runner.road_to_controllers}
    runner.serve(
        ServedNode(runner, settings.endpoints, roads, REQUEST_TIMEOUT_MS, executor, str(view.node_id))
    )
