"""DescribeClusterResponse: a response of key 60, versions 0-2, flexible 0+.

Generated from schemas/DescribeClusterResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class DescribeClusterBroker(Message):
    broker_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None
    is_fenced: bool = False
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class DescribeClusterResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    endpoint_type: int = 1
    cluster_id: str = ""
    controller_id: int = -1
    brokers: list[DescribeClusterBroker] = []
    cluster_authorized_operations: int = -2147483648
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "DescribeClusterResponse", 60, "response",
    (0, 2), (0, 32767),
    (
        ("DescribeClusterResponse", (
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (0, 2), None, None, None, None, 0, 0),
            ("error_code", "ErrorCode", "int16", 0, (0, 2), None, None, None, None, 0, 0),
            ("error_message", "ErrorMessage", "string", 0, (0, 2), (0, 32767), None, None, None, 0, None),
            ("endpoint_type", "EndpointType", "int8", 0, (1, 2), None, None, None, None, 0, 1),
            ("cluster_id", "ClusterId", "string", 0, (0, 2), None, None, None, None, 0, ""),
            ("controller_id", "ControllerId", "int32", 0, (0, 2), None, None, None, None, 0, -1),
            ("brokers", "Brokers", "DescribeClusterBroker", 1, (0, 2), None, None, None, None, 0, ""),
            ("cluster_authorized_operations", "ClusterAuthorizedOperations", "int32", 0, (0, 2), None, None, None, None, 0, -2147483648),
        )),
        ("DescribeClusterBroker", (
            ("broker_id", "BrokerId", "int32", 0, (0, 2), None, None, None, None, 0, 0),
            ("host", "Host", "string", 0, (0, 2), None, None, None, None, 0, ""),
            ("port", "Port", "int32", 0, (0, 2), None, None, None, None, 0, 0),
            ("rack", "Rack", "string", 0, (0, 2), (0, 32767), None, None, None, 0, None),
            ("is_fenced", "IsFenced", "bool", 0, (2, 2), None, None, None, None, 0, 0),
        )),
    ),
)
