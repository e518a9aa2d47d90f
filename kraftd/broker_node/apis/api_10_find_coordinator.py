"""FindCoordinator (10), v0-6: the broker that leads a group's partition of `__consumer_offsets`, that of a
transactional id of `__transaction_state`, or that of a share partition of `__share_group_state`.

Authorization: DESCRIBE on each group or transactional id, CLUSTER_ACTION for share partitions. Sent by:
consumers, producers, admin clients and brokers. Answered at once; the topic is created where it is missing.
Errors, of each key: GROUP_AUTHORIZATION_FAILED, TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
CLUSTER_AUTHORIZATION_FAILED, INVALID_REQUEST, COORDINATOR_NOT_AVAILABLE. Share partitions are found from
version 6 on. A topic that cannot be made has the reason in the error's text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.acl import CLUSTER_NAME, AclOperation, AclResourceType
from kraftd.answers.nodes import broker_listener
from kraftd.ground.java_hashes import partition_for
from kraftd.ground.pace import Pace, Slices
from kraftd.groups.share_state.key import parse_key
from kraftd.messages.find_coordinator_response import Coordinator, FindCoordinatorResponse
from kraftd.requests.permission import Permission
from kraftd.types import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.broker_node.node import BrokerNode
    from kraftd.requests.call import Call

FIRST_VERSION_OF_MANY = 4
FIRST_VERSION_OF_SHARES = 6
GROUP, TRANSACTION, SHARE = 0, 1, 2  # the types of keys
TOPICS = {GROUP: OFFSETS_TOPIC, TRANSACTION: TRANSACTIONS_TOPIC, SHARE: SHARE_STATE_TOPIC}
KEY_US, KEY_CHARACTERS_A_US = 8, 20
NEEDED = {
    GROUP: (AclResourceType.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
    TRANSACTION: (AclResourceType.TRANSACTIONAL_ID, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
}


def handle(node: BrokerNode, call: Call) -> Slices[None]:
    if not node.knows_metadata(call):
        return
    request = call.message
    has_many_keys = call.version >= FIRST_VERSION_OF_MANY
    key_type = request.key_type
    is_known = key_type in (*NEEDED, SHARE)
    cluster = AclOperation.CLUSTER_ACTION, AclResourceType.CLUSTER, CLUSTER_NAME
    finds_shares = key_type == SHARE and call.version >= FIRST_VERSION_OF_SHARES
    is_denied = finds_shares and bool(request.coordinator_keys) and not node.boundary.allows(call, *cluster)
    resource_type, error = NEEDED.get(key_type, NEEDED[GROUP])
    describing = Permission(node.boundary, call, AclOperation.DESCRIBE, resource_type)
    found, pace = [], Pace()
    has_texts = is_denied or not (has_many_keys and is_known)  # as in Kafka

    def none(key: str, error: ErrorCode, reason: str = "") -> Coordinator:
        return Coordinator(key, -1, "", -1, error, reason or (error.message if has_texts else ""))

    for key in request.coordinator_keys if has_many_keys else (request.key,):
        if is_denied:
            found.append(none(key, ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
        elif not is_known:
            found.append(none(key, ErrorCode.INVALID_REQUEST))
        elif key_type != SHARE and not describing.allows(key):
            found.append(none(key, error))
        elif (name := key if key_type != SHARE else _share_partition(call, key)) is None:
            found.append(none(key, ErrorCode.INVALID_REQUEST))
        elif (one := _coordinator(node, call, TOPICS[key_type], key, name)) is not None:
            found.append(one)
        else:
            reason = node.topic_creation.failures.get(TOPICS[key_type], "")
            found.append(none(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, reason))
        if pace.spent(KEY_US + len(key) // KEY_CHARACTERS_A_US + describing.cost_us):
            yield
    describing.end()
    response = FindCoordinatorResponse(coordinators=found)
    if not has_many_keys:
        (one,) = found
        text = one.error_message or ErrorCode.NONE.name
        response = FindCoordinatorResponse(0, one.error_code, text, one.node_id, one.host, one.port)
    yield from node.boundary.answer_in_slices(call, response)


def _share_partition(call: Call, key: str) -> str | None:
    """The name of a share partition as its coordinator has it; None if the key is none."""
    if call.version < FIRST_VERSION_OF_SHARES:
        return None
    try:
        return parse_key(key).text
    except ValueError:
        return None


def _coordinator(node: BrokerNode, call: Call, topic_name: str, key: str, name: str) -> Coordinator | None:
    """The leader of the partition that holds `name`; None without one that serves."""
    image = node.view.image
    topic = image.topic(image.topic_id(topic_name))
    if topic is None:
        node.topic_creation.create(topic_name)
        return None
    index = partition_for(name, len(topic.partitions))
    state = topic.partitions.get(index)
    broker = None if state is None else image.brokers.get(state.leader)
    listener = broker_listener(node.settings, call.listener)
    endpoint = None if broker is None or broker.fenced else broker.listener(listener)
    is_here = broker is not None and broker.id == node.view.node_id
    if is_here and not node.coordinators.has_begun(topic_name, index):
        endpoint = None  # requests for it would get NOT_COORDINATOR until its log is open
    if endpoint is None or broker is None:
        return None
    return Coordinator(key, broker.id, endpoint.host, endpoint.port, 0, "")
