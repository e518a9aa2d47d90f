"""What ShareFetch and ShareAcknowledge have in common: the check of the sender, and acknowledgements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from kraftd.acl import AclOperation, AclResourceType
from kraftd.broker_node.share_groups.acknowledging import (
    Acknowledged,
    Renewal,
    Result,
    Results,
    are_malformed,
)
from kraftd.fetch.share_sessions import Member, TopicIdPartition
from kraftd.ground.pace import Pace, Slices
from kraftd.ground.refusal import Refusal
from kraftd.requests.permission import Permission
from kraftd.types import Uuid
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.broker_node.node import BrokerNode
    from kraftd.requests.call import Call

MAX_MEMBER_ID_CHARACTERS = 36  # of a UUID
PARTITION_US, BATCH_US = 30, 15


def check_member(node: BrokerNode, call: Call) -> Member:
    """The sender, as it names itself: no coordinator is asked whether it is a member. Raises Refusal."""
    request = call.message
    if not node.coordinators.shares.is_enabled():
        raise Refusal(ErrorCode.UNSUPPORTED_VERSION)
    if request.group_id is None:
        raise Refusal(ErrorCode.INVALID_REQUEST)
    if not node.boundary.allows(call, AclOperation.READ, AclResourceType.GROUP, request.group_id):
        raise Refusal(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not 0 < len(request.member_id or "") <= MAX_MEMBER_ID_CHARACTERS:
        raise Refusal(ErrorCode.INVALID_REQUEST)
    return Member(request.group_id, request.member_id)


def acknowledge(
    node: BrokerNode, call: Call, member: Member, renewal: Renewal, then: Callable[[Results], None]
) -> Slices[None]:
    """Perform what a request acknowledges; `then` gets the results, of every partition in the request."""
    shares, image = node.coordinators.shares, node.view.image
    refused: Results = {}
    nothing: Results = {}
    taken: dict[TopicIdPartition, Sequence[Any]] = {}
    names: dict[Uuid, str] = {}
    reading = Permission(node.boundary, call, AclOperation.READ, AclResourceType.TOPIC)
    pace = Pace()
    for topic in call.message.topics:
        name = node.topic_name(topic.topic_id)
        for row in topic.partitions:
            place, batches = (topic.topic_id, row.partition_index), row.acknowledgement_batches
            for former in (refused, nothing, taken):
                former.pop(place, None)  # of a partition that is named twice, the last row counts
            if name is None:
                refused[place] = Result(ErrorCode.UNKNOWN_TOPIC_ID)
            elif are_malformed(batches, renewal):
                refused[place] = Result(ErrorCode.INVALID_REQUEST)
            elif not reading.allows(name):
                refused[place] = Result(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            elif image.partition(topic.topic_id, row.partition_index) is None:
                refused[place] = Result(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            elif batches:
                taken[place] = batches
                names[topic.topic_id] = name
            else:
                nothing[place] = Result()
            if pace.spent(PARTITION_US + BATCH_US * len(batches) + reading.cost_us):
                yield
    reading.end()
    if not taken:
        then(refused)  # as in Kafka, without those of which nothing is acknowledged
        return
    traffic = node.replicas.traffic
    for name in names.values():
        traffic.of(name).share_acknowledgements += 1

    def acknowledged(results: Results) -> None:
        for topic_id in {place[0] for place, result in results.items() if result.error}:
            traffic.of(names[topic_id]).failed_share_acknowledgements += 1
        then(results | refused | nothing)

    Acknowledged(shares.partitions, member, node.now_ms, acknowledged).perform(taken.items())
