"""AlterClientQuotas (49), v0-1: the quotas of users, clients and addresses (KIP-546, KIP-612).

Authorization: ALTER_CONFIGS on the cluster. Sent by: admin clients. Answered after commit. Errors, per
entity: INVALID_REQUEST; POLICY_VIOLATION for more than 10,000 changes.
Differs from Apache Kafka: an entity that is named twice is changed by neither, NaN is refused, and an ip is
an address, never a host name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.controller.quotas.alter import alter_client_quotas

if TYPE_CHECKING:
    from kraftd.controller_node.node import Node
    from kraftd.requests.call import Call


def handle(node: Node, call: Call) -> None:
    node.decisions.decide(call, alter_client_quotas.begin)
