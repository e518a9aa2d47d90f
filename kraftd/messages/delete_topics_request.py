"""DeleteTopicsRequest: a request of key 20, versions 1-6, flexible 4+.

Generated from schemas/DeleteTopicsRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class DeleteTopicState(Message):
    name: str | None = None
    topic_id: bytes = bytes(16)
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class DeleteTopicsRequest(Message):
    topics: list[DeleteTopicState] = []
    topic_names: tuple[str, ...] = ()
    timeout_ms: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "DeleteTopicsRequest", 20, "request",
    (1, 6), (4, 32767),
    (
        ("DeleteTopicsRequest", (
            ("topics", "Topics", "DeleteTopicState", 1, (6, 6), None, None, None, None, 0, ""),
            ("topic_names", "TopicNames", "string", 1, (1, 5), None, None, None, None, 1, ""),
            ("timeout_ms", "TimeoutMs", "int32", 0, (1, 6), None, None, None, None, 0, 0),
        )),
        ("DeleteTopicState", (
            ("name", "Name", "string", 0, (6, 6), (6, 32767), None, None, None, 0, None),
            ("topic_id", "TopicId", "uuid", 0, (6, 6), None, None, None, None, 0, ""),
        )),
    ),
)
