"""EndTxnResponse: a response of key 26, versions 0-5, flexible 3+.

Generated from schemas/EndTxnResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class EndTxnResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    producer_id: int = -1
    producer_epoch: int = -1
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "EndTxnResponse", 26, "response",
    (0, 5), (3, 32767),
    (
        ("EndTxnResponse", (
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (0, 5), None, None, None, None, 0, 0),
            ("error_code", "ErrorCode", "int16", 0, (0, 5), None, None, None, None, 0, 0),
            ("producer_id", "ProducerId", "int64", 0, (5, 5), None, None, None, None, 1, -1),
            ("producer_epoch", "ProducerEpoch", "int16", 0, (5, 5), None, None, None, None, 1, -1),
        )),
    ),
)
