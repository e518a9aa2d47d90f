"""OffsetFetchRequest: a request of key 9, versions 1-10, flexible 6+.

Generated from schemas/OffsetFetchRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class OffsetFetchRequestTopic(Message):
    name: str = ""
    partition_indexes: tuple[int, ...] = ()
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class OffsetFetchRequestTopics(Message):
    name: str = ""
    topic_id: bytes = bytes(16)
    partition_indexes: tuple[int, ...] = ()
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class OffsetFetchRequestGroup(Message):
    group_id: str = ""
    member_id: str | None = None
    member_epoch: int = -1
    topics: list[OffsetFetchRequestTopics] | None = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class OffsetFetchRequest(Message):
    group_id: str = ""
    topics: list[OffsetFetchRequestTopic] | None = []
    groups: list[OffsetFetchRequestGroup] = []
    require_stable: bool = False
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "OffsetFetchRequest", 9, "request",
    (1, 10), (6, 32767),
    (
        ("OffsetFetchRequest", (
            ("group_id", "GroupId", "string", 0, (1, 7), None, None, None, None, 0, ""),
            ("topics", "Topics", "OffsetFetchRequestTopic", 1, (1, 7), (2, 7), None, None, None, 0, ""),
            ("groups", "Groups", "OffsetFetchRequestGroup", 1, (8, 10), None, None, None, None, 0, ""),
            ("require_stable", "RequireStable", "bool", 0, (7, 10), None, None, None, None, 0, 0),
        )),
        ("OffsetFetchRequestTopic", (
            ("name", "Name", "string", 0, (1, 7), None, None, None, None, 0, ""),
            ("partition_indexes", "PartitionIndexes", "int32", 1, (1, 7), None, None, None, None, 0, ""),
        )),
        ("OffsetFetchRequestGroup", (
            ("group_id", "GroupId", "string", 0, (8, 10), None, None, None, None, 0, ""),
            ("member_id", "MemberId", "string", 0, (9, 10), (9, 32767), None, None, None, 1, None),
            ("member_epoch", "MemberEpoch", "int32", 0, (9, 10), None, None, None, None, 1, -1),
            ("topics", "Topics", "OffsetFetchRequestTopics", 1, (8, 10), (8, 32767), None, None, None, 0, ""),
        )),
        ("OffsetFetchRequestTopics", (
            ("name", "Name", "string", 0, (8, 9), None, None, None, None, 1, ""),
            ("topic_id", "TopicId", "uuid", 0, (10, 10), None, None, None, None, 1, ""),
            ("partition_indexes", "PartitionIndexes", "int32", 1, (8, 10), None, None, None, None, 0, ""),
        )),
    ),
)
