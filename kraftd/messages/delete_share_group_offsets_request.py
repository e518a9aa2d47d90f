"""DeleteShareGroupOffsetsRequest: a request of key 92, versions 0, flexible 0+.

Generated from schemas/DeleteShareGroupOffsetsRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class DeleteShareGroupOffsetsRequestTopic(Message):
    topic_name: str = ""
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class DeleteShareGroupOffsetsRequest(Message):
    group_id: str = ""
    topics: list[DeleteShareGroupOffsetsRequestTopic] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "DeleteShareGroupOffsetsRequest", 92, "request",
    (0, 0), (0, 32767),
    (
        ("DeleteShareGroupOffsetsRequest", (
            ("group_id", "GroupId", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("topics", "Topics", "DeleteShareGroupOffsetsRequestTopic", 1, (0, 0), None, None, None, None, 0, ""),
        )),
        ("DeleteShareGroupOffsetsRequestTopic", (
            ("topic_name", "TopicName", "string", 0, (0, 0), None, None, None, None, 0, ""),
        )),
    ),
)
