"""ControllerRegistrationRequest: a request of key 70, versions 0, flexible 0+.

Generated from schemas/ControllerRegistrationRequest.json; do not edit.
"""

from __future__ import annotations

from kraftd.wire.message import Message, Table


class Listener(Message):
    name: str = ""
    host: str = ""
    port: int = 0
    security_protocol: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class Feature(Message):
    name: str = ""
    min_supported_version: int = 0
    max_supported_version: int = 0
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


class ControllerRegistrationRequest(Message):
    controller_id: int = 0
    incarnation_id: bytes = bytes(16)
    zk_migration_ready: bool = False
    listeners: list[Listener] = []
    features: list[Feature] = []
    unknown_tags: tuple[tuple[int, bytes], ...] = ()


SCHEMA: Table = (
    "ControllerRegistrationRequest", 70, "request",
    (0, 0), (0, 32767),
    (
        ("ControllerRegistrationRequest", (
            ("controller_id", "ControllerId", "int32", 0, (0, 0), None, None, None, None, 0, 0),
            ("incarnation_id", "IncarnationId", "uuid", 0, (0, 0), None, None, None, None, 0, ""),
            ("zk_migration_ready", "ZkMigrationReady", "bool", 0, (0, 0), None, None, None, None, 0, 0),
            ("listeners", "Listeners", "Listener", 1, (0, 0), None, None, None, None, 0, ""),
            ("features", "Features", "Feature", 1, (0, 0), None, None, None, None, 0, ""),
        )),
        ("Listener", (
            ("name", "Name", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("host", "Host", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("port", "Port", "uint16", 0, (0, 0), None, None, None, None, 0, 0),
            ("security_protocol", "SecurityProtocol", "int16", 0, (0, 0), None, None, None, None, 0, 0),
        )),
        ("Feature", (
            ("name", "Name", "string", 0, (0, 0), None, None, None, None, 0, ""),
            ("min_supported_version", "MinSupportedVersion", "int16", 0, (0, 0), None, None, None, None, 0, 0),
            ("max_supported_version", "MaxSupportedVersion", "int16", 0, (0, 0), None, None, None, None, 0, 0),
        )),
    ),
)
