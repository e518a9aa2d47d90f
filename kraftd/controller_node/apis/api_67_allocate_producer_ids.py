"""AllocateProducerIds (67), v0: a broker gets a block of 1,000 producer ids (KIP-730).

Authorization: CLUSTER_ACTION. Sent by: brokers. Answered after commit. Errors: STALE_BROKER_EPOCH.
Differs from Apache Kafka: nowhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.controller.brokers.producer_ids import allocate_producer_ids

if TYPE_CHECKING:
    from kraftd.controller_node.node import Node
    from kraftd.requests.call import Call


def handle(node: Node, call: Call) -> None:
    node.decisions.decide(call, lambda ctx, request, _: allocate_producer_ids(ctx, request))
