"""BrokerHeartbeatResponse: a response of key 63, versions 0-2, flexible 0+.

Generated from schemas/BrokerHeartbeatResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class BrokerHeartbeatResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    is_caught_up: bool = False
    is_fenced: bool = True
    should_shut_down: bool = False
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "BrokerHeartbeatResponse", 63, "response",
    (0, 2), (0, 32767),
    (
        ("BrokerHeartbeatResponse", (
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (0, 2), None, None, None, None, 0, 0),
            ("error_code", "ErrorCode", "int16", 0, (0, 2), None, None, None, None, 0, 0),
            ("is_caught_up", "IsCaughtUp", "bool", 0, (0, 2), None, None, None, None, 0, 0),
            ("is_fenced", "IsFenced", "bool", 0, (0, 2), None, None, None, None, 0, 1),
            ("should_shut_down", "ShouldShutDown", "bool", 0, (0, 2), None, None, None, None, 0, 0),
        )),
    ),
)
