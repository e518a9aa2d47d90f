"""TxnOffsetCommitRequest: a request of key 28, versions 0-5, flexible 3+.

Generated from schemas/TxnOffsetCommitRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class TxnOffsetCommitRequestPartition(Message):
    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1
    committed_metadata: str | None = ""
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class TxnOffsetCommitRequestTopic(Message):
    name: str = ""
    partitions: list[TxnOffsetCommitRequestPartition] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class TxnOffsetCommitRequest(Message):
    transactional_id: str = ""
    group_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    topics: list[TxnOffsetCommitRequestTopic] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "TxnOffsetCommitRequest", 28, "request",
    (0, 5), (3, 32767),
    (
        ("TxnOffsetCommitRequest", (
            ("transactional_id", "TransactionalId", "string", 0, (0, 5), None, None, None, None, 0, ""),
            ("group_id", "GroupId", "string", 0, (0, 5), None, None, None, None, 0, ""),
            ("producer_id", "ProducerId", "int64", 0, (0, 5), None, None, None, None, 0, 0),
            ("producer_epoch", "ProducerEpoch", "int16", 0, (0, 5), None, None, None, None, 0, 0),
            ("generation_id", "GenerationId", "int32", 0, (3, 5), None, None, None, None, 0, -1),
            ("member_id", "MemberId", "string", 0, (3, 5), None, None, None, None, 0, ""),
            ("group_instance_id", "GroupInstanceId", "string", 0, (3, 5), (3, 32767), None, None, None, 0, None),
            ("topics", "Topics", "TxnOffsetCommitRequestTopic", 1, (0, 5), None, None, None, None, 0, ""),
        )),
        ("TxnOffsetCommitRequestTopic", (
            ("name", "Name", "string", 0, (0, 5), None, None, None, None, 0, ""),
            ("partitions", "Partitions", "TxnOffsetCommitRequestPartition", 1, (0, 5), None, None, None, None, 0, ""),
        )),
        ("TxnOffsetCommitRequestPartition", (
            ("partition_index", "PartitionIndex", "int32", 0, (0, 5), None, None, None, None, 0, 0),
            ("committed_offset", "CommittedOffset", "int64", 0, (0, 5), None, None, None, None, 0, 0),
            ("committed_leader_epoch", "CommittedLeaderEpoch", "int32", 0, (2, 5), None, None, None, None, 1, -1),
            ("committed_metadata", "CommittedMetadata", "string", 0, (0, 5), (0, 32767), None, None, None, 0, ""),
        )),
    ),
)
