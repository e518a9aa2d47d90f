"""DescribeCluster (60), v0-2: the brokers, for admin clients.

Authorization: DESCRIBE on the cluster for its authorized operations. Sent by: admin clients. Answered at
once, from committed metadata. Errors: UNSUPPORTED_ENDPOINT_TYPE and MISMATCHED_ENDPOINT_TYPE
(INVALID_REQUEST before v1): this listener names only brokers. Differs from a broker: nowhere, except that a
client that declares itself as a reader of the metadata log (`metadata_topic`) gets kraftd nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.acl import AclResourceType
from kraftd.answers.metadata_topic import declares_itself
from kraftd.answers.nodes import broker_listener, controller_id, log_nodes, reported_nodes
from kraftd.answers.operations import allowed_operations
from kraftd.messages.describe_cluster_response import DescribeClusterBroker, DescribeClusterResponse
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.answers.node import AnsweringNode
    from kraftd.requests.call import Call

BROKER_ENDPOINTS, CONTROLLER_ENDPOINTS = 1, 2


def handle(node: AnsweringNode, call: Call) -> None:
    if not node.knows_metadata(call):
        return
    request = call.message
    if request.endpoint_type != BROKER_ENDPOINTS:
        is_known = request.endpoint_type == CONTROLLER_ENDPOINTS
        error = ErrorCode.MISMATCHED_ENDPOINT_TYPE if is_known else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
        node.boundary.answer(
            call,
            DescribeClusterResponse(
                error_code=ErrorCode.INVALID_REQUEST if call.version == 0 else error,
                error_message=f"This listener names no endpoints of type {request.endpoint_type}.",
            ),
        )
        return
    listener = broker_listener(node.settings, call.listener)
    nodes = []
    if node.settings.serves_metadata_topic and declares_itself(call):
        reported = log_nodes(node.view, node.settings, call.listener)
    else:
        for broker in node.view.image.brokers.values():
            endpoint = broker.listener(listener)
            if endpoint is not None and (request.include_fenced_brokers or not broker.fenced):
                nodes.append(
                    DescribeClusterBroker(broker.id, endpoint.host, endpoint.port, broker.rack, broker.fenced)
                )
        reported = reported_nodes(node.view, node.settings, call.listener, False)
    listed = {one.broker_id for one in nodes}
    nodes += [
        DescribeClusterBroker(node_id, endpoint.host, endpoint.port, rack)
        for node_id, (endpoint, rack) in reported.nodes.items()
        if node_id not in listed  # kraftd nodes, where no broker may be named
    ]
    response = DescribeClusterResponse(
        endpoint_type=BROKER_ENDPOINTS,
        cluster_id=node.view.cluster_id,
        controller_id=controller_id(reported.controller_ids, call.correlation_id),
        brokers=nodes,
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = allowed_operations(node, call, AclResourceType.CLUSTER)
    node.answer_committed(call, response)
