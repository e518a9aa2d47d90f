"""CreatePartitions (37), v0-3: give topics more partitions.

Authorization: ALTER on the topic (there is no authorizer yet: everyone may). Sent by: admin clients.
Answered after commit. Errors, per topic: UNKNOWN_TOPIC_OR_PARTITION, INVALID_PARTITIONS,
INVALID_REPLICA_ASSIGNMENT, INVALID_REPLICATION_FACTOR, INVALID_REQUEST.
Differs from Apache Kafka: no mutation quota is charged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.controller.partitions_create import create_partitions

if TYPE_CHECKING:
    from kraftd.server.call import Call
    from kraftd.server.node import Node


def handle(node: Node, call: Call) -> None:
    node.decide(call, create_partitions.begin)
