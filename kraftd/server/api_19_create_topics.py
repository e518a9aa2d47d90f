"""CreateTopics (19), v2-7: create topics, or see whether and how they would be created.

Authorization: CREATE on the cluster or the topic; DESCRIBE_CONFIGS to see configs (there is no authorizer
yet: everyone may). Sent by: admin clients, brokers for their internal topics. Answered after commit.
Errors, per topic: TOPIC_ALREADY_EXISTS, INVALID_TOPIC_EXCEPTION, INVALID_PARTITIONS,
INVALID_REPLICATION_FACTOR, INVALID_REPLICA_ASSIGNMENT, INVALID_CONFIG, INVALID_REQUEST (named twice);
POLICY_VIOLATION for the whole.
Differs from Apache Kafka: no mutation quota is charged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.controller.topics import create_topics

if TYPE_CHECKING:
    from kraftd.server.call import Call
    from kraftd.server.node import Node


def handle(node: Node, call: Call) -> None:
    node.decide(call, create_topics.begin)
