"""InitProducerIdResponse: a response of key 22, versions 0-6, flexible 2+.

Generated from schemas/InitProducerIdResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class InitProducerIdResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    producer_id: int = -1
    producer_epoch: int = 0
    ongoing_txn_producer_id: int = -1
    ongoing_txn_producer_epoch: int = -1
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "InitProducerIdResponse", 22, "response",
    (0, 6), (2, 32767),
    (
        ("InitProducerIdResponse", (
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (0, 6), None, None, None, None, 1, 0),
            ("error_code", "ErrorCode", "int16", 0, (0, 6), None, None, None, None, 0, 0),
            ("producer_id", "ProducerId", "int64", 0, (0, 6), None, None, None, None, 0, -1),
            ("producer_epoch", "ProducerEpoch", "int16", 0, (0, 6), None, None, None, None, 0, 0),
            ("ongoing_txn_producer_id", "OngoingTxnProducerId", "int64", 0, (6, 6), None, None, None, None, 0, -1),
            ("ongoing_txn_producer_epoch", "OngoingTxnProducerEpoch", "int16", 0, (6, 6), None, None, None, None, 0, -1),
        )),
    ),
)
