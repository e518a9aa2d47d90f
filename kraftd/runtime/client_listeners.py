"""A daemon's listeners for ordinary clients: a node beside the controller, on the same loop.

Loaded only if such a listener is configured: a pure controller starts without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.answers.settings import ClientSettings
from kraftd.fetch.session_cache import CacheLimits
from kraftd.host.cluster_view import NodeView
from kraftd.host.executors.metadata_topic_executor import MetadataTopicExecutor
from kraftd.metadata_topic_node.node import MetadataTopicNode
from kraftd.metadata_topic_node.routes import client_registry
from kraftd.runtime.served_node import ServedNode

if TYPE_CHECKING:
    from kraftd.config import DaemonConfig
    from kraftd.runtime.clock import Clock
    from kraftd.runtime.randomness import SystemRandomness
    from kraftd.runtime.runner import Runner

FORWARD_TIMEOUT_MS = 10_000  # until a request forwarded to another node fails


def serve_clients(runner: Runner, config: DaemonConfig, clock: Clock, rng: SystemRandomness) -> None:
    """Make the runner serve the ordinary clients of `config.client_listener_names`."""
    controller, log = runner.node, runner.storage.log
    names = [name.upper() for name in config.client_listener_names]
    view = NodeView(controller, runner.storage)
    settings = ClientSettings(
        {one.listener: one for one in controller.identity.endpoints if one.listener in names},
        config.client_broker_listener_name.upper() or None,
        CacheLimits(slots=config.fetch_session_slots),
        config.fetch_max_bytes,
        config.unstable_api_versions_enable,
        described_partitions=config.described_partitions,
    )
    node = MetadataTopicNode(
        view,
        settings,
        client_registry,
        rng.session_id,
        runner.security.authorizer,
    )
    node.boundary.authorizations.allowances = config.audit_allowances

    def executor(wire: ServedNode) -> MetadataTopicExecutor:
        return MetadataTopicExecutor(node, view, log, runner.ports, wire, wire.around)

    runner.serve(
        ServedNode(runner, names, runner.roads(), FORWARD_TIMEOUT_MS, executor, f"kraftd-{view.node_id}")
    )
