"""Fetch (1), v4-18: records of this broker's partitions and of the metadata log, with sessions (KIP-227).

Authorization: READ on each topic (of `__cluster_metadata` by an ACL of that name); followers CLUSTER_ACTION.
Sent by: consumers and followers. Answered at once with MinBytes or an error; otherwise parked until the
partitions have them, at most for MaxWaitMs. Errors, of the session: FETCH_SESSION_ID_NOT_FOUND,
INVALID_FETCH_SESSION_EPOCH, FETCH_SESSION_TOPIC_ID_ERROR; per partition: those of
`kraftd.partition.reading.judge_fetch`, TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION,
UNKNOWN_TOPIC_ID. A fetch of a follower's former broker epoch is answered NOT_LEADER_OR_FOLLOWER (KIP-903).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.acl import AclOperation, AclResourceType
from kraftd.answers.log_source import Identity
from kraftd.answers.unread_denials import unread as unread
from kraftd.ground.pace import Slices
from kraftd.types import METADATA_TOPIC

if TYPE_CHECKING:
    from kraftd.broker_node.node import BrokerNode
    from kraftd.requests.call import Call


def handle(node: BrokerNode, call: Call) -> Slices[None]:
    request = call.message
    request.max_bytes = min(request.max_bytes, node.settings.fetch_max_bytes)
    most_bytes = node.quotas.most_fetched_bytes(call)
    if most_bytes is not None:
        request.max_bytes = min(request.max_bytes, most_bytes)
    if node.knows_metadata(call):
        # Raises AuthorizerNotReady before a session is changed; the source authorizes each partition.
        node.boundary.allows_quietly(call, AclOperation.READ, AclResourceType.TOPIC, METADATA_TOPIC)
        reader = Identity(call.key, call.principal, call.host, call.client_id, call.version)
        for _ in node.client_fetches.begin(call, reader):
            follow_readers(node)
            yield
        follow_readers(node)


def follow_readers(node: BrokerNode) -> None:
    """Perform what follows from the progress of followers, and examine again what is throttled."""
    for hosted, effects in node.source.take_progress():
        node.follow_up(hosted, effects)
    for key in node.source.take_held():
        node.client_fetches.changed(key)
