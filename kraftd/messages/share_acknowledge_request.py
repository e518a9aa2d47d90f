"""ShareAcknowledgeRequest: a request of key 79, versions 1-2, flexible 0+.

Generated from schemas/ShareAcknowledgeRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class AcknowledgementBatch(Message):
    first_offset: int = 0
    last_offset: int = 0
    acknowledge_types: tuple[int, ...] = ()
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class AcknowledgePartition(Message):
    partition_index: int = 0
    acknowledgement_batches: list[AcknowledgementBatch] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class AcknowledgeTopic(Message):
    topic_id: bytes = bytes(16)
    partitions: list[AcknowledgePartition] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class ShareAcknowledgeRequest(Message):
    group_id: str | None = None
    member_id: str | None = ""
    share_session_epoch: int = 0
    is_renew_ack: bool = False
    topics: list[AcknowledgeTopic] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "ShareAcknowledgeRequest", 79, "request",
    (1, 2), (0, 32767),
    (
        ("ShareAcknowledgeRequest", (
            ("group_id", "GroupId", "string", 0, (1, 2), (0, 32767), None, None, None, 0, None),
            ("member_id", "MemberId", "string", 0, (1, 2), (0, 32767), None, None, None, 0, ""),
            ("share_session_epoch", "ShareSessionEpoch", "int32", 0, (1, 2), None, None, None, None, 0, 0),
            ("is_renew_ack", "IsRenewAck", "bool", 0, (2, 2), None, None, None, None, 0, 0),
            ("topics", "Topics", "AcknowledgeTopic", 1, (1, 2), None, None, None, None, 0, ""),
        )),
        ("AcknowledgeTopic", (
            ("topic_id", "TopicId", "uuid", 0, (1, 2), None, None, None, None, 0, ""),
            ("partitions", "Partitions", "AcknowledgePartition", 1, (1, 2), None, None, None, None, 0, ""),
        )),
        ("AcknowledgePartition", (
            ("partition_index", "PartitionIndex", "int32", 0, (1, 2), None, None, None, None, 0, 0),
            ("acknowledgement_batches", "AcknowledgementBatches", "AcknowledgementBatch", 1, (1, 2), None, None, None, None, 0, ""),
        )),
        ("AcknowledgementBatch", (
            ("first_offset", "FirstOffset", "int64", 0, (1, 2), None, None, None, None, 0, 0),
            ("last_offset", "LastOffset", "int64", 0, (1, 2), None, None, None, None, 0, 0),
            ("acknowledge_types", "AcknowledgeTypes", "int8", 1, (1, 2), None, None, None, None, 0, ""),
        )),
    ),
)
