"""Becoming the active controller: the first records of the epoch, and this node's own registration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.controller.activation import activate
from kraftd.controller.controllers import register_controller
from kraftd.messages.controller_registration_request import ControllerRegistrationRequest, Feature, Listener
from kraftd.metadata.features import supported_features
from kraftd.metadata.metadata_version import allows_controller_registration

if TYPE_CHECKING:
    from kraftd.server.node import Node


def write_first_records(node: Node) -> None:
    """Bootstrap an empty log, or abort what a former leader left open. Raises ActivationError."""
    node.decide_alone(lambda ctx: activate(ctx, node.bootstrap))
    register_self(node)


def register_self(node: Node) -> None:
    """Register this run of the node, where metadata.version allows it and no record does yet (KIP-919)."""
    identity = node.identity
    known = node.image.controllers.get(identity.node_id)
    if known is not None and known.incarnation_id == identity.incarnation_id:
        return
    if not allows_controller_registration(node.image.metadata_version):
        return
    supported = supported_features(unstable=node.context.settings.unstable_features)
    request = ControllerRegistrationRequest(
        controller_id=identity.node_id,
        incarnation_id=identity.incarnation_id,
        listeners=[
            Listener(endpoint.listener, endpoint.host, endpoint.port, endpoint.security_protocol)
            for endpoint in identity.endpoints
        ],
        features=[Feature(name, low, high) for name, (low, high) in supported.items()],
    )
    node.decide_alone(lambda ctx: register_controller(ctx, request))
