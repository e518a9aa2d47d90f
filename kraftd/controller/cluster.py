"""DescribeCluster of a controller (KIP-919): the nodes are the controllers, the controller is the leader."""

from __future__ import annotations

from kraftd.ground.refusal import Refusal
from kraftd.messages.describe_cluster_request import DescribeClusterRequest
from kraftd.messages.describe_cluster_response import DescribeClusterBroker, DescribeClusterResponse
from kraftd.metadata.image import Image
from kraftd.metadata.metadata_version import allows_controller_registration
from kraftd.wire.error_code import ErrorCode

BROKER_ENDPOINTS = 1
CONTROLLER_ENDPOINTS = 2


def describe_cluster(
    image: Image,
    request: DescribeClusterRequest,
    version: int,
    *,
    cluster_id: str,
    listener: str,
    leader_id: int | None,
    authorized_operations: int = -(1 << 31),
) -> DescribeClusterResponse:
    """Any controller answers from its own image, with the endpoints of the request's listener.

    The leader is -1 while unknown or not registered on that listener.  The wrong endpoint type is an error
    in the answer: MISMATCHED_ENDPOINT_TYPE, UNSUPPORTED_ENDPOINT_TYPE, INVALID_REQUEST in version 0, which
    cannot name one. Raises Refusal(UNSUPPORTED_VERSION) before controllers registered (metadata.version
    3.7-IV0).
    """
    if not allows_controller_registration(image.metadata_version):
        raise Refusal(
            ErrorCode.UNSUPPORTED_VERSION,
            f"Controllers cannot be asked directly at metadata.version {image.metadata_version}.",
        )
    if request.endpoint_type not in (BROKER_ENDPOINTS, CONTROLLER_ENDPOINTS):
        return DescribeClusterResponse(
            error_code=ErrorCode.INVALID_REQUEST if version == 0 else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            error_message=f"There is no endpoint type {request.endpoint_type}.",
        )
    if request.endpoint_type != CONTROLLER_ENDPOINTS:
        return DescribeClusterResponse(
            error_code=ErrorCode.INVALID_REQUEST if version == 0 else ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            error_message="This is a controller; the request is for brokers.",
        )
    nodes = []
    for _, controller in sorted(image.controllers.items()):
        endpoint = controller.listener(listener)
        if endpoint is not None:
            nodes.append(DescribeClusterBroker(controller.id, endpoint.host, endpoint.port))
    known = any(node.broker_id == leader_id for node in nodes)
    return DescribeClusterResponse(
        endpoint_type=CONTROLLER_ENDPOINTS,
        cluster_id=cluster_id,
        controller_id=leader_id if known and leader_id is not None else -1,
        brokers=nodes,
        cluster_authorized_operations=authorized_operations
        if request.include_cluster_authorized_operations
        else -(1 << 31),
    )
