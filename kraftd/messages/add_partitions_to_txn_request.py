"""AddPartitionsToTxnRequest: a request of key 24, versions 0-5, flexible 3+.

Generated from schemas/AddPartitionsToTxnRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class AddPartitionsToTxnTopic(Message):
    name: str = ""
    partitions: tuple[int, ...] = ()
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class AddPartitionsToTxnTransaction(Message):
    transactional_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    verify_only: bool = False
    topics: list[AddPartitionsToTxnTopic] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class AddPartitionsToTxnRequest(Message):
    transactions: list[AddPartitionsToTxnTransaction] = []
    v3_and_below_transactional_id: str = ""
    v3_and_below_producer_id: int = 0
    v3_and_below_producer_epoch: int = 0
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "AddPartitionsToTxnRequest", 24, "request",
    (0, 5), (3, 32767),
    (
        ("AddPartitionsToTxnRequest", (
            ("transactions", "Transactions", "AddPartitionsToTxnTransaction", 1, (4, 5), None, None, None, None, 0, ""),
            ("v3_and_below_transactional_id", "V3AndBelowTransactionalId", "string", 0, (0, 3), None, None, None, None, 0, ""),
            ("v3_and_below_producer_id", "V3AndBelowProducerId", "int64", 0, (0, 3), None, None, None, None, 0, 0),
            ("v3_and_below_producer_epoch", "V3AndBelowProducerEpoch", "int16", 0, (0, 3), None, None, None, None, 0, 0),
            ("v3_and_below_topics", "V3AndBelowTopics", "AddPartitionsToTxnTopic", 1, (0, 3), None, None, None, None, 0, ""),
        )),
        ("AddPartitionsToTxnTransaction", (
            ("transactional_id", "TransactionalId", "string", 0, (4, 5), None, None, None, None, 0, ""),
            ("producer_id", "ProducerId", "int64", 0, (4, 5), None, None, None, None, 0, 0),
            ("producer_epoch", "ProducerEpoch", "int16", 0, (4, 5), None, None, None, None, 0, 0),
            ("verify_only", "VerifyOnly", "bool", 0, (4, 5), None, None, None, None, 0, 0),
            ("topics", "Topics", "AddPartitionsToTxnTopic", 1, (4, 5), None, None, None, None, 0, ""),
        )),
        ("AddPartitionsToTxnTopic", (
            ("name", "Name", "string", 0, (0, 5), None, None, None, None, 0, ""),
            ("partitions", "Partitions", "int32", 1, (0, 5), None, None, None, None, 0, ""),
        )),
    ),
)
