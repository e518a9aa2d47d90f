"""ControllerRegistration (70), v0: a controller registers its endpoints and supported features (KIP-919).

Authorization: CLUSTER_ACTION. Sent by: controllers, once per start. Answered after commit. Errors:
UNSUPPORTED_VERSION (metadata.version is below 3.7). Differs from Apache Kafka: nowhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.controller.features.controllers import register_controller

if TYPE_CHECKING:
    from kraftd.controller_node.node import Node
    from kraftd.requests.call import Call


def handle(node: Node, call: Call) -> None:
    node.decisions.decide(call, lambda ctx, request, _: register_controller(ctx, request))
