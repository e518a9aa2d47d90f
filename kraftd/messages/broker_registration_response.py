"""BrokerRegistrationResponse: a response of key 62, versions 0-4, flexible 0+.

Generated from schemas/BrokerRegistrationResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class BrokerRegistrationResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    broker_epoch: int = -1
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "BrokerRegistrationResponse", 62, "response",
    (0, 4), (0, 32767),
    (
        ("BrokerRegistrationResponse", (
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (0, 4), None, None, None, None, 0, 0),
            ("error_code", "ErrorCode", "int16", 0, (0, 4), None, None, None, None, 0, 0),
            ("broker_epoch", "BrokerEpoch", "int64", 0, (0, 4), None, None, None, None, 0, -1),
        )),
    ),
)
