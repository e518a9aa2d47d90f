"""AllocateProducerIdsResponse: a response of key 67, versions 0, flexible 0+.

Generated from schemas/AllocateProducerIdsResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class AllocateProducerIdsResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    producer_id_start: int = 0
    producer_id_len: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "AllocateProducerIdsResponse", 67, "response",
    (0, 0), (0, 32767),
    (
        ("AllocateProducerIdsResponse", (
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("error_code", "ErrorCode", "int16", 0, (0, 0), None, None, None, None, 0, 0),
            ("producer_id_start", "ProducerIdStart", "int64", 0, (0, 0), None, None, None, None, 0, 0),
            ("producer_id_len", "ProducerIdLen", "int32", 0, (0, 0), None, None, None, None, 0, 0),
        )),
    ),
)
