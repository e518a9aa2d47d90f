"""PushTelemetryRequest: a request of key 72, versions 0, flexible 0+.

Generated from schemas/PushTelemetryRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class PushTelemetryRequest(Message):
    client_instance_id: bytes = bytes(16)
    subscription_id: int = 0
    terminating: bool = False
    compression_type: int = 0
    metrics: bytes = b""
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "PushTelemetryRequest", 72, "request",
    (0, 0), (0, 32767),
    (
        ("PushTelemetryRequest", (
            ("client_instance_id", "ClientInstanceId", "uuid", 0, (0, 0), None, None, None, None, 0, ""),
            ("subscription_id", "SubscriptionId", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("terminating", "Terminating", "bool", 0, (0, 0), None, None, None, None, 0, 0),
            ("compression_type", "CompressionType", "int8", 0, (0, 0), None, None, None, None, 0, 0),
            ("metrics", "Metrics", "bytes", 0, (0, 0), None, None, None, None, 0, ""),
        )),
    ),
)
