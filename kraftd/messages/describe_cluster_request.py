"""DescribeClusterRequest: a request of key 60, versions 0-2, flexible 0+.

Generated from schemas/DescribeClusterRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class DescribeClusterRequest(Message):
    include_cluster_authorized_operations: bool = False
    endpoint_type: int = 1
    include_fenced_brokers: bool = False
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "DescribeClusterRequest", 60, "request",
    (0, 2), (0, 32767),
    (
        ("DescribeClusterRequest", (
            ("include_cluster_authorized_operations", "IncludeClusterAuthorizedOperations", "bool", 0, (0, 2), None, None, None, None, 0, 0),
            ("endpoint_type", "EndpointType", "int8", 0, (1, 2), None, None, None, None, 0, 1),
            ("include_fenced_brokers", "IncludeFencedBrokers", "bool", 0, (2, 2), None, None, None, None, 0, 0),
        )),
    ),
)
