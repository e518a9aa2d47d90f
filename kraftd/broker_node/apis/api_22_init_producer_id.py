"""InitProducerId (22), v0-6: the id and the epoch of a producer.

Authorization: IDEMPOTENT_WRITE on the cluster, or WRITE on any topic; with a transactional id WRITE on it,
and TWO_PHASE_COMMIT for transactions of two phases. Sent by: idempotent and transactional producers. Answered
when this broker has a block of ids, for a transactional id when its record is committed. Errors:
CLUSTER_AUTHORIZATION_FAILED, TRANSACTIONAL_ID_AUTHORIZATION_FAILED, INVALID_REQUEST for an id without its
epoch or the reverse, COORDINATOR_LOAD_IN_PROGRESS while the controller gives no block; those of transactional
ids are in `kraftd.groups.transactions`. Differs from Apache Kafka: a producer waits for the next block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.acl import CLUSTER_NAME, AclOperation, AclResourceType
from kraftd.ground.refusal import Refusal
from kraftd.messages.init_producer_id_response import InitProducerIdResponse
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.broker_node.node import BrokerNode
    from kraftd.requests.call import Call
    from kraftd.requests.holds import Work

NO_ID, NO_EPOCH = -1, -1


def handle(node: BrokerNode, call: Call) -> Work | None:
    if call.message.transactional_id is None:
        return _give_id(node, call)
    if node.coordinators.can_take(call):
        node.coordinators.transactions.handle(call)
    return None


def _give_id(node: BrokerNode, call: Call) -> Work:
    request, boundary = call.message, node.boundary
    cluster = AclOperation.IDEMPOTENT_WRITE, AclResourceType.CLUSTER, CLUSTER_NAME
    if not boundary.allows_quietly(call, *cluster) and not (
        yield from boundary.allows_on_any(call, AclOperation.WRITE, AclResourceType.TOPIC)
    ):
        boundary.allows(call, *cluster)  # audited
        raise Refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if (request.producer_id == NO_ID) != (request.producer_epoch == NO_EPOCH):
        raise Refusal(ErrorCode.INVALID_REQUEST)
    call.settled = True

    def give(producer_id: int | None) -> None:
        if producer_id is None:
            boundary.refuse(call, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        else:
            answer = InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)
            node.guarded(call, lambda: boundary.answer(call, answer))

    node.producer_ids.take(give)
