"""ProduceRequest: a request of key 0, versions 3-13, flexible 9+.

Generated from schemas/ProduceRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class PartitionProduceData(Message):
    index: int = 0
    records: bytes | memoryview | None = None
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class TopicProduceData(Message):
    name: str = ""
    topic_id: bytes = bytes(16)
    partition_data: list[PartitionProduceData] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class ProduceRequest(Message):
    transactional_id: str | None = None
    acks: int = 0
    timeout_ms: int = 0
    topic_data: list[TopicProduceData] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "ProduceRequest", 0, "request",
    (3, 13), (9, 32767),
    (
        ("ProduceRequest", (
            ("transactional_id", "TransactionalId", "string", 0, (3, 13), (3, 32767), None, None, None, 0, None),
            ("acks", "Acks", "int16", 0, (3, 13), None, None, None, None, 0, 0),
            ("timeout_ms", "TimeoutMs", "int32", 0, (3, 13), None, None, None, None, 0, 0),
            ("topic_data", "TopicData", "TopicProduceData", 1, (3, 13), None, None, None, None, 0, ""),
        )),
        ("TopicProduceData", (
            ("name", "Name", "string", 0, (3, 12), None, None, None, None, 1, ""),
            ("topic_id", "TopicId", "uuid", 0, (13, 13), None, None, None, None, 1, ""),
            ("partition_data", "PartitionData", "PartitionProduceData", 1, (3, 13), None, None, None, None, 0, ""),
        )),
        ("PartitionProduceData", (
            ("index", "Index", "int32", 0, (3, 13), None, None, None, None, 0, 0),
            ("records", "Records", "records", 0, (3, 13), (0, 32767), None, None, None, 0, None),
        )),
    ),
)
