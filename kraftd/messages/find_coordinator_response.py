"""FindCoordinatorResponse: a response of key 10, versions 0-6, flexible 3+.

Generated from schemas/FindCoordinatorResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class Coordinator(Message):
    key: str = ""
    node_id: int = 0
    host: str = ""
    port: int = 0
    error_code: int = 0
    error_message: str | None = ""
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class FindCoordinatorResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    node_id: int = 0
    host: str = ""
    port: int = 0
    coordinators: list[Coordinator] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "FindCoordinatorResponse", 10, "response",
    (0, 6), (3, 32767),
    (
        ("FindCoordinatorResponse", (
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (1, 6), None, None, None, None, 1, 0),
            ("error_code", "ErrorCode", "int16", 0, (0, 3), None, None, None, None, 0, 0),
            ("error_message", "ErrorMessage", "string", 0, (1, 3), (1, 3), None, None, None, 1, ""),
            ("node_id", "NodeId", "int32", 0, (0, 3), None, None, None, None, 0, 0),
            ("host", "Host", "string", 0, (0, 3), None, None, None, None, 0, ""),
            ("port", "Port", "int32", 0, (0, 3), None, None, None, None, 0, 0),
            ("coordinators", "Coordinators", "Coordinator", 1, (4, 6), None, None, None, None, 0, ""),
        )),
        ("Coordinator", (
            ("key", "Key", "string", 0, (4, 6), None, None, None, None, 0, ""),
            ("node_id", "NodeId", "int32", 0, (4, 6), None, None, None, None, 0, 0),
            ("host", "Host", "string", 0, (4, 6), None, None, None, None, 0, ""),
            ("port", "Port", "int32", 0, (4, 6), None, None, None, None, 0, 0),
            ("error_code", "ErrorCode", "int16", 0, (4, 6), None, None, None, None, 0, 0),
            ("error_message", "ErrorMessage", "string", 0, (4, 6), (4, 32767), None, None, None, 1, ""),
        )),
    ),
)
