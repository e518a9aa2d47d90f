"""CreatePartitions (37), v0-3: give topics more partitions.

Authorization: ALTER on the topic. Sent by: admin clients. Answered after commit. Errors, per topic:
UNKNOWN_TOPIC_OR_PARTITION, INVALID_PARTITIONS, INVALID_REPLICA_ASSIGNMENT, INVALID_REPLICATION_FACTOR,
INVALID_REQUEST, THROTTLING_QUOTA_EXCEEDED (v3); REQUEST_TIMED_OUT (no time left) for all.
Differs from Apache Kafka: a throttled connection is not muted meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.acl import AclOperation
from kraftd.controller.topics.create_partitions import create_partitions
from kraftd.controller_node.mutation_quota import charge_of
from kraftd.controller_node.permissions import no_topic_left, topics_allowed

if TYPE_CHECKING:
    from kraftd.controller_node.node import Node
    from kraftd.requests.call import Call


def handle(node: Node, call: Call) -> None:
    alterable = topics_allowed(node, call, AclOperation.ALTER)
    node.decisions.decide(
        call,
        lambda ctx, request, version: create_partitions.begin(
            ctx, request, version, alterable=alterable, charge=charge_of(ctx, call)
        ),
        on_standby=no_topic_left(
            node, call, (topic.name for topic in call.message.topics), AclOperation.ALTER
        ),
    )
