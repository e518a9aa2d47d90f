"""ListPartitionReassignments (46), v0: the moves under way (KIP-455).

Authorization: DESCRIBE on the cluster (there is no authorizer yet: everyone may). Sent by: admin clients,
and `kafka-topics --describe`. Answered once what it shows is committed.
Differs from Apache Kafka: nowhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.controller.reassignment import list_partition_reassignments

if TYPE_CHECKING:
    from kraftd.server.call import Call
    from kraftd.server.node import Node


def handle(node: Node, call: Call) -> None:
    node.decide(call, list_partition_reassignments.begin)
