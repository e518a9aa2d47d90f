"""ShareFetchRequest: a request of key 78, versions 1-2, flexible 0+.

Generated from schemas/ShareFetchRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class AcknowledgementBatch(Message):
    first_offset: int = 0
    last_offset: int = 0
    acknowledge_types: tuple[int, ...] = ()
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class FetchPartition(Message):
    partition_index: int = 0
    partition_max_bytes: int = 0
    acknowledgement_batches: list[AcknowledgementBatch] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class FetchTopic(Message):
    topic_id: bytes = bytes(16)
    partitions: list[FetchPartition] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class ForgottenTopic(Message):
    topic_id: bytes = bytes(16)
    partitions: tuple[int, ...] = ()
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class ShareFetchRequest(Message):
    group_id: str | None = None
    member_id: str | None = ""
    share_session_epoch: int = 0
    max_wait_ms: int = 0
    min_bytes: int = 0
    max_bytes: int = 2147483647
    max_records: int = 0
    batch_size: int = 0
    share_acquire_mode: int = 0
    is_renew_ack: bool = False
    topics: list[FetchTopic] = []
    forgotten_topics_data: list[ForgottenTopic] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "ShareFetchRequest", 78, "request",
    (1, 2), (0, 32767),
    (
        ("ShareFetchRequest", (
            ("group_id", "GroupId", "string", 0, (1, 2), (0, 32767), None, None, None, 0, None),
            ("member_id", "MemberId", "string", 0, (1, 2), (0, 32767), None, None, None, 0, ""),
            ("share_session_epoch", "ShareSessionEpoch", "int32", 0, (1, 2), None, None, None, None, 0, 0),
            ("max_wait_ms", "MaxWaitMs", "int32", 0, (1, 2), None, None, None, None, 0, 0),
            ("min_bytes", "MinBytes", "int32", 0, (1, 2), None, None, None, None, 0, 0),
            ("max_bytes", "MaxBytes", "int32", 0, (1, 2), None, None, None, None, 0, 2147483647),
            ("max_records", "MaxRecords", "int32", 0, (1, 2), None, None, None, None, 0, 0),
            ("batch_size", "BatchSize", "int32", 0, (1, 2), None, None, None, None, 0, 0),
            ("share_acquire_mode", "ShareAcquireMode", "int8", 0, (2, 2), None, None, None, None, 1, 0),
            ("is_renew_ack", "IsRenewAck", "bool", 0, (2, 2), None, None, None, None, 0, 0),
            ("topics", "Topics", "FetchTopic", 1, (1, 2), None, None, None, None, 0, ""),
            ("forgotten_topics_data", "ForgottenTopicsData", "ForgottenTopic", 1, (1, 2), None, None, None, None, 0, ""),
        )),
        ("FetchTopic", (
            ("topic_id", "TopicId", "uuid", 0, (1, 2), None, None, None, None, 0, ""),
            ("partitions", "Partitions", "FetchPartition", 1, (1, 2), None, None, None, None, 0, ""),
        )),
        ("FetchPartition", (
            ("partition_index", "PartitionIndex", "int32", 0, (1, 2), None, None, None, None, 0, 0),
            ("partition_max_bytes", "PartitionMaxBytes", "int32", 0, (1, 0), None, None, None, None, 0, 0),
            ("acknowledgement_batches", "AcknowledgementBatches", "AcknowledgementBatch", 1, (1, 2), None, None, None, None, 0, ""),
        )),
        ("AcknowledgementBatch", (
            ("first_offset", "FirstOffset", "int64", 0, (1, 2), None, None, None, None, 0, 0),
            ("last_offset", "LastOffset", "int64", 0, (1, 2), None, None, None, None, 0, 0),
            ("acknowledge_types", "AcknowledgeTypes", "int8", 1, (1, 2), None, None, None, None, 0, ""),
        )),
        ("ForgottenTopic", (
            ("topic_id", "TopicId", "uuid", 0, (1, 2), None, None, None, None, 0, ""),
            ("partitions", "Partitions", "int32", 1, (1, 2), None, None, None, None, 0, ""),
        )),
    ),
)
