"""AddPartitionsToTxnResponse: a response of key 24, versions 0-5, flexible 3+.

Generated from schemas/AddPartitionsToTxnResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class AddPartitionsToTxnPartitionResult(Message):
    partition_index: int = 0
    partition_error_code: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class AddPartitionsToTxnTopicResult(Message):
    name: str = ""
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class AddPartitionsToTxnResult(Message):
    transactional_id: str = ""
    topic_results: list[AddPartitionsToTxnTopicResult] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class AddPartitionsToTxnResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    results_by_transaction: list[AddPartitionsToTxnResult] = []
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "AddPartitionsToTxnResponse", 24, "response",
    (0, 5), (3, 32767),
    (
        ("AddPartitionsToTxnResponse", (
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (0, 5), None, None, None, None, 0, 0),
            ("error_code", "ErrorCode", "int16", 0, (4, 5), None, None, None, None, 1, 0),
            ("results_by_transaction", "ResultsByTransaction", "AddPartitionsToTxnResult", 1, (4, 5), None, None, None, None, 0, ""),
            ("results_by_topic_v3_and_below", "ResultsByTopicV3AndBelow", "AddPartitionsToTxnTopicResult", 1, (0, 3), None, None, None, None, 0, ""),
        )),
        ("AddPartitionsToTxnResult", (
            ("transactional_id", "TransactionalId", "string", 0, (4, 5), None, None, None, None, 0, ""),
            ("topic_results", "TopicResults", "AddPartitionsToTxnTopicResult", 1, (4, 5), None, None, None, None, 0, ""),
        )),
        ("AddPartitionsToTxnTopicResult", (
            ("name", "Name", "string", 0, (0, 5), None, None, None, None, 0, ""),
            ("results_by_partition", "ResultsByPartition", "AddPartitionsToTxnPartitionResult", 1, (0, 5), None, None, None, None, 0, ""),
        )),
        ("AddPartitionsToTxnPartitionResult", (
            ("partition_index", "PartitionIndex", "int32", 0, (0, 5), None, None, None, None, 0, 0),
            ("partition_error_code", "PartitionErrorCode", "int16", 0, (0, 5), None, None, None, None, 0, 0),
        )),
    ),
)
