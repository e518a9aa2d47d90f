"""UpdateFeaturesResponse: a response of key 57, versions 0-2, flexible 0+.

Generated from schemas/UpdateFeaturesResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class UpdatableFeatureResult(Message):
    feature: str = ""
    error_code: int = 0
    error_message: str | None = ""
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class UpdateFeaturesResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    results: list[UpdatableFeatureResult] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "UpdateFeaturesResponse", 57, "response",
    (0, 2), (0, 32767),
    (
        ("UpdateFeaturesResponse", (
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (0, 2), None, None, None, None, 0, 0),
            ("error_code", "ErrorCode", "int16", 0, (0, 2), None, None, None, None, 0, 0),
            ("error_message", "ErrorMessage", "string", 0, (0, 2), (0, 32767), None, None, None, 0, ""),
            ("results", "Results", "UpdatableFeatureResult", 1, (0, 1), None, None, None, None, 1, ""),
        )),
        ("UpdatableFeatureResult", (
            ("feature", "Feature", "string", 0, (0, 1), None, None, None, None, 0, ""),
            ("error_code", "ErrorCode", "int16", 0, (0, 1), None, None, None, None, 0, 0),
            ("error_message", "ErrorMessage", "string", 0, (0, 1), (0, 32767), None, None, None, 0, ""),
        )),
    ),
)
