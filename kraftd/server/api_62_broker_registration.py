"""BrokerRegistration (62), v0-4: a broker makes itself known and gets its broker epoch.

Authorization: CLUSTER_ACTION (there is no authorizer yet: everyone may). Sent by: brokers, once a start.
Answered after commit. Errors: INCONSISTENT_CLUSTER_ID, DUPLICATE_BROKER_REGISTRATION (its old session has
not ended), INVALID_REGISTRATION, UNSUPPORTED_VERSION (a finalized feature is out of its range),
BROKER_ID_NOT_REGISTERED.
Differs from Apache Kafka: nowhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.controller.brokers import register_broker

if TYPE_CHECKING:
    from kraftd.server.call import Call
    from kraftd.server.node import Node


def handle(node: Node, call: Call) -> None:
    node.decide(call, register_broker.begin)
