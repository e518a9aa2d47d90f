"""AllocateProducerIds (67), v0: a broker gets a block of 1,000 producer ids (KIP-730).

Authorization: CLUSTER_ACTION (there is no authorizer yet: everyone may). Sent by: brokers. Answered after
commit. Errors: STALE_BROKER_EPOCH.
Differs from Apache Kafka: nowhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.controller.producer_ids import allocate_producer_ids

if TYPE_CHECKING:
    from kraftd.server.call import Call
    from kraftd.server.node import Node


def handle(node: Node, call: Call) -> None:
    node.decide(call, lambda ctx, request, _: allocate_producer_ids(ctx, request))
