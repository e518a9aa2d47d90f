"""ReadShareGroupStateSummaryRequest: a request of key 87, versions 0-1, flexible 0+.

Generated from schemas/ReadShareGroupStateSummaryRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class PartitionData(Message):
    partition: int = 0
    leader_epoch: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class ReadStateSummaryData(Message):
    topic_id: bytes = bytes(16)
    partitions: list[PartitionData] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class ReadShareGroupStateSummaryRequest(Message):
    group_id: str = ""
    topics: list[ReadStateSummaryData] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "ReadShareGroupStateSummaryRequest", 87, "request",
    (0, 1), (0, 32767),
    (
        ("ReadShareGroupStateSummaryRequest", (
            ("group_id", "GroupId", "string", 0, (0, 1), None, None, None, None, 0, ""),
            ("topics", "Topics", "ReadStateSummaryData", 1, (0, 1), None, None, None, None, 0, ""),
        )),
        ("ReadStateSummaryData", (
            ("topic_id", "TopicId", "uuid", 0, (0, 1), None, None, None, None, 0, ""),
            ("partitions", "Partitions", "PartitionData", 1, (0, 1), None, None, None, None, 0, ""),
        )),
        ("PartitionData", (
            ("partition", "Partition", "int32", 0, (0, 1), None, None, None, None, 0, 0),
            ("leader_epoch", "LeaderEpoch", "int32", 0, (0, 1), None, None, None, None, 0, 0),
        )),
    ),
)
