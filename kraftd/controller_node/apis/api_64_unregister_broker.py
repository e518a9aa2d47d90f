"""UnregisterBroker (64), v0: forget a broker that will not come back.

Authorization: ALTER on the cluster. Sent by: admin clients. Answered after commit. Errors:
BROKER_ID_NOT_REGISTERED.
Differs from Apache Kafka: nowhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.controller.brokers.registration import unregister_broker

if TYPE_CHECKING:
    from kraftd.controller_node.node import Node
    from kraftd.requests.call import Call


def handle(node: Node, call: Call) -> None:
    node.decisions.decide(call, lambda ctx, request, _: unregister_broker.begin(ctx, request))
