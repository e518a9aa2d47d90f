"""TxnOffsetCommit (28), v0-5: offsets that a transaction commits with it (KIP-447).

Authorization: WRITE on the transactional id, READ on the group and on each topic. Sent by: transactional
producers. The transaction's coordinator is asked first, or with v5 told (KIP-890); then the coordinator of
the group answers once the offsets are committed to its log. Errors: TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
those of OffsetCommit, and of the verification INVALID_TXN_STATE, TRANSACTION_ABORTABLE,
INVALID_PRODUCER_EPOCH, INVALID_PRODUCER_ID_MAPPING, CONCURRENT_TRANSACTIONS.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.acl import AclOperation, AclResourceType
from kraftd.answers.unread_denials import unread as unread
from kraftd.broker_node.coordination.verification import Batch, Guards, Support
from kraftd.groups.answers import refused_transactional_commit
from kraftd.groups.transactions.partitions import Results
from kraftd.types import OFFSETS_TOPIC
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.broker_node.node import BrokerNode
    from kraftd.requests.call import Call

KNOWS_LOADING_VERSION, KNOWS_ABORTABLE_VERSION, ADDS_VERSION = 2, 4, 5
# What an older client does not expect, and what it does the right thing for.
_OF_VERIFICATION = {
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
}


def handle(node: BrokerNode, call: Call) -> None:
    if not node.knows_metadata(call):
        return
    request, boundary = call.message, node.boundary
    call.settled = True

    def refuse(error: ErrorCode) -> None:
        if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and call.version < KNOWS_LOADING_VERSION:
            error = ErrorCode.COORDINATOR_NOT_AVAILABLE
        if call.is_large:
            node.guarded(call, lambda: boundary.answer(call, refused_transactional_commit(request, error)))
        else:
            node.guarded(call, lambda: node.groups.refuse_commit(call, error))

    def verified(errors: Results, guards: Guards) -> None:
        if errors:
            (error,) = errors.values()
            if not exists:
                error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            refuse(_OF_VERIFICATION.get(error, error))
        elif call.is_large:
            boundary.large.begin(call, node.groups.handle_in_pieces(call, guards.get(place, 0)))
        else:
            node.guarded(call, lambda: node.groups.handle(call, guards.get(place, 0)))

    id = AclResourceType.TRANSACTIONAL_ID, request.transactional_id
    if not boundary.allows(call, AclOperation.WRITE, *id):
        boundary.answer(
            call,
            refused_transactional_commit(request, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        )
        return
    place = OFFSETS_TOPIC, node.groups.coordinator.partition_for(request.group_id)
    serves = node.groups.serves(request.group_id)
    exists = node.groups.coordinator.topics.has_partition(*place)  # until then the verification fails
    is_refused = not (request.group_id and (serves or not exists) and _has_known(node, call))
    if is_refused or not boundary.allows(call, AclOperation.READ, AclResourceType.GROUP, request.group_id):
        node.groups.handle(call)  # which says why
        return
    support = Support(call.version >= ADDS_VERSION, call.version >= KNOWS_ABORTABLE_VERSION)
    batch = Batch(request.producer_id, request.producer_epoch)
    node.verifications.verify(request.transactional_id, {place: batch}, support, verified)


def _has_known(node: BrokerNode, call: Call) -> bool:
    """Return whether there is a partition to commit: without one no transaction is asked for. A large request
    is not looked through.
    """
    return call.is_large or any(
        node.groups.coordinator.topics.has_partition(topic.name, row.partition_index)
        and node.boundary.allows_quietly(call, AclOperation.READ, AclResourceType.TOPIC, topic.name)
        for topic in call.message.topics
        for row in topic.partitions
    )
