"""ElectLeaders (43), v0-2: elect preferred leaders, or any leader at all where none is in the ISR (KIP-460).

Authorization: ALTER on the cluster. Sent by: admin clients. Answered after commit. Errors, per partition:
UNKNOWN_TOPIC_OR_PARTITION, ELECTION_NOT_NEEDED, PREFERRED_LEADER_NOT_AVAILABLE,
ELIGIBLE_LEADERS_NOT_AVAILABLE; INVALID_REQUEST and REQUEST_TIMED_OUT (no time left) for the whole.
Differs from Apache Kafka: nowhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.controller.partitions.election import elect_leaders

if TYPE_CHECKING:
    from kraftd.controller_node.node import Node
    from kraftd.requests.call import Call


def handle(node: Node, call: Call) -> None:
    node.decisions.decide(call, elect_leaders.begin)
