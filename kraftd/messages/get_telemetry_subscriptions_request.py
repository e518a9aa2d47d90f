"""GetTelemetrySubscriptionsRequest: a request of key 71, versions 0, flexible 0+.

Generated from schemas/GetTelemetrySubscriptionsRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class GetTelemetrySubscriptionsRequest(Message):
    client_instance_id: bytes = bytes(16)
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "GetTelemetrySubscriptionsRequest", 71, "request",
    (0, 0), (0, 32767),
    (
        ("GetTelemetrySubscriptionsRequest", (
            ("client_instance_id", "ClientInstanceId", "uuid", 0, (0, 0), None, None, None, None, 0, ""),
        )),
    ),
)
