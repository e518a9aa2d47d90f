"""InitProducerIdRequest: a request of key 22, versions 0-6, flexible 2+.

Generated from schemas/InitProducerIdRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class InitProducerIdRequest(Message):
    transactional_id: str | None = ""
    transaction_timeout_ms: int = 0
    producer_id: int = -1
    producer_epoch: int = -1
    enable2_pc: bool = False
    keep_prepared_txn: bool = False
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "InitProducerIdRequest", 22, "request",
    (0, 6), (2, 32767),
    (
        ("InitProducerIdRequest", (
            ("transactional_id", "TransactionalId", "string", 0, (0, 6), (0, 32767), None, None, None, 0, ""),
            ("transaction_timeout_ms", "TransactionTimeoutMs", "int32", 0, (0, 6), None, None, None, None, 0, 0),
            ("producer_id", "ProducerId", "int64", 0, (3, 6), None, None, None, None, 0, -1),
            ("producer_epoch", "ProducerEpoch", "int16", 0, (3, 6), None, None, None, None, 0, -1),
            ("enable2_pc", "Enable2Pc", "bool", 0, (6, 6), None, None, None, None, 0, 0),
            ("keep_prepared_txn", "KeepPreparedTxn", "bool", 0, (6, 6), None, None, None, None, 0, 0),
        )),
    ),
)
