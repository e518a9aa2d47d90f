"""BrokerRegistration (62), v0-4: a broker registers and gets its broker epoch.

Authorization: CLUSTER_ACTION. Sent by: brokers, once per start. Answered after commit. Errors:
INCONSISTENT_CLUSTER_ID, DUPLICATE_BROKER_REGISTRATION (its old session has not ended), INVALID_REGISTRATION,
UNSUPPORTED_VERSION (a finalized feature is out of its range), BROKER_ID_NOT_REGISTERED. Differs from Apache
Kafka: nowhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.controller.brokers.registration import register_broker

if TYPE_CHECKING:
    from kraftd.controller_node.node import Node
    from kraftd.requests.call import Call


def handle(node: Node, call: Call) -> None:
    node.decisions.decide(call, register_broker.begin)
