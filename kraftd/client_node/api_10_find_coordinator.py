"""FindCoordinator (10), v0-6: passed on to a broker, which knows the coordinators of groups and transactions.

Authorization: DESCRIBE on each group or transactional id, CLUSTER_ACTION for share groups; the broker is
then asked in this node's own name. Sent by: consumers and producers. Answered when a broker has; this node
asks the brokers one after another. Errors: GROUP_AUTHORIZATION_FAILED,
TRANSACTIONAL_ID_AUTHORIZATION_FAILED (of each key), CLUSTER_AUTHORIZATION_FAILED, the broker's, and
COORDINATOR_NOT_AVAILABLE. Differs from a broker: a client that reads the metadata log alone gets this node as
the coordinator of its groups (`log_readers`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.acl import CLUSTER_NAME, AclOperation, AclResourceType
from kraftd.client_node import to_broker
from kraftd.controller.decision import Refusal
from kraftd.messages.find_coordinator_request import FindCoordinatorRequest
from kraftd.messages.find_coordinator_response import Coordinator, FindCoordinatorResponse
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.client_node.node import ClientNode
    from kraftd.requests.call import Call

FIRST_VERSION_OF_MANY = 4
GROUP, TRANSACTION, SHARE = 0, 1, 2  # the types of keys
NEEDED = {
    GROUP: (AclResourceType.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
    TRANSACTION: (AclResourceType.TRANSACTIONAL_ID, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
}


def handle(node: ClientNode, call: Call) -> None:
    if not node.knows_metadata(call):
        return
    request = call.message
    has_many_keys = call.version >= FIRST_VERSION_OF_MANY
    keys = request.coordinator_keys if has_many_keys else (request.key,)
    denied = {key: error for key in keys if (error := denial(node, call, request.key_type, key))}
    shape = all_of if has_many_keys else only_one
    allowed = tuple(key for key in keys if key not in denied)
    if keys and not allowed:
        node.boundary.answer(call, shape(with_denied(keys, denied, FindCoordinatorResponse())))
        return
    if request.key_type == GROUP and node.log_readers.coordinates(call, allowed):
        own = node.settings.endpoints[call.listener]
        found = [Coordinator(key, node.view.node_id, own.host, own.port) for key in allowed]
        answer = FindCoordinatorResponse(coordinators=found)
        node.boundary.answer(call, shape(with_denied(keys, denied, answer)))
        return
    allowed_request = FindCoordinatorRequest(key_type=request.key_type, coordinator_keys=allowed)
    to_broker.pass_on(node, call, allowed_request, lambda answer: shape(with_denied(keys, denied, answer)))


def denial(node: ClientNode, call: Call, key_type: int, key: str) -> ErrorCode | None:
    """The error for a key that the client may not describe. Raises Refusal where none may be."""
    operation = AclOperation.DESCRIBE
    if key_type == SHARE:
        if not node.boundary.allows(call, AclOperation.CLUSTER_ACTION, AclResourceType.CLUSTER, CLUSTER_NAME):
            raise Refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        return None
    if key_type not in NEEDED:
        return None  # the broker says what is wrong
    resource_type, error = NEEDED[key_type]
    return None if node.boundary.allows(call, operation, resource_type, key) else error


def with_denied(
    keys: tuple[str, ...], denied: dict[str, ErrorCode], answer: FindCoordinatorResponse
) -> FindCoordinatorResponse:
    """The broker's answer, completed by the denied keys, in the order of the request."""
    if denied:
        found = {one.key: one for one in answer.coordinators}
        refused = {key: Coordinator(key, -1, "", -1, error) for key, error in denied.items()}
        answer.coordinators = [one for key in keys if (one := refused.get(key) or found.get(key))]
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
