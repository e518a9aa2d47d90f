"""ElectLeaders (43), v0-2: elect preferred leaders, or any leader at all where none is in the ISR (KIP-460).

Authorization: ALTER on the cluster (there is no authorizer yet: everyone may). Sent by: admin clients.
Answered after commit. Errors, per partition: UNKNOWN_TOPIC_OR_PARTITION, ELECTION_NOT_NEEDED,
PREFERRED_LEADER_NOT_AVAILABLE, ELIGIBLE_LEADERS_NOT_AVAILABLE; INVALID_REQUEST for the whole.
Differs from Apache Kafka: nowhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.controller.election import elect_leaders

if TYPE_CHECKING:
    from kraftd.server.call import Call
    from kraftd.server.node import Node


def handle(node: Node, call: Call) -> None:
    node.decide(call, elect_leaders.begin)
