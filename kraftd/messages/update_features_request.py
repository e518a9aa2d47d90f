"""UpdateFeaturesRequest: a request of key 57, versions 0-2, flexible 0+.

Generated from schemas/UpdateFeaturesRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class FeatureUpdateKey(Message):
    feature: str = ""
    max_version_level: int = 0
    allow_downgrade: bool = False
    upgrade_type: int = 1
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class UpdateFeaturesRequest(Message):
    timeout_ms: int = 60000
    feature_updates: list[FeatureUpdateKey] = []
    validate_only: bool = False
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "UpdateFeaturesRequest", 57, "request",
    (0, 2), (0, 32767),
    (
        ("UpdateFeaturesRequest", (
            ("timeout_ms", "timeoutMs", "int32", 0, (0, 2), None, None, None, None, 0, 60000),
            ("feature_updates", "FeatureUpdates", "FeatureUpdateKey", 1, (0, 2), None, None, None, None, 0, ""),
            ("validate_only", "ValidateOnly", "bool", 0, (1, 2), None, None, None, None, 0, 0),
        )),
        ("FeatureUpdateKey", (
            ("feature", "Feature", "string", 0, (0, 2), None, None, None, None, 0, ""),
            ("max_version_level", "MaxVersionLevel", "int16", 0, (0, 2), None, None, None, None, 0, 0),
            ("allow_downgrade", "AllowDowngrade", "bool", 0, (0, 0), None, None, None, None, 0, 0),
            ("upgrade_type", "UpgradeType", "int8", 0, (1, 2), None, None, None, None, 0, 1),
        )),
    ),
)
