"""ApiVersionsResponse: a response of key 18, versions 0-4, flexible 3+.

Generated from schemas/ApiVersionsResponse.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class ApiVersion(Message):
    api_key: int = 0
    min_version: int = 0
    max_version: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class SupportedFeatureKey(Message):
    name: str = ""
    min_version: int = 0
    max_version: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class FinalizedFeatureKey(Message):
    name: str = ""
    max_version_level: int = 0
    min_version_level: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class ApiVersionsResponse(Message):
    error_code: int = 0
    api_keys: list[ApiVersion] = []
    throttle_time_ms: int = 0
    supported_features: list[SupportedFeatureKey] = []
    finalized_features_epoch: int = -1
    finalized_features: list[FinalizedFeatureKey] = []
    zk_migration_ready: bool = False
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "ApiVersionsResponse", 18, "response",
    (0, 4), (3, 32767),
    (
        ("ApiVersionsResponse", (
            ("error_code", "ErrorCode", "int16", 0, (0, 4), None, None, None, None, 0, 0),
            ("api_keys", "ApiKeys", "ApiVersion", 1, (0, 4), None, None, None, None, 0, ""),
            ("throttle_time_ms", "ThrottleTimeMs", "int32", 0, (1, 4), None, None, None, None, 1, 0),
            ("supported_features", "SupportedFeatures", "SupportedFeatureKey", 1, (3, 4), None, (3, 32767), 0, None, 1, ""),
            ("finalized_features_epoch", "FinalizedFeaturesEpoch", "int64", 0, (3, 4), None, (3, 32767), 1, None, 1, -1),
            ("finalized_features", "FinalizedFeatures", "FinalizedFeatureKey", 1, (3, 4), None, (3, 32767), 2, None, 1, ""),
            ("zk_migration_ready", "ZkMigrationReady", "bool", 0, (3, 4), None, (3, 32767), 3, None, 1, 0),
        )),
        ("ApiVersion", (
            ("api_key", "ApiKey", "int16", 0, (0, 4), None, None, None, None, 0, 0),
            ("min_version", "MinVersion", "int16", 0, (0, 4), None, None, None, None, 0, 0),
            ("max_version", "MaxVersion", "int16", 0, (0, 4), None, None, None, None, 0, 0),
        )),
        ("SupportedFeatureKey", (
            ("name", "Name", "string", 0, (3, 4), None, None, None, None, 0, ""),
            ("min_version", "MinVersion", "int16", 0, (3, 4), None, None, None, None, 0, 0),
            ("max_version", "MaxVersion", "int16", 0, (3, 4), None, None, None, None, 0, 0),
        )),
        ("FinalizedFeatureKey", (
            ("name", "Name", "string", 0, (3, 4), None, None, None, None, 0, ""),
            ("max_version_level", "MaxVersionLevel", "int16", 0, (3, 4), None, None, None, None, 0, 0),
            ("min_version_level", "MinVersionLevel", "int16", 0, (3, 4), None, None, None, None, 0, 0),
        )),
    ),
)
