"""MetadataRequest: a request of key 3, versions 0-13, flexible 9+.

Generated from schemas/MetadataRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class MetadataRequestTopic(Message):
    topic_id: bytes = bytes(16)
    name: str | None = ""
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class MetadataRequest(Message):
    topics: list[MetadataRequestTopic] | None = []
    allow_auto_topic_creation: bool = True
    include_cluster_authorized_operations: bool = False
    include_topic_authorized_operations: bool = False
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "MetadataRequest", 3, "request",
    (0, 13), (9, 32767),
    (
        ("MetadataRequest", (
            ("topics", "Topics", "MetadataRequestTopic", 1, (0, 13), (1, 32767), None, None, None, 0, ""),
            ("allow_auto_topic_creation", "AllowAutoTopicCreation", "bool", 0, (4, 13), None, None, None, None, 0, 1),
            ("include_cluster_authorized_operations", "IncludeClusterAuthorizedOperations", "bool", 0, (8, 10), None, None, None, None, 0, 0),
            ("include_topic_authorized_operations", "IncludeTopicAuthorizedOperations", "bool", 0, (8, 13), None, None, None, None, 0, 0),
        )),
        ("MetadataRequestTopic", (
            ("topic_id", "TopicId", "uuid", 0, (10, 13), None, None, None, None, 1, ""),
            ("name", "Name", "string", 0, (0, 13), (10, 32767), None, None, None, 0, ""),
        )),
    ),
)
