"""DescribeTransactionsResponse: a response of key 65, versions 0, flexible 0+.

Generated from schemas/DescribeTransactionsResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class TopicData(Message):
    topic: str = ""
    partitions: tuple[int, ...] = ()
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class TransactionState(Message):
    error_code: int = 0
    transactional_id: str = ""
    transaction_state: str = ""
    transaction_timeout_ms: int = 0
    transaction_start_time_ms: int = 0
    producer_id: int = 0
    producer_epoch: int = 0
    topics: list[TopicData] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class DescribeTransactionsResponse(Message):
    throttle_time_ms: int = 0
    transaction_states: list[TransactionState] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "DescribeTransactionsResponse", 65, "response",
    (0, 0), (0, 32767),
    (
        ("DescribeTransactionsResponse", (
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("transaction_states", "TransactionStates", "TransactionState", 1, (0, 0), None, None, None, None, 0, ""),
        )),
        ("TransactionState", (
            ("error_code", "ErrorCode", "int16", 0, (0, 0), None, None, None, None, 0, 0),
            ("transactional_id", "TransactionalId", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("transaction_state", "TransactionState", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("transaction_timeout_ms", "TransactionTimeoutMs", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("transaction_start_time_ms", "TransactionStartTimeMs", "int64", 0, (0, 0), None, None, None, None, 0, 0),
            ("producer_id", "ProducerId", "int64", 0, (0, 0), None, None, None, None, 0, 0),
            ("producer_epoch", "ProducerEpoch", "int16", 0, (0, 0), None, None, None, None, 0, 0),
            ("topics", "Topics", "TopicData", 1, (0, 0), None, None, None, None, 0, ""),
        )),
        ("TopicData", (
            ("topic", "Topic", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("partitions", "Partitions", "int32", 1, (0, 0), None, None, None, None, 0, ""),
        )),
    ),
)
