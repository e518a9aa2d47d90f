"""GetTelemetrySubscriptionsResponse: a response of key 71, versions 0, flexible 0+.

Generated from schemas/GetTelemetrySubscriptionsResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class GetTelemetrySubscriptionsResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    client_instance_id: bytes = bytes(16)
    subscription_id: int = 0
    accepted_compression_types: tuple[int, ...] = ()
    push_interval_ms: int = 0
    telemetry_max_bytes: int = 0
    delta_temporality: bool = False
    requested_metrics: tuple[str, ...] = ()
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "GetTelemetrySubscriptionsResponse", 71, "response",
    (0, 0), (0, 32767),
    (
        ("GetTelemetrySubscriptionsResponse", (
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("error_code", "ErrorCode", "int16", 0, (0, 0), None, None, None, None, 0, 0),
            ("client_instance_id", "ClientInstanceId", "uuid", 0, (0, 0), None, None, None, None, 0, ""),
            ("subscription_id", "SubscriptionId", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("accepted_compression_types", "AcceptedCompressionTypes", "int8", 1, (0, 0), None, None, None, None, 0, ""),
            ("push_interval_ms", "PushIntervalMs", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("telemetry_max_bytes", "TelemetryMaxBytes", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("delta_temporality", "DeltaTemporality", "bool", 0, (0, 0), None, None, None, None, 0, 0),
            ("requested_metrics", "RequestedMetrics", "string", 1, (0, 0), None, None, None, None, 0, ""),
        )),
    ),
)
