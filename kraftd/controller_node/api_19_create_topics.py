"""CreateTopics (19), v2-7: create topics, or validate their creation.

Authorization: CREATE on the cluster or the topic; DESCRIBE_CONFIGS to see configs. Sent by: admin clients,
brokers for their internal topics. Answered after commit. Errors, per topic: TOPIC_ALREADY_EXISTS,
INVALID_TOPIC_EXCEPTION, INVALID_PARTITIONS, INVALID_REPLICATION_FACTOR, INVALID_REPLICA_ASSIGNMENT,
INVALID_CONFIG, INVALID_REQUEST (named twice), POLICY_VIOLATION, THROTTLING_QUOTA_EXCEEDED (v6 and later);
POLICY_VIOLATION and REQUEST_TIMED_OUT (no time left) for the whole.
Differs from Apache Kafka: a throttled connection is not muted meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.acl import AclOperation
from kraftd.controller.topics.create_topics import create_topics
from kraftd.controller_node.mutation_quota import charge_of
from kraftd.controller_node.permissions import no_topic_left, topics_allowed

if TYPE_CHECKING:
    from kraftd.controller_node.node import Node
    from kraftd.requests.call import Call


def handle(node: Node, call: Call) -> None:
    creatable = topics_allowed(node, call, AclOperation.CREATE, or_on_cluster=True)
    describable = topics_allowed(node, call, AclOperation.DESCRIBE_CONFIGS, quietly=True)
    node.decisions.decide(
        call,
        lambda ctx, request, version: create_topics.begin(
            ctx, request, version, creatable=creatable, describable=describable, charge=charge_of(ctx, call)
        ),
        on_standby=no_topic_left(
            node,
            call,
            (topic.name for topic in call.message.topics),
            AclOperation.CREATE,
            or_on_cluster=True,
        ),
    )
