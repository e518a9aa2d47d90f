"""FindCoordinator (10), v0-6: passed on to a broker, which knows the coordinators of groups and transactions.

Authorization: DESCRIBE on each group or transactional id, CLUSTER_ACTION for share groups; the broker is
then asked in this node's own name. Sent by: consumers and producers. Answered when a broker has; this node
asks the brokers one after another. Errors: GROUP_AUTHORIZATION_FAILED,
TRANSACTIONAL_ID_AUTHORIZATION_FAILED (of each key), CLUSTER_AUTHORIZATION_FAILED, the broker's, and
COORDINATOR_NOT_AVAILABLE. Differs from a broker: a client that reads the metadata log alone gets this node as
the coordinator of its groups (`log_readers`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kraftd.acl import CLUSTER_NAME, AclOperation, AclResourceType
from kraftd.ground.pace import ROW_US, Pace, Slices
from kraftd.ground.refusal import Refusal
from kraftd.messages.find_coordinator_request import FindCoordinatorRequest
from kraftd.messages.find_coordinator_response import Coordinator, FindCoordinatorResponse
from kraftd.metadata_topic_node import to_broker
from kraftd.requests.permission import Permission
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.metadata_topic_node.node import MetadataTopicNode
    from kraftd.requests.call import Call

FIRST_VERSION_OF_MANY = 4
FIRST_VERSION_OF_SHARES = 6
GROUP, TRANSACTION, SHARE = 0, 1, 2  # the types of keys
Rows = list[Coordinator | None]
NEEDED = {
    GROUP: (AclResourceType.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
    TRANSACTION: (AclResourceType.TRANSACTIONAL_ID, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
}


def handle(node: MetadataTopicNode, call: Call) -> Slices[None]:
    if not node.knows_metadata(call):
        return
    request = call.message
    has_many_keys = call.version >= FIRST_VERSION_OF_MANY
    keys = request.coordinator_keys if has_many_keys else (request.key,)
    shape = all_of if has_many_keys else only_one
    rows, allowed = yield from sort_out(node, call, keys)
    if keys and not allowed:
        response = FindCoordinatorResponse(coordinators=[row for row in rows if row is not None])
        yield from node.boundary.answer_in_slices(call, shape(response))
        return
    if request.key_type == GROUP and node.log_readers.coordinates(call, allowed):
        own = node.settings.endpoints[call.listener]
        found = [Coordinator(key, node.view.node_id, own.host, own.port) for key in allowed]
        response = yield from with_denied(keys, rows, FindCoordinatorResponse(coordinators=found))
        yield from node.boundary.answer_in_slices(call, shape(response))
        return

    def on_answer(answer: FindCoordinatorResponse) -> Slices[FindCoordinatorResponse]:
        return shape((yield from with_denied(keys, rows, answer)))

    allowed_request = FindCoordinatorRequest(key_type=request.key_type, coordinator_keys=tuple(allowed))
    to_broker.pass_on(node, call, allowed_request, on_answer)


def sort_out(node: MetadataTopicNode, call: Call, keys: Sequence[str]) -> Slices[tuple[Rows, list[str]]]:
    """The refusals, by the places of the keys (None for a key that the client may describe), and the other
    keys. Raises Refusal where none may be described.
    """
    key_type = call.message.key_type
    if key_type == SHARE and call.version < FIRST_VERSION_OF_SHARES:
        return [Coordinator(key, -1, "", -1, ErrorCode.INVALID_REQUEST) for key in keys], []
    if key_type == SHARE:
        cluster = (AclOperation.CLUSTER_ACTION, AclResourceType.CLUSTER, CLUSTER_NAME)
        if keys and not node.boundary.allows(call, *cluster):
            raise Refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if key_type not in NEEDED:  # if it is not SHARE, the broker says what is wrong
        return [None] * len(keys), list(keys)
    resource_type, error = NEEDED[key_type]
    describing = Permission(node.boundary, call, AclOperation.DESCRIBE, resource_type)
    rows: Rows = []
    allowed: list[str] = []
    pace = Pace()
    for key in keys:
        if describing.allows(key):
            allowed.append(key)
            rows.append(None)
        else:
            rows.append(Coordinator(key, -1, "", -1, error))
        if pace.spent(ROW_US + describing.cost_us):
            yield
    describing.end()
    return rows, allowed


def with_denied(
    keys: Sequence[str], rows: Rows, answer: FindCoordinatorResponse
) -> Slices[FindCoordinatorResponse]:
    """The broker's answer, completed by the denied keys, in the order of the request."""
    if any(rows):
        pace = Pace()
        found = {one.key: one for one in answer.coordinators}
        answer.coordinators = []
        for key, row in zip(keys, rows, strict=True):
            one = row or found.get(key)
            if one is not None:
                answer.coordinators.append(one)
            if pace.spent(ROW_US):
                yield
    return answer


def all_of(answer: FindCoordinatorResponse) -> FindCoordinatorResponse:
    return answer


def only_one(answer: FindCoordinatorResponse) -> FindCoordinatorResponse:
    """The answer in the form for a single key, from before KIP-699.

    Brokers give the error's text in this form alone, and the text NONE where there is none.
    """
    (one,) = answer.coordinators
    error = ErrorCode(one.error_code)  # type: ignore[call-arg]
    text = error.message if error else error.name
    return FindCoordinatorResponse(
        answer.throttle_time_ms, one.error_code, one.error_message or text, one.node_id, one.host, one.port
    )
