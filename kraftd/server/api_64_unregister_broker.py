"""UnregisterBroker (64), v0: forget a broker that will not come back.

Authorization: ALTER on the cluster (there is no authorizer yet: everyone may). Sent by: admin clients.
Answered after commit. Errors: BROKER_ID_NOT_REGISTERED.
Differs from Apache Kafka: nowhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.controller.brokers import unregister_broker

if TYPE_CHECKING:
    from kraftd.server.call import Call
    from kraftd.server.node import Node


def handle(node: Node, call: Call) -> None:
    node.decide(call, lambda ctx, request, _: unregister_broker.begin(ctx, request))
