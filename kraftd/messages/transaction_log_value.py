"""TransactionLogValue: the value of a transaction coordinator's record of key 0, versions 0-1, flexible 1+.

Generated from schemas/TransactionLogValue.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class PartitionsSchema(Message):
    topic: str = ""
    partition_ids: tuple[int, ...] = ()
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class TransactionLogValue(Message):
    producer_id: int = 0
    previous_producer_id: int = -1
    next_producer_id: int = -1
    producer_epoch: int = 0
    next_producer_epoch: int = -1
    transaction_timeout_ms: int = 0
    transaction_status: int = 0
    transaction_partitions: list[PartitionsSchema] | None = []
    transaction_last_update_timestamp_ms: int = 0
    transaction_start_timestamp_ms: int = 0
    client_transaction_version: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "TransactionLogValue", 0, "coordinator-value",
    (0, 1), (1, 32767),
    (
        ("TransactionLogValue", (
            ("producer_id", "ProducerId", "int64", 0, (0, 1), None, None, None, None, 0, 0),
            ("previous_producer_id", "PreviousProducerId", "int64", 0, (1, 1), None, (1, 32767), 0, None, 0, -1),
            ("next_producer_id", "NextProducerId", "int64", 0, (1, 1), None, (1, 32767), 1, None, 0, -1),
            ("producer_epoch", "ProducerEpoch", "int16", 0, (0, 1), None, None, None, None, 0, 0),
            ("next_producer_epoch", "NextProducerEpoch", "int16", 0, (1, 1), None, (1, 32767), 3, None, 0, -1),
            ("transaction_timeout_ms", "TransactionTimeoutMs", "int32", 0, (0, 1), None, None, None, None, 0, 0),
            ("transaction_status", "TransactionStatus", "int8", 0, (0, 1), None, None, None, None, 0, 0),
            ("transaction_partitions", "TransactionPartitions", "PartitionsSchema", 1, (0, 1), (0, 32767), None, None, None, 0, ""),
            ("transaction_last_update_timestamp_ms", "TransactionLastUpdateTimestampMs", "int64", 0, (0, 1), None, None, None, None, 0, 0),
            ("transaction_start_timestamp_ms", "TransactionStartTimestampMs", "int64", 0, (0, 1), None, None, None, None, 0, 0),
            ("client_transaction_version", "ClientTransactionVersion", "int16", 0, (1, 1), None, (1, 32767), 2, None, 0, 0),
        )),
        ("PartitionsSchema", (
            ("topic", "Topic", "string", 0, (0, 1), None, None, None, None, 0, ""),
            ("partition_ids", "PartitionIds", "int32", 1, (0, 1), None, None, None, None, 0, ""),
        )),
    ),
)
