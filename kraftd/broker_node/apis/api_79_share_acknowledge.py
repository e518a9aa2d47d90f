"""ShareAcknowledge (79), v1-2: a member of a share group acknowledges records and fetches none (KIP-932).

Authorization: READ on the group and on each topic. Sent by: share consumers. Answered once the share
coordinator keeps what is acknowledged. Errors, of the request: UNSUPPORTED_VERSION (without share groups),
INVALID_REQUEST, GROUP_AUTHORIZATION_FAILED, SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH; per
partition: INVALID_REQUEST, INVALID_RECORD_STATE, TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_ID,
UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER, COORDINATOR_NOT_AVAILABLE. Differs from Apache Kafka: the
texts of errors are those of their codes, and an error that is not about the leader names none, instead of 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.answers.unread_denials import unread as unread
from kraftd.broker_node.share_groups.acknowledging import RENEWING_VERSION, Renewal, Results
from kraftd.broker_node.share_groups.requests import acknowledge, check_member
from kraftd.fetch.session_cache import FINAL_EPOCH
from kraftd.ground.pace import Pace, Slices
from kraftd.messages.share_acknowledge_response import (
    PartitionData,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)

if TYPE_CHECKING:
    from kraftd.broker_node.node import BrokerNode
    from kraftd.requests.call import Call


def handle(node: BrokerNode, call: Call) -> Slices[None]:
    if not node.knows_metadata(call):
        return
    request, shares = call.message, node.coordinators.shares
    member = check_member(node, call)
    shares.sessions.acknowledge(member, request.share_session_epoch)
    call.settled = True

    def acknowledged(results: Results) -> None:
        if request.share_session_epoch == FINAL_EPOCH:
            shares.end_session(member)
        node.go_on(_answer(node, call, results))

    renewal = Renewal(call.version >= RENEWING_VERSION, request.is_renew_ack)
    yield from acknowledge(node, call, member, renewal, acknowledged)


def _answer(node: BrokerNode, call: Call, results: Results) -> Slices[None]:
    settings = node.coordinators.shares.partitions.settings(call.message.group_id)
    response = ShareAcknowledgeResponse(
        acquisition_lock_timeout_ms=settings.limits.record_lock_duration_ms, responses=[]
    )
    topics: dict[bytes, ShareAcknowledgeTopicResponse] = {}
    for (topic_id, index), result in results.items():
        topic = topics.setdefault(topic_id, ShareAcknowledgeTopicResponse(topic_id, []))
        topic.partitions.append(PartitionData(index, result.error, result.message))
    response.responses = list(topics.values())
    yield from node.current_leaders(call).add_to_share_acknowledge(response, Pace())
    yield from node.boundary.answer_in_slices(call, response)
