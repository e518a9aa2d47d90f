"""OffsetCommitRequest: a request of key 8, versions 2-10, flexible 8+.

Generated from schemas/OffsetCommitRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class OffsetCommitRequestPartition(Message):
    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1
    committed_metadata: str | None = ""
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class OffsetCommitRequestTopic(Message):
    name: str = ""
    topic_id: bytes = bytes(16)
    partitions: list[OffsetCommitRequestPartition] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class OffsetCommitRequest(Message):
    group_id: str = ""
    generation_id_or_member_epoch: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    retention_time_ms: int = -1
    topics: list[OffsetCommitRequestTopic] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "OffsetCommitRequest", 8, "request",
    (2, 10), (8, 32767),
    (
        ("OffsetCommitRequest", (
            ("group_id", "GroupId", "string", 0, (2, 10), None, None, None, None, 0, ""),
            ("generation_id_or_member_epoch", "GenerationIdOrMemberEpoch", "int32", 0, (2, 10), None, None, None, None, 1, -1),
            ("member_id", "MemberId", "string", 0, (2, 10), None, None, None, None, 1, ""),
            ("group_instance_id", "GroupInstanceId", "string", 0, (7, 10), (7, 32767), None, None, None, 0, None),
            ("retention_time_ms", "RetentionTimeMs", "int64", 0, (2, 4), None, None, None, None, 1, -1),
            ("topics", "Topics", "OffsetCommitRequestTopic", 1, (2, 10), None, None, None, None, 0, ""),
        )),
        ("OffsetCommitRequestTopic", (
            ("name", "Name", "string", 0, (2, 9), None, None, None, None, 1, ""),
            ("topic_id", "TopicId", "uuid", 0, (10, 10), None, None, None, None, 1, ""),
            ("partitions", "Partitions", "OffsetCommitRequestPartition", 1, (2, 10), None, None, None, None, 0, ""),
        )),
        ("OffsetCommitRequestPartition", (
            ("partition_index", "PartitionIndex", "int32", 0, (2, 10), None, None, None, None, 0, 0),
            ("committed_offset", "CommittedOffset", "int64", 0, (2, 10), None, None, None, None, 0, 0),
            ("committed_leader_epoch", "CommittedLeaderEpoch", "int32", 0, (6, 10), None, None, None, None, 1, -1),
            ("committed_metadata", "CommittedMetadata", "string", 0, (2, 10), (0, 32767), None, None, None, 0, ""),
        )),
    ),
)
