"""Becoming the active controller: the first records of the epoch, and this node's own registration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.controller.activation import activate
from kraftd.controller.controllers import register_controller
from kraftd.server.registration import is_due, registration_request

if TYPE_CHECKING:
    from kraftd.server.node import Node


def write_first_records(node: Node) -> None:
    """Bootstrap an empty log, or abort what a former leader left open. Raises ActivationError."""
    node.decide_alone(lambda ctx: activate(ctx, node.bootstrap))
    register_self(node)


def register_self(node: Node) -> None:
    """Register this run of the node, where metadata.version allows it and no record does yet (KIP-919)."""
    if is_due(node):
        request = registration_request(node)
        node.decide_alone(lambda ctx: register_controller(ctx, request))
