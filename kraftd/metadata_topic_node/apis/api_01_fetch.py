"""Fetch (1), v4-18: the committed part of the metadata log as a topic, with sessions (KIP-227).

Authorization: READ on the topic, for `__cluster_metadata` by an ACL of exactly that name. Sent by: consumers.
Secrets in records are blanked (`kraftd/redaction/`). Answered at once with records or an error; otherwise
parked until the high watermark brings MinBytes, at most for MaxWaitMs. Errors, of the session:
FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH, FETCH_SESSION_TOPIC_ID_ERROR; per partition:
OFFSET_OUT_OF_RANGE, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, TOPIC_AUTHORIZATION_FAILED,
UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, NOT_LEADER_OR_FOLLOWER for the partitions of brokers. Replicas
need CLUSTER_ACTION, and get NOT_LEADER_OR_FOLLOWER. Differs from Apache Kafka: its controllers refuse
consumers; a follower whose log ends before the offset asks the leader, and lets the consumer wait if the
leader has it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.acl import AclOperation, AclResourceType
from kraftd.answers.unread_denials import unread as unread
from kraftd.types import METADATA_TOPIC

if TYPE_CHECKING:
    from kraftd.metadata_topic_node.node import MetadataTopicNode
    from kraftd.requests.call import Call


def handle(node: MetadataTopicNode, call: Call) -> None:
    request = call.message
    request.max_bytes = min(request.max_bytes, node.settings.fetch_max_bytes)
    if node.knows_metadata(call):
        # Raises AuthorizerNotReady before a session is changed. `LogSource` authorizes each partition.
        node.boundary.allows_quietly(call, AclOperation.READ, AclResourceType.TOPIC, METADATA_TOPIC)
        node.fetch(call)
