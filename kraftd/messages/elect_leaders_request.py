"""ElectLeadersRequest: a request of key 43, versions 0-2, flexible 2+.

Generated from schemas/ElectLeadersRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class TopicPartitions(Message):
    topic: str = ""
    partitions: tuple[int, ...] = ()
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class ElectLeadersRequest(Message):
    election_type: int = 0
    topic_partitions: list[TopicPartitions] | None = []
    timeout_ms: int = 60000
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "ElectLeadersRequest", 43, "request",
    (0, 2), (2, 32767),
    (
        ("ElectLeadersRequest", (
            ("election_type", "ElectionType", "int8", 0, (1, 2), None, None, None, None, 0, 0),
            ("topic_partitions", "TopicPartitions", "TopicPartitions", 1, (0, 2), (0, 32767), None, None, None, 0, ""),
            ("timeout_ms", "TimeoutMs", "int32", 0, (0, 2), None, None, None, None, 0, 60000),
        )),
        ("TopicPartitions", (
            ("topic", "Topic", "string", 0, (0, 2), None, None, None, None, 0, ""),
            ("partitions", "Partitions", "int32", 1, (0, 2), None, None, None, None, 0, ""),
        )),
    ),
)
